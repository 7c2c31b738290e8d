"""In what state the newest messages of an OpenCode session show it, and where it is stored.

That it is busy stands nowhere: an assistant's message without an end is being written, or its writer
died. An open permission is in the program's memory alone. Sessions that are still in the JSON files
of older versions are found, and nothing is told of them: nobody works on them any more.
"""

import errno
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Iterator, List, Optional, Tuple

from adapters.bytesearch import Needles
from adapters.contract import Mark, ReadReport, Tail
from adapters.fileend import folder_of, newest_file, object_of
from adapters.listing import entries_of
from adapters.opencode.history import databases, storages
from adapters.opencode.messages import Record, Sieve, member, time_ms
from adapters.opencode.sessions import Unreadable

if TYPE_CHECKING:
    from adapters.opencode.database import Latest

_SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_ABORTED = "MessageAbortedError"
_QUESTION = "question"
# How a tool ends that the user refused. With the user's words behind it, the agent goes on.
_REFUSED = (
    "The user dismissed this question",
    "The user rejected permission to use this specific tool call.",
)
_WORDS = ('"question"', _REFUSED[1])


def session_file(root: Path, session_id: str) -> Optional[Path]:
    """The database that holds a session, the one that wrote it last; else its file of an older version."""
    if not _SESSION_ID.fullmatch(session_id):
        return None
    found: List[Tuple[float, str]] = []
    for path in databases(root):
        try:
            latest = _latest(path, session_id)
        except Unreadable:
            continue
        if latest is not None:
            found.append((latest.updated_ms, str(path)))
    if found:
        return Path(max(found)[1])
    folder = root if os.path.isdir(root) else root.parent
    return newest_file(_files(folder, session_id))


def _files(folder: Path, session_id: str) -> Iterator[Path]:
    """Where the older versions would keep the session itself."""
    for storage in storages(folder, ReadReport()):
        for each in entries_of(storage / "session", ReadReport()):
            yield Path(each.path, f"{session_id}.json")


def read_tail(path: Path, session_id: str) -> Optional[Tail]:
    """What a session's newest messages say; see :meth:`adapters.contract.Adapter.read_tail`.

    None for a session that is not there or is kept in files. OSError also for what SQLite cannot read.
    """
    if path.suffix == ".json" or not _SESSION_ID.fullmatch(session_id):
        return None
    try:
        os.stat(path)
        latest = _latest(path, session_id)
    except ValueError as exc:  # A name that no system can have.
        raise OSError(errno.EINVAL, str(exc)) from exc
    except Unreadable as exc:
        if isinstance(exc.__cause__, OSError):
            raise exc.__cause__ from exc
        raise OSError(errno.EIO, str(exc), str(path)) from exc
    if latest is None:
        return None
    return _tail_of(_records(latest.messages), _records(latest.parts), folder_of(latest.directory))


def _latest(path: Path, session_id: str) -> "Optional[Latest]":
    try:
        from adapters.opencode.database import Database  # noqa: PLC0415 - not every Python has SQLite
    except ImportError as exc:
        raise Unreadable("this Python has no sqlite3 module") from exc
    database = Database(path, Sieve(Needles(()), ReadReport()))
    try:
        return database.latest(session_id, _WORDS)
    finally:
        database.close()


def _records(rows: List[Tuple[str, bytes]]) -> List[Tuple[str, Record]]:
    return [(name, object_of(data) or {}) for name, data in rows]


def _tail_of(
    messages: List[Tuple[str, Record]], parts: List[Tuple[str, Record]], cwd: Optional[str]
) -> Optional[Tail]:
    """Messages, the newest first, with the parts that may tell something."""
    prompted_ms: Optional[float] = None
    for name, message in messages:
        if not message:  # One that cannot be read: what stands in front of it says nothing.
            return None
        created_ms = time_ms(member(message, "time").get("created"))
        if message.get("role") == "user":
            prompted_ms = created_ms if prompted_ms is None else prompted_ms
        elif message.get("role") == "assistant":
            # A prompt that waited while a turn failed, or was stopped, went with it.
            if prompted_ms is not None and not prompted_ms <= _failed_ms(message):
                break
            own = [part for owner, part in parts if owner == name]
            return _of_answer(message, own, folder_of(member(message, "path").get("cwd")) or cwd)
    if prompted_ms is not None:
        return Tail(Mark.WORKING, _seconds(prompted_ms), "a prompt without an answer", cwd)
    if messages:
        return None
    return Tail(Mark.EMPTY, said="nobody has said anything yet", cwd=cwd)


def _failed_ms(message: Record) -> float:
    """When an answer ended in an error or was stopped; -1 when it was not."""
    failed = bool(member(message, "error"))
    return time_ms(member(message, "time").get("completed")) if failed else -1.0


def _of_answer(message: Record, parts: List[Record], cwd: Optional[str]) -> Tail:
    created_ms, ended_ms = (time_ms(member(message, "time").get(name)) for name in ("created", "completed"))
    at_s = _seconds(ended_ms or created_ms)
    error = member(message, "error")
    if error:
        if error.get("name") == _ABORTED:
            return Tail(Mark.INTERRUPTED, at_s, "an answer that the user stopped", cwd)
        return Tail(Mark.ENDED, at_s, "an error", cwd)
    states = [(part.get("tool"), member(part, "state")) for part in parts if part.get("type") == "tool"]
    if not ended_ms:
        for tool, state in states:
            if tool == _QUESTION and state.get("status") == "running":
                asked_ms = time_ms(member(state, "time").get("start"))
                return Tail(Mark.ASKING, _seconds(asked_ms) or at_s, "a question without an answer", cwd)
        return Tail(Mark.WORKING, at_s, "an answer without an end", cwd)
    if message.get("finish") != "tool-calls":
        return Tail(Mark.ENDED, at_s, "the agent's answer", cwd)
    if any(str(state.get("error")).startswith(_REFUSED) for _, state in states):
        return Tail(Mark.INTERRUPTED, at_s, "a tool call that the user refused", cwd)
    return Tail(Mark.WORKING, at_s, "a tool's result", cwd)


def _seconds(unix_ms: float) -> Optional[float]:
    return unix_ms / 1000 if unix_ms else None
