"""How associations look to clients."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.contract import Status
from companion.core.hub import Hub
from companion.sessions.association import Association
from companion.sessions.book import Book
from companion.sessions.telling import NoLabels, Telling


def _record(card: str, board: str) -> Association:
    return Association(f"/{board}/{card}.md", "pi", "s", Status.IDLE, "t", board, card)


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """Three associations on two boards, the second one's card missing."""
    made = Book(tmp_path / "log")
    for record in (_record("a", "b1"), _record("b", "b1"), _record("c", "b2")):
        made.settle(record)
    made.missing.add(_record("b", "b1").key)
    return made


def test_a_missing_card_is_marked_and_only_then(book: Book) -> None:
    """No client meets a key that it need not know."""
    telling = Telling(book, Hub("life"), NoLabels())
    assert telling.present(_record("a", "b1")) == _record("a", "b1").to_json()
    assert telling.present(_record("b", "b1")) == {**_record("b", "b1").to_json(), "cardMissing": True}


def test_a_snapshot_holds_one_board_on_one_line(book: Book) -> None:
    """In order, marks included."""
    data = Telling(book, Hub("life"), NoLabels()).snapshot("b1")
    assert b"\n" not in data
    assert [(each["cardUuid"], "cardMissing" in each) for each in json.loads(data)] == [
        ("a", False),
        ("b", True),
    ]
    assert Telling(book, Hub("life"), NoLabels()).snapshot("none") == b"[]"


def test_a_snapshot_is_made_once_for_each_state_of_the_book(book: Book) -> None:
    """The same bytes until a record or a mark changes, and never stale ones."""
    telling = Telling(book, Hub("life"), NoLabels())
    first = telling.snapshot("b1")
    assert telling.snapshot("b1") is first
    assert telling.snapshot("b2") is telling.snapshot("b2")
    book.missing.clear()
    assert b"cardMissing" in first and b"cardMissing" not in telling.snapshot("b1")
    book.missing = {_record("a", "b1").key}
    assert json.loads(telling.snapshot("b1"))[0]["cardMissing"] is True
    book.settle(replace(_record("b", "b1"), status=Status.CLOSED))
    assert [each["status"] for each in json.loads(telling.snapshot("b1"))] == ["idle", "closed"]
    book.held.drop(_record("a", "b1").key)
    assert telling.snapshot("b1") == telling.snapshot("b1") == b"[%b]" % book.held.all()[0].encoded
    book.held.fold([])
    assert telling.snapshot("b1") == b"[]"


def test_bytes_and_objects_say_the_same(book: Book) -> None:
    """Frames are put together from encoded records; lists are not."""
    telling = Telling(book, Hub("life"), NoLabels())
    assert json.loads(telling.snapshot("b1")) == telling.select("b1", "")


def test_frames_go_to_the_board_concerned(book: Book) -> None:
    """A change to its board's listeners, snapshots to every board that has some."""
    hub = Hub("life")
    telling = Telling(book, hub, NoLabels())
    one = hub.subscribe("b1", lambda: b"[]", None, lambda: None)
    two = hub.subscribe("b2", lambda: b"[]", None, lambda: None)
    telling.publish(_record("c", "b2"))
    telling.publish_snapshot("b1")
    telling.publish_snapshot("nobody listens")
    telling.publish_snapshots()
    assert [frame.name for frame in one.take(0)] == ["snapshot"] * 3
    assert [frame.name for frame in two.take(0)] == ["snapshot", "association", "snapshot"]
