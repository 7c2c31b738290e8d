"""Hook events: order, states across restarts, older cards, and what goes wrong."""

import json
import threading
import time
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import pytest

from adapters.contract import Status
from companion.core.errors import CardReadError
from companion.sessions import intake as intake_module
from companion.sessions.intake import OTHER_NAMES, HookIntake
from tests.companion.sessions.fake_agent import FakeAgent, Gate
from tests.companion.sessions.world import Clock, FakeBoards, make_ledger, short

Call = Tuple[str, str, Status, Tuple[str, ...], Optional[str]]


class _Recorder:
    """A ledger that writes down what it is told."""

    def __init__(self) -> None:
        self.calls: List[Call] = []
        self.before: Callable[[str], None] = lambda session_id: None
        self.error: Optional[CardReadError] = None

    def ingest_event(
        self, harness: str, session_id: str, status: Status, card_paths: Tuple[str, ...], file: Optional[str]
    ) -> None:
        self.before(session_id)
        self.calls.append((harness, session_id, status, tuple(card_paths), file))
        if self.error is not None:
            raise self.error

    def statuses(self) -> List[str]:
        """The statuses in order."""
        return [call[2].value for call in self.calls]


class _Scene:
    """An agent, a recorder and an intake between them."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "hooks.jsonl"
        self.agent = FakeAgent()
        self.ledger = _Recorder()
        self.intake = self.start()

    def start(self, wait_s: float = 30.0) -> HookIntake:
        """An intake as after a restart."""
        made = HookIntake(self.ledger, self.log, Clock(), lambda: (b"/b1",), wait_s)
        made.load()
        return made

    def send(self, event: str, status: Optional[str] = None, session: str = "s", **more: object) -> None:
        """One payload of the agent."""
        payload: Dict[str, object] = {"event": event, "session": session, **more}
        if status is not None:
            payload["status"] = status
        self.intake.handle(self.agent.as_adapter(), payload)

    def facts(self) -> Dict[str, object]:
        """What is told of the agent."""
        facts = self.intake.facts()["fake"]
        assert isinstance(facts, dict)
        return facts


@pytest.fixture
def scene(tmp_path: Path) -> _Scene:
    """See above."""
    return _Scene(tmp_path)


def test_an_event_reaches_the_ledger_as_the_adapter_meant_it(scene: _Scene) -> None:
    """Harness, session, status, paths and session file."""
    scene.send("Prompt", "running", cards=["/b1/a.md", "/b1/b.md"], file="/t.jsonl")
    scene.send("Stop", "ready_for_review")
    assert scene.ledger.calls == [
        ("fake", "s", Status.RUNNING, ("/b1/a.md", "/b1/b.md"), "/t.jsonl"),
        ("fake", "s", Status.READY_FOR_REVIEW, (), None),
    ]


def test_what_is_seen_is_told(scene: _Scene) -> None:
    """Counts, the last event and its time, unknown events by name."""
    assert scene.intake.facts() == {}
    scene.send("Prompt", "running")
    scene.send("UnknownThing")
    scene.send("UnknownThing")
    scene.send("")
    scene.send("Quiet")
    facts = scene.facts()
    assert facts["events"] == 4 and facts["lastEvent"] == "Quiet"
    assert str(facts["lastEventAt"]).startswith("2026-")
    assert facts["unknownEvents"] == {"UnknownThing": 2}
    assert json.loads(json.dumps(scene.intake.facts())) == scene.intake.facts()
    assert scene.ledger.statuses() == ["running"]


def test_names_of_unknown_events_are_bounded(scene: _Scene) -> None:
    """In number and length: they come from outside."""
    for number in range(60):
        scene.send(f"Unknown{number}" + "x" * 100)
    unknown = scene.facts()["unknownEvents"]
    assert isinstance(unknown, dict)
    assert len(unknown) == intake_module.MAX_UNKNOWN_NAMES + 1 and unknown[OTHER_NAMES] == 10
    assert max(map(len, unknown)) == 64


@pytest.mark.parametrize("payload", [None, [], "text", 5, {}, {"event": "Prompt", "status": "running"}])
def test_a_payload_of_no_use_is_counted_and_forgotten(scene: _Scene, payload: object) -> None:
    """No object, or no session."""
    scene.intake.handle(scene.agent.as_adapter(), payload)
    assert scene.ledger.calls == []
    assert scene.facts()["unusable"] == 1


def test_a_monstrous_session_id_is_not_kept(scene: _Scene) -> None:
    """A body may be 32 MiB."""
    scene.send("Prompt", "running", session="x" * 100_000, state={"a": 1})
    assert scene.ledger.calls == [] and scene.facts()["unusable"] == 1
    assert not scene.log.exists()


def test_a_prompt_full_of_paths_is_cut(scene: _Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones count."""
    monkeypatch.setattr(intake_module, "MAX_PATHS", 3)
    scene.send("Prompt", "running", cards=[f"/b1/{number}.md" for number in range(9)])
    assert scene.ledger.calls[0][3] == ("/b1/0.md", "/b1/1.md", "/b1/2.md")


def test_a_failing_adapter_is_counted_and_logged(scene: _Scene, caplog: pytest.LogCaptureFixture) -> None:
    """The agent never suffers, and the next event is served."""
    scene.send("Crash")
    scene.send("Prompt", "running")
    assert scene.facts()["failed"] == 1
    assert "could not translate" in caplog.text
    assert scene.ledger.statuses() == ["running"]


def test_an_unreadable_card_is_counted_and_raised(scene: _Scene) -> None:
    """For the route, which answers 400; the session goes on."""
    scene.ledger.error = CardReadError("Permission denied")
    with pytest.raises(CardReadError):
        scene.send("Prompt", "running")
    assert scene.facts()["unreadableCards"] == 1
    scene.ledger.error = None
    scene.send("Stop", "ready_for_review")
    assert scene.ledger.statuses() == ["running", "ready_for_review"]


def test_states_come_back_to_the_adapter_also_after_a_restart(scene: _Scene) -> None:
    """A question that was open before the restart can be closed after it."""
    scene.send("Question", "waiting_for_input", state={"blockers": ["question:q1"]})
    scene.send("Quiet", session="other")
    scene.intake.close()
    scene.intake = scene.start()
    scene.send("Answer", "running", state={"blockers": []})
    scene.send("Stop", "ready_for_review")
    assert scene.agent.seen_states == [None, None, {"blockers": ["question:q1"]}, {"blockers": []}]


def test_a_dead_disk_does_not_stop_events(scene: _Scene) -> None:
    """States are then only remembered."""
    scene.log.mkdir()
    scene.send("Question", "waiting_for_input", state={"n": 1})
    scene.send("Answer", "running")
    assert scene.agent.seen_states[-1] == {"n": 1}
    assert scene.intake.problem is not None


# -- order


def _in_threads(jobs: Sequence[Callable[[], None]]) -> List[threading.Thread]:
    threads = []
    for job in jobs:
        threads.append(threading.Thread(target=job))
        threads[-1].start()
    return threads


def test_events_of_a_session_are_recorded_in_order_of_arrival(scene: _Scene) -> None:
    """Although the first one is slow, and another session is not held up by it."""
    gate = Gate()
    slow_ones: List[str] = []

    def hold_the_first(session: str) -> None:
        if session == "slow":
            slow_ones.append(session)
            if len(slow_ones) == 1:
                gate()

    scene.ledger.before = hold_the_first
    statuses = ["running", "waiting_for_input", "running", "ready_for_review"]
    threads: List[threading.Thread] = []
    for number, status in enumerate(statuses):
        threads += _in_threads([lambda status=status: scene.send("x", status, session="slow")])  # type: ignore[misc]
        end = time.monotonic() + 30
        while len(scene.agent.seen_states) <= number and time.monotonic() < end:
            time.sleep(0.001)
        assert gate.reached.wait(30)
    scene.send("x", "idle", session="quick")
    time.sleep(0.05)  # Time for the later ones to overtake, if they could.
    assert scene.ledger.statuses() == ["idle"]
    gate.open.set()
    for thread in threads:
        thread.join(30)
    assert scene.ledger.statuses() == ["idle", *statuses]


def test_turns_leave_nothing_behind(scene: _Scene) -> None:
    """Thousands of sessions over a year."""
    for number in range(50):
        scene.send("x", "running", session=f"s{number}")
    assert scene.intake._desk("fake").last_turn == {}


def test_the_last_status_wins_under_load(tmp_path: Path) -> None:
    """Many sessions, many threads: the ledger ends where each session's last event said."""
    boards = FakeBoards("b1")
    boards.cards = {"/b1/a.md": "ca"}
    ledger = make_ledger(tmp_path, boards)
    intake = HookIntake(ledger, tmp_path / "hooks.jsonl", Clock())
    agent = FakeAgent().as_adapter()
    words = ["running", "waiting_for_input", "running", "ready_for_review", "closed"]

    def live(session: str) -> None:
        for number, status in enumerate(words * 4):
            state = {"n": number}
            body = {"event": "x", "session": session, "status": status, "cards": ["/b1/a.md"], "state": state}
            intake.handle(agent, body)

    for thread in _in_threads([lambda n=n: live(f"s{n}") for n in range(8)]):  # type: ignore[misc]
        thread.join(60)
    assert sorted(short(ledger.associations())) == [("/b1/a.md", f"s{n}", "closed") for n in range(8)]
    ledger.close()
    intake.close()


# -- older cards of a resumed session


def test_a_resumed_session_gets_its_older_cards_back(scene: _Scene) -> None:
    """First the status for known cards, then the transcript's cards, before the hook is answered."""
    scene.agent.transcripts["/t.jsonl"] = ("/b1/a.md", "/b1/b.md")
    scene.send("Start", "idle", file="/t.jsonl", resume="/t.jsonl")
    assert scene.ledger.calls == [
        ("fake", "s", Status.IDLE, (), "/t.jsonl"),
        ("fake", "s", Status.IDLE, ("/b1/a.md", "/b1/b.md"), "/t.jsonl"),
    ]
    assert scene.agent.read == [("/t.jsonl", (b"/b1",), "/work")]


def test_a_slow_transcript_does_not_hold_the_hook_and_gives_no_stale_status(scene: _Scene) -> None:
    """The hook is answered meanwhile, the session goes on, and its cards get the status of now."""
    scene.intake = scene.start(wait_s=0.01)
    gate = Gate()
    scene.agent.while_reading = gate
    scene.agent.transcripts["/t.jsonl"] = ("/b1/a.md",)
    scene.send("Start", "idle", resume="/t.jsonl")
    assert scene.ledger.statuses() == ["idle"]
    assert gate.reached.wait(30)
    scene.send("Prompt", "running")
    gate.open.set()
    end = time.monotonic() + 30
    while len(scene.ledger.calls) < 3 and time.monotonic() < end:
        time.sleep(0.001)
    assert [call[2:4] for call in scene.ledger.calls[1:]] == [
        (Status.RUNNING, ()),
        (Status.RUNNING, ("/b1/a.md",)),
    ]


def test_a_session_without_a_transcript_yet_is_no_failure(scene: _Scene) -> None:
    """It has only begun."""
    scene.send("Start", "idle", resume="/none.jsonl")
    assert scene.ledger.statuses() == ["idle"]
    assert scene.facts()["failed"] == 0


def test_a_transcript_that_cannot_be_read_is_counted(scene: _Scene, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever the adapter raises, in a thread that nobody watches."""

    def fail() -> None:
        raise ValueError("a form of tomorrow")

    scene.agent.while_reading = fail
    scene.send("Start", "idle", resume="/t.jsonl")
    assert scene.facts()["failed"] == 1
    assert "Could not read /t.jsonl" in caplog.text


def test_an_unreadable_card_in_a_transcript_is_counted(scene: _Scene) -> None:
    """The hook itself was answered well."""
    scene.agent.transcripts["/t.jsonl"] = ("/b1/a.md",)

    def fail_on_cards(session: str) -> None:
        scene.ledger.error = CardReadError("no") if scene.ledger.calls else None

    scene.ledger.before = fail_on_cards
    scene.send("Start", "idle", resume="/t.jsonl")
    assert scene.facts()["unreadableCards"] == 1


def test_only_a_few_transcripts_are_read_at_once(scene: _Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty sessions may be resumed by a script."""
    scene.intake = scene.start(wait_s=0.0)
    gate = Gate()
    scene.agent.while_reading = gate
    for number in range(6):
        scene.agent.transcripts[f"/{number}.jsonl"] = ("/b1/a.md",)
        scene.send("Start", "idle", session=f"s{number}", resume=f"/{number}.jsonl")
    assert gate.reached.wait(30)
    assert len(scene.agent.read) <= intake_module.MAX_READERS
    gate.open.set()
    end = time.monotonic() + 30
    while len(scene.ledger.calls) < 12 and time.monotonic() < end:
        time.sleep(0.001)
    assert len(scene.ledger.calls) == 12
