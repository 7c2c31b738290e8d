"""How associations look to clients."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Dict, List

import pytest

from adapters.contract import Status
from companion.core.hub import Hub
from companion.sessions import telling as module
from companion.sessions.association import Association
from companion.sessions.book import Book
from companion.sessions.telling import NoLabels, Telling
from tests.companion.sessions.world import FakeLabels


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


# --- labels --------------------------------------------------------------------------------------


@pytest.fixture
def labels() -> FakeLabels:
    """Nothing is known yet."""
    return FakeLabels()


def labels_of(record: Dict[str, object]) -> List[object]:
    """What a client would show."""
    return [record[name] for name in ("herdrWorkspace", "herdrTab") if name in record]


def test_known_labels_are_shown_and_stay_out_of_the_record(book: Book, labels: FakeLabels) -> None:
    """In lists and in frames alike, beside the mark of a missing card; not in what is stored."""
    labels.known = {"s": ('Shop "A"', "Bäsket\ud83d\n")}
    telling = Telling(book, Hub("life"), labels)
    shown = json.loads(telling.snapshot("b1"))
    assert shown == telling.select("b1", "")
    assert [labels_of(record) for record in shown] == [['Shop "A"', "Bäsket\ud83d\n"]] * 2
    assert shown[1]["cardMissing"] is True
    assert all(b"herdr" not in each.encoded for each in book.held.all())


def test_a_session_without_a_key_has_no_labels(book: Book, labels: FakeLabels) -> None:
    """Nor has one that the terminal does not know."""
    labels.known = {"other": ("Shop", "Basket")}
    book.settle(replace(_record("d", "b3"), harness="nameless"))
    telling = Telling(book, Hub("life"), labels)
    assert b"herdr" not in telling.snapshot("b1") + telling.snapshot("b3")
    assert [labels_of(each) for each in telling.select("", "")] == [[]] * 4
    assert telling.sessions() == ["s"] * 3


def test_a_snapshot_is_made_anew_when_labels_change(book: Book, labels: FakeLabels) -> None:
    """They are no part of the book."""
    telling = Telling(book, Hub("life"), labels)
    bare = telling.snapshot("b1")
    labels.known = {"s": ("Shop", "Basket")}
    labelled = telling.snapshot("b1")
    assert labelled != bare and telling.snapshot("b1") is labelled
    labels.known = {"s": ("Shop", "Checkout")}
    assert b"Checkout" in telling.snapshot("b1")
    labels.known = {}
    assert telling.snapshot("b1") == bare


def test_a_session_is_looked_for_when_something_is_told_of_it(book: Book, labels: FakeLabels) -> None:
    """After the telling, which does not wait for that. Snapshots, lists and labels look for nothing."""
    hub = Hub("life")
    telling = Telling(book, hub, labels)
    hub.subscribe("b1", lambda: telling.snapshot("b1"), None, lambda: None)
    telling.publish_snapshots()
    telling.select("", "")
    telling.publish_relabelled({"s"})
    assert labels.looked_for == []
    telling.publish(_record("a", "b1"))
    telling.publish(replace(_record("a", "b1"), harness="nameless"))
    assert labels.looked_for == ["s", None]


def test_new_labels_are_told_to_who_listens(
    book: Book, labels: FakeLabels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The associations concerned one by one, or a snapshot when they are many."""
    hub = Hub("life")
    telling = Telling(book, hub, labels)
    telling.publish_relabelled({"s"})  # Nobody listens.
    one = hub.subscribe("b1", lambda: b"[]", None, lambda: None)
    two = hub.subscribe("b2", lambda: b"[]", None, lambda: None)
    book.settle(replace(_record("e", "b2"), session_id="s9"))
    labels.known = {"s": ("Shop", "Basket"), "s9": ("Shop", "Checkout")}
    telling.publish_relabelled({"s9", "nobody has it"})
    assert [frame.name for frame in one.take(0)] == ["snapshot"]
    frames = two.take(0)[1:]
    assert [(frame.name, labels_of(json.loads(frame.data))) for frame in frames] == [
        ("association", ["Shop", "Checkout"])
    ]
    monkeypatch.setattr(module, "MOST_RELABELLED", 1)
    telling.publish_relabelled({"s"})
    assert [frame.name for frame in one.take(0)] == ["snapshot"]
    assert [frame.name for frame in two.take(0)] == ["association"]


def test_where_no_terminal_is_known_nothing_is_done() -> None:
    """The ready answer."""
    nothing = NoLabels()
    nothing.refresh(["s"])
    nothing.recorded("s")
    assert (nothing.table(), nothing.session_value("pi", "s", "/s")) == ({}, None)
