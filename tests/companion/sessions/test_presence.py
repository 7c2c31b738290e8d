"""Sessions whose process has died are closed; of what is no process of ours, nothing is believed."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Iterable, Iterator, List, Optional, Tuple

import pytest

from adapters.contract import Status
from companion.core.errors import StorageError
from companion.sessions import presence
from companion.sessions.presence import MAX_SESSIONS, Presence

WAIT_S = 30.0
PAUSE_S = 0.01

Program = subprocess.Popen[bytes]


@pytest.fixture
def program() -> Iterator[Program]:
    """A process that ends when it is told to."""
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


class Board:
    """Notes who is closed."""

    def __init__(self) -> None:
        self.closed: List[Tuple[str, str]] = []
        self._changed = threading.Condition()

    def record(
        self, harness: str, session_id: str, status: Status, paths: Iterable[str], file: Optional[str]
    ) -> None:
        """As the ledger does."""
        assert (status, list(paths), file) == (Status.CLOSED, [], None)
        with self._changed:
            self.closed.append((harness, session_id))
            self._changed.notify_all()
        if session_id == "unreadable":
            raise StorageError("no")

    def wait_for(self, *sessions: str) -> None:
        """Wait until so many are closed; they must be these."""
        with self._changed:
            self._changed.wait_for(lambda: len(self.closed) >= len(sessions), WAIT_S)
        assert [session_id for _, session_id in self.closed] == list(sessions)


@pytest.fixture
def board() -> Board:
    """Nobody is closed yet."""
    return Board()


@pytest.fixture
def watch(board: Board) -> Iterator[Presence]:
    """Looks often."""
    made = Presence(board.record, PAUSE_S)
    yield made
    made.close()


def report(session_id: str, status: str = "running") -> object:
    """What a client posts."""
    return {"harness": "pi", "sessionId": session_id, "status": status, "markdownPath": "/b/a.md"}


def look(watch: Presence) -> bool:
    """One look, now; whether there is more to watch."""
    return watch._look()


def test_a_session_is_closed_when_its_process_is_gone(
    watch: Presence, board: Board, program: Program
) -> None:
    """Not before, and once; those of other processes go on. A card that cannot be read hides no other."""
    watch.note(report("mine"), str(os.getpid()))
    watch.note(report("unreadable"), str(program.pid))
    watch.note(report("theirs", "ready_for_review"), str(program.pid))
    assert look(watch) and board.closed == []
    program.kill()
    board.wait_for("unreadable", "theirs")  # It is dead, though nobody has asked for its exit code yet.
    assert look(watch)
    board.wait_for("unreadable", "theirs")


def test_who_has_said_its_end_or_goes_on_elsewhere_is_not_closed(board: Board, program: Program) -> None:
    """The last report counts: with another process, without one, or of the end."""
    watch = Presence(board.record, 3600)
    for session, (status, process) in {
        "ended": ("closed", str(program.pid)),
        "moved": ("running", str(os.getpid())),
        "silent": ("running", ""),
    }.items():
        watch.note(report(session), str(program.pid))
        watch.note(report(session, status), process)
    program.kill()
    program.wait()
    assert look(watch)
    assert board.closed == []
    watch.close()


def test_a_session_open_in_two_processes_ends_with_the_last(board: Board, program: Program) -> None:
    """Resumed in a second terminal: the end of one is not the end of the session."""
    watch = Presence(board.record, 3600)
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as second:
        for process in (program, second, program):
            watch.note(report("shared"), str(process.pid))
        program.kill()
        program.wait()
        assert look(watch) and board.closed == []
        second.kill()
    assert not look(watch)
    assert board.closed == [("pi", "shared")]
    watch.close()


def test_a_number_that_somebody_else_has_now_is_not_the_same_process(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It began at another time."""
    watch = Presence(board.record, 3600)
    watch.note(report("s"), str(os.getpid()))
    monkeypatch.setattr(presence, "_begun", lambda pid: "later")
    assert not look(watch)
    assert board.closed == [("pi", "s")]
    watch.close()


def test_a_process_elsewhere_is_not_mistaken_for_one_of_ours(board: Board, program: Program) -> None:
    """In a container or behind a tunnel: the same number, but it began at another time."""
    watch = Presence(board.record, 3600)
    watch.note(report("elsewhere"), f"{program.pid} 12345")
    watch.note(report("here"), f"{program.pid} {presence._begun(program.pid)}")
    program.kill()
    program.wait()
    assert not look(watch)
    assert board.closed == [("pi", "here")]
    watch.close()


@pytest.mark.parametrize("number", ["", "0", "1", "-5", "x", "1.5", "٣٤٥", "9" * 9, "9" * 30, " 12"])
def test_what_is_no_process_of_ours_is_not_watched(board: Board, number: str) -> None:
    """Nothing can be said about it, so nothing is."""
    watch = Presence(board.record, 3600)
    watch.note(report("s"), number)
    assert not look(watch)
    assert board.closed == []
    watch.close()


def test_a_process_of_another_user_is_not_watched(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of a container mean other processes here, mostly the system's."""

    def refused(*_: object) -> None:
        raise PermissionError

    watch = Presence(board.record, 3600)
    monkeypatch.setattr(os, "kill", refused)
    watch.note(report("s"), str(os.getpid()))
    assert not look(watch)
    watch.close()


@pytest.mark.parametrize("body", [None, [], "x", {}, {"harness": "pi"}, {"harness": 5, "sessionId": "s"}])
def test_odd_reports_are_passed_over(watch: Presence, body: object) -> None:
    """Whatever was posted."""
    watch.note(body, str(os.getpid()))
    assert not look(watch)


def test_the_number_of_sessions_is_bounded(board: Board, program: Program) -> None:
    """The one that reported longest ago is let go."""
    watch = Presence(board.record, 3600)
    for number in range(MAX_SESSIONS + 2):
        watch.note(report(f"s{number}"), str(program.pid))
        watch.note(report("s0"), str(program.pid))
    program.kill()
    program.wait()
    assert not look(watch)
    closed = {session_id for _, session_id in board.closed}
    assert len(closed) == MAX_SESSIONS and "s0" in closed and not {"s1", "s2"} & closed
    watch.close()


@pytest.mark.parametrize("alive", [True, False])
def test_where_there_is_no_proc_only_the_number_counts(
    board: Board, program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, alive: bool
) -> None:
    """As on macOS."""
    watch = Presence(board.record, 3600)
    monkeypatch.setattr(presence, "_PROC", tmp_path)
    watch.note(report("s"), str(program.pid))
    if not alive:
        program.kill()
        program.wait()
    assert look(watch) == alive
    assert board.closed == ([] if alive else [("pi", "s")])
    watch.close()
