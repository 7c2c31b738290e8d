"""What the records of all versions say about cards."""

import json
from typing import Any, List, Tuple

import pytest

from adapters.codex.rollout import Base, RolloutCards
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

EARLIER = {"/b/d.md": {"update": {"move_path": "/b/e.md"}}, "/b/gone.md": {"delete": {}}}
OK = '{"output":"Success. Updated the following files:\\nM a.md\\n","metadata":{"exit_code":0}}'


def cards_of(*records: Any, **more: Any) -> RolloutCards:
    cards = RolloutCards(more.get("cwd"), more.get("with_text", True))
    for each in records:
        cards.take(each)
    return cards


def test_what_is_said_and_changed_now() -> None:
    """In items of turns; a change that failed, a deleted file and what was put in do not count."""
    moved = {"/b/old.md": {"type": "update", "move_path": "/b/new.md"}, "/b/gone.md": {"type": "delete"}}
    cards = cards_of(
        meta(),
        response("message", role="user", content=[{"type": "input_text", "text": "<x> /b/injected.md"}]),
        response("message", role="user", content=[{"type": "input_text", "text": "see /b/hook.md"}]),
        said("see /b/a.md"),
        changed("b.md", "/b/c.md", "/b/d.txt"),
        changed("/b/failed.md", status="failed"),
        item("FileChange", status="completed", changes=moved),
        item("AgentMessage", content=[{"type": "Text", "text": "I read /b/agent.md"}]),
    )
    assert cards.found() == ("/b/a.md", "/p/b.md", "/b/c.md", "/b/old.md", "/b/new.md")
    assert cards.calls == {} and not cards.is_subagent and cards.base is None


def test_the_folder_is_that_of_the_newest_turn() -> None:
    """Relative paths are below it."""
    cards = cards_of(meta(), changed("a.md"), record("turn_context", cwd="/q"), changed("b.md"))
    assert cards.found() == ("/p/a.md", "/q/b.md")


def test_what_was_said_and_changed_in_events_of_single_kinds() -> None:
    """Until 0.15x, the calls of patches included."""
    cards = cards_of(
        meta(),
        event("user_message", message="see /b/a.md", kind="plain"),
        event("user_message", message="<environment_context> /b/no.md", kind="environment_context"),
        call({"command": ["apply_patch", patch("b.md")]}),
        result(OK),
        response("custom_tool_call", name="apply_patch", input=patch("c.md"), call_id="c2"),
        response("custom_tool_call_output", call_id="c2", output=json.loads(OK)),
        event("patch_apply_end", call_id="c3", success=True, changes=EARLIER),
        event("patch_apply_end", call_id="c4", success=False, changes={"/b/no.md": {}}),
        response("message", role="user", content=[{"type": "input_text", "text": "see /b/no.md"}]),
    )
    assert cards.found() == ("/b/a.md", "/p/b.md", "/p/c.md", "/b/d.md", "/b/e.md")


@pytest.mark.parametrize(
    ("given", "output", "found"),
    [
        ({"command": ["bash", "-lc", f"apply_patch <<'E'\n{patch('a.md')}\nE\n"]}, OK, ("/p/a.md",)),
        (
            {"cmd": f"cd s && apply_patch <<'E'\n{patch('a.md')}\nE\n"},
            "Process exited with code 0",
            ("/p/s/a.md",),
        ),
        ({"input": patch("a.md"), "workdir": "w"}, "Success. Updated the following files:\n", ("/p/w/a.md",)),
        (
            {"command": patch("a.md"), "workdir": "/w"},
            [{"type": "text", "text": "Exit code: 0"}],
            ("/w/a.md",),
        ),
        ({"command": patch("a.md")}, '{"output":"","metadata":{"exit_code":1}}', ()),
        ({"command": patch("a.md")}, "Exit code: 1\nSuccess. Updated the following files", ()),
        ({"command": patch("a.md")}, "apply_patch verification failed", ()),
        ({"command": patch("a.md")}, None, ()),
        ({"command": ["cat", "/b/a.md"]}, OK, ()),
        ([patch("/b/a.md")], OK, ()),
        (5, OK, ()),
    ],
)
def test_calls_of_patches(given: Any, output: Any, found: Tuple[str, ...]) -> None:
    """In every form that the versions had, when they succeeded."""
    assert cards_of(meta(), call(given), result(output)).found() == found
    local = response("local_shell_call", call_id="c1", action=given)
    assert cards_of(meta(), local, result(output)).found() == found


def test_the_oldest_files_are_bare() -> None:
    """A header without a kind, items without records; the folder stands in what was put in."""
    place = "<environment_context>\nCurrent working directory: /q\n</environment_context>"
    cards = cards_of(
        {"id": "t", "timestamp": "2025-05-07T17:24:21.123Z", "instructions": None},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": place}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "see /b/a.md"}]},
        {"record_type": "state"},
        call({"command": ["apply_patch", patch("b.md")]})["payload"],
        result(OK)["payload"],
    )
    assert (cards.thread, cards.found()) == ("t", ("/q/b.md", "/b/a.md"))


@pytest.mark.parametrize(
    "more",
    [
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "t", "depth": 1}}}},
        {"source": {"subagent": "review"}},
        {"source": {"internal": "memory_consolidation"}},
        {"thread_source": "subagent"},
        {"parent_thread_id": "t"},
    ],
)
def test_sub_agents_are_told_in_the_header(more: Any) -> None:
    """In any of the forms it had; the first header is the file's own, others are copies."""
    assert cards_of(meta(**more), meta("other")).is_subagent
    cards = cards_of(meta(source="exec", thread_source="user"), meta("other", **more))
    assert not cards.is_subagent and cards.thread != "other"


def test_what_is_not_the_users_words() -> None:
    """A sub-agent's texts do not count, its changes do."""
    text = response("message", role="user", content="see /b/b.md")
    cards = cards_of(meta(), said("see /b/a.md"), changed("/b/c.md"), with_text=False)
    assert cards.found() == ("/b/c.md",)
    assert cards_of(meta(), text, with_text=False).found() == ()
    assert cards_of(meta(), text).found() == ("/b/b.md",)


def test_other_threads_are_named() -> None:
    """Those it has sent out, and the one that a fork continues."""
    cards = cards_of(
        meta(history_base={"thread_id": "b", "end_ordinal_exclusive": 9, "end_byte_offset": 1000}),
        item("SubAgentActivity", kind="started", agent_thread_id="x"),
        item("CollabAgentToolCall", receiver_thread_ids=["x", "y", 5]),
        event("collab_agent_spawn_end", new_thread_id="z"),
        call({"message": "go"}, name="spawn_agent"),
        result('{"agent_id":"w","nickname":"Nick"}'),
        call({"message": "go"}, "c2", name="spawn_agent"),
        result('{"task_name":"/main/kid"}', "c2"),
        result('{"agent_id":"none"}', "c3"),
    )
    assert (list(cards.agents), cards.base) == (["x", "y", "z", "w"], Base("b", 1000))
    assert cards.found() == ()


ODD: List[Any] = [None, 5, "x", [], [None], {}, {"type": []}, {"type": None}, True, {"item": 5}]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_odd_forms_say_nothing(odd: Any) -> None:
    """In every place of every kind."""
    for kind in ("session_meta", "turn_context", "event_msg", "response_item", odd):
        cards_of({"type": kind, "payload": odd})
    names = ("message", "changes", "item", "content", "arguments", "output", "cwd", "id", "call_id")
    more = ("history_base", "source", "action", "input", "success")
    fields = dict.fromkeys((*names, *more), odd)
    kinds = ("user_message", "patch_apply_end", "collab_agent_spawn_end", "message", "function_call", "x")
    for kind in (*kinds, "function_call_output", "custom_tool_call", "local_shell_call", "item_completed"):
        for outer in ("event_msg", "response_item", "session_meta", "turn_context"):
            assert cards_of(record(outer, **{**fields, "type": kind, "role": "user"})).found() == ()
    for kind in ("UserMessage", "FileChange", "SubAgentActivity", "CollabAgentToolCall"):
        assert cards_of(item(kind, **{**fields, "status": "completed"})).found() == ()
