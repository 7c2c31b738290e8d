"""What the end of a rollout says about its session."""

import json
from pathlib import Path
from typing import Any, List, Optional

import pytest

from adapters import fileend
from adapters.codex.tail import read_tail
from adapters.contract import Mark, Tail
from tests.adapters.codex.records import TIME_S, event, meta, response, result, said
from tests.conftest import ROOT


def tail_of(path: Path, *records: Any) -> Optional[Tail]:
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return read_tail(path, "any")


@pytest.mark.parametrize(
    ("records", "mark"),
    [
        ([], Mark.EMPTY),
        ([event("task_started"), said("hi"), event("token_count")], Mark.WORKING),
        ([event("task_started"), event("task_complete", last_agent_message="task_started")], Mark.ENDED),
        ([event("task_started"), event("turn_aborted", reason="interrupted")], Mark.INTERRUPTED),
        ([event("turn_complete"), event("turn_started")], Mark.WORKING),
        ([event("task_complete"), result('"task_started"'), response("task_started")], Mark.ENDED),
    ],
)
def test_marks(records: List[Any], mark: Mark, tmp_path: Path) -> None:
    """The newest start or end of a turn decides."""
    found = tail_of(tmp_path / "r.jsonl", meta(), *records)
    assert found is not None and (found.mark, found.cwd) == (mark, "/p")
    assert found.at_s == (TIME_S if records else None)


def test_odd_ends(tmp_path: Path) -> None:
    """A torn last line is passed over; what is too far from the end is not looked for."""
    file = tmp_path / "r.jsonl"
    tail_of(file, meta(), event("task_complete"))
    file.write_text(file.read_text() + '{"type":"event_msg","payload":{"type":"task_started"')
    found = read_tail(file, "any")
    assert found is not None and found.mark is Mark.ENDED
    assert tail_of(file, event("task_started"), "x" * fileend.LIMIT_BYTES) is None
    for odd in (5, None, {"payload": 5}, {"payload": {"type": ["task_started"]}}, {"type": "task_started"}):
        found = tail_of(file, odd)
        assert found is not None and (found.mark, found.cwd) == (Mark.EMPTY, None)
    with pytest.raises(OSError):
        read_tail(tmp_path / "none", "any")


def test_real_rollouts() -> None:
    """All of them ended, some by an interrupt."""
    marks = []
    for path in sorted((ROOT / "tests/fixtures/codex/home").rglob("rollout-*.jsonl")):
        found = read_tail(path, "any")
        assert found is not None and found.cwd == "/home/dev/project" and found.at_s
        marks.append(found.mark)
    assert set(marks) == {Mark.ENDED, Mark.INTERRUPTED}
