"""``/events``."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from companion.core.errors import StorageError
from companion.core.hub import QUEUE_FRAMES
from tests.companion.web.talk import eventually
from tests.companion.web.world import BOARD, OTHER_BOARD, World


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?boardUuid=x",
        "?boardPath=/x",
        "?boardUuid=&boardPath=/x",
        "?boardUuid=%20&boardPath=/x",
        "?boardUuid=x&boardPath=%09+",
    ],
)
def test_both_parameters_are_needed(world: World, query: str) -> None:
    """White space is nothing."""
    with world.talk() as talk:
        answer = talk.ask("GET", f"/events{query}")
    assert (answer.status, answer.error()) == (400, "boardUuid and boardPath are required")


def test_a_stream_begins_with_a_snapshot_and_goes_on(world: World) -> None:
    """Only of its own board, and only what is new."""
    world.record(world.card_a)
    world.record(world.card_c)
    with world.listen() as talk:
        snapshot: Any = talk.event()
        assert snapshot.name == "snapshot"
        assert [record["cardUuid"] for record in snapshot.json()] == ["card-a"]
        world.record(world.card_c, status="idle")
        world.record(world.card_a)
        world.record(world.card_a, status="idle")
        event: Any = talk.event()
        assert event.name == "association" and "\n" not in event.data
        assert (event.json()["cardUuid"], event.json()["status"]) == ("card-a", "idle")
        assert event.id.startswith("life-")


def test_a_board_is_registered_by_listening(world: World, tmp_path: Path) -> None:
    """Under its path made absolute, for good."""
    folder = tmp_path / "new board"
    folder.mkdir()
    with world.listen("new", Path(quote("new board/"))) as talk:
        assert talk.event().json() == []
    stored = json.loads(world.settings.config_path.read_text())["boards"][-1]
    assert (stored["uuid"], stored["path"]) == ("new", str(folder))


@pytest.mark.parametrize("what", ["nothing", "a file", "an empty folder"])
def test_what_is_at_a_boards_path_is_not_asked(world: World, tmp_path: Path, what: str) -> None:
    """Neither a folder nor its board file must be there; the boards that are there go on."""
    place = tmp_path / "place"
    if what == "a file":
        place.write_text("")
    elif what == "an empty folder":
        place.mkdir()
    world.record(world.card_a)
    with world.listen("new", place) as stream:
        assert stream.event().json() == []
    assert "new" in [board.uuid for board in world.registry.boards()]
    with world.listen() as stream:
        kept: Any = stream.event().json()
        assert [record["cardUuid"] for record in kept] == ["card-a"]


def test_a_new_listener_brings_all_streams_up_to_date(world: World) -> None:
    """Of every board: that is what reconciling found."""
    with world.listen() as first:
        assert first.event().json() == []
        world.record(world.card_a)
        assert first.event().name == "association"
        moved = world.other_board / "moved.md"
        Path(world.card_a).rename(moved)
        with world.listen(OTHER_BOARD, world.other_board) as second:
            there: Any = second.event().json()
            assert [record["cardPath"] for record in there] == [str(moved)]
            assert first.event().json() == []


def test_who_was_away_gets_what_was_missed(world: World) -> None:
    """First the missed events, then the snapshot; an id of another life brings the snapshot alone."""
    with world.listen() as talk:
        last = talk.event().id
    world.record(world.card_a)
    world.record(world.card_c)
    world.record(world.card_b)
    with world.listen(BOARD, None, f"Last-Event-ID: {last}") as talk:
        events: Any = [talk.event() for _ in range(3)]
        assert [event.name for event in events] == ["association", "association", "snapshot"]
        assert [event.json()["cardUuid"] for event in events[:2]] == ["card-a", "card-b"]
        assert [record["cardUuid"] for record in events[2].json()] == ["card-a", "card-b"]
    for strange in ("earlier-1", "life-99999", "life-x", "\xff", "life-" + "9" * 400):
        with world.listen(BOARD, None, f"Last-Event-ID: {strange}") as talk:
            assert talk.event().name == "snapshot"


def test_a_stream_that_ends_is_unsubscribed(world: World) -> None:
    """Noticed by writing to it."""
    talk = world.listen()
    talk.event()
    assert world.hub.listeners() == 1
    talk.close()

    sessions = iter(range(QUEUE_FRAMES // 2))  # One that overflows is given up for that reason.

    def written() -> bool:
        session = next(sessions, None)
        if session is not None:
            world.record(world.card_a, f"s{session}")
        return world.hub.listeners() == 0

    eventually(written)


def test_a_failure_on_the_way_is_a_400(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With its text; the registration stays."""

    def fail(*_: object) -> None:
        raise StorageError("Cannot rewrite /x: No space left on device")

    monkeypatch.setattr(world.ledger, "subscribe", fail)
    with world.talk() as talk:
        answer = talk.ask("GET", f"/events?boardUuid=new&boardPath={tmp_path}/new")
    assert (answer.status, answer.error()) == (400, "Cannot rewrite /x: No space left on device")
    assert "new" in [board.uuid for board in world.registry.boards()]


def test_a_page_gets_its_cors_headers(world: World) -> None:
    """On the stream's head, beside the usual ones."""
    with world.talk() as talk:
        talk.send(
            f"GET /events?boardUuid={BOARD}&boardPath={world.board} HTTP/1.1\r\nHost: localhost\r\n"
            "Origin: http://LOCALHOST:80/\r\n\r\n".encode()
        )
        status, headers = talk.head()
    assert status == 200
    assert headers["content-type"] == "text/event-stream"
    assert headers["cache-control"] == "no-cache"
    assert headers["connection"] == "keep-alive"
    assert (headers["access-control-allow-origin"], headers["vary"]) == ("http://localhost", "Origin")
    assert "content-length" not in headers
