"""The sessions floor under load and under the knife: memory and log agree, nothing acknowledged is lost."""

import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Callable, Dict, List

import pytest

from companion.core.hub import Hub
from companion.sessions.association import Association
from companion.sessions.journal import Journal
from tests.companion.sessions.world import (
    Clock,
    FakeBoards,
    RealBoards,
    body,
    load_ledger,
    log_of,
    logged,
    make_ledger,
)

REPOSITORY = Path(__file__).parents[3]


def _fold(events: List[Association]) -> List[Dict[str, str]]:
    return [each.to_json() for each in {each.key: each for each in events}.values()]


def test_memory_and_log_agree_after_everything_at_once(tmp_path: Path) -> None:
    """Reports, deletions, moves, subscriptions and unreadable moments from many threads."""
    boards = FakeBoards("b1", "b2")
    boards.cards = {f"/b1/{number}.md": f"c{number}" for number in range(20)}
    ledger = make_ledger(tmp_path, boards, Hub("life"))
    stop = threading.Event()
    failures: List[BaseException] = []
    moving = threading.Lock()

    def report(dice: random.Random) -> None:
        path = dice.choice(list(boards.cards))
        ledger.ingest(body(path, session=f"s{dice.randint(0, 3)}", status=dice.choice(["idle", "running"])))

    def forget(dice: random.Random) -> None:
        ledger.forget(f"c{dice.randint(0, 19)}", "", "")
        time.sleep(0.002)

    def move(dice: random.Random) -> None:
        with moving:
            cards = dict(boards.cards)
            path = dice.choice(list(cards))
            cards[f"/b{dice.randint(1, 2)}/{dice.randint(0, 999)}.md"] = cards.pop(path)
            boards.cards = cards
        time.sleep(0.001)

    def listen(dice: random.Random) -> None:
        listener = ledger.subscribe(f"b{dice.randint(1, 2)}", None, lambda: None)
        listener.take(0.001)
        ledger.unsubscribe(listener)

    def repeat(deed: Callable[[random.Random], None], seed: int) -> None:
        dice = random.Random(seed)
        try:
            while not stop.is_set():
                deed(dice)
        except BaseException as exc:
            failures.append(exc)

    deeds = [report, report, report, forget, move, listen, listen]
    threads = [threading.Thread(target=repeat, args=(deed, seed)) for seed, deed in enumerate(deeds)]
    for thread in threads:
        thread.start()
    time.sleep(1.5)
    stop.set()
    for thread in threads:
        thread.join(30)
    assert failures == []
    ledger.reconcile()
    held = [
        {key: value for key, value in each.items() if key != "cardMissing"} for each in ledger.associations()
    ]
    assert held == _fold(logged(tmp_path))
    assert {(each["cardUuid"], each["cardPath"]) for each in held} <= {
        (uuid, path) for path, uuid in boards.cards.items()
    }
    ledger.close()
    again = make_ledger(tmp_path, boards)
    assert again.associations() == held


def test_no_report_is_lost_to_reconciles_and_moves(tmp_path: Path) -> None:
    """Every acknowledged key is there in the end: nothing was forgotten, no card was deleted."""
    boards = FakeBoards("b1", "b2")
    boards.cards = {f"/b1/{number}.md": f"c{number}" for number in range(10)}
    ledger = make_ledger(tmp_path, boards)
    stop = threading.Event()

    def shuffle() -> None:
        dice = random.Random(1)
        while not stop.is_set():
            cards = dict(boards.cards)
            path = dice.choice(list(cards))
            uuid = cards.pop(path)
            # As a real move: for a moment the card is nowhere, then it is elsewhere.
            boards.cards = dict(cards)
            cards[f"/b{dice.randint(1, 2)}/{uuid}-{dice.randint(0, 99)}.md"] = uuid
            boards.cards = cards
            ledger.reconcile()

    def report(writer: int, acknowledged: List[Association]) -> None:
        for number in range(150):
            for path in list(boards.cards):
                stored = ledger.ingest(body(path, session=f"{writer}-{number}"))
                if stored is not None:
                    acknowledged.append(stored)
                    break

    shuffler = threading.Thread(target=shuffle)
    lists: List[List[Association]] = [[] for _ in range(4)]
    writers = [threading.Thread(target=report, args=(n, each)) for n, each in enumerate(lists)]
    for thread in [shuffler, *writers]:
        thread.start()
    for thread in writers:
        thread.join(60)
    stop.set()
    shuffler.join(60)
    promised = {each.key for acknowledged in lists for each in acknowledged}
    assert len(promised) >= 500
    ledger.reconcile()
    held = {(each["cardUuid"], each["harness"], each["sessionId"]) for each in ledger.associations()}
    assert promised == held == {each.key for each in logged(tmp_path)}


def _compact_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("companion.sessions.journal.KEEP_NEWEST", 5)
    monkeypatch.setattr("companion.sessions.lines.compacted.__defaults__", (5,))


def test_compactions_in_the_background_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While sessions report, cards are forgotten and listeners come, the log is shortened again and again."""
    _compact_soon(monkeypatch)
    boards = FakeBoards("b1")
    boards.cards = {f"/b1/{number}.md": f"c{number}" for number in range(9)}
    ledger = load_ledger(tmp_path, boards, boards, Hub("life"), Clock(), poll_s=0.001)
    shortened = []
    compact = Journal.compact

    def counted(log: "Journal[Association]", alone: bool = False) -> bool:
        done = compact(log, alone)
        shortened.append(done)
        return done

    monkeypatch.setattr(Journal, "compact", counted)

    def report(worker: int) -> None:
        for number in range(400):
            status = ["idle", "running", "closed"][number % 3]
            ledger.ingest(body(f"/b1/{number % 8}.md", session=f"s{worker}", status=status))
            if number == 200:
                ledger.ingest(body("/b1/8.md", session=f"s{worker}"))
                ledger.forget("c8", "pi", f"s{worker}")
                ledger.unsubscribe(ledger.subscribe("b1", None, lambda: None))

    workers = [threading.Thread(target=report, args=(worker,)) for worker in range(4)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join(60)
    # Forgetting rewrites the log, which voids a compaction under way: where the disk is slow, none
    # may have come through yet.
    end = time.monotonic() + 60
    while True not in shortened and time.monotonic() < end:
        for status in ("idle", "running"):
            ledger.ingest(body("/b1/0.md", session="s0", status=status))
        time.sleep(0.001)
    ledger.close()
    assert True in shortened
    held = {(each["cardUuid"], each["sessionId"]): each for each in ledger.associations()}
    assert set(held) == {(f"c{card}", f"s{worker}") for card in range(8) for worker in range(4)}
    found = {(each.card_uuid, each.session_id): each.to_json() for each in logged(tmp_path)}
    assert found == held
    assert sorted(path.name for path in log_of(tmp_path).parent.iterdir()) == [log_of(tmp_path).name]


_SERVER = """
import random, sys
from pathlib import Path
from companion.core.hub import Hub
from companion.sessions import journal, lines
from tests.companion.sessions.world import Clock, RealBoards, body, load_ledger

folder, seed = Path(sys.argv[1]), int(sys.argv[2])
dice = random.Random(seed)
real = RealBoards(folder)
# The log is shortened again and again meanwhile.
journal.KEEP_NEWEST = 5
lines.compacted.__defaults__ = (5,)
ledger = load_ledger(folder, real.finder, real.registry, Hub("x"), Clock(), poll_s=0.001)
for number in range(200):
    card = dice.randint(0, 9)
    places = [folder / name / ("c%d.md" % card) for name in ("b1", "b2")]
    path = next(place for place in places if place.exists())
    for status in ("running", "idle", "closed"):
        file = "/f" * dice.randint(0, 900)
        record = ledger.ingest(body(str(path), session="s%d" % number, status=status, sessionFile=file))
        assert record is not None
    print("+", number, card, flush=True)
    if dice.random() < 0.15:  # A move, which rewrites the log at the next reconcile.
        other = folder / ("b2" if path.parent.name == "b1" else "b1") / path.name
        path.rename(other)
        ledger.reconcile()
    if dice.random() < 0.1:
        print("-", number, card, flush=True)
        ledger.forget("c%d" % card, "pi", "s%d" % number)
"""


@pytest.mark.parametrize("seed", range(8))
def test_kill_minus_nine_during_random_writes_loses_nothing_acknowledged(tmp_path: Path, seed: int) -> None:
    """A child records, moves cards, reconciles and forgets until it is killed; then we start again."""
    real = RealBoards(tmp_path, "b1", "b2")
    for number in range(10):
        real.card(f"b1/c{number}.md", f"c{number}")
    child = subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(tmp_path), str(seed)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    said: List[str] = []
    for line in child.stdout:
        said.append(line)
        if len(said) == 10 + seed * 25:
            time.sleep(0.0007 * seed)
            child.send_signal(signal.SIGKILL)
    child.stdout.close()
    assert child.wait(30) == -signal.SIGKILL
    forgotten = {line.split()[1] for line in said if line.startswith("-")}
    promised = {
        (f"c{line.split()[2]}", f"s{line.split()[1]}")
        for line in said
        if line.startswith("+") and line.endswith("\n") and line.split()[1] not in forgotten
    }
    assert len(promised) >= 5
    ledger = load_ledger(tmp_path, real.finder, real.registry, Hub("y"), Clock())
    ledger.reconcile()
    held = {(each["cardUuid"], each["sessionId"]) for each in ledger.associations()}
    assert promised <= held
    ledger.close()
    again = load_ledger(tmp_path, real.finder, real.registry, Hub("z"), Clock())
    counts = again.facts()["counts"]
    # The kernel may end a write between two pages: one torn line, ended, and nothing behind it lost.
    assert isinstance(counts, dict) and counts["logDamagedLines"] <= 1
    assert log_of(tmp_path).read_bytes().endswith(b"\n")
    again.close()
