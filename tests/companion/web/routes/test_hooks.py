"""``/hooks/<harness>``."""

import json
from typing import Any, Dict, Tuple

import pytest

from companion.web.limits import Limits
from tests.companion.web.conftest import MakeWorld
from tests.companion.web.talk import Answer, eventually
from tests.companion.web.world import World

JSON = (("Content-Type", "application/json"),)


def hook(world: World, body: bytes, headers: Tuple[Tuple[str, str], ...] = JSON, name: str = "toy") -> Answer:
    """Post one hook body."""
    with world.talk() as talk:
        return talk.ask("POST", f"/hooks/{name}", body, headers)


def toy(status: str, *paths: str) -> bytes:
    """A payload of the toy agent."""
    return json.dumps({"session": "s1", "status": status, "paths": paths}).encode()


def held(world: World) -> Dict[str, str]:
    """Status by card uuid."""
    found: Any = world.ledger.associations()
    return {record["cardUuid"]: record["status"] for record in found}


def test_an_event_reaches_its_cards(world: World) -> None:
    """And a later one without paths reaches all of the session."""
    answer = hook(world, toy("running", world.card_a, world.card_b))
    assert (answer.status, answer.body) == (202, b"{}")
    assert answer.headers["content-type"] == "application/json"
    assert held(world) == {"card-a": "running", "card-b": "running"}
    hook(world, toy("ready_for_review"))
    assert held(world) == {"card-a": "ready_for_review", "card-b": "ready_for_review"}


@pytest.mark.parametrize("body", [b"{}", b"[]", b"null", b"1", b'"text"', b'{"event": "Unheard"}'])
def test_what_means_nothing_is_taken_all_the_same(world: World, body: bytes) -> None:
    """An agent must never see an error for it."""
    answer = hook(world, body)
    assert (answer.status, answer.body) == (202, b"{}")


@pytest.mark.parametrize("body", [b"", b"{", b"\xef\xbb\xbf{}", b"NaN", b"[" * 65_536])
def test_what_is_no_json_fails_quietly(world: World, body: bytes) -> None:
    """400, and still a JSON object: Claude Code takes other bodies for errors of the hook."""
    answer = hook(world, body)
    assert (answer.status, answer.body) == (400, b"{}")


def test_deep_json_is_valid(world: World) -> None:
    """What lies deep below is of no interest, the rest counts."""
    deep = b'{"a":[' * 50_000 + b"]}" * 50_000
    payload = toy("running", world.card_a)[:-1] + b', "deep": ' + deep + b"}"
    assert hook(world, payload).status == 202
    assert held(world) == {"card-a": "running"}


def test_a_card_that_cannot_be_read_fails_quietly(world: World) -> None:
    """The others are recorded."""
    (world.board / "dir.md").mkdir()
    answer = hook(world, toy("running", world.card_a, str(world.board / "dir.md")))
    assert (answer.status, answer.body) == (400, b"{}")
    assert held(world) == {"card-a": "running"}


def test_our_own_bugs_stay_ours(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent gets its empty object, the log a traceback."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(world.intake, "handle", fail)
    answer = hook(world, b"{}")
    assert (answer.status, answer.body) == (400, b"{}")
    assert hook(world, b'{"fault": true}').body == b"{}"


@pytest.mark.parametrize("kind", ["text/plain", "Application/JSON", "", None])
def test_the_content_type_must_be_json(world: World, kind: str) -> None:
    """Looked at before the body; the letters' case counts."""
    answer = hook(world, b"{", (("Content-Type", kind),) if kind is not None else ())
    assert (answer.status, answer.error()) == (415, "Expected application/json")


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "text/x, application/json"])
def test_the_content_type_may_say_more(world: World, kind: str) -> None:
    """A part of the header is enough."""
    assert hook(world, b"{}", (("Content-Type", kind),)).status == 202


def test_an_unknown_harness_comes_before_the_content_type(world: World) -> None:
    """404 that names it."""
    answer = hook(world, b"{}", (("Content-Type", "text/plain"),), name="no-such_1")
    assert (answer.status, answer.error()) == (404, "Unknown harness: no-such_1")


@pytest.mark.parametrize("name", ["Origin", "Referer", "Sec-Fetch-Site"])
def test_browsers_are_refused(world: World, name: str) -> None:
    """Before anything else is looked at, also the web app's own page; never with CORS headers."""
    answer = hook(world, b"{}", ((name, "https://subdavis.github.io"),), name="no-such")
    assert answer.status == 403 and "local agent hook clients" in answer.error()
    assert not [each for each in answer.headers if each.startswith("access-control")]


def test_a_hook_may_carry_a_file_three_times(world: World) -> None:
    """32 MiB pass, one byte more is read and refused, and the connection lives on."""
    payload = toy("running", world.card_a)
    full = payload[:-1] + b', "x": "' + b"y" * (32 * 1024 * 1024 - len(payload) - 9) + b'"}'
    assert len(full) == 32 * 1024 * 1024
    with world.talk() as talk:
        assert talk.ask("POST", "/hooks/toy", full, JSON).status == 202
        assert held(world) == {"card-a": "running"}
        answer = talk.ask("POST", "/hooks/toy", full + b" ", JSON)
        assert (answer.status, answer.body) == (400, b"{}")
        assert talk.ask("POST", "/hooks/toy", b"{}", JSON).status == 202


def test_a_body_that_comes_too_slowly(make_world: MakeWorld) -> None:
    """408, and even that with an empty object."""
    world = make_world(Limits(body_s=0.1))
    with world.talk() as talk:
        talk.send(
            b"POST /hooks/toy HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 10\r\n\r\n{"
        )
        answer = talk.answer()
        assert (answer.status, answer.body, answer.headers["connection"]) == (408, b"{}", "close")


def test_an_agent_that_ends_in_the_middle_of_its_hook_is_no_fault(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Killed while it sends: nothing is recorded, nobody is answered, and the log stays quiet."""
    with world.talk() as talk:
        talk.send(
            b"POST /hooks/toy HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000\r\n\r\n" + toy("running", world.card_a)
        )
        eventually(lambda: len(world.server.connections()) == 1)
    eventually(lambda: world.server.connections() == [])
    assert held(world) == {} and not caplog.records


def test_the_session_file_key_is_absent_when_unknown(world: World) -> None:
    """Not null."""
    hook(world, toy("running", world.card_a))
    assert "sessionFile" not in world.ledger.associations()[0]
