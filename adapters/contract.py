"""What the companion may ask of an agent, and the records in which the agent's module answers.

An adapter is a *module* that satisfies :class:`Adapter`; nobody subclasses. Answers for "this
agent cannot do that" stand ready in :mod:`adapters.defaults`.
"""

from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Protocol, Tuple, Union


class AdapterError(Exception):
    """A file or record of the agent has a form that its adapter does not understand.

    Carries the file (when there is one) and the reason, both fit to be shown to a person.
    """

    def __init__(self, reason: str, path: Optional[Path] = None) -> None:
        super().__init__(reason if path is None else f"{path}: {reason}")
        self.reason = reason
        self.path = path


class Status(str, Enum):
    """The five statuses of a session; the values are the contract's words."""

    IDLE = "idle"
    RUNNING = "running"
    WAITING_FOR_INPUT = "waiting_for_input"
    READY_FOR_REVIEW = "ready_for_review"
    CLOSED = "closed"


HookPayload = Mapping[str, object]
"""One hook body as the agent sent it: a JSON object of which nothing is to be believed."""

SessionState = Dict[str, object]
"""What an adapter remembers of one session between events: a JSON object, below 64 KiB, which
only the adapter reads. The companion keeps it across restarts and forgets the oldest."""


@dataclass(frozen=True)
class HookEvent:
    """One thing worth publishing: every card of the session gets ``status``."""

    session_id: str
    """The agent's own id, never empty."""
    status: Status
    card_paths: Tuple[str, ...] = ()
    """Candidate card paths found in this event, in order, without duplicates, not normalised."""
    session_file: Optional[str] = None
    """The agent's session file, as the agent spells it; None when it did not say."""
    discover_from: Optional[str] = None
    """A session file whose older cards are to be read in (resume); None for most events."""
    paused: bool = False
    """The main thread has stopped, but what it started works on: the agent may call itself idle."""
    discover_cwd: Optional[str] = None
    """Folder against which relative paths of ``discover_from`` are resolved when an entry has none."""


@dataclass(frozen=True)
class Translation:
    """What one payload meant. Nothing here is an error: a payload of no use has ``event`` None."""

    event_name: str
    """As sent, at most 64 characters; empty when the payload carries no usable name."""
    known: bool
    """False for an event that this adapter has never heard of: it is counted and shown."""
    state: Optional[SessionState] = None
    """The session's new state; None when this event leaves it as it was."""
    event: Optional[HookEvent] = None


@dataclass
class ReadReport:
    """What a reader understood of foreign files, and what it did not."""

    records: int = 0
    """Lines or rows that were looked at and understood."""
    damaged: int = 0
    """Lines or rows that could not be parsed (torn, spliced, not JSON)."""
    damaged_in: Dict[str, int] = field(default_factory=dict)
    """The same by place: a session's file, or a store and a session in it."""
    unknown: Dict[str, int] = field(default_factory=dict)
    """Record types this version has never seen, with their counts."""
    skipped: List[Tuple[str, str]] = field(default_factory=list)
    """Files left out: (path, reason)."""
    incomplete: bool = False
    """There may be sessions that could not be read: nothing may be concluded from their absence."""
    share: float = 0.0
    """How much of the file at hand was read, 0 to 1; of use where one file holds many sessions."""

    @contextmanager
    def damage_in(self, place: object) -> Iterator[None]:
        """Whatever damage is met meanwhile was met there."""
        before = self.damaged
        try:
            yield
        finally:
            if self.damaged > before:
                known = self.damaged_in.get(str(place), 0)
                self.damaged_in[str(place)] = known + self.damaged - before

    def add(self, other: "ReadReport") -> None:
        """Take in what was reported of other files."""
        self.records += other.records
        self.damaged += other.damaged
        self.skipped += other.skipped
        self.incomplete |= other.incomplete
        for mine, theirs in ((self.damaged_in, other.damaged_in), (self.unknown, other.unknown)):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count

    def unread(self, path: object, cause: Union[str, Exception]) -> None:
        """Leave out what may hold sessions, or a part of one; ``cause`` is for people."""
        reason = getattr(cause, "strerror", None) or str(cause)
        self.skipped.append((str(path), reason))
        self.incomplete = True


@dataclass(frozen=True)
class PastSession:
    """One session as its file on disk tells it."""

    session_id: str
    """Empty when the file names none; such a session is counted as scanned, never matched."""
    session_file: Optional[str]
    """None when this is no session of its own (a sub-agent's log, a file that cannot be read): it is
    then not counted either, and stands in the report."""
    updated_at: Optional[str]
    """The greatest timestamp in the file (UTC ISO-8601), None when there is none."""
    card_paths: Tuple[str, ...]
    """Candidate card paths in order of discovery, without duplicates, not normalised."""


@dataclass(frozen=True)
class ProcessRecord:
    """What an agent itself keeps of one of its running processes. Every part may be missing."""

    session_id: str
    """Never empty."""
    pid: int
    begun: Optional[str] = None
    """When the process began, as the system spells it (Linux: field 22 of ``/proc/PID/stat``)."""
    domain: Optional[str] = None
    """The pid namespace in which ``pid`` counts, as ``pid:[4026531836]``; None: not said."""
    status: Optional[Status] = None
    """None: the agent did not say."""
    said: str = ""
    """The agent's own words for it, for people."""
    said_at_s: Optional[float] = None
    """Since when, in Unix seconds."""
    cwd: Optional[str] = None
    automated: bool = False
    """Started by a program, not by a person at a terminal."""


class Mark(str, Enum):
    """In what state the end of a session's file shows the session."""

    EMPTY = "empty"
    """Nobody has said anything yet."""
    WORKING = "working"
    """The agent owes an answer, or a tool its result."""
    ASKING = "asking"
    """A question to the person is open."""
    INTERRUPTED = "interrupted"
    """The person stopped the turn, or refused a tool."""
    ENDED = "ended"
    """The agent's answer ends its turn, or an error does."""


@dataclass(frozen=True)
class Tail:
    """What the end of a session's file says."""

    mark: Mark
    at_s: Optional[float] = None
    """Time of the entry that says so, in Unix seconds."""
    said: str = ""
    """That entry in a few words of ours, for people; nothing of its content."""
    cwd: Optional[str] = None
    """The newest folder that an entry names."""


@dataclass(frozen=True)
class InstallContext:
    """Everything an installer may know. Nothing is read from the process's own environment."""

    home: Path
    environ: Mapping[str, str]
    endpoint: str
    """Base URL of the companion without a trailing slash, e.g. ``http://127.0.0.1:51618``."""
    program: Path
    """Absolute path of ``mdello.pyz``, or of ``mdello.py`` in a checkout."""
    interpreter: str
    """Absolute path of the Python that runs us."""
    transport: str = "http"
    """``http`` or ``command``: how turn events travel; empty: as now installed, else ``http``."""
    which: Callable[[str], Optional[str]] = lambda name: None
    """Finds a program on PATH: name (or path) to absolute path, or None."""
    version: str = "0"
    """Our own version, for manifests."""
    ask: Optional[Callable[[str], str]] = None
    """Asks the person at the terminal one line; None when nobody can answer."""


@dataclass(frozen=True)
class InstallReport:
    """What an installer did, read back from disk after the fact."""

    headline: str
    """One line, e.g. ``Installed Claude plugin at <dir>``."""
    details: Tuple[str, ...] = ()
    """What was written or removed, one line each."""
    warnings: Tuple[str, ...] = ()
    """What may keep events away, each with what to do about it."""
    changed: bool = False
    """False when everything was in place already (or nothing was there to remove)."""


@dataclass(frozen=True)
class Inspection:
    """What can be seen of an integration from the disk alone."""

    state: str
    """``installed``, ``outdated`` (ours, but other content), ``foreign`` (not ours), ``absent``."""
    place: str
    """The directory or file in question."""
    loaded: Optional[bool]
    """False: the agent will not load it (disabled, blocked by policy); None: cannot be told."""
    notes: Tuple[str, ...] = ()
    """Reasons, each naming the file it was found in."""


class Integration(Protocol):
    """Something that can be connected to the companion and be disconnected again.

    Agents are integrations; so is what starts the companion at login.
    """

    NAME: str
    """The word on the command line; of an agent its harness name, the key in the registry."""
    TITLE: str
    """For people: ``Claude Code``."""

    def presence(self, context: InstallContext) -> Optional[str]:
        """Where on this machine it was found (its program, else its folder), or None; never raises."""

    def install(self, context: InstallContext) -> InstallReport:
        """Make it report to us. A second call changes nothing. AdapterError when refused."""

    def uninstall(self, context: InstallContext) -> InstallReport:
        """The exact inverse of :meth:`install`. AdapterError for what is not ours."""

    def inspect(self, context: InstallContext) -> Inspection:
        """How the integration stands on disk; never raises for foreign data."""


class Adapter(Integration, Protocol):
    """The names an agent's module must offer. Readers return what they could not read as well."""

    EVENTS: Tuple[str, ...]
    """Every hook event name this adapter knows; empty for an agent without hooks."""
    ENVIRONMENT: Tuple[Tuple[str, str], ...]
    """Environment variables that this adapter reads: (name, one line for the help text)."""
    KNOWN_BY_FILE: bool
    """Whether a terminal multiplexer knows its sessions by their files instead of their ids."""

    def session_of(self, payload: HookPayload) -> str:
        """The session id a payload speaks of, or an empty string."""

    def translate(self, payload: HookPayload, state: Optional[SessionState]) -> Translation:
        """Pure: what one payload means, given what is remembered of its session (None: unseen)."""

    def records_root(self, home: Path, environ: Mapping[str, str]) -> Optional[Path]:
        """The folder in which the agent keeps a file for each of its processes; None: it keeps none."""

    def folders_of(self, session_file: Path) -> Optional[Tuple[Path, Path]]:
        """(sessions root, records root) of the agent's folder in which a session's file lies; None when it
        keeps no records, or the file lies nowhere in particular. An agent may be told of several folders,
        of which the companion's own environment knows nothing."""

    def read_record(self, path: Path) -> Optional[ProcessRecord]:
        """One file of that folder; None for what is no record of a session.

        OSError as it comes; AdapterError for a form that is not understood."""

    def session_file(self, root: Path, session_id: str) -> Optional[Path]:
        """Where below :meth:`sessions_root` the file of a session is; None when it is not found."""

    def read_tail(self, path: Path, session_id: str) -> Optional[Tail]:
        """What the end of a session's file says; None when that is nothing. Reads a bounded part.

        OSError as it comes."""

    def sessions_root(self, home: Path, environ: Mapping[str, str]) -> Path:
        """Where the agent keeps its session files."""

    def session_files(self, root: Path, newer_than_s: float, report: ReadReport) -> Iterator[Path]:
        """Session files changed at or after ``newer_than_s`` (Unix seconds), in a stable order."""

    def read_session(
        self, path: Path, needles: Tuple[bytes, ...], cwd: Optional[str], report: ReadReport
    ) -> PastSession:
        """One session file. ``needles``: byte strings of which every line that leads to a card holds
        at least one (the names of the boards' folders); empty means: all paths are interesting.
        ``cwd``: the folder of relative paths in entries that name none of their own."""

    def read_sessions(
        self, path: Path, needles: Tuple[bytes, ...], newer_than_s: float, report: ReadReport
    ) -> Iterator[PastSession]:
        """Every session of one of :meth:`session_files` that changed at or after ``newer_than_s``.

        One for an agent that keeps a file per session; many for one that keeps a database.
        """
