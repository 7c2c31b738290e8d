"""``/hooks/claude``: real payloads, the real adapter, real cards and a real event stream."""

import json
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple, cast

import pytest

from adapters.registry import ADAPTERS
from companion.boards.writer import give_uuid
from tests.companion.web.talk import Talk
from tests.companion.web.world import BOARD, OTHER_BOARD, World

JSON = (("Content-Type", "application/json"),)
SESSION = "5a000000-0000-4000-8000-00000000000a"
RUNNING, WAITING, REVIEW = "running", "waiting_for_input", "ready_for_review"


class Claude:
    """One session that reports to a companion."""

    def __init__(self, world: World) -> None:
        world.services.adapters["claude"] = ADAPTERS["claude"]  # type: ignore[index]
        self.world = world
        self.transcript = world.folder / "transcript.jsonl"

    def post(self, payload: object) -> Tuple[int, bytes]:
        """Any JSON as a hook body; status and body of the answer."""
        with self.world.talk() as talk:
            answer = talk.ask("POST", "/hooks/claude", json.dumps(payload).encode(), JSON)
        return answer.status, answer.body

    def say(self, event: str, **fields: object) -> None:
        """One event of the session, which must be taken."""
        payload: Dict[str, object] = {"hook_event_name": event, "session_id": SESSION}
        payload.update(cwd=str(self.world.board), transcript_path=str(self.transcript), **fields)
        assert self.post(payload) == (202, b"{}")

    def edit(self, path: str, event: str = "PostToolUse", tool: str = "Write") -> None:
        """A tool call that ended."""
        self.say(event, tool_name=tool, tool_input={"file_path": path}, tool_use_id="t1")

    def cards(self) -> Dict[str, str]:
        """Status by card uuid."""
        held: Any = self.world.ledger.associations()
        assert {record["harness"] for record in held} <= {"claude"}
        return {record["cardUuid"]: record["status"] for record in held}


@pytest.fixture
def claude(world: World) -> Claude:
    """A session of which nothing is known yet."""
    return Claude(world)


def told(stream: Talk, count: int) -> List[Tuple[str, str]]:
    """(card, status) of the next events of a stream."""
    events: Any = [stream.event() for _ in range(count)]
    assert {event.name for event in events} == {"association"}
    return [(event.json()["cardUuid"], event.json()["status"]) for event in events]


def test_a_prompt_names_two_cards_and_a_stop_none(claude: Claude, world: World) -> None:
    """Both settle, on their own boards' streams; the transcript of the first event is kept."""
    with world.listen() as here, world.listen(OTHER_BOARD, world.other_board) as there:
        for stream in (here, here, there):  # its own, then the one for the second subscriber
            assert stream.event().json() == []
        claude.say("UserPromptSubmit", prompt=f"compare {world.card_a} with\n'{world.card_c}'")
        stop = {"hook_event_name": "Stop", "session_id": SESSION, "background_tasks": []}
        assert claude.post(stop) == (202, b"{}")
        assert told(here, 2) == [("card-a", RUNNING), ("card-a", REVIEW)]
        assert told(there, 2) == [("card-c", RUNNING), ("card-c", REVIEW)]
    for record in world.ledger.associations():
        assert (record["sessionId"], record["sessionFile"]) == (SESSION, str(claude.transcript))


def test_statuses_of_a_session_from_its_start_to_its_resume(claude: Claude, world: World) -> None:
    """As a page sees them: a question waits, an answer runs on, an end closes, a resume opens again."""
    ask: Dict[str, object] = {"tool_name": "AskUserQuestion", "tool_input": {}, "tool_use_id": "q"}
    with world.listen() as stream:
        stream.event()
        claude.say("SessionStart", source="startup")
        claude.say("UserPromptSubmit", prompt=f"work on {world.card_a}")
        claude.say("PreToolUse", **ask)
        claude.say("PermissionRequest", tool_name="AskUserQuestion", tool_input={})
        claude.say("PostToolUse", **ask)
        claude.say("Stop", background_tasks=[])
        claude.say("SessionEnd", reason="prompt_input_exit")
        claude.say("SessionStart", source="resume")
        claude.say("UserPromptSubmit", prompt="go on")
        statuses = [status for _, status in told(stream, 7)]
    assert statuses == [RUNNING, WAITING, RUNNING, REVIEW, "closed", "idle", RUNNING]


@pytest.mark.parametrize(
    ("prompt", "linked"),
    [
        ("see {a}.", ["card-a"]),
        ("use /tmp/x and {a}", ["card-a"]),
        ("/card {a}", ["card-a"]),
        ('<pasted_content id="1">about {a}</pasted_content>', ["card-a"]),
        ("[one]({a}), `{b}`", ["card-a", "card-b"]),
        ("@{a}", ["card-a"]),
        ("@a.md and ./b.md", []),
        ("<task-notification>{a}</task-notification>", []),
        ("{a}x", []),
        ("", []),
    ],
)
def test_cards_that_a_prompt_names(claude: Claude, world: World, prompt: str, linked: List[str]) -> None:
    """Typed, pasted, behind a command or behind other paths; not what the program itself says."""
    claude.say("UserPromptSubmit", prompt=prompt.format(a=world.card_a, b=world.card_b))
    assert list(claude.cards()) == linked


@pytest.mark.parametrize(
    ("event", "tool", "path", "linked"),
    [
        ("PostToolUse", "Write", "{a}", True),
        ("PostToolUse", "Edit", "{a}", True),
        ("PostToolUse", "MultiEdit", "a.md", True),
        ("PostToolUse", "Write", "archive/../a.md", True),
        ("PostToolUse", "Read", "{a}", False),
        ("PostToolUse", "Bash", "{a}", False),
        ("PostToolUse", "write", "{a}", False),
        ("PostToolUse", "NotebookEdit", "{a}", False),
        ("PostToolUse", "Write", "{a}x", False),
        ("PostToolUseFailure", "Write", "{a}", False),
        ("PreToolUse", "Write", "{a}", False),
        ("PermissionRequest", "Write", "{a}", False),
    ],
)
def test_cards_that_a_tool_changed(
    claude: Claude, world: World, event: str, tool: str, path: str, linked: bool
) -> None:
    """Only a write or an edit that succeeded; a relative path starts at the session's folder."""
    claude.edit(path.format(a=world.card_a), event, tool)
    assert claude.cards() == ({"card-a": RUNNING} if linked else {})


def test_a_resumed_session_gets_the_cards_of_its_transcript(claude: Claude, world: World) -> None:
    """Of a file that is there; a missing one means no cards and no error."""
    claude.say("SessionStart", source="resume")
    assert claude.cards() == {}
    entry = {"type": "user", "message": {"role": "user", "content": f"work on {world.card_b}"}}
    claude.transcript.write_text(json.dumps(entry) + "\n", encoding="utf-8")
    claude.say("SessionStart", source="resume")
    assert claude.cards() == {"card-b": "idle"}
    claude.say("Stop")
    assert claude.cards() == {"card-b": REVIEW}


@pytest.mark.parametrize(
    "payload",
    [
        {},
        [],
        None,
        "Stop",
        {"hook_event_name": "Stop"},
        {"hook_event_name": "Stop", "session_id": ""},
        {"hook_event_name": "Stop", "session_id": 5},
        {"session_id": SESSION},
        {"hook_event_name": "SomethingNew", "session_id": SESSION},
        {"hook_event_name": "stop", "session_id": SESSION},
        {"hook_event_name": "PreCompact", "session_id": SESSION},
        {"hook_event_name": "Notification", "session_id": SESSION, "notification_type": "idle_prompt"},
    ],
)
def test_what_means_nothing_changes_nothing(claude: Claude, world: World, payload: object) -> None:
    """The agent sees a success all the same; names that we do not know are counted."""
    claude.say("UserPromptSubmit", prompt=f"work on {world.card_a}")
    before = world.ledger.associations()
    assert claude.post(payload) == (202, b"{}")
    assert world.ledger.associations() == before
    facts: Any = world.intake.facts()["claude"]
    unknown = {"SomethingNew", "stop"} & set(json.dumps(payload).split('"'))
    assert set(facts["unknownEvents"]) == unknown


def test_a_question_that_was_open_at_a_restart_is_answered_after_it(
    claude: Claude, world: World, tmp_path: Path
) -> None:
    """Cards, status and what is waited for survive; another result still does not answer it."""
    claude.say("UserPromptSubmit", prompt=f"work on {world.card_a}")
    claude.say("PreToolUse", tool_name="AskUserQuestion", tool_input={}, tool_use_id="q")
    world.stop()
    again: Optional[World] = None
    try:
        again = World(tmp_path).start()
        claude = Claude(again)
        assert claude.cards() == {"card-a": WAITING}
        claude.say("PostToolUse", tool_name="Bash", tool_input={}, tool_use_id="other")
        assert claude.cards() == {"card-a": WAITING}
        claude.say("PostToolUse", tool_name="AskUserQuestion", tool_input={}, tool_use_id="q")
        assert claude.cards() == {"card-a": RUNNING}
    finally:
        if again is not None:
            again.stop()


def test_one_answer_to_how_a_session_fares(claude: Claude, world: World) -> None:
    """The list, the filtered list, a new stream's snapshot and the log agree."""
    claude.say("UserPromptSubmit", prompt=f"{world.card_a}\n{world.card_b}")
    claude.say("Notification", notification_type="permission_prompt")
    with world.talk() as talk:
        listed = talk.ask("GET", f"/associations?boardUuid={BOARD}").json()
        assert talk.ask("GET", "/associations").json() == listed
    with world.listen() as stream:
        assert stream.event().json() == listed
    lines = world.settings.data_path.read_text(encoding="utf-8").splitlines()
    logged = {record["cardUuid"]: record for record in map(json.loads, lines)}
    assert list(logged.values()) == listed
    assert claude.cards() == {"card-a": WAITING, "card-b": WAITING}


def test_a_new_card_is_linked_with_its_history_once_it_has_a_uuid(claude: Claude, world: World) -> None:
    """Unknown at first, whoever asks; then as if it had been a card all along."""
    plain = world.board / "new.md"
    plain.write_text("# New\n", encoding="utf-8")
    claude.say("UserPromptSubmit", prompt="write a card")
    claude.edit(str(plain))
    claude.say("Stop", background_tasks=[])
    assert claude.cards() == {}
    assert give_uuid(plain, "card-new").changed
    with world.listen() as stream:
        (record,) = cast(List[Dict[str, str]], stream.event().json())
    assert (record["cardUuid"], record["status"], record["cardPath"]) == ("card-new", REVIEW, str(plain))
    lines = world.settings.data_path.read_text(encoding="utf-8").splitlines()
    logged = [json.loads(line) for line in lines]
    assert [each["status"] for each in logged] == [RUNNING, REVIEW]
    assert {each["cardUuid"] for each in logged} == {"card-new"}
    assert logged[1]["updatedAt"] == record["updatedAt"] >= logged[0]["updatedAt"]
