"""Labels in what the ledger tells, and nowhere else."""

import threading
from pathlib import Path
from typing import Any, Callable, List, Optional

import pytest

from adapters.contract import Status
from companion.core.hub import Hub, Subscription
from companion.sessions.ledger import Ledger
from tests.companion.sessions.world import (
    NEVER_S,
    Clock,
    FakeBoards,
    FakeLabels,
    body,
    event,
    frames,
    log_of,
    pending_of,
)

SHOP = {"herdrWorkspace": "Shop", "herdrTab": "Basket"}


@pytest.fixture
def labels() -> FakeLabels:
    """A terminal in which session s1 has labels."""
    made = FakeLabels()
    made.known = {"s1": ("Shop", "Basket")}
    return made


@pytest.fixture
def ledger(tmp_path: Path, labels: FakeLabels) -> Ledger:
    """Over two boards with a card each."""
    boards = FakeBoards("b1", "b2")
    boards.cards = {"/b1/a.md": "card-a", "/b2/b.md": "card-b", "/b1/new.md": None}
    made = Ledger(
        log_of(tmp_path),
        pending_of(tmp_path),
        boards,
        boards,
        Hub("life"),
        Clock(),
        NEVER_S,
        0.0,
        labels=labels,
    )
    made.load()
    return made


def listen(ledger: Ledger, board: str = "b1") -> Subscription:
    """An open stream."""
    return ledger.subscribe(board, None, lambda: None)


def labels_of(record: Any) -> List[Optional[str]]:
    """Workspace and tab as a client would show them."""
    return [record.get("herdrWorkspace"), record.get("herdrTab")]


def test_labels_are_told_and_listed_but_neither_returned_nor_stored(ledger: Ledger, tmp_path: Path) -> None:
    """They are true only now."""
    stream = listen(ledger)
    stored = ledger.ingest(body("/b1/a.md"))
    assert stored is not None and "herdrTab" not in stored.to_json()
    assert b"herdr" not in log_of(tmp_path).read_bytes()
    told = frames(stream)[1]
    assert told == ("association", {**stored.to_json(), **SHOP})
    assert ledger.associations() == [{**stored.to_json(), **SHOP}]
    assert frames(listen(ledger)) == [("snapshot", [{**stored.to_json(), **SHOP}])]


def test_labels_in_a_report_are_no_part_of_it(ledger: Ledger, labels: FakeLabels, tmp_path: Path) -> None:
    """A page posts whole records again: what it shows is neither taken nor a change."""
    labels.known = {}
    stored = ledger.ingest(body("/b1/a.md", herdrWorkspace="Foreign", herdrTab="Foreign"))
    assert ledger.ingest(body("/b1/a.md", herdrWorkspace="Other", herdrTab=5)) is stored
    assert b"herdr" not in log_of(tmp_path).read_bytes()
    assert labels_of(ledger.associations()[0]) == [None, None]


def test_every_recorded_change_has_its_session_looked_for(ledger: Ledger, labels: FakeLabels) -> None:
    """Reports and hooks alike, and links that become associations; not what says nothing new."""
    ledger.ingest(body("/b1/a.md", "s2"))
    ledger.ingest(body("/b1/a.md", "s2"))
    event(ledger, Status.RUNNING, "/b1/a.md", "/b2/b.md", session="s3")
    ledger.ingest(body("/b1/new.md", "s4"))
    assert labels.looked_for == ["s2", "s3", "s3"]
    ledger._finder.cards["/b1/new.md"] = "card-new"  # type: ignore[attr-defined]
    ledger.ingest(body("/b1/new.md", "s4"))
    assert labels.looked_for == ["s2", "s3", "s3", "s4"]
    ledger.associations()
    ledger.forget("card-a", "", "")
    assert len(labels.looked_for) == 4


def test_a_subscription_looks_at_the_terminal_once(ledger: Ledger, labels: FakeLabels) -> None:
    """For all sessions held, on every board; the stream's first snapshot has what it found."""
    ledger.ingest(body("/b1/a.md"))
    ledger.ingest(body("/b2/b.md", "s2"))
    labels.known = {}

    def find() -> None:
        labels.known = {"s1": ("Shop", "Basket"), "s2": ("Shop", "Checkout")}

    first = listen(ledger, "b2")
    frames(first)
    labels.during_refresh = find
    second = listen(ledger)
    assert labels.refreshed == [["s1", "s2"]] * 2
    for stream, wanted in ((first, ["Shop", "Checkout"]), (second, ["Shop", "Basket"])):
        told: Any = frames(stream)
        assert [(name, [labels_of(each) for each in data]) for name, data in told] == [("snapshot", [wanted])]


def test_nobody_waits_for_a_look_at_the_terminal(ledger: Ledger, labels: FakeLabels) -> None:
    """While a subscription does, others report, ask and forget."""

    def work() -> None:
        ledger.ingest(body("/b1/a.md"))
        event(ledger, Status.IDLE, "/b1/a.md")
        assert len(ledger.associations()) == 2
        ledger.facts()
        ledger.relabelled({"s1"})
        ledger.forget("card-a", "", "")

    labels.during_refresh = lambda: _in_another_thread(work)
    listen(ledger)


def _in_another_thread(work: Callable[[], None]) -> None:
    done = threading.Event()

    def run() -> None:
        work()
        done.set()

    threading.Thread(target=run, daemon=True).start()
    assert done.wait(20)


def test_labels_that_come_later_are_told(ledger: Ledger, labels: FakeLabels) -> None:
    """To the streams of the boards concerned."""
    labels.known = {}
    ledger.ingest(body("/b1/a.md"))
    ledger.ingest(body("/b2/b.md", "s2"))
    streams = [listen(ledger, "b1"), listen(ledger, "b2")]
    for stream in streams:
        frames(stream)
    labels.known = {"s1": ("Shop", "Basket")}
    ledger.relabelled({"s1"})
    told: Any = frames(streams[0])
    assert [(name, labels_of(data)) for name, data in told] == [("association", ["Shop", "Basket"])]
    assert frames(streams[1]) == []
