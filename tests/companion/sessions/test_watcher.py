"""What is found out of sessions beyond their reports, with real processes and a real ledger."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

import pytest

from adapters.contract import Mark, Status
from companion.core.processes import ProcessTable
from companion.sessions.evidence import Records, Said
from companion.sessions.ledger import Ledger
from companion.sessions.verdict import LAG_S
from companion.sessions.watcher import MAX_SESSIONS, Watcher
from tests.companion.sessions.recording_agent import RecordingAgent
from tests.companion.sessions.world import NEVER_S, Clock, FakeBoards, make_ledger
from tests.companion.web.talk import eventually

Program = subprocess.Popen[bytes]

IDLE, RUNNING, WAITING, READY, CLOSED = (
    Status.IDLE,
    Status.RUNNING,
    Status.WAITING_FOR_INPUT,
    Status.READY_FOR_REVIEW,
    Status.CLOSED,
)


class StillClock(Clock):
    """Stands still until the test moves it."""

    def __call__(self) -> float:
        return self.now_s


class Scene:
    """A board with two cards, an agent, and a watcher that looks when it is told to."""

    def __init__(self, folder: Path, look_s: float = NEVER_S) -> None:
        self.folder = folder
        self.clock = StillClock()
        self.boards = FakeBoards("b1")
        self.boards.cards = {"/b1/a.md": "card-a", "/b1/b.md": "card-b"}
        self.agent = RecordingAgent(folder / "agent")
        self.look_s = look_s
        self.ledger: Ledger
        self.watcher: Watcher
        self.begin()

    def begin(self) -> None:
        """Another life of the companion."""
        self.ledger = make_ledger(self.folder, self.boards, now=self.clock)
        self.watcher = Watcher(
            self.ledger,
            {"fake": self.agent.as_adapter()},
            self.folder,
            {},
            self.folder / "processes.jsonl",
            now=self.clock,
            monotonic=self.clock,
            look_s=self.look_s,
        )
        self.watcher.load()

    def end(self) -> None:
        """The companion ends."""
        self.watcher.close()
        self.ledger.close()

    def report(self, session: str, status: Status, process: Optional[str] = None, card: str = "a") -> None:
        """An agent reports a status on a card, as a hook does: told, then recorded."""
        said = Said(status, self.clock(), "Event")
        self.watcher.heard("fake", session, said, None, process)
        self.ledger.ingest_event("fake", session, status, (f"/b1/{card}.md",), None)

    def look(self, after_s: float = LAG_S + 1) -> None:
        """Let time pass, then look."""
        self.clock.now_s += after_s
        self.watcher.look()

    def shown(self) -> Dict[str, str]:
        """What the board shows: session to status."""
        return {str(each["sessionId"]): str(each["status"]) for each in self.ledger.associations()}

    def rule(self, session: str) -> str:
        """Why."""
        found = self.watcher.session("fake", session)
        assert found is not None and found.verdict is not None
        return found.verdict.rule


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """Nothing has been reported yet."""
    made = Scene(tmp_path)
    yield made
    made.end()


@pytest.fixture
def programs() -> Iterator[List[Program]]:
    """Processes that the test may kill."""
    made = [
        subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) for _ in range(2)
    ]
    yield made
    for each in made:
        each.kill()
        each.wait()
        assert each.stdin is not None
        each.stdin.close()


def kill(program: Program) -> None:
    """As ``kill -9`` does; nobody asks for its exit code yet."""
    program.kill()
    os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)


# --- processes that reports name


def test_a_session_is_closed_when_its_process_is_gone(scene: Scene, programs: List[Program]) -> None:
    """Not before, and those of other processes go on."""
    scene.report("mine", RUNNING, str(os.getpid()))
    scene.report("theirs", READY, str(programs[0].pid), "b")
    scene.look()
    assert scene.shown() == {"mine": "running", "theirs": "ready_for_review"}
    kill(programs[0])
    scene.look()
    assert scene.shown() == {"mine": "running", "theirs": "closed"}
    assert scene.rule("theirs") == "process_gone"


def test_a_session_open_in_two_processes_ends_with_the_last(scene: Scene, programs: List[Program]) -> None:
    """Resumed in a second terminal: the end of one is not the end of the session."""
    for program in (*programs, programs[0]):
        scene.report("s", RUNNING, str(program.pid))
    kill(programs[0])
    scene.look()
    assert scene.shown() == {"s": "running"}
    kill(programs[1])
    scene.look()
    assert scene.shown() == {"s": "closed"}


def test_a_session_that_goes_on_elsewhere_is_not_closed(scene: Scene, programs: List[Program]) -> None:
    """Its client says another process, or one that is none of ours."""
    scene.report("moved", RUNNING, str(programs[0].pid))
    scene.report("moved", RUNNING, str(os.getpid()))
    scene.report("silent", RUNNING, str(programs[0].pid), "b")
    scene.report("silent", RUNNING, "", "b")
    kill(programs[0])
    scene.look()
    assert scene.shown() == {"moved": "running", "silent": "running"}


def test_events_that_name_no_process_unsay_nothing(scene: Scene, programs: List[Program]) -> None:
    """Only the hooks at start and end are commands, and can."""
    scene.report("s", IDLE, str(programs[0].pid))
    scene.report("s", RUNNING, None)
    kill(programs[0])
    scene.look()
    assert scene.shown() == {"s": "closed"}


def test_a_number_that_somebody_else_has_now_is_not_the_same_process(
    scene: Scene, programs: List[Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It began at another time."""
    scene.report("s", RUNNING, str(programs[0].pid))
    monkeypatch.setattr(ProcessTable, "_begun", lambda self, pid: "later")
    scene.look()
    assert scene.shown() == {"s": "closed"}


def test_a_process_elsewhere_is_not_mistaken_for_one_of_ours(scene: Scene, programs: List[Program]) -> None:
    """In a container or behind a tunnel: the same number, but it began at another time."""
    begun = ProcessTable().find(programs[0].pid)
    assert begun is not None
    scene.report("elsewhere", RUNNING, f"{programs[0].pid} 12345")
    scene.report("here", RUNNING, f"{programs[0].pid} {begun.begun}", "b")
    kill(programs[0])
    scene.look()
    assert scene.shown() == {"elsewhere": "running", "here": "closed"}


@pytest.mark.parametrize("header", ["0", "1", "-5", "x", "1.5", "٣٤٥", "9" * 9, "9" * 30, " 12"])
def test_what_is_no_process_of_ours_is_not_watched(scene: Scene, header: str) -> None:
    """Nothing can be said about it, so nothing is."""
    scene.report("s", RUNNING, header)
    scene.look()
    assert scene.shown() == {"s": "running"}
    found = scene.watcher.session("fake", "s")
    assert found is not None and found.processes == {}


def test_a_report_behind_the_end_of_its_process_is_the_last_word(
    scene: Scene, programs: List[Program]
) -> None:
    """Resumed in a process that nobody knows: it is open again, and is not closed for the old one."""
    scene.report("s", RUNNING, str(programs[0].pid))
    kill(programs[0])
    scene.look()
    scene.clock.now_s += 5
    scene.report("s", RUNNING, None)
    scene.look()
    assert scene.shown() == {"s": "running"}


# --- what clients post


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"harness": 1, "sessionId": "s", "status": "idle"},
        {"harness": "fake", "sessionId": "", "status": "idle"},
        {"harness": "fake", "sessionId": "s", "status": []},
        {"harness": "fake", "sessionId": "s", "status": "bored"},
        {"harness": "fake", "sessionId": "s"},
    ],
)
def test_a_report_of_no_use_is_nothing(scene: Scene, body: object) -> None:
    """It is refused elsewhere, with words."""
    scene.watcher.reported(body, "12")
    assert scene.watcher.sessions() == []


def test_a_clients_report_names_process_and_file(scene: Scene) -> None:
    """And is known though it is about no card."""
    body = {"harness": "fake", "sessionId": "s", "status": "running", "sessionFile": "/x"}
    scene.watcher.reported(body, str(os.getpid()))
    (found,) = scene.watcher.sessions()
    assert (found.session, found.file, [each.pid for each in found.processes]) == (
        ("fake", "s"),
        "/x",
        [os.getpid()],
    )


# --- the agent's own records


def test_a_record_that_is_idle_ends_a_turn_of_which_nobody_told_the_end(scene: Scene) -> None:
    """Esc: no event follows. What it says while an event is fresh may be old."""
    scene.agent.keep(os.getpid(), "s", IDLE, scene.clock() - 60)
    scene.report("s", RUNNING)
    scene.look(after_s=LAG_S / 2)
    assert scene.shown() == {"s": "running"}
    scene.look()
    assert scene.shown() == {"s": "ready_for_review"} and scene.rule("s") == "interrupted"
    scene.report("s", RUNNING)
    scene.agent.keep(os.getpid(), "s", WAITING, scene.clock() + 0.1)
    scene.look(after_s=0.2)
    assert scene.shown() == {"s": "waiting_for_input"}


def test_sessions_of_which_nobody_reports_are_found_with_their_cards(scene: Scene) -> None:
    """Policies keep hooks away: record, process and file are enough; later cards are found too."""
    path = scene.agent.write("s", Mark.WORKING, scene.clock(), "/b1/a.md", "/nowhere.md")
    scene.agent.keep(os.getpid(), "s", RUNNING, scene.clock())
    scene.look()
    eventually(lambda: scene.shown() == {"s": "running"})
    assert [each["cardPath"] for each in scene.ledger.associations()] == ["/b1/a.md"]
    assert [each["sessionFile"] for each in scene.ledger.associations()] == [str(path)]

    scene.agent.write("s", Mark.WORKING, scene.clock(), "/b1/a.md", "/b1/b.md", "/nowhere.md")
    scene.agent.keep(os.getpid(), "s", WAITING, scene.clock())
    scene.look(after_s=60)
    eventually(lambda: len(scene.ledger.associations()) == 2)
    assert {each["status"] for each in scene.ledger.associations()} == {"waiting_for_input"}
    found = scene.watcher.session("fake", "s")
    assert found is not None and found.cwd == "/home/dev/tree"


def test_the_file_of_a_session_that_reports_is_not_searched(scene: Scene) -> None:
    """Its reports name its cards, and files can be large."""
    scene.agent.write("s", Mark.WORKING, scene.clock(), "/b1/b.md")
    scene.agent.keep(os.getpid(), "s", RUNNING, scene.clock())
    scene.report("s", RUNNING)
    scene.look()
    scene.agent.keep(os.getppid(), "other", RUNNING, scene.clock())
    scene.agent.write("other", Mark.WORKING, scene.clock(), "/b1/b.md")
    scene.look()
    eventually(lambda: "other" in scene.shown())
    assert [each["cardPath"] for each in scene.ledger.associations() if each["sessionId"] == "s"] == [
        "/b1/a.md"
    ]


def test_a_record_outlives_its_process(scene: Scene, programs: List[Program]) -> None:
    """After ``kill -9`` the file stays as it was. One that was dead already makes no session known."""
    scene.agent.keep(programs[0].pid, "s", RUNNING, scene.clock())
    scene.agent.keep(2**22 + 7, "ancient", RUNNING, scene.clock())
    scene.report("s", RUNNING)
    scene.look()
    assert scene.shown() == {"s": "running"} and scene.watcher.session("fake", "ancient") is None
    kill(programs[0])
    scene.look()
    assert scene.shown() == {"s": "closed"}
    looked_at = scene.watcher.session("fake", "s")
    assert looked_at is not None and not looked_at.is_open
    scene.look()
    lines = (scene.folder / "processes.jsonl").read_text().splitlines()
    assert len(lines) == 1  # However often it is looked at.


def test_a_process_that_takes_up_another_session_has_left_the_first(scene: Scene) -> None:
    """``/clear``: the same process, a new id."""
    scene.agent.keep(os.getpid(), "first", IDLE, scene.clock())
    scene.report("first", READY, str(os.getpid()))
    scene.look()
    scene.agent.keep(os.getpid(), "second", IDLE, scene.clock())
    scene.look()
    assert scene.shown() == {"first": "closed"} and scene.rule("first") == "left"
    assert scene.rule("second") == "record_idle"


def test_one_terminal_ends_and_the_session_goes_on_in_the_other(
    scene: Scene, programs: List[Program]
) -> None:
    """Two processes, one session: the end that one reports is not the session's."""
    for program in programs:
        scene.agent.keep(program.pid, "s", IDLE, scene.clock())
    scene.agent.write("s", Mark.ENDED, scene.clock())
    scene.report("s", READY)
    scene.look()
    scene.report("s", CLOSED)
    assert scene.shown() == {"s": "closed"}
    scene.agent.keep(programs[0].pid, "s", IDLE, scene.clock()).unlink()
    kill(programs[0])
    scene.look(after_s=3)
    assert scene.shown() == {"s": "ready_for_review"}
    kill(programs[1])
    scene.look()
    assert scene.shown() == {"s": "closed"}


def test_only_what_has_changed_is_read(scene: Scene) -> None:
    """A look costs a few stats."""
    record = scene.agent.keep(os.getpid(), "s", RUNNING, scene.clock())
    (record.parent / "notes.txt").write_text("no record")
    scene.report("s", RUNNING)
    for _ in range(3):
        scene.look()
    assert sorted(scene.agent.read) == sorted([record.name, "notes.txt"])
    scene.agent.keep(os.getpid(), "s", WAITING, scene.clock())
    scene.look()
    assert sorted(scene.agent.read) == sorted([record.name, record.name, "notes.txt"])


def test_records_that_cannot_be_read_are_told(scene: Scene) -> None:
    """Torn, or the folder is none: the rest goes on, and health says so."""
    torn = scene.folder / "agent" / "records" / "7.json"
    torn.write_text("{")
    scene.agent.keep(os.getpid(), "s", RUNNING, scene.clock())
    scene.look()
    assert scene.rule("s") == "record_busy"
    facts = scene.watcher.facts()["records"]
    told = {"state": "read", "records": 1, "problems": {str(torn): "not JSON"}, "running": 1, "silent": 1}
    assert facts == {"fake": told}
    scene.report("s", RUNNING)
    assert scene.watcher.facts()["records"] == {"fake": {**told, "silent": 0}}
    assert scene.watcher.problems() == []  # Of one file; the others tell.


def test_records_of_which_none_can_be_read_are_a_problem(scene: Scene) -> None:
    """As when their form has changed: silence would look like rest."""
    torn = scene.folder / "agent" / "records" / "7.json"
    torn.write_text("{")
    scene.look()
    (problem,) = scene.watcher.problems()
    assert problem == f"None of fake's own records of its processes could be read: {torn}: not JSON"
    torn.unlink()
    scene.look()
    assert scene.watcher.problems() == []


# --- sleep and restart


def test_after_a_restart_nothing_stale_is_told(scene: Scene, programs: List[Program]) -> None:
    """What died while we were away is closed before anybody can ask; what lives is as it was."""
    scene.report("dead", RUNNING, str(programs[0].pid))
    scene.report("alive", WAITING, str(programs[1].pid), "b")
    scene.end()
    kill(programs[0])
    scene.begin()
    assert scene.shown() == {"dead": "closed", "alive": "waiting_for_input"}
    assert scene.rule("dead") == "process_gone" and scene.rule("alive") == "event"


def test_after_a_restart_what_happened_meanwhile_is_found_out(scene: Scene) -> None:
    """It finished while we were away, and works on in the other session."""
    scene.agent.keep(os.getpid(), "done", RUNNING, scene.clock())
    scene.report("done", RUNNING)
    scene.report("busy", READY, str(os.getppid()), "b")
    scene.end()
    scene.clock.now_s += 60
    scene.agent.keep(os.getpid(), "done", IDLE, scene.clock())
    scene.ledger.ingest_event("fake", "busy", READY, (), str(scene.folder / "agent" / "sessions" / "busy"))
    scene.agent.write("busy", Mark.WORKING, scene.clock() + 1e6)
    scene.begin()
    assert scene.shown()["done"] == "ready_for_review"


def test_whoever_asks_after_a_sleep_gets_nothing_stale(tmp_path: Path, programs: List[Program]) -> None:
    """The clock has jumped: a look is taken before the answer."""
    scene = Scene(tmp_path, look_s=100.0)
    try:
        scene.report("s", RUNNING, str(programs[0].pid))
        kill(programs[0])
        scene.watcher.refresh()
        assert scene.shown() == {"s": "running"}  # A moment later, nothing is looked at again.
        for jump_s in (3600.0, -1.0):
            scene.clock.now_s += jump_s
            scene.watcher.refresh()
            assert scene.shown() == {"s": "closed"}
            scene.report("s", RUNNING, str(programs[0].pid))
    finally:
        scene.end()


# --- threads and bounds


def test_it_looks_by_itself(tmp_path: Path, programs: List[Program]) -> None:
    """Again and again."""
    scene = Scene(tmp_path, look_s=0.01)
    try:
        for program, name in zip(programs, ("one", "two")):
            scene.report(name, RUNNING, str(program.pid))
            kill(program)
            eventually(lambda name=name: scene.shown()[name] == "closed")
    finally:
        scene.end()


def test_a_report_that_comes_while_an_end_is_recorded_is_the_last_word(
    scene: Scene, programs: List[Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for it, so that the session is open afterwards."""
    scene.report("s", RUNNING, str(programs[0].pid))
    kill(programs[0])
    closing, go_on = threading.Event(), threading.Event()
    record = scene.ledger.ingest_event

    def slowly(
        harness: str, session_id: str, status: Status, paths: Tuple[str, ...], file: Optional[str]
    ) -> None:
        closing.set()
        assert go_on.wait(30)
        record(harness, session_id, status, paths, file)

    monkeypatch.setattr(scene.ledger, "ingest_event", slowly)
    looking = threading.Thread(target=scene.look)
    looking.start()
    assert closing.wait(30)
    said = Said(RUNNING, scene.clock() + 1, "Event")
    reporting = threading.Thread(target=scene.watcher.heard, args=("fake", "s", said))
    reporting.start()
    reporting.join(0.1)
    assert reporting.is_alive()
    go_on.set()
    looking.join(30)
    reporting.join(30)
    scene.watcher.look()
    found = scene.watcher.session("fake", "s")
    assert found is not None and found.event == said


def test_too_many_sessions_are_let_go_closed_ones_first(scene: Scene) -> None:
    """However many ids are made up."""
    scene.report("open", RUNNING)
    for number in range(MAX_SESSIONS + 5):
        scene.watcher.heard("fake", str(number), Said(CLOSED, scene.clock(), "Event"))
    scene.look()
    scene.look()
    assert len(scene.watcher.sessions()) == MAX_SESSIONS
    assert scene.watcher.session("fake", "open") is not None
    assert scene.watcher.session("fake", "0") is None


def test_what_is_known_of_an_agent_without_records(scene: Scene) -> None:
    """Nothing, and that is said."""
    scene.watcher.heard("nobody", "s", Said(RUNNING, scene.clock(), "Event"))
    scene.look()
    found = scene.watcher.session("nobody", "s")
    assert found is not None and found.evidence.records is Records.NONE


def test_an_agent_with_a_folder_that_our_environment_does_not_know(scene: Scene, tmp_path: Path) -> None:
    """One hook that names a file there is enough: its records count, also after a restart, and so do those
    of sessions there that report nothing."""
    other = RecordingAgent(tmp_path / "profile of work")
    file = other.write("s", Mark.WORKING, scene.clock())
    scene.watcher.heard("fake", "s", Said(RUNNING, scene.clock(), "Event"), str(file))
    scene.ledger.ingest_event("fake", "s", RUNNING, ("/b1/a.md",), str(file))
    other.keep(os.getpid(), "s", IDLE, scene.clock() + 1)
    other.keep(os.getppid(), "silent", RUNNING, scene.clock() + 1)
    other.write("silent", Mark.WORKING, scene.clock(), "/b1/b.md")
    scene.look()
    scene.look()
    assert scene.shown()["s"] == "ready_for_review"
    eventually(lambda: scene.shown().get("silent") == "running")
    scene.end()
    other.keep(os.getppid(), "silent", WAITING, scene.clock() + 2)
    scene.begin()
    scene.look()
    assert scene.shown() == {"s": "ready_for_review", "silent": "waiting_for_input"}


def test_a_card_that_was_forgotten_is_not_brought_back(scene: Scene) -> None:
    """By the same words in the file of a session that reports nothing; another card comes in."""
    scene.agent.write("s", Mark.WORKING, scene.clock(), "/b1/a.md")
    scene.agent.keep(os.getpid(), "s", RUNNING, scene.clock())
    scene.look()
    eventually(lambda: scene.shown() == {"s": "running"})
    scene.ledger.forget("card-a", "fake", "s")
    scene.agent.write("s", Mark.WORKING, scene.clock(), "/b1/a.md", "/b1/b.md")
    scene.look(after_s=60)
    eventually(lambda: scene.shown() == {"s": "running"})
    assert [each["cardUuid"] for each in scene.ledger.associations()] == ["card-b"]


def test_a_fault_at_one_session_is_no_others(
    scene: Scene, programs: List[Program], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Logged once and counted; the end of the other one's process is seen all the same."""

    def fail(path: Path, session_id: str) -> None:
        raise KeyError("no such thing")

    def fail_too(root: Path, session_id: str) -> None:
        raise RecursionError

    file = scene.agent.write("torn", Mark.WORKING, scene.clock())
    scene.watcher.heard(
        "fake", "torn", Said(RUNNING, scene.clock(), "Event"), str(file), str(programs[0].pid)
    )
    scene.ledger.ingest_event("fake", "torn", RUNNING, ("/b1/a.md",), str(file))
    scene.report("lost", RUNNING)
    monkeypatch.setattr(scene.agent, "read_tail", fail)
    monkeypatch.setattr(scene.agent, "session_file", fail_too)
    scene.agent.keep(os.getpid(), "lost", IDLE, scene.clock())
    kill(programs[0])
    for _ in range(3):
        scene.look()
    assert scene.shown()["torn"] == "closed"
    assert scene.watcher.facts()["failed"] == 1
    assert caplog.text.count("could not look at the fake session lost") == 1


def test_files_of_sessions_of_which_no_process_is_known_are_not_searched(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log may hold thousands that nobody ever closed, and each search lists folders."""
    searched: List[str] = []

    def search(root: Path, session_id: str) -> None:
        searched.append(session_id)

    monkeypatch.setattr(scene.agent, "session_file", search)
    scene.report("old", RUNNING)
    scene.report("here", RUNNING, str(os.getpid()), "b")
    for _ in range(3):
        scene.look()
    assert searched == ["here"]


def test_a_client_that_reports_card_by_card_is_not_overtaken(scene: Scene) -> None:
    """A look in the middle of its reports tells no other card in advance, not even an end."""
    for status in (RUNNING, READY, CLOSED):
        for card in ("a", "b"):
            body = {
                "markdownPath": f"/b1/{card}.md",
                "harness": "fake",
                "sessionId": "s",
                "status": status.value,
            }
            scene.watcher.reported(body, str(os.getpid()))
            scene.ledger.ingest(body)
            before = {each["cardUuid"]: each["status"] for each in scene.ledger.associations()}
            scene.look()
            assert {each["cardUuid"]: each["status"] for each in scene.ledger.associations()} == before


def test_last_words_of_a_dead_process(scene: Scene, programs: List[Program]) -> None:
    """A report that lay at our door when its sender was killed; an end that only one card was told."""
    process = str(programs[0].pid)
    for card in ("a", "b"):
        scene.report("s", RUNNING, process, card)
    kill(programs[0])
    scene.look()
    assert scene.shown() == {"s": "closed"}
    scene.clock.now_s += 5
    body = {"markdownPath": "/b1/a.md", "harness": "fake", "sessionId": "s", "status": "ready_for_review"}
    scene.watcher.reported(body, process)
    scene.ledger.ingest(body)
    scene.look()
    assert {each["status"] for each in scene.ledger.associations()} == {"closed"}

    process = str(programs[1].pid)
    for card in ("a", "b"):
        scene.report("t", RUNNING, process, card)
    body = {"markdownPath": "/b1/a.md", "harness": "fake", "sessionId": "t", "status": "closed"}
    scene.watcher.reported(body, process)
    scene.ledger.ingest(body)
    kill(programs[1])
    scene.look()
    assert scene.rule("t") == "ended" and scene.shown()["t"] == "closed"
    assert {each["status"] for each in scene.ledger.associations()} == {"closed"}


def test_a_clock_that_was_set_back_hides_nothing(scene: Scene, programs: List[Program]) -> None:
    """Neither Esc nor a kill, though the last event seems to lie in the future."""
    for session, pid in (("esc", os.getpid()), ("killed", programs[0].pid)):
        scene.agent.keep(pid, session, RUNNING, scene.clock())
        scene.report(session, RUNNING, None, "a" if session == "esc" else "b")
    scene.look()
    scene.clock.now_s -= 3600
    scene.look()
    assert scene.shown() == {"esc": "running", "killed": "running"}
    scene.agent.keep(os.getpid(), "esc", IDLE, scene.clock())
    kill(programs[0])
    scene.look()
    assert scene.shown() == {"esc": "ready_for_review", "killed": "closed"}
