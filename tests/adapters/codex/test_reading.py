"""The reader that searches bytes against one that parses every line: the same, whatever is written."""

import json
from pathlib import Path
from typing import Any, List, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters import jsonl
from adapters.bytesearch import Needles
from adapters.codex.reading import Reading
from adapters.codex.rollout import RolloutCards
from adapters.contract import ReadReport
from adapters.jsonl import LineFile
from companion.history.scanner import needles_for
from tests.adapters.codex.records import (
    call,
    changed,
    event,
    item,
    meta,
    patch,
    record,
    response,
    result,
    said,
)
from tests.adapters.spelling import written
from tests.conftest import ROOT

BOARD = "/home/dev/board"
PATHS = [
    f"{BOARD}/a.md",
    f"{BOARD}/b.MD",
    f"{BOARD}s/c.md",
    "/x/d.md",
    "e.md",
    "board/f.md",
    "../g.md",
    'q"/h.md',
]

sampled = st.sampled_from
paths = sampled(PATHS)
texts = st.lists(sampled(["see ", "\n", "<x>", "\u00fc"]) | paths, max_size=4).map("".join)
ids = sampled(["c1", "c2", "c-3"])
inputs = st.builds(lambda text: [{"type": "input_text", "text": text}], texts) | texts
OK = ["Exit code: 0", '{"metadata":{"exit_code":1}}', "Success. Updated the following files"]


def custom(path: str, call_id: str) -> Any:
    return response("custom_tool_call", name="apply_patch", input=patch(path), call_id=call_id)


def applied(path: str, call_id: str) -> Any:
    return event("patch_apply_end", call_id=call_id, success=True, changes={path: {}})


records = (
    st.builds(said, texts)
    | st.builds(changed, paths, status=sampled(["completed", "failed"]))
    | st.builds(lambda text: event("user_message", message=text), texts)
    | st.builds(lambda who, text: response("message", role=who, content=text), sampled(["user", "x"]), inputs)
    | st.builds(lambda path, id_: call({"command": patch(path)}, id_), paths, ids)
    | st.builds(custom, paths, ids)
    | st.builds(result, sampled(OK), ids)
    | st.builds(applied, paths, ids)
    | st.builds(lambda id_: event("patch_apply_end", call_id=id_, success=True), ids)
    | st.builds(lambda text: {"type": "message", "role": "user", "content": text}, inputs)
    | st.builds(lambda text: record("compacted", message=text, type="x"), texts)
    | st.builds(lambda text: item("Brand New", content=text), texts)
    | sampled(
        [
            meta(),
            meta("other", parent_thread_id="t"),
            {"id": "bare", "timestamp": "2025"},
            record("turn_context", cwd=BOARD),
            record("turn_context", cwd="/home/dev"),
            record("world_state", state={}),
            record("new_kind", type="user_message", message=f"{BOARD}/no.md"),
            item("SubAgentActivity", agent_thread_id="k"),
            event("collab_agent_spawn_end", new_thread_id="n"),
            response("message", role="user", content="<environment_context><cwd>/home/dev</cwd>"),
            response("new_item"),
            event("task_started"),
            call({"message": "go"}, name="spawn_agent"),
            result('{"agent_id":"w","nickname":"Nick"}'),
        ]
    )
)
stamps = sampled(["2026-01-01T00:00:00.000Z", "2026-01-03T00:00:00.000Z", "", "zz", 5])


@st.composite
def lines(draw: Any) -> bytes:
    """A record with its members in some order, spelled and damaged in some way."""
    entry = dict(draw(records))
    if draw(st.booleans()):
        entry["timestamp"] = draw(stamps)
    order = draw(st.permutations(sorted(entry)) if draw(st.integers(0, 3)) == 0 else st.just(list(entry)))
    payload = entry.get("payload")
    if isinstance(payload, dict) and draw(st.integers(0, 3)) == 0:
        entry["payload"] = {name: payload[name] for name in draw(st.permutations(sorted(payload)))}
    blanks = draw(sampled([(",", ":"), (", ", ": ")]))
    text = json.dumps(
        {name: entry[name] for name in order}, separators=blanks, ensure_ascii=draw(st.booleans())
    )
    return written(draw, text)


def slow(data: bytes, cwd: Optional[str]) -> "tuple[RolloutCards, Optional[str]]":
    """Parses every line."""
    cards, newest = RolloutCards(cwd), None
    for line in data.split(b"\n"):
        try:
            entry = jsonl.parse(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            cards.take(entry)
            stamp = entry.get("timestamp")
            if isinstance(stamp, str) and stamp and (newest is None or stamp > newest):
                newest = stamp
    return cards, newest


def fast(path: Path, needles: Any, cwd: Optional[str]) -> "tuple[Reading, ReadReport]":
    report = ReadReport()
    reading = Reading(Needles(needles), RolloutCards(cwd), report)
    with LineFile(path) as file:
        reading.read(file)
    return reading, report


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all examples."""
    return tmp_path_factory.mktemp("reading") / "rollout-x.jsonl"


@settings(max_examples=400, deadline=None)
@given(given_lines=st.lists(lines(), max_size=12), cwd=sampled([None, BOARD]), searches=st.booleans())
def test_both_readers_find_the_same(
    given_lines: List[bytes], cwd: Optional[str], searches: bool, file: Path
) -> None:
    """Cards of the board at least, id, header, other threads and the greatest time."""
    data = b"\n".join(given_lines)
    file.write_bytes(data)
    cards, newest = slow(data, cwd)
    reading, report = fast(file, needles_for([BOARD]) if searches else (), cwd)
    found = set(reading.cards.found())
    if searches:
        assert {path for path in cards.found() if path.startswith(f"{BOARD}/")} <= found <= set(cards.found())
    else:
        assert found == set(cards.found())
    for name in ("thread", "is_subagent", "base", "agents"):
        assert getattr(reading.cards, name) == getattr(cards, name)
    assert reading.newest.value == newest
    assert report.records + report.damaged <= len([line for line in given_lines if line])


def test_unknown_kinds_are_counted_where_they_stand(tmp_path: Path) -> None:
    """Of records, payloads and items; nothing of what real versions write is unknown."""
    file = tmp_path / "r.jsonl"
    new = [record("new_kind", a=1), event("new_event"), item("NewItem"), response("new_item")]
    file.write_text("".join(json.dumps(each) + "\n" for each in new))
    _, report = fast(file, (), None)
    names = ("new_kind", "event_msg new_event", "item_completed NewItem", "response_item new_item")
    assert report.unknown == dict.fromkeys(names, 1)
    assert report.records == 4
    for path in (ROOT / "tests/fixtures/codex/home").rglob("rollout-*.jsonl"):
        _, report = fast(path, (), None)
        assert report.unknown == {} and report.damaged == 0 and report.records > 5


def test_long_lines_are_not_held_unless_they_must_be(tmp_path: Path) -> None:
    """Output is passed over; of a prompt with a huge picture its text is read."""
    file = tmp_path / "r.jsonl"
    huge = "x" * (jsonl.DIRECT_BYTES + 10)
    picture = {"type": "image", "url": huge}
    prompt = item("UserMessage", content=[picture, {"type": "text", "text": "see /b/a.md"}])
    many = item("UserMessage", content=[{"type": "text", "text": "y" * 9}] * 300_000)
    entries = [meta(), result(huge), prompt, record("compacted", message=huge), many]
    file.write_text("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in entries))
    reading, report = fast(file, (), None)
    assert reading.cards.found() == ("/b/a.md",)
    assert report.incomplete and "1 lines are too long" in report.skipped[0][1]
