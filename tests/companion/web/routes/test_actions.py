"""``/actions``: focus over HTTP."""

import json
from typing import Dict

import pytest

from tests.companion.web.talk import Answer
from tests.companion.web.world import World
from tests.fakes.fake_herdr import FakeHerdr

FOCUS: Dict[str, object] = {"action": "focus", "harness": "claude", "sessionId": "s1"}


@pytest.fixture
def herdr(world: World) -> FakeHerdr:
    """A herdr that the companion of this test finds."""
    made = FakeHerdr(world.folder / "herdr")
    world.environ["HERDR_PATH"] = str(made.path)
    return made


def post(world: World, body: object) -> Answer:
    """An action."""
    with world.talk() as talk:
        return talk.ask("POST", "/actions", json.dumps(body).encode())


def test_a_session_is_focused(world: World, herdr: FakeHerdr) -> None:
    """Exactly three calls; more fields than these are no harm."""
    herdr.run_session("s1")
    answer = post(world, {**FOCUS, "sessionFile": "/s/1.jsonl", "more": [1]})
    assert (answer.status, answer.body) == (200, b'{"ok":true}')
    assert answer.headers["content-type"] == "application/json"
    assert herdr.calls() == ["agent list", "agent focus w1:p1", "tab focus w1:t1"]


def test_a_session_that_herdr_knows_by_its_file(world: World, herdr: FakeHerdr) -> None:
    """The id alone finds nothing then."""
    herdr.run_session("/s/1.jsonl")
    assert post(world, {**FOCUS, "harness": "pi"}).error() == "session_not_found"
    assert post(world, {**FOCUS, "harness": "pi", "sessionFile": "/s/1.jsonl"}).status == 200


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "focus",
        5,
        {},
        {**FOCUS, "action": "close"},
        {**FOCUS, "action": None},
        {"harness": "claude", "sessionId": "s1"},
        {**FOCUS, "harness": ""},
        {**FOCUS, "harness": 5},
        {"action": "focus", "sessionId": "s1"},
        {**FOCUS, "sessionId": ""},
        {**FOCUS, "sessionId": ["s1"]},
        {"action": "focus", "harness": "claude"},
        {**FOCUS, "sessionFile": None},
        {**FOCUS, "sessionFile": 5},
    ],
)
def test_what_is_no_action(world: World, herdr: FakeHerdr, body: object) -> None:
    """Nothing is run for it."""
    answer = post(world, body)
    assert (answer.status, answer.error()) == (400, "Invalid action")
    assert herdr.calls() == []


def test_an_invalid_action_is_told_before_a_missing_herdr(world: World) -> None:
    """And what is no JSON, or too long, is told by the reader of bodies."""
    assert post(world, {}).status == 400
    with world.talk() as talk:
        assert "JSON" in talk.ask("POST", "/actions", b"{").error()
    assert post(world, {**FOCUS, "more": "x" * 65_536}).error() == "Request body too large"


def test_without_herdr(world: World) -> None:
    """A state, no failure."""
    answer = post(world, FOCUS)
    assert (answer.status, answer.error()) == (409, "herdr_not_configured")


def test_a_session_that_is_not_there(world: World, herdr: FakeHerdr) -> None:
    """It may have ended, or run elsewhere."""
    answer = post(world, FOCUS)
    assert (answer.status, answer.error()) == (404, "session_not_found")
    assert herdr.calls() == ["agent list"]


@pytest.mark.parametrize(
    ("command", "mode"),
    [("agent list", "fail"), ("agent list", "garbage"), ("agent focus", "fail"), ("tab focus", "fail")],
)
def test_a_herdr_that_fails(world: World, herdr: FakeHerdr, command: str, mode: str) -> None:
    """One code for all of it; what herdr said is for the debug log."""
    herdr.run_session("s1")
    herdr.misbehave(**{command: mode})
    answer = post(world, FOCUS)
    assert (answer.status, answer.error()) == (500, "herdr_command_failed")


def test_a_program_that_is_not_there(world: World) -> None:
    """A configured path is taken unchecked."""
    world.environ["HERDR_PATH"] = "/nowhere/herdr"
    assert post(world, FOCUS).error() == "herdr_command_failed"


def test_what_is_told_to_the_debug_log(
    world: World, herdr: FakeHerdr, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failures of herdr with their reason, refusals with their code."""
    said = []
    monkeypatch.setattr(
        "companion.core.logs.debug_event", lambda message, details: said.append((message, details))
    )
    post(world, FOCUS)
    herdr.misbehave(agent="fail")
    post(world, FOCUS)
    assert [each for each in said if each[0].startswith("action")] == [
        ("action request failed", {"error": "session_not_found"}),
        ("action failed", {"error": "herdr failed (exit code 1): Error: no server is running"}),
    ]
