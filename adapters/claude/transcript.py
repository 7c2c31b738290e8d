"""Claude Code's transcripts: where they are, and which cards a past session worked on.

Sub-agents keep logs of their own, ``SESSION/subagents/agent-*.jsonl``. They are no sessions: what they
edit belongs to the session that sent them, and what they were told was not said by the user.
"""

import os
from pathlib import Path
from typing import Iterator, List, Mapping, Optional, Tuple

from adapters.bytesearch import Needles
from adapters.claude.reading import Reading
from adapters.contract import PastSession, ReadReport
from adapters.jsonl import LineFile

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
            logs += len(_logs_in(folder))
            continue
        below = []
        for entry in _entries(folder, report):
            if entry.is_dir(follow_symlinks=False):
                below.append(Path(entry.path))
            elif not _is_log(entry):
                continue
            elif entry.name.startswith(AGENT_PREFIX):
                logs += 1
            elif _is_newer(entry, newer_than_s, report):
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
        with LineFile(path) as file:
            reading.read(file)
    except (OSError, ValueError) as exc:  # ValueError: a name with a NUL, from a foreign payload.
        report.skipped.append((str(path), getattr(exc, "strerror", None) or str(exc)))
        return nothing
    if reading.is_sidechain:
        report.skipped.append((str(path), "sub-agent log: no session of its own"))
        return nothing
    for log in _logs_of(path):
        try:
            with LineFile(log) as file:
                reading.read_log(file)
        except OSError as exc:
            report.skipped.append((str(log), exc.strerror or str(exc)))
    return PastSession(reading.session_id, str(path), reading.newest.value, tuple(reading.cards.found))


def read_sessions(
    path: Path, needles: Tuple[bytes, ...], newer_than_s: float, report: ReadReport
) -> Iterator[PastSession]:
    """The one session of a transcript; the file's time was looked at by :func:`session_files`."""
    yield read_session(path, needles, None, report)


def _entries(folder: Path, report: ReadReport) -> "List[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as exc:
        report.skipped.append((str(folder), exc.strerror or str(exc)))
        return []


def _is_log(entry: "os.DirEntry[str]") -> bool:
    return entry.name.endswith(SUFFIX) and entry.is_file(follow_symlinks=False)


def _is_newer(entry: "os.DirEntry[str]", newer_than_s: float, report: ReadReport) -> bool:
    try:
        return entry.stat(follow_symlinks=False).st_mtime >= newer_than_s
    except OSError as exc:
        report.skipped.append((entry.path, exc.strerror or str(exc)))
        return False


def _logs_of(path: Path) -> List[Path]:
    """Logs of the sub-agents that a session sent out."""
    return _logs_in(path.with_suffix("") / SUBAGENTS) if path.suffix == SUFFIX else []


def _logs_in(folder: Path) -> List[Path]:
    """All logs below a folder of sub-agents; what cannot be listed has none."""
    found: List[Path] = []
    unheard = ReadReport()
    folders = [folder]
    while folders:
        for entry in _entries(folders.pop(), unheard):
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
            elif _is_log(entry):
                found.append(Path(entry.path))
    return sorted(found)
