"""Claude Code's transcripts: where they are, and which cards a past session worked on.

Sub-agents keep logs of their own, ``SESSION/subagents/agent-*.jsonl``. They are no sessions: what they
edit belongs to the session that sent them, and what they were told was not said by the user.
"""

from pathlib import Path
from typing import Iterator, List, Mapping, Optional, Tuple

from adapters.bytesearch import Needles
from adapters.claude.reading import Reading
from adapters.contract import PastSession, ReadReport
from adapters.jsonl import LineFile
from adapters.listing import entries_of, is_file, is_newer

SUBAGENTS = "subagents"
AGENT_PREFIX = "agent-"
SUFFIX = ".jsonl"


def sessions_root(home: Path, environ: Mapping[str, str]) -> Path:
    """``CLAUDE_SESSIONS_DIR``, else ``projects`` in Claude Code's folder. Empty values are unset."""
    override = environ.get("CLAUDE_SESSIONS_DIR", "")
    if override:
        return Path(override)
    folder = environ.get("CLAUDE_CONFIG_DIR", "")
    return (Path(folder) if folder else home / ".claude") / "projects"


def session_files(root: Path, newer_than_s: float, report: ReadReport) -> Iterator[Path]:
    """Transcripts changed at or after ``newer_than_s``, by name, a folder's files before its folders.

    Symlinks below the root are not followed. Folders that cannot be read, and the number of
    sub-agents' logs, are told to the report.
    """
    logs = 0
    folders = [root]
    while folders:
        folder = folders.pop()
        if folder.name == SUBAGENTS and folder != root:
            logs += len(_logs_in(folder, ReadReport()))  # Told with the session that they belong to.
            continue
        below = []
        for entry in entries_of(folder, report, is_root=folder == root):
            if entry.is_dir(follow_symlinks=False):
                below.append(Path(entry.path))
            elif not is_file(entry, SUFFIX):
                continue
            elif entry.name.startswith(AGENT_PREFIX):
                logs += 1
            elif is_newer(entry, newer_than_s, report):
                yield Path(entry.path)
        folders += reversed(below)
    if logs:
        report.skipped.append((str(root), f"{logs} sub-agent logs: no sessions of their own"))


def read_session(
    path: Path, needles: Tuple[bytes, ...], cwd: Optional[str], report: ReadReport
) -> PastSession:
    """One transcript; see :meth:`adapters.contract.Adapter.read_session`. Never raises.

    A file that cannot be read, or that is a sub-agent's log, gives a session without file and id,
    and a line in the report.
    """
    nothing = PastSession("", None, None, ())
    reading = Reading(Needles(needles), cwd, report)
    try:
        with LineFile(path) as file, report.damage_in(path):
            if not file.size_bytes:
                report.unread(path, "it is empty")
            reading.read(file)
    except (OSError, ValueError) as exc:  # ValueError: a name with a NUL, from a foreign payload.
        report.unread(path, exc)
        return nothing
    if reading.is_sidechain:
        report.skipped.append((str(path), "sub-agent log: no session of its own"))
        return nothing
    for log in _logs_of(path, report):
        try:
            with LineFile(log) as file, report.damage_in(log):
                reading.read_log(file)
        except OSError as exc:
            report.unread(log, exc)
    return PastSession(reading.session_id, str(path), reading.newest.value, tuple(reading.cards.found))


def read_sessions(
    path: Path, needles: Tuple[bytes, ...], newer_than_s: float, report: ReadReport
) -> Iterator[PastSession]:
    """The one session of a transcript; the file's time was looked at by :func:`session_files`."""
    yield read_session(path, needles, None, report)


def _logs_of(path: Path, report: ReadReport) -> List[Path]:
    """Logs of the sub-agents that a session sent out."""
    return _logs_in(path.with_suffix("") / SUBAGENTS, report) if path.suffix == SUFFIX else []


def _logs_in(folder: Path, report: ReadReport) -> List[Path]:
    """All logs below a folder of sub-agents."""
    found: List[Path] = []
    folders = [folder]
    while folders:
        for entry in entries_of(folders.pop(), report):
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
            elif is_file(entry, SUFFIX):
                found.append(Path(entry.path))
    return sorted(found)
