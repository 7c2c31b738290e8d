"""In what state the end of a rollout shows the session: each turn's start and end is a record."""

from pathlib import Path
from typing import Dict, Optional, Tuple

from adapters.contract import Mark, Tail
from adapters.fileend import FileEnd, folder_of, object_of, unix_s

_WORKING = (Mark.WORKING, "a turn that has begun")
_ENDED = (Mark.ENDED, "a turn that is complete")
_MARKS: Dict[str, Tuple[Mark, str]] = {
    "task_started": _WORKING,
    "turn_started": _WORKING,
    "task_complete": _ENDED,
    "turn_complete": _ENDED,
    "turn_aborted": (Mark.INTERRUPTED, "a turn that the user stopped"),
}
"""What the newest of these events says; ``turn_aborted`` has other reasons too, all of them ends."""

_WORDS = tuple(f'"{name}"'.encode("ascii") for name in _MARKS)


def read_tail(path: Path, session_id: str) -> Optional[Tail]:
    """What the end of a rollout says; see :meth:`adapters.contract.Adapter.read_tail`.

    None when the newest event that decides is farther from the end than is read.
    """
    with FileEnd(path) as file:
        header = (object_of(file.first_line()) or {}).get("payload")
        cwd = folder_of(header.get("cwd")) if isinstance(header, dict) else None
        for line in file.lines():
            record = object_of(line) if any(word in line for word in _WORDS) else None
            payload = record.get("payload") if record else None
            kind = payload.get("type") if isinstance(payload, dict) else None
            mark = _MARKS.get(kind) if isinstance(kind, str) else None
            if record is not None and mark is not None and record.get("type") == "event_msg":
                return Tail(mark[0], unix_s(record.get("timestamp")), mark[1], cwd)
    return Tail(Mark.EMPTY, said="nobody has said anything yet", cwd=cwd) if file.whole else None
