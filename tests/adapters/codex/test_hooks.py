"""What Codex's hook payloads mean, by recorded ones and by made ones."""

import json
from typing import Any, Dict, List, Optional, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.codex.events import EVENTS, SUBSCRIBED
from adapters.codex.hooks import session_of, translate
from adapters.contract import HookEvent
from tests.conftest import ROOT

RECORDED = ROOT / "tests/fixtures/codex/payloads.jsonl"
CARDS = "/home/dev/project/cards"
Payload = Dict[str, Any]


def run(payloads: List[Payload]) -> Dict[str, List[HookEvent]]:
    """What is published of each session; each state goes through JSON, as it does in the log."""
    states: Dict[str, Any] = {}
    told: Dict[str, List[HookEvent]] = {}
    for payload in payloads:
        session = session_of(payload)
        done = translate(payload, states.get(session))
        assert done.known
        if done.state is not None:
            states[session] = json.loads(json.dumps(done.state))
        if done.event is not None:
            told.setdefault(session, []).append(done.event)
    return told


def statuses(*payloads: Payload) -> List[str]:
    """The statuses published of one session."""
    (events,) = run(list(payloads)).values()
    return [event.status.value for event in events]


def make(name: str, **more: Any) -> Payload:
    turn = {} if name in ("SessionStart", "SessionEnd") else {"turn_id": "t1"}
    return {
        "hook_event_name": name,
        "session_id": "s",
        "cwd": "/p",
        "transcript_path": "/r.jsonl",
        **turn,
        **more,
    }


START, PROMPT = make("SessionStart", source="startup"), make("UserPromptSubmit", prompt="hi")
ASKED = ("PreToolUse", "PostToolUse")
STOP, END = make("Stop"), make("SessionEnd", reason="other")


def tool(name: str, command: str = "ls", **more: Any) -> Payload:
    """A tool's event; a permission's has the command without the last line end."""
    return make(name, tool_name="Bash", tool_input={"command": command}, **more)


def test_recorded_sessions() -> None:
    """A run with a failing patch and a sub-agent; one that asks, is interrupted and forked."""
    run_, asked, fork = run([json.loads(line) for line in RECORDED.read_text("utf-8").splitlines()]).values()
    told = [(event.status.value, event.card_paths) for event in run_]
    assert told == [
        ("idle", ()),
        ("running", (f"{CARDS}/a.md",)),
        ("running", (f"{CARDS}/n.md",)),
        ("running", (f"{CARDS}/kid.md",)),
        ("ready_for_review", ()),
        ("closed", ()),
    ]
    of_kid = run_[3]
    assert of_kid.session_file is None
    assert {event.session_file for event in run_ if event is not of_kid} == {run_[0].session_file}
    told = [(event.status.value, event.card_paths) for event in asked]
    assert told == [
        ("idle", ()),
        ("running", (f"{CARDS}/asked.md",)),
        ("waiting_for_input", ()),
        ("running", (f"{CARDS}/n.md", f"{CARDS}/moved.md")),
        ("ready_for_review", ()),
        ("running", ()),
        ("ready_for_review", ()),
        ("closed", ()),
    ]
    read = [event.status.value for event in fork if event.discover_from == fork[0].session_file]
    assert read == ["ready_for_review"]  # Behind the prompt its file is not there yet.
    assert not any(event.discover_from for event in [*run_, *asked])


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([START, PROMPT, STOP, END], "idle running ready_for_review closed"),
        ([START, PROMPT, make("SessionStart", source="compact"), STOP], "idle running ready_for_review"),
        # A wait ends with its own call, not with another's.
        (
            [PROMPT, tool("PermissionRequest", "a"), tool("PostToolUse", "b"), tool("PostToolUse", "a\n")],
            "running waiting_for_input running",
        ),
        ([PROMPT, tool("PermissionRequest"), STOP], "running waiting_for_input ready_for_review"),
        ([PROMPT, tool("PermissionRequest"), PROMPT], "running waiting_for_input running"),
        # A question of Codex's own.
        (
            [PROMPT, *(make(name, tool_name="functionsrequest_user_input") for name in ASKED)],
            "running waiting_for_input running",
        ),
        # A sub-agent's wait is the session's, until the sub-agent stops; its end settles nothing else.
        (
            [PROMPT, tool("PermissionRequest", agent_id="k"), STOP, make("SubagentStop", agent_id="k")],
            "running waiting_for_input waiting_for_input ready_for_review",
        ),
        ([PROMPT, STOP, tool("PreToolUse", agent_id="k"), make("Stop", agent_id="k")], None),
        # An interrupt: late events of its turn wake nobody, the next turn does.
        (
            [PROMPT, make("Interrupt"), tool("PostToolUse"), tool("PreToolUse", turn_id="t2")],
            "running ready_for_review running",
        ),
        ([PROMPT, make("Interrupt", turn_id="of a sub-agent")], "running"),
        # Closed is closed, until it starts again or the user speaks.
        ([PROMPT, END, tool("PostToolUse"), STOP, make("UserPromptSubmit", agent_id="k")], "running closed"),
        ([PROMPT, END, make("SessionStart", source="resume"), PROMPT], "running closed idle running"),
        ([PROMPT, END, PROMPT], "running closed running"),
        # Another's stop hook may let the turn go on.
        ([PROMPT, STOP, tool("PreToolUse"), STOP], "running ready_for_review running ready_for_review"),
    ],
)
def test_statuses(events: List[Payload], expected: Optional[str]) -> None:
    """Event by event."""
    if expected is None:
        assert (
            statuses(*events)[:2] == ["running", "ready_for_review"] == sorted(set(statuses(*events)))[::-1]
        )
    else:
        assert statuses(*events) == expected.split()


@pytest.mark.parametrize(
    ("more", "cards"),
    [
        ({}, ("/p/a.md",)),
        ({"tool_response": "Exit code: 0\nSuccess"}, ("/p/a.md",)),
        ({"tool_response": "Exit code: 1\n"}, ()),
        ({"tool_response": {"any": "thing"}}, ("/p/a.md",)),
        ({"cwd": None}, ()),
        ({"cwd": 5}, ()),
        ({"tool_input": None}, ()),
        ({"tool_input": {"command": ["a"]}}, ()),
        ({"hook_event_name": "PreToolUse"}, ()),
    ],
)
def test_cards_of_patches(more: Payload, cards: Tuple[str, ...]) -> None:
    """Of those that were applied, relative to the payload's folder."""
    given = {"command": "*** Begin Patch\n*** Add File: a.md\n+x\n*** End Patch\n"}
    payload = {**make("PostToolUse", tool_name="apply_patch", tool_input=given), **more}
    event = translate(payload, None).event
    assert event is not None and event.card_paths == cards


def test_a_sub_agents_task_is_nothing_the_user_said() -> None:
    """Older versions give it as a prompt."""
    payload = make("UserPromptSubmit", prompt="see /b/a.md", agent_id="k")
    assert translate(payload, None).event is None


@pytest.mark.parametrize(
    ("first", "reads"),
    [
        (make("SessionStart", source="resume"), [True]),
        (START, [False]),
        (PROMPT, [False]),
        (STOP, [True]),
        (tool("PermissionRequest", agent_id="k"), [False]),
    ],
)
def test_what_a_session_did_before_is_read(first: Payload, reads: List[bool]) -> None:
    """When it is resumed, and when it is first heard of in its middle; once."""
    events = run([first])["s"]
    assert [event.discover_from == "/r.jsonl" for event in events] == reads
    assert [event.discover_cwd for event in events] == ["/p" if read else None for read in reads]
    later = run([first, STOP, STOP])["s"]
    known = first in (START,)
    assert sum(event.discover_from is not None for event in later) == (0 if known else 1)


def test_a_patch_in_a_shell_command_is_read_at_the_end_of_the_turn() -> None:
    """Codex says nothing of its result; the file does."""
    patch = "apply_patch <<'E'\n*** Begin Patch\n*** Add File: a.md\n+x\n*** End Patch\nE\n"
    for who in ({}, {"agent_id": "k"}):
        events = run(
            [START, PROMPT, tool("PreToolUse", patch, **who), tool("PermissionRequest"), STOP, PROMPT, STOP]
        )
        assert [event.discover_from is not None for event in events["s"]] == [False] * 3 + [
            True,
            False,
            False,
        ]
    assert not any(event.discover_from for event in run([START, PROMPT, tool("PreToolUse"), STOP])["s"])


def test_every_event_is_known_and_others_are_told() -> None:
    """A name of a version to come is cut."""
    for name in EVENTS:
        done = translate(make(name), None)
        assert done.known and (done.event is None or name in SUBSCRIBED)
    others: List[Any] = ["Notification", "x" * 100, "\ud800", 5, None]
    for other in others:
        done = translate({"hook_event_name": other, "session_id": "s"}, None)
        assert not done.known and len(done.event_name) <= 64 and done.event_name.isprintable()
    assert translate({"hook_event_name": "Stop"}, None).event is None


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("s" * 600),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = ("session_id", "turn_id", "agent_id", "cwd", "transcript_path", "prompt", "source", "tool_name")
payloads = st.fixed_dictionaries(
    {"hook_event_name": st.sampled_from(EVENTS) | values},
    optional={name: values | st.just("s") for name in (*FIELDS, "tool_input", "tool_response")},
)
states = (
    st.none()
    | values
    | st.dictionaries(st.sampled_from(["phase", "waits", "turn", "dead", "unread", "patched"]), values)
)


@given(payloads, states)
def test_nothing_foreign_raises(payload: Payload, state: Any) -> None:
    """Payloads and states of any form; what comes out can be kept."""
    done = translate(payload, state)
    json.dumps(done.state)
    if done.event is not None:
        assert done.event.session_id


def test_a_state_stays_small() -> None:
    """However many dialogs are said to be open."""
    state: Any = None
    for number in range(500):
        state = translate(tool("PermissionRequest", f"c{number}", agent_id="k" * 500), state).state
    assert len(json.dumps(state)) < 64 * 1024
