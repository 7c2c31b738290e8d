"""The memory of a session: JSON and back, and what is small stays small."""

import json
from typing import Any, List

import pytest

from adapters.claude.state import (
    ANY_THREAD,
    MAIN,
    PERMISSION,
    QUESTION,
    Blocker,
    Memory,
    ToolCall,
    digest_of,
    memory_from_json,
    short_id,
)
from adapters.contract import Status

FULL = Memory(
    seen=True,
    phase=Status.RUNNING,
    turn="p1",
    blockers=[
        Blocker(QUESTION, "t1", MAIN),
        Blocker(PERMISSION, "", ANY_THREAD),
        Blocker(PERMISSION, short_id("é"), "g"),
    ],
    open_calls=[ToolCall("t1", "Bash", "0a", "g", asked=True), ToolCall(short_id("x" * 99), "Read")],
    finished=[ToolCall("t0", "Bash", "0b", MAIN)],
    background=["g"],
    resolved=[PERMISSION],
)


def test_a_memory_survives_json() -> None:
    """What is written is read back as it was."""
    assert memory_from_json(json.loads(json.dumps(FULL.to_json()))) == FULL


def test_an_empty_memory_is_small() -> None:
    """Parts that are empty are not written."""
    assert Memory().to_json() == {"phase": "idle"}
    assert memory_from_json({"phase": "idle"}) == Memory(seen=True)


@pytest.mark.parametrize("state", [None, [], "x", 5])
def test_no_state_is_an_unseen_session(state: Any) -> None:
    """Idle, with nothing open."""
    assert memory_from_json(state) == Memory(seen=False)


@pytest.mark.parametrize(
    "state",
    [
        {"phase": "later"},
        {"phase": "waiting_for_input"},
        {"phase": ["idle"]},
        {"turn": 5},
        {"blockers": {"a": 1}},
        {"blockers": [1, "x", [], ["later", "a", "b"], ["permission", "a"], [["permission"], "a", "b"]]},
        {"open": "x", "finished": [[], ["", "Bash", "", "", False], [1, 2, 3, 4, 5]]},
        {"background": [None, 5, ""]},
        {"resolved": ["later", 5, None]},
    ],
)
def test_parts_that_are_not_ours_are_left_out(state: Any) -> None:
    """A state of another version, or a damaged one, is as good as its readable parts."""
    assert memory_from_json(state) == Memory(seen=True)


def test_lists_of_a_stored_state_are_bounded() -> None:
    """Even a state that somebody made too long."""
    rows = [[f"t{number}", "Bash", "", "", False] for number in range(1000)]
    blockers = [["permission", f"t{number}", ""] for number in range(1000)]
    agents = [f"g{number}" for number in range(1000)]
    memory = memory_from_json({"open": rows, "finished": rows, "blockers": blockers, "background": agents})
    sizes = [len(memory.open_calls), len(memory.finished), len(memory.blockers), len(memory.background)]
    assert sizes == [128, 32, 64, 64]
    assert memory.open_calls[-1].identity == "t999"


def test_the_largest_state_is_below_the_contracts_limit() -> None:
    """All lists full, all ids as long as they may be."""
    long = "x" * 64
    memory = Memory(
        seen=True,
        turn=long,
        blockers=[Blocker("elicitation", long, long)] * 64,
        open_calls=[ToolCall(long, long, "0" * 16, long, asked=False)] * 128,
        finished=[ToolCall(long, long, "0" * 16, long, asked=False)] * 32,
        background=[long] * 64,
    )
    assert len(json.dumps(memory.to_json())) < 64 * 1024


@pytest.mark.parametrize("value", ["x" * 65, "é", "a b", "*", "#1", "\ud800", "x" * 1_000_000])
def test_unusual_ids_become_digests(value: str) -> None:
    """Short, plain, and always the same for the same id."""
    assert short_id(value).startswith("#")
    assert len(short_id(value)) == 33
    assert short_id(value) == short_id(value) != short_id(value + "1")


@pytest.mark.parametrize("value", [None, 5, "", [], {}, True])
def test_what_is_no_string_is_no_id(value: Any) -> None:
    """Empty stands for none."""
    assert short_id(value) == ""


def test_ordinary_ids_stay_as_they_are() -> None:
    """So that a stored state can be read by a person."""
    assert short_id("toolu_01.a:b-C") == "toolu_01.a:b-C"


def test_digests_tell_inputs_apart() -> None:
    """Equal for equal JSON, whatever the order of keys; empty for what JSON cannot say."""
    assert digest_of({"a": 1, "b": [2]}) == digest_of({"b": [2], "a": 1})
    different: List[Any] = [{}, [], None, "", 0, {"a": 1}, {"a": "1"}, "\ud800"]
    assert len({digest_of(value) for value in different}) == 8
    assert digest_of({1: {2}}) == ""
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]
    assert digest_of(nested) == ""


def test_inputs_that_have_no_digest_are_not_the_same() -> None:
    """Two unknown inputs are no reason to take one call for another."""
    assert not ToolCall("t1", "Bash").same_work(ToolCall("t2", "Bash"))
    assert ToolCall("t1", "Bash").same_tool(ToolCall("t2", "Bash"))
