"""Records of rollouts, for tests."""

import json
import os
from pathlib import Path
from typing import Any, Dict

TIME = "2026-12-01T12:30:00.250Z"
TIME_S = 1796128200.25
ID = "01a231bf-2ea4-7931-a1de-9f957c3b5a67"
"""An id as Codex makes it: it tells that it was made on 2026-12-01."""
Record = Dict[str, Any]


def record(kind: str, /, **payload: Any) -> Record:
    """One record, in the order of members that Codex writes."""
    return {"timestamp": TIME, "type": kind, "payload": payload}


def meta(thread: str = ID, **more: Any) -> Record:
    """A header."""
    return record("session_meta", id=thread, cwd="/p", **more)


def event(kind: str, /, **more: Any) -> Record:
    """An event."""
    return record("event_msg", type=kind, **more)


def item(kind: str, /, **more: Any) -> Record:
    """An event that tells of an item of a turn."""
    return event("item_completed", thread_id="t", turn_id="u", item={"type": kind, "id": "i", **more})


def said(text: Any) -> Record:
    """What the user typed."""
    return item("UserMessage", content=[{"type": "text", "text": text}])


def changed(*paths: str, status: str = "completed") -> Record:
    """Files that were changed."""
    return item("FileChange", changes={path: {"type": "add"} for path in paths}, status=status)


def response(kind: str, /, **more: Any) -> Record:
    """An item of the model's."""
    return record("response_item", type=kind, **more)


def patch(*paths: str) -> str:
    """A patch that changes these files."""
    lines = [f"*** Update File: {path}" for path in paths]
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def call(given: Any, identity: str = "c1", name: str = "shell") -> Record:
    """A call of a function of the model's."""
    return response("function_call", name=name, arguments=json.dumps(given), call_id=identity)


def result(output: Any, identity: str = "c1") -> Record:
    """Its result."""
    return response("function_call_output", call_id=identity, output=output)


def rollout(root: Path, *records: Any, thread: str = ID, day: str = "2026/12/01", age_s: float = 0) -> Path:
    """A file of a thread in Codex's folder."""
    path = root / "sessions" / day / f"rollout-2026-12-01T12-30-00-{thread}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in records))
    os.utime(path, (1_000_000 - age_s, 1_000_000 - age_s))
    return path
