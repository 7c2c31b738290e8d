"""What a look at the boards means for each place: one table."""

import pytest

from companion.boards.cards import Card
from companion.sessions.reconcile import Fate, Place, View, judge, look_at_boards
from tests.companion.sessions.world import FakeBoards

HERE = Place("b1", "c1", "/b1/a.md")
LEGACY = Place("", "", "/b1/a.md")
NOTHING = View({}, True, frozenset(["b1"]), frozenset())


def view(**differences: object) -> View:
    """A complete look at one empty board, but for ``differences``."""
    return View(**{**vars(NOTHING), **differences})


@pytest.mark.parametrize(
    ("place", "seen", "fate"),
    [
        (HERE, view(cards={"c1": Card("c1", "/b1/a.md", "b1")}), Fate.STAYS),
        (HERE, view(cards={"c1": Card("c1", "/b1/new.md", "b1")}), Fate.MOVES),
        (HERE, view(cards={"c1": Card("c1", "/b2/a.md", "b2")}), Fate.MOVES),
        (HERE, view(), Fate.GONE),
        (HERE, view(complete=False), Fate.MISSING),
        (HERE, view(boards=frozenset()), Fate.MISSING),
        (HERE, view(without_uuid=frozenset(["/b1/a.md"])), Fate.MISSING),
        # Another card lives at the old path today.
        (HERE, view(by_path={"/b1/a.md": Card("c2", "/b1/a.md", "b1")}), Fate.GONE),
        # A symlinked card is not listed, but it is there.
        (HERE, view(by_path={"/b1/a.md": Card("c1", "/b1/a.md", "b1")}), Fate.STAYS),
        (LEGACY, view(by_path={"/b1/a.md": Card("c2", "/b1/a.md", "b1")}), Fate.MOVES),
        (LEGACY, view(), Fate.GONE),
        (LEGACY, view(unclear_paths=frozenset(["/b1/a.md"])), Fate.MISSING),
        (LEGACY, view(complete=False), Fate.MISSING),
        (LEGACY._replace(board_uuid="b1"), view(), Fate.GONE),
        (LEGACY._replace(board_uuid="b9"), view(), Fate.MISSING),
    ],
)
def test_fate_of_a_place(place: Place, seen: View, fate: Fate) -> None:
    """Found, moved, hidden for the moment, or surely gone."""
    assert judge(place, seen, frozenset()) is fate


def test_a_card_seen_since_the_look_began_stays() -> None:
    """An older look does not speak of it."""
    assert judge(HERE, view(), frozenset(["c1"])) is Fate.STAYS
    moved = view(cards={"c1": Card("c1", "/b1/old.md", "b1")})
    assert judge(HERE, moved, frozenset(["c1"])) is Fate.STAYS


def test_only_places_that_the_scan_leaves_open_are_resolved() -> None:
    """Listed cards cost nothing more; unreadable and unowned paths are unclear."""
    boards = FakeBoards("b1")
    boards.cards = {"/b1/a.md": "c1", "/b1/locked.md": "c2", "/b1/link.md": "c3"}
    boards.unreadable.add("/b1/locked.md")
    boards.unlisted.add("/b1/link.md")
    seen = look_at_boards(
        boards,
        boards,
        [
            HERE,
            Place("b1", "c2", "/b1/locked.md"),
            Place("b1", "c3", "/b1/link.md"),
            Place("", "", "/elsewhere/x.md"),
            Place("", "", "/b1/none.md"),
        ],
    )
    assert list(seen.by_path) == ["/b1/link.md"]
    assert seen.unclear_paths == {"/b1/locked.md", "/elsewhere/x.md"}
    assert (seen.complete, seen.boards) == (False, frozenset(["b1"]))
    assert seen.problems == ("/b1/locked.md: Permission denied: /b1/locked.md",)


def test_a_board_registered_during_the_look_does_not_count() -> None:
    """The scan may not have seen it."""
    boards = FakeBoards("b1")
    boards.during_scan = lambda: boards.registered.update(b2="/b2")
    assert look_at_boards(boards, boards, []).boards == {"b1"}
