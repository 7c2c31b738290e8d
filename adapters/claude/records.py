"""The files in which Claude Code itself keeps its running processes: ``sessions/PID.json``.

They are internal to it, so every part may be missing or mean something else tomorrow. Beside them
stand keys of its own (``PID.HASH.key``), which are never opened, and what older versions left
(``pid-PID.json``), which nobody removes. A process that is killed leaves its file behind, with the
last status in it: whether a process lives is for the reader to find out.
"""

import errno
import os
import re
import stat
from pathlib import Path
from typing import Dict, Mapping, Optional, Tuple

from adapters.claude.payload import MAX_NAME_CHARS
from adapters.contract import AdapterError, ProcessRecord, Status
from adapters.fileend import folder_of
from adapters.foreign import text_or_empty
from adapters.jsonl import parse

RECORDS = "sessions"
PROJECTS = "projects"
LONGEST_BYTES = 64 * 1024
"""Of a record; they have half a kilobyte."""

_NAME = re.compile(r"([1-9][0-9]{0,9})\.json")
_DOMAIN = re.compile(r"pid:\[[0-9]{1,20}\]")
_MAX_WORDS_CHARS = 64

_STATUSES: Dict[str, Tuple[Status, str]] = {
    "busy": (Status.RUNNING, "busy"),
    "waiting": (Status.WAITING_FOR_INPUT, "waiting"),
    "idle": (Status.IDLE, "idle"),
    # The agent waits for its user; that something it started runs on is no work of its own.
    "shell": (Status.IDLE, "idle, with a background shell"),
}
_WAITING = "waiting"
_OWN_MENU = "dialog open"
_MAX_PID = 2**31 - 1
_END_MS = 253_402_300_800_000  # the year 10000: no time of ours


def records_root(home: Path, environ: Mapping[str, str]) -> Optional[Path]:
    """``sessions`` in Claude Code's folder. An empty variable is unset."""
    folder = environ.get("CLAUDE_CONFIG_DIR", "")
    return (Path(folder) if folder else home / ".claude") / RECORDS


def folders_of(session_file: Path) -> Optional[Tuple[Path, Path]]:
    """``projects`` and ``sessions`` of the folder in which a transcript lies, as far as it lies in one."""
    projects = session_file.parent.parent
    if not session_file.is_absolute() or projects.name != PROJECTS:
        return None
    return projects, projects.parent / RECORDS


def read_record(path: Path) -> Optional[ProcessRecord]:
    """One process; see :meth:`adapters.contract.Adapter.read_record`.

    None for a file of another name, for an empty one (just begun) and for one that names no session.
    """
    named = _NAME.fullmatch(path.name)
    if named is None or int(named[1]) > _MAX_PID:
        return None
    data = _content(path)
    if not data.strip(b"\0 \t\r\n"):
        return None
    try:
        record = parse(data)
    except ValueError:
        raise AdapterError("it is half written, or no JSON", path) from None
    if not isinstance(record, dict):
        raise AdapterError("it holds no object", path)
    session_id = text_or_empty(record.get("sessionId"), MAX_NAME_CHARS)
    if not session_id:
        return None
    pid = int(named[1])
    if not _is_pid(record.get("pid", pid), pid):
        raise AdapterError("it names another process than its file does", path)
    status, said = _status_of(record)
    return ProcessRecord(
        session_id=session_id,
        pid=pid,
        begun=_begun_of(record.get("procStart")),
        domain=_domain_of(record.get("pidDomain")),
        status=status,
        said=said,
        said_at_s=_seconds(record.get("statusUpdatedAt")) or _seconds(record.get("updatedAt")),
        cwd=folder_of(record.get("cwd")),
        automated=_words(record.get("entrypoint")).startswith("sdk"),
    )


def _content(path: Path) -> bytes:
    try:
        # Not blocking: a pipe of that name would make us wait for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except ValueError as exc:  # A folder's name that no system can have.
        raise OSError(errno.EINVAL, str(exc)) from exc
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise AdapterError("it is no regular file", path)
        data = file.read(LONGEST_BYTES + 1)
    if len(data) > LONGEST_BYTES:
        raise AdapterError("it is too long for a record", path)
    return data


def _is_pid(value: object, pid: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value == pid


def _status_of(record: Mapping[str, object]) -> Tuple[Optional[Status], str]:
    """The status, and what the record says in its own words; (None, "") when it says nothing."""
    word = _words(record.get("status"))
    if not word:
        return None, ""
    known = _STATUSES.get(word)
    if known is None:
        return None, f"{word!r}, a status that is not known"
    status, said = known
    reason = _words(record.get("waitingFor")) if word == _WAITING else ""
    # Mostly the user has opened a menu, while the agent rests or works: that is no question.
    known_status = None if reason == _OWN_MENU else status
    return known_status, f"{said}: {reason}" if reason else said


def _words(value: object) -> str:
    """Words of the agent's, fit to be shown; empty for what is no text."""
    text = value[:_MAX_WORDS_CHARS] if isinstance(value, str) else ""
    return "".join(char if char.isprintable() else "?" for char in text).strip()


def _begun_of(value: object) -> Optional[str]:
    """Linux: clock ticks since boot, seen as text; a number would mean the same."""
    is_number = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64
    return (str(value) if is_number else _words(value)) or None


def _domain_of(value: object) -> Optional[str]:
    """``pid:[N]`` out of ``linux:HOST:pid:[N]``."""
    found = _DOMAIN.search(value) if isinstance(value, str) else None
    return None if found is None else found[0]


def _seconds(value: object) -> Optional[float]:
    """Unix seconds of a time in milliseconds; None for what is none."""
    is_time = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < _END_MS
    return value / 1000 if is_time and isinstance(value, (int, float)) else None
