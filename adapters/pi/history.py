"""Pi's session files: where they are, and which cards a past session worked on."""

from pathlib import Path
from typing import Iterator, Mapping, Optional, Tuple

from adapters.bytesearch import Needles
from adapters.contract import PastSession, ReadReport
from adapters.jsonl import LineFile
from adapters.listing import entries_of, is_file, is_newer
from adapters.pi.reading import Reading

SUFFIX = ".jsonl"


def sessions_root(home: Path, environ: Mapping[str, str]) -> Path:
    """``PI_SESSIONS_DIR``, else where Pi keeps them: the folder of its own variable, else
    ``sessions`` in its agent folder. Empty values are unset."""
    override = environ.get("PI_SESSIONS_DIR", "")
    if override:
        return Path(override)
    named = environ.get("PI_CODING_AGENT_SESSION_DIR", "")
    if named:
        return _at_home(named, home)
    folder = environ.get("PI_CODING_AGENT_DIR", "")
    return (_at_home(folder, home) if folder else home / ".pi" / "agent") / "sessions"


def _at_home(path: str, home: Path) -> Path:
    """Pi itself expands a leading ``~`` in its variables."""
    return home / path[2:] if path == "~" or path.startswith("~/") else Path(path)


def session_files(root: Path, newer_than_s: float, report: ReadReport) -> Iterator[Path]:
    """Session files changed at or after ``newer_than_s``, by name, a folder's files before its folders.

    Symlinks below the root are not followed. Folders that cannot be read are told to the report.
    """
    folders = [root]
    while folders:
        below = []
        folder = folders.pop()
        for entry in entries_of(folder, report, is_root=folder == root):
            if entry.is_dir(follow_symlinks=False):
                below.append(Path(entry.path))
            elif is_file(entry, SUFFIX) and is_newer(entry, newer_than_s, report):
                yield Path(entry.path)
        folders += reversed(below)


def read_session(
    path: Path, needles: Tuple[bytes, ...], cwd: Optional[str], report: ReadReport
) -> PastSession:
    """One session; see :meth:`adapters.contract.Adapter.read_session`. Never raises.

    A file that cannot be read gives a session without file and id, and one without a header a session
    without id; both stand in the report.
    """
    try:
        reading = _read(path, Needles(needles), cwd, report)
    except (OSError, ValueError) as exc:  # ValueError: a name with a NUL.
        report.unread(path, exc)
        return PastSession("", None, None, ())
    entries = reading.entries
    if entries.lost:
        report.unread(path, f"{len(entries.lost)} calls of scripts that Pi did not keep in full")
    if not entries.session_id:
        report.unread(path, "no session header, so it is not known whose session it is")
    return PastSession(entries.session_id, str(path), reading.newest.value, entries.candidates())


def read_sessions(
    path: Path, needles: Tuple[bytes, ...], newer_than_s: float, report: ReadReport
) -> Iterator[PastSession]:
    """The one session of a file, whose time was looked at by :func:`session_files`."""
    yield read_session(path, needles, None, report)


def _read(path: Path, needles: Needles, cwd: Optional[str], report: ReadReport) -> Reading:
    reading = Reading(needles, cwd, report)
    with LineFile(path) as file, report.damage_in(path):
        reading.read(file)
    if reading.misjudged:
        reading = Reading(needles, reading.entries.cwd, ReadReport())
        with LineFile(path) as file:
            reading.read(file)
    if reading.entries.unsettled:
        with LineFile(path) as file:
            reading.read_results(file)
    return reading
