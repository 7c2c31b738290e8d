"""Memory and log through a reconcile: moves, gaps, and what is really gone."""

import json
import os
import shutil
import threading
import time
from pathlib import Path
from typing import List, Tuple

import pytest

from adapters.contract import Status
from companion.core.hub import Hub
from companion.sessions.ledger import Ledger
from tests.companion.sessions.world import (
    Clock,
    FakeBoards,
    RealBoards,
    body,
    event,
    frames,
    load_ledger,
    log_of,
    logged,
    make_ledger,
    short,
)


@pytest.fixture
def boards() -> FakeBoards:
    """Two boards, a card each."""
    made = FakeBoards("b1", "b2")
    made.cards = {"/b1/a.md": "ca", "/b2/c.md": "cc"}
    return made


@pytest.fixture
def ledger(tmp_path: Path, boards: FakeBoards) -> Ledger:
    """A ledger with two events of card a and one of card c."""
    made = make_ledger(tmp_path, boards)
    made.ingest(body("/b1/a.md", status="idle"))
    made.ingest(body("/b1/a.md"))
    made.ingest(body("/b2/c.md"))
    return made


def _places(folder: Path) -> List[Tuple[str, str]]:
    return [(each.board_uuid, each.card_path) for each in logged(folder)]


def test_nothing_changed_leaves_the_file_alone_and_scans_once(
    ledger: Ledger, boards: FakeBoards, tmp_path: Path
) -> None:
    """Even junk lines stay, and history is not shortened."""
    with log_of(tmp_path).open("ab") as file:
        file.write(b"junk\n")
    before = (os.stat(log_of(tmp_path)).st_ino, log_of(tmp_path).read_bytes())
    ledger.reconcile()
    assert boards.scans == 1
    assert (os.stat(log_of(tmp_path)).st_ino, log_of(tmp_path).read_bytes()) == before
    assert len(logged(tmp_path)) == 3


def test_a_card_moved_and_renamed_takes_all_its_events_along(
    ledger: Ledger, boards: FakeBoards, tmp_path: Path
) -> None:
    """Board and path are new, history and status are the old ones; a restart sees the same."""
    boards.cards["/b2/renamed.md"] = boards.cards.pop("/b1/a.md") or ""
    listener = ledger.subscribe("b2", None, lambda: None)
    assert _places(tmp_path) == [("b2", "/b2/renamed.md")] * 2 + [("b2", "/b2/c.md")]
    assert short(ledger.associations()) == [
        ("/b2/renamed.md", "s1", "running"),
        ("/b2/c.md", "s1", "running"),
    ]
    name, data = frames(listener)[0]
    assert name == "snapshot" and data == ledger.associations("b2")
    before = ledger.associations()
    ledger.close()
    assert make_ledger(tmp_path, boards).associations() == before


def test_with_an_empty_log_memory_is_taken(ledger: Ledger, boards: FakeBoards, tmp_path: Path) -> None:
    """A log that was purged beside a running server does not clear it, and cards are still followed."""
    os.truncate(log_of(tmp_path), 0)
    boards.cards["/b2/a.md"] = boards.cards.pop("/b1/a.md")
    ledger.reconcile()
    assert short(ledger.associations()) == [("/b2/a.md", "s1", "running"), ("/b2/c.md", "s1", "running")]


def test_a_deleted_card_is_dropped_after_two_looks(
    ledger: Ledger, boards: FakeBoards, tmp_path: Path
) -> None:
    """From memory and log; the others stay."""
    del boards.cards["/b1/a.md"]
    ledger.reconcile()
    assert boards.scans == 2
    assert short(ledger.associations()) == [("/b2/c.md", "s1", "running")]
    assert _places(tmp_path) == [("b2", "/b2/c.md")]


def test_a_card_on_its_way_between_boards_is_not_dropped(ledger: Ledger, boards: FakeBoards) -> None:
    """The first look misses it, the second finds it."""
    travelling = boards.cards.pop("/b1/a.md")

    def arrive() -> None:
        boards.cards["/b2/a.md"] = travelling

    boards.during_scan = arrive
    ledger.reconcile()
    assert short(ledger.associations())[0] == ("/b2/a.md", "s1", "running")


def test_only_what_both_looks_miss_is_dropped(
    ledger: Ledger, boards: FakeBoards, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One card comes back between them, another one leaves."""
    del boards.cards["/b1/a.md"]

    def swap(seconds: float) -> None:
        boards.cards = {"/b1/a.md": "ca"}

    monkeypatch.setattr(time, "sleep", swap)
    ledger.reconcile()
    assert boards.scans == 2
    assert [each["cardUuid"] for each in ledger.associations()] == ["ca", "cc"]


def test_with_an_unreadable_log_memory_follows_the_cards(
    ledger: Ledger, boards: FakeBoards, tmp_path: Path
) -> None:
    """Nothing is lost, in memory or on disk."""
    kept = log_of(tmp_path).read_bytes()
    log_of(tmp_path).unlink()
    log_of(tmp_path).mkdir()
    boards.cards["/b2/a.md"] = boards.cards.pop("/b1/a.md")
    ledger.reconcile()
    assert short(ledger.associations()) == [("/b2/a.md", "s1", "running"), ("/b2/c.md", "s1", "running")]
    log_of(tmp_path).rmdir()
    log_of(tmp_path).write_bytes(kept)
    ledger.reconcile()
    assert short(ledger.associations()) == [("/b2/a.md", "s1", "running"), ("/b2/c.md", "s1", "running")]
    assert _places(tmp_path) == [("b2", "/b2/a.md")] * 2 + [("b2", "/b2/c.md")]


@pytest.mark.parametrize(
    "trouble", ["board away", "other board away", "one card unreadable", "this card unreadable"]
)
def test_what_cannot_be_read_erases_nothing(
    ledger: Ledger, boards: FakeBoards, tmp_path: Path, trouble: str
) -> None:
    """Kept and marked; when all can be read again, the mark is gone."""
    if trouble == "board away":
        boards.unreadable.add("/b1")
    elif trouble == "other board away":
        boards.unreadable.add("/b2")
        del boards.cards["/b1/a.md"]
    elif trouble == "one card unreadable":
        boards.cards["/b1/locked.md"] = "cl"
        boards.unreadable.add("/b1/locked.md")
        del boards.cards["/b1/a.md"]
    else:
        boards.unreadable.add("/b1/a.md")
    listener = ledger.subscribe("b1", None, lambda: None)
    [(_, shown)] = frames(listener)
    assert isinstance(shown, list) and [(each["cardUuid"], each["cardMissing"]) for each in shown] == [
        ("ca", True)
    ]
    assert len(logged(tmp_path)) == 3
    assert ledger.facts()["problems"]
    boards.unreadable.clear()
    boards.cards["/b1/a.md"] = "ca"
    ledger.reconcile()
    assert "cardMissing" not in ledger.associations("b1")[0]
    assert ledger.facts()["problems"] == []


def test_an_event_on_a_missing_card_takes_the_mark_away_at_once(ledger: Ledger, boards: FakeBoards) -> None:
    """Also when the report itself says nothing new, listeners hear that the card is back."""
    boards.unreadable.add("/b1")
    listener = ledger.subscribe("b1", None, lambda: None)
    listener.take(0)
    boards.unreadable.clear()
    ledger.ingest(body("/b1/a.md"))
    [(name, shown)] = frames(listener)
    assert name == "association" and isinstance(shown, dict) and "cardMissing" not in shown
    ledger.ingest(body("/b1/a.md"))
    assert frames(listener) == []


def test_events_of_a_board_that_is_not_registered_any_more_are_kept(
    ledger: Ledger, boards: FakeBoards, tmp_path: Path
) -> None:
    """And come back with the board."""
    del boards.registered["b1"]
    ledger.reconcile()
    assert [(each["cardUuid"], each.get("cardMissing")) for each in ledger.associations()] == [
        ("ca", True),
        ("cc", None),
    ]
    assert len(logged(tmp_path)) == 3
    boards.registered["b1"] = "/b1"
    ledger.reconcile()
    assert "cardMissing" not in ledger.associations()[0]


def test_an_old_status_does_not_rise_again(ledger: Ledger, boards: FakeBoards) -> None:
    """Of a card's events some speak of an unregistered board: all are kept, the last one counts."""
    boards.cards["/b2/a.md"] = boards.cards.pop("/b1/a.md")
    ledger.ingest(body("/b2/a.md", status="closed"))
    del boards.registered["b1"]
    del boards.cards["/b2/a.md"]
    ledger.reconcile()
    assert [(each["status"], each.get("cardMissing")) for each in ledger.associations(card_uuid="ca")] == [
        ("closed", True)
    ]
    assert boards.scans == 1


def test_a_card_that_lost_its_uuid_for_the_moment_is_kept(ledger: Ledger, boards: FakeBoards) -> None:
    """An agent may be in the middle of writing it; given another uuid, it is another card."""
    boards.cards["/b1/a.md"] = None
    ledger.reconcile()
    assert ledger.associations("b1")[0]["cardMissing"] is True
    boards.cards["/b1/a.md"] = "other"
    ledger.reconcile()
    assert ledger.associations("b1") == []


def test_an_old_path_does_not_attach_to_another_card(ledger: Ledger, boards: FakeBoards) -> None:
    """The card is gone, another one took its name."""
    boards.cards["/b1/a.md"] = "other"
    ledger.reconcile()
    assert [each["cardUuid"] for each in ledger.associations()] == ["cc"]


def test_a_symlinked_card_stays_though_no_scan_lists_it(ledger: Ledger, boards: FakeBoards) -> None:
    """It is found at its path."""
    boards.unlisted.add("/b1/a.md")
    ledger.reconcile()
    assert boards.scans == 1
    assert "cardMissing" not in ledger.associations("b1")[0]


def test_legacy_events_are_told_by_their_path_and_get_a_uuid(tmp_path: Path, boards: FakeBoards) -> None:
    """They become one key with the card's newer events; the others are kept or dropped by the rules."""
    lines = [
        {"cardPath": "/b1/a.md", "sessionId": "s1", "harness": "pi", "status": "active", "updatedAt": "1"},
        {"cardPath": "/b1/gone.md", "sessionId": "s1", "status": "idle", "updatedAt": "2"},
        {"cardPath": "/nobody/x.md", "sessionId": "s1", "status": "idle", "updatedAt": "3"},
    ]
    log_of(tmp_path).parent.mkdir()
    log_of(tmp_path).write_text("".join(json.dumps(each) + "\n" for each in lines))
    ledger = make_ledger(tmp_path, boards)
    ledger.ingest(body("/b1/a.md", status="closed"))
    assert len(ledger.associations()) == 4
    ledger.reconcile()
    assert [
        (each["cardPath"], each["status"], each.get("cardMissing")) for each in ledger.associations()
    ] == [
        ("/b1/a.md", "closed", None),
        ("/nobody/x.md", "idle", True),
    ]
    assert [each.card_uuid for each in logged(tmp_path)] == ["ca", "", "ca"]


def test_an_event_recorded_during_the_scan_is_not_judged_by_it(
    ledger: Ledger, boards: FakeBoards, tmp_path: Path
) -> None:
    """The scan saw no such card; a report about it came before the scan's result was used."""

    def report() -> None:
        boards.cards["/b1/late.md"] = "late"
        boards.cards["/b1/a.md"] = "ca"
        ledger.ingest(body("/b1/late.md"))
        ledger.ingest(body("/b1/a.md"))  # Unchanged, but it shows that the card is alive.

    del boards.cards["/b1/a.md"]
    boards.during_scan = report
    ledger.reconcile()
    assert [each["cardUuid"] for each in ledger.associations()] == ["ca", "cc", "late"]
    assert {each.card_uuid for each in logged(tmp_path)} == {"ca", "cc", "late"}


def test_what_is_forgotten_during_the_scan_stays_forgotten(
    ledger: Ledger, boards: FakeBoards, tmp_path: Path
) -> None:
    """Although the scan found the card in a new place."""
    boards.cards["/b2/a.md"] = boards.cards.pop("/b1/a.md")

    def forget() -> None:
        ledger.forget("ca", "", "")

    boards.during_scan = forget
    ledger.reconcile()
    assert [each["cardUuid"] for each in ledger.associations()] == ["cc"]
    assert [each.card_uuid for each in logged(tmp_path)] == ["cc"]


def test_recording_goes_on_while_a_slow_scan_runs(ledger: Ledger, boards: FakeBoards) -> None:
    """The boards are read outside the lock."""
    started, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        started.set()
        assert go_on.wait(30)

    boards.during_scan = slow
    reconciling = threading.Thread(target=ledger.reconcile)
    reconciling.start()
    assert started.wait(30)
    stored = ledger.ingest(body("/b1/a.md", status="closed"))
    assert stored is not None and ledger.associations("b1")[0]["status"] == "closed"
    go_on.set()
    reconciling.join(30)
    assert not reconciling.is_alive()


def test_a_move_that_cannot_be_written_is_shown_and_written_later(
    ledger: Ledger, boards: FakeBoards, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory follows the card; the log does at the next reconcile that can write."""
    boards.cards["/b2/a.md"] = boards.cards.pop("/b1/a.md")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("companion.sessions.journal.write_atomically", refuse)
        ledger.reconcile()
    assert short(ledger.associations("b2"))[0] == ("/b2/a.md", "s1", "running")
    assert _places(tmp_path)[0] == ("b1", "/b1/a.md")
    ledger.reconcile()
    assert _places(tmp_path)[0] == ("b2", "/b2/a.md")


def test_a_thousand_cards_cost_one_scan_and_no_rewrite(tmp_path: Path) -> None:
    """Many listeners may come at once."""
    boards = FakeBoards("b1")
    boards.cards = {f"/b1/{number}.md": f"c{number}" for number in range(1000)}
    ledger = make_ledger(tmp_path, boards)
    for path in boards.cards:
        ledger.ingest(body(path))
    inode = os.stat(log_of(tmp_path)).st_ino
    for _ in range(20):
        ledger.subscribe("b1", None, lambda: None)
    assert boards.scans == 20
    assert os.stat(log_of(tmp_path)).st_ino == inode


def test_real_boards_that_go_away_and_come_back(tmp_path: Path) -> None:
    """A folder renamed away, an unreadable card, a deleted card, a board made a file."""
    real = RealBoards(tmp_path, "b1", "b2")
    path = real.card("b1/a.md", "ca")
    real.card("b2/c.md", "cc")
    ledger = load_ledger(tmp_path, real.finder, real.registry, Hub("life"), Clock())
    event(ledger, Status.RUNNING, path, str(tmp_path / "b2/c.md"))

    def shown() -> List[Tuple[object, object]]:
        ledger.subscribe("b1", None, lambda: None)
        return [(each["cardUuid"], each.get("cardMissing")) for each in ledger.associations()]

    (tmp_path / "b1").rename(tmp_path / "away")
    assert shown() == [("ca", True), ("cc", None)]
    (tmp_path / "b1").write_text("a file now")
    assert shown() == [("ca", True), ("cc", None)]
    (tmp_path / "b1").unlink()
    (tmp_path / "away").rename(tmp_path / "b1")
    assert shown() == [("ca", None), ("cc", None)]
    shutil.move(path, str(tmp_path / "b2/moved.md"))
    assert shown() == [("ca", None), ("cc", None)]
    assert ledger.associations()[0]["cardPath"] == str(tmp_path / "b2/moved.md")
    (tmp_path / "b2/odd.md").mkdir()
    (tmp_path / "b2/c.md").unlink()
    assert shown() == [("ca", None)]
