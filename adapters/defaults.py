"""Ready answers for "this agent cannot do that".

An agent's module assigns them to the names of :class:`adapters.contract.Adapter`; an agent of
which only the past can be read, for example::

    from adapters import defaults

    KNOWN_BY_FILE = defaults.known_by_id
    ENVIRONMENT = defaults.no_environment
    EVENTS = defaults.no_events
    session_of = defaults.no_session_of
    translate = defaults.no_translate
    presence = defaults.no_presence
    inspect = defaults.no_inspect
    install = uninstall = defaults.no_install
    records_root = defaults.no_records_root
    folders_of = defaults.no_folders
    read_record = defaults.no_read_record
    session_file = defaults.no_session_file
    read_tail = defaults.no_read_tail
"""

from pathlib import Path
from typing import Iterator, Mapping, Optional, Tuple

from adapters.contract import (
    AdapterError,
    HookPayload,
    Inspection,
    InstallContext,
    InstallReport,
    PastSession,
    ProcessRecord,
    ReadReport,
    SessionState,
    Tail,
    Translation,
)

no_events: Tuple[str, ...] = ()
"""No hook events."""

no_environment: Tuple[Tuple[str, str], ...] = ()
"""No environment variables."""

known_by_id: bool = False
"""A terminal multiplexer knows its sessions by their ids."""


def no_session_of(payload: HookPayload) -> str:
    """No payload speaks of a session."""
    return ""


def no_translate(payload: HookPayload, state: Optional[SessionState]) -> Translation:
    """Every payload is one that was never heard of."""
    return Translation(event_name="", known=False)


def no_sessions_root(home: Path, environ: Mapping[str, str]) -> Path:
    """A folder that holds no sessions: the home itself, which is never searched."""
    return home


def no_session_files(root: Path, newer_than_s: float, report: ReadReport) -> Iterator[Path]:
    """No session files."""
    return iter(())


def no_read_session(
    path: Path, needles: Tuple[bytes, ...], cwd: Optional[str], report: ReadReport
) -> PastSession:
    """A session without an id or a card; the file is reported as left out."""
    report.skipped.append((str(path), "this agent's session files cannot be read"))
    return PastSession(session_id="", session_file=None, updated_at=None, card_paths=())


def no_read_sessions(
    path: Path, needles: Tuple[bytes, ...], newer_than_s: float, report: ReadReport
) -> Iterator[PastSession]:
    """No sessions in any file."""
    return iter(())


def no_records_root(home: Path, environ: Mapping[str, str]) -> Optional[Path]:
    """The agent keeps no record of its processes."""
    return None


def no_folders(session_file: Path) -> Optional[Tuple[Path, Path]]:
    """No folder has records."""
    return None


def no_read_record(path: Path) -> Optional[ProcessRecord]:
    """No file is a record."""
    return None


def no_session_file(root: Path, session_id: str) -> Optional[Path]:
    """No session has a file."""
    return None


def no_read_tail(path: Path, session_id: str) -> Optional[Tail]:
    """The end of a file says nothing."""
    return None


def no_presence(context: InstallContext) -> Optional[str]:
    """It cannot be told whether the agent is there."""
    return None


def no_install(context: InstallContext) -> InstallReport:
    """There is nothing to install or to remove. Always raises AdapterError."""
    raise AdapterError("this agent has no integration to install")


def no_inspect(context: InstallContext) -> Inspection:
    """There is no integration to look at."""
    return Inspection(state="absent", place="", loaded=None)
