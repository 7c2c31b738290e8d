"""From a file without a uuid to an association with its real history."""

import os
import time
from pathlib import Path
from typing import Callable, List, Tuple

import pytest

from adapters.contract import Status
from companion.boards.cards import Resolution
from companion.core.hub import Hub
from companion.sessions import linkwatch as linkwatch_module
from companion.sessions.ledger import Ledger
from companion.sessions.pending import read_links
from tests.companion.sessions.world import (
    Clock,
    RealBoards,
    body,
    event,
    frames,
    load_ledger,
    logged,
    pending_of,
)


class _Scene:
    """A real board, a new card without a uuid, and a ledger."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.real = RealBoards(folder, "b1")
        self.clock = Clock()
        self.path = self.real.card("b1/new.md", None)
        self.ledger = self.start()

    def start(self, poll_s: float = 3600.0) -> Ledger:
        """A ledger as after a restart."""
        return load_ledger(self.folder, self.real.finder, self.real.registry, Hub("life"), self.clock, poll_s)

    def give_uuid(self, uuid: str = "cn") -> None:
        """As a repair does it, or the web app, or the agent."""
        self.real.card("b1/new.md", uuid)

    def history(self) -> List[Tuple[str, str]]:
        """(status, session) of the log's events."""
        return [(each.status.value, each.session_id) for each in logged(self.folder)]


@pytest.fixture
def scene(tmp_path: Path) -> _Scene:
    """See above."""
    return _Scene(tmp_path)


def _repaired_then_subscribed(scene: _Scene) -> None:
    scene.give_uuid()
    scene.ledger.subscribe("b1", None, lambda: None)


def _repaired_then_event_of_its_session(scene: _Scene) -> None:
    scene.give_uuid()
    event(scene.ledger, Status.READY_FOR_REVIEW)


def _repaired_then_report_of_another_session(scene: _Scene) -> None:
    scene.give_uuid()
    scene.ledger.ingest(body(scene.path, session="other"))


def _repaired_then_restarted(scene: _Scene) -> None:
    scene.ledger.close()
    scene.give_uuid()
    scene.ledger = scene.start()
    scene.ledger.reconcile()


@pytest.mark.parametrize(
    "trigger",
    [
        _repaired_then_subscribed,
        _repaired_then_event_of_its_session,
        _repaired_then_report_of_another_session,
        _repaired_then_restarted,
    ],
)
def test_a_link_becomes_an_association_with_its_history(
    scene: _Scene, trigger: Callable[[_Scene], None]
) -> None:
    """Unknown card at first; then all events, in order, with the times at which they happened."""
    assert scene.ledger.ingest(body(scene.path, session="pi-session")) is None
    event(scene.ledger, Status.RUNNING, scene.path, file="/t.jsonl")
    event(scene.ledger, Status.WAITING_FOR_INPUT)
    event(scene.ledger, Status.READY_FOR_REVIEW)
    assert scene.ledger.associations() == [] and logged(scene.folder) == []
    times = [each.updated_at for each in read_links(pending_of(scene.folder))]
    trigger(scene)
    claude = [each for each in logged(scene.folder) if each.harness == "claude"]
    assert [each.status.value for each in claude] == ["running", "waiting_for_input", "ready_for_review"]
    assert [each.session_file for each in claude] == ["/t.jsonl"] * 3
    assert times[1] == claude[2].updated_at
    assert {(each["cardUuid"], each["harness"], each["status"]) for each in scene.ledger.associations()} >= {
        ("cn", "pi", "running"),
        ("cn", "claude", "ready_for_review"),
    }
    assert scene.ledger.links() == read_links(pending_of(scene.folder)) == []


def test_listeners_hear_of_the_last_status(scene: _Scene) -> None:
    """One frame, not the whole history."""
    event(scene.ledger, Status.RUNNING, scene.path)
    event(scene.ledger, Status.READY_FOR_REVIEW)
    listener = scene.ledger.subscribe("b1", None, lambda: None)
    listener.take(0)
    scene.give_uuid()
    event(scene.ledger, Status.READY_FOR_REVIEW)
    [(name, shown)] = frames(listener)
    assert name == "association" and isinstance(shown, dict) and shown["status"] == "ready_for_review"


def test_the_background_notices_a_uuid_by_itself(scene: _Scene) -> None:
    """Nobody has to ask; the file is looked at again and again."""
    scene.ledger.close()
    ledger = scene.start(poll_s=0.01)
    event(ledger, Status.RUNNING, scene.path)
    scene.give_uuid()
    end = time.monotonic() + 30
    while not ledger.associations() and time.monotonic() < end:
        time.sleep(0.01)
    assert [each["cardUuid"] for each in ledger.associations()] == ["cn"]
    ledger.close()


def test_the_background_notices_after_a_restart(scene: _Scene) -> None:
    """Links taken up from the log are watched, too."""
    event(scene.ledger, Status.RUNNING, scene.path)
    scene.ledger.close()
    ledger = scene.start(poll_s=0.01)
    scene.give_uuid()
    end = time.monotonic() + 30
    while not ledger.associations() and time.monotonic() < end:
        time.sleep(0.01)
    assert [each["cardUuid"] for each in ledger.associations()] == ["cn"]
    ledger.close()


def test_an_unchanged_file_is_not_read_again(scene: _Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at it is one stat."""
    event(scene.ledger, Status.RUNNING, scene.path)
    scene.ledger.reconcile()
    asked: List[str] = []
    resolve = scene.real.finder.resolve

    def noted(path: str) -> Resolution:
        asked.append(path)
        return resolve(path)

    monkeypatch.setattr(scene.real.finder, "resolve", noted)
    scene.ledger.reconcile()
    assert asked == []
    scene.give_uuid()
    scene.ledger.reconcile()
    assert asked == [scene.path]


def test_a_file_that_is_gone_for_good_is_given_up(scene: _Scene) -> None:
    """Not at the first look: editors save by renaming."""
    event(scene.ledger, Status.RUNNING, scene.path)
    os.unlink(scene.path)
    scene.ledger.reconcile()
    assert len(scene.ledger.links()) == 1
    scene.clock.now_s += linkwatch_module.GONE_AFTER_S
    scene.ledger.reconcile()
    assert scene.ledger.links() == [] and read_links(pending_of(scene.folder)) == []


def test_a_file_that_came_back_in_time_is_kept(scene: _Scene) -> None:
    """The clock starts anew."""
    event(scene.ledger, Status.RUNNING, scene.path)
    os.unlink(scene.path)
    scene.ledger.reconcile()
    scene.real.card("b1/new.md", None)
    scene.ledger.reconcile()
    scene.clock.now_s += 60
    os.unlink(scene.path)
    scene.ledger.reconcile()
    assert len(scene.ledger.links()) == 1


@pytest.mark.parametrize("why", ["board away", "board unregistered", "file locked away"])
def test_a_link_waits_for_its_board(scene: _Scene, why: str) -> None:
    """A folder that is away for an hour, a board that is registered again later."""
    event(scene.ledger, Status.RUNNING, scene.path)
    if why == "board away":
        (scene.folder / "b1").rename(scene.folder / "away")
    elif why == "board unregistered":
        scene.real.registry.remove("b1")
    else:
        os.rename(scene.path, scene.path + ".kept")
        os.mkdir(scene.path)
    for _ in range(3):
        scene.clock.now_s += 3600
        scene.ledger.reconcile()
    assert len(scene.ledger.links()) == 1
    if why == "board away":
        (scene.folder / "away").rename(scene.folder / "b1")
    elif why == "file locked away":
        os.rmdir(scene.path)
    scene.give_uuid()
    scene.real.registry.register("b1", str(scene.folder / "b1"))
    scene.ledger.reconcile()
    assert [each["cardUuid"] for each in scene.ledger.associations()] == ["cn"]


def test_a_forgotten_session_has_no_links(scene: _Scene) -> None:
    """Forgetting it on one card, or a card, leaves its other links alone."""
    event(scene.ledger, Status.RUNNING, scene.path)
    scene.ledger.forget("some card", "", "")
    scene.ledger.forget("some card", "claude", "s1")
    assert len(scene.ledger.links()) == 1
    scene.ledger.forget("", "claude", "s1")
    scene.give_uuid()
    scene.ledger.reconcile()
    assert scene.ledger.associations() == [] and scene.ledger.links() == []


def test_a_link_taken_twice_adds_nothing(scene: _Scene) -> None:
    """A crash between the two logs leaves the link; at the next start it is seen to be old."""
    event(scene.ledger, Status.RUNNING, scene.path)
    event(scene.ledger, Status.IDLE)
    before_crash = pending_of(scene.folder).read_bytes()
    scene.give_uuid()
    scene.ledger.reconcile()
    event(scene.ledger, Status.CLOSED)
    scene.ledger.close()
    pending_of(scene.folder).write_bytes(before_crash)
    ledger = scene.start()
    ledger.reconcile()
    assert scene.history() == [("running", "s1"), ("idle", "s1"), ("closed", "s1")]
    assert ledger.links() == []
    ledger.close()


def test_a_card_rewritten_without_its_uuid_is_linked_again_when_it_gets_one(scene: _Scene) -> None:
    """The old association stays until the file is another card."""
    scene.give_uuid("old")
    event(scene.ledger, Status.RUNNING, scene.path)
    scene.real.card("b1/new.md", None)
    event(scene.ledger, Status.READY_FOR_REVIEW, scene.path)
    scene.ledger.reconcile()
    assert [(each["cardUuid"], each.get("cardMissing")) for each in scene.ledger.associations()] == [
        ("old", True)
    ]
    scene.give_uuid("new")
    scene.ledger.reconcile()
    assert [(each["cardUuid"], each["status"]) for each in scene.ledger.associations()] == [
        ("new", "ready_for_review")
    ]


def test_an_invalid_report_makes_no_link(scene: _Scene) -> None:
    """It is an unknown card all the same."""
    assert scene.ledger.ingest(body(scene.path, status="nonsense")) is None
    assert scene.ledger.ingest(body(scene.path, session="")) is None
    assert scene.ledger.links() == []


def test_a_link_follows_a_file_that_is_moved_before_it_has_a_uuid(tmp_path: Path) -> None:
    """Renamed, then moved to another board: the history is linked once the card has its uuid."""
    real = RealBoards(tmp_path, "b1", "b2")
    path = real.card("b1/new.md", None)
    ledger = load_ledger(tmp_path, real.finder, real.registry, Hub("life"), Clock())
    event(ledger, Status.RUNNING, path)
    event(ledger, Status.READY_FOR_REVIEW)
    ledger.reconcile()
    for place in ("b1/renamed.md", "b2/moved.md"):
        Path(path).rename(tmp_path / place)
        path = str(tmp_path / place)
        ledger.reconcile()
        assert [each.path for each in read_links(pending_of(tmp_path))] == [path]
    event(ledger, Status.RUNNING)
    real.card("b2/moved.md", "cn")
    ledger.reconcile()
    assert [each.status.value for each in logged(tmp_path)] == ["running", "ready_for_review", "running"]
    [shown] = ledger.associations()
    assert (shown["cardUuid"], shown["cardPath"], shown["boardUuid"]) == ("cn", path, "b2")


def test_a_file_that_was_moved_and_has_a_uuid_already_is_linked_at_once(tmp_path: Path) -> None:
    """Nothing is lost to the order in which the two are noticed, as long as the move is seen first."""
    real = RealBoards(tmp_path, "b1")
    path = real.card("b1/new.md", None)
    ledger = load_ledger(tmp_path, real.finder, real.registry, Hub("life"), Clock())
    event(ledger, Status.RUNNING, path)
    ledger.reconcile()
    Path(path).rename(tmp_path / "b1" / "renamed.md")
    ledger.reconcile()
    real.card("b1/renamed.md", "cn")
    ledger.reconcile()
    assert [each["cardUuid"] for each in ledger.associations()] == ["cn"]
    assert ledger.links() == []


def test_another_file_that_gets_the_same_inode_is_not_followed(tmp_path: Path) -> None:
    """File systems give a freed inode to the next new file; size and time tell them apart."""
    real = RealBoards(tmp_path, "b1")
    path = real.card("b1/new.md", None)
    clock = Clock()
    ledger = load_ledger(tmp_path, real.finder, real.registry, Hub("life"), clock)
    event(ledger, Status.RUNNING, path)
    ledger.reconcile()
    Path(path).rename(tmp_path / "b1" / "other.md")
    (tmp_path / "b1" / "other.md").write_text("# Something else\n", encoding="utf-8")
    ledger.reconcile()
    assert [each.path for each in ledger.links()] == [path]
