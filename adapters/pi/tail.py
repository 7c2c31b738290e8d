"""In what state the end of a Pi session's file shows the session, and where the file is.

Pi appends a message when it is complete. Its entries form a tree, but it goes on where it wrote
last: what was branched off stands farther to the front. Entries that are no message of the user, the
model or a tool decide nothing.
"""

from pathlib import Path
from typing import Dict, List, Optional, Tuple

from adapters.contract import Mark, ReadReport, Tail
from adapters.fileend import FileEnd, folder_of, newest_file, object_of, unix_s
from adapters.listing import entries_of, is_file
from adapters.pi.entries import Entry

# A line without any of these is no message of the user, the model or a tool.
_MAYBE = (b'"user"', b'"assistant"', b'"toolResult"')

_ASSISTANT: Dict[str, Tuple[Mark, str]] = {
    "stop": (Mark.ENDED, "the agent's answer"),
    "length": (Mark.ENDED, "an answer that grew too long"),
    "error": (Mark.ENDED, "an error of the model's service"),
    "aborted": (Mark.INTERRUPTED, "an answer that the user stopped"),
    "toolUse": (Mark.WORKING, "a tool call without a result"),
}
"""What an assistant message means by its ``stopReason``."""


def session_file(root: Path, session_id: str) -> Optional[Path]:
    """The file of that session in the root or in one of its folders, the newest of several; else None.

    An id may be any text that the user gave; it stands at the end of the name and in the header.
    """
    if not session_id or "/" in session_id or "\0" in session_id:
        return None
    ending = f"_{session_id}.jsonl"
    found: List[Path] = []
    for entry in entries_of(root, ReadReport()):
        if is_file(entry, ending):
            found.append(Path(entry.path))
        elif entry.is_dir(follow_symlinks=False):
            inner = entries_of(Path(entry.path), ReadReport())
            found += [Path(each.path) for each in inner if is_file(each, ending)]
    return newest_file(path for path in found if _names(path, session_id))


def _names(path: Path, session_id: str) -> bool:
    """Whether the header has that id: ``..._a_b.jsonl`` may be a session ``a_b`` as well as ``b``."""
    try:
        with FileEnd(path) as file:
            return _header(file).get("id") == session_id
    except OSError:
        return False


def _header(file: FileEnd) -> Entry:
    entry = object_of(file.first_line()) or {}
    return entry if entry.get("type") == "session" else {}


def read_tail(path: Path, session_id: str) -> Optional[Tail]:
    """What the end of a session's file says; see :meth:`adapters.contract.Adapter.read_tail`.

    None when the newest entry that decides is farther from the end than is read.
    """
    with FileEnd(path) as file:
        cwd = folder_of(_header(file).get("cwd"))
        for line in file.lines():
            entry = object_of(line) if any(role in line for role in _MAYBE) else None
            tail = None if entry is None else _tail_of(entry, cwd)
            if tail is not None:
                return tail
    return Tail(Mark.EMPTY, said="nobody has said anything yet", cwd=cwd) if file.whole else None


def _tail_of(entry: Entry, cwd: Optional[str]) -> Optional[Tail]:
    message = entry.get("message")
    if entry.get("type") != "message" or not isinstance(message, dict):
        return None
    role, at_s = message.get("role"), unix_s(entry.get("timestamp"))
    if role == "user":
        return Tail(Mark.WORKING, at_s, "a prompt without an answer", cwd)
    if role == "toolResult":
        return Tail(Mark.WORKING, at_s, "a tool's result", cwd)
    if role != "assistant":
        return None
    mark, said = _of_answer(message)
    return Tail(mark, at_s, said, cwd)


def _of_answer(message: Entry) -> Tuple[Mark, str]:
    reason = message.get("stopReason")
    known = _ASSISTANT.get(reason) if isinstance(reason, str) else None
    if known is not None:
        return known
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    calls = any(isinstance(block, dict) and block.get("type") == "toolCall" for block in blocks)
    return _ASSISTANT["toolUse" if calls else "stop"]
