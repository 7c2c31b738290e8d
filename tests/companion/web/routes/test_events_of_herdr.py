"""Labels over HTTP: streams, lists and reports, with a herdr that behaves, hangs, or comes later."""

import json
from typing import Any, List, Tuple

import pytest

from tests.companion.web.talk import PATIENCE_S, Talk, eventually
from tests.companion.web.world import BOARD, OTHER_BOARD, World
from tests.fakes.fake_herdr import FakeHerdr


@pytest.fixture
def herdr(world: World) -> FakeHerdr:
    """A herdr that the companion of this test does not know yet, but has patience with."""
    world.labels._wait_s = PATIENCE_S
    return FakeHerdr(world.folder / "herdr")


def find(world: World, herdr: FakeHerdr) -> None:
    """Let the companion find herdr from now on."""
    world.environ["HERDR_PATH"] = str(herdr.path)


def labels_of(record: Any) -> List[object]:
    """Workspace and tab as a client would show them."""
    return [record[name] for name in ("herdrWorkspace", "herdrTab") if name in record]


def report(world: World, card: str, session: str = "s1", status: str = "running", **more: object) -> Any:
    """Post what a client would; the stored record."""
    body = {"cardPath": card, "harness": "opencode", "sessionId": session, "status": status, **more}
    with world.talk() as talk:
        answer = talk.ask("POST", "/associations", json.dumps(body).encode())
    assert answer.status == 202
    return answer.json()


def listed(world: World) -> Any:
    """What a page gets by asking."""
    with world.talk() as talk:
        return talk.ask("GET", "/associations").json()


def next_labels(stream: Talk) -> Tuple[str, List[object]]:
    """Name and labels of a stream's next frame; of a snapshot, those of its only record."""
    event: Any = stream.event()
    data = event.json()
    return event.name, labels_of(data[0] if event.name == "snapshot" else data)


SHOP = ["Shop", "Basket"]


def test_a_subscription_costs_one_sync_and_has_the_labels(world: World, herdr: FakeHerdr) -> None:
    """Known sessions, reads, reports and forgetting cost none after that."""
    find(world, herdr)
    herdr.run_session("s1")
    report(world, world.card_a)
    eventually(lambda: listed(world)[0].get("herdrTab"))
    before = herdr.syncs()
    with world.listen() as stream:
        assert herdr.syncs() - before == 1
        assert next_labels(stream) == ("snapshot", SHOP)
        stored = report(world, world.card_a, status="idle", herdrWorkspace="Foreign", herdrTab="Foreign")
        assert next_labels(stream) == ("association", SHOP)
        assert labels_of(stored) == []
        assert labels_of(listed(world)[0]) == SHOP
        with world.talk() as talk:
            talk.ask("DELETE", "/associations?cardUuid=card-b")
        assert next_labels(stream) == ("snapshot", SHOP)
    assert herdr.syncs() - before == 1
    assert b"herdr" not in world.settings.data_path.read_bytes()


def test_an_unknown_session_is_told_at_once_and_again_with_its_labels(world: World, herdr: FakeHerdr) -> None:
    """One sync; a session that herdr does not know costs one too, and no more."""
    find(world, herdr)
    with world.listen() as stream:
        stream.event()
        herdr.run_session("s1")
        herdr.misbehave(agent="wait")
        report(world, world.card_a)
        assert next_labels(stream) == ("association", [])
        herdr.go_on()
        assert next_labels(stream) == ("association", SHOP)
        for status in ("idle", "running", "idle"):
            report(world, world.card_b, "nowhere", status)
            assert next_labels(stream) == ("association", [])
            eventually(lambda: herdr.syncs() == 3)


def test_a_hanging_herdr_delays_nobody(world: World, herdr: FakeHerdr) -> None:
    """Reports, hooks, lists and streams are served while it hangs; only labels are missing."""
    find(world, herdr)
    herdr.run_session("s1")
    herdr.misbehave(agent="hang", tab="hang", workspace="hang")
    world.labels._wait_s, world.labels._timeout_s = 0.05, 3600.0
    report(world, world.card_a)
    eventually(lambda: herdr.syncs() == 1)
    with world.listen() as stream, world.listen(OTHER_BOARD, world.other_board) as other:
        assert next_labels(stream) == ("snapshot", [])
        assert other.event().json() == []
        report(world, world.card_b, "s2")
        assert [stream.event().name for _ in range(2)] == ["snapshot", "association"]
        hook = {"session": "s3", "status": "running", "paths": [world.card_c]}
        with world.talk() as talk:
            kind = (("Content-Type", "application/json"),)
            assert talk.ask("POST", "/hooks/toy", json.dumps(hook).encode(), kind).status == 202
        assert other.event().name == "association"
        assert len(listed(world)) == 3
        # Nothing came to an end meanwhile: all that was beside one and the same hanging sync.
        assert (herdr.syncs(), world.labels.problem) == (1, None)


def test_a_slow_herdr_brings_its_labels_later(world: World, herdr: FakeHerdr) -> None:
    """The stream opens without them, and gets them when they come."""
    report(world, world.card_a)
    find(world, herdr)
    herdr.run_session("s1")
    herdr.misbehave(workspace="wait")
    world.labels._wait_s = 0.05
    with world.listen() as stream:
        assert next_labels(stream) == ("snapshot", [])
        herdr.go_on()
        assert next_labels(stream) == ("association", SHOP)


def test_a_herdr_that_is_there_later_than_the_stream(world: World, herdr: FakeHerdr) -> None:
    """The first session in it brings it to our notice, and all others get their labels too."""
    report(world, world.card_a)
    with world.listen() as stream:
        assert next_labels(stream) == ("snapshot", [])
        find(world, herdr)
        herdr.run_session("s1")
        herdr.run_session("s2", tab="Checkout")
        report(world, world.card_b, "s2")
        told: List[Any] = [stream.event().json() for _ in range(3)]
    assert [(each["sessionId"], labels_of(each)) for each in told] == [
        ("s2", []),
        ("s1", SHOP),
        ("s2", ["Shop", "Checkout"]),
    ]


def test_labels_go_when_herdr_fails(world: World, herdr: FakeHerdr) -> None:
    """A stream that opens shows none then."""
    find(world, herdr)
    herdr.run_session("s1")
    report(world, world.card_a)
    eventually(lambda: listed(world)[0].get("herdrTab"))
    herdr.misbehave(agent="fail")
    with world.listen() as stream:
        assert next_labels(stream) == ("snapshot", [])
    assert labels_of(listed(world)[0]) == []
    assert world.labels.problem == "herdr failed (exit code 1): Error: no server is running"


def test_a_session_known_by_its_file(world: World, herdr: FakeHerdr) -> None:
    """Also when a later report does not name the file."""
    find(world, herdr)
    herdr.run_session("/s/1.jsonl")
    report(world, world.card_a, harness="pi", sessionFile="/s/1.jsonl")
    report(world, world.card_a, harness="pi", status="idle")
    with world.listen(BOARD) as stream:
        assert next_labels(stream) == ("snapshot", SHOP)
