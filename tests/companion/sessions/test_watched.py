"""One session under watch: when it is looked at again, and what is forgotten."""

import os
import shutil
from pathlib import Path

from adapters.contract import Mark, Status, Tail
from companion.core.processes import Life, Process, ProcessTable
from companion.sessions.evidence import Evidence, Said
from companion.sessions.watched import SELDOM_S, Watched, stamp_of
from tests.companion.sessions.recording_agent import RecordingAgent

NOW = 1_770_000_000.0
DEAD = Process(2**22 + 7, "1")


def test_a_closed_session_is_left_alone_until_something_is_heard() -> None:
    """A new event, or a record of a process that may live."""
    watched = Watched("fake", "s")
    assert watched.is_open
    watched.event = Said(Status.CLOSED, NOW)
    watched.look(Evidence(NOW, watched.event))
    assert not watched.is_open
    watched.event = Said(Status.RUNNING, NOW)
    assert watched.is_open


def test_since_when_a_status_holds() -> None:
    """The moment of its first verdict, not of its last."""
    watched = Watched("fake", "s", event=Said(Status.RUNNING, NOW))
    for after_s in (1.0, 2.0):
        watched.judge(Evidence(NOW + after_s, watched.event))
    assert watched.since_s == NOW + 1.0
    watched.judge(Evidence(NOW + 3.0, Said(Status.IDLE, NOW + 3.0)))
    assert watched.since_s == NOW + 3.0


def test_the_moment_of_a_death_is_kept() -> None:
    """Of a dead process only while no other lives; it is not looked up again."""
    table = ProcessTable()
    mine = table.find(os.getpid())
    assert mine is not None
    watched = Watched("fake", "s", processes={DEAD: None})
    assert [each.looked_at_s for each in watched.look_at_processes(table, NOW)] == [NOW]
    (seen,) = watched.look_at_processes(table, NOW + 5)
    assert (seen.life, seen.looked_at_s) == (Life.DEAD, NOW)
    watched.processes[mine] = None
    assert [each.life for each in watched.look_at_processes(table, NOW + 9)] == [Life.ALIVE]


def test_the_end_of_a_file_is_read_when_the_file_has_changed(tmp_path: Path) -> None:
    """What cannot be read, or is gone, says nothing."""
    agent = RecordingAgent(tmp_path / "agent")
    path = agent.write("s", Mark.WORKING, NOW)
    watched = Watched("fake", "s", file=str(path))
    for _ in range(2):
        tail = watched.look_at_file(agent.as_adapter())
        assert tail is not None and tail.mark is Mark.WORKING
    assert agent.read == ["s"] and watched.cwd == "/home/dev/tree"
    path.write_text("[torn")
    assert watched.look_at_file(agent.as_adapter()) is None
    path.unlink()
    assert watched.look_at_file(agent.as_adapter()) is None


def test_what_is_no_path_has_no_stamp() -> None:
    """It comes from a payload."""
    assert [stamp_of(path) for path in (None, "", "/nowhere", "/\0")] == [None] * 4
    assert stamp_of("/") is not None


def test_a_session_of_which_nothing_can_change_is_looked_at_seldom() -> None:
    """Old ones, of agents that name no process, may be many."""
    watched = Watched("fake", "s", event=Said(Status.RUNNING, NOW))
    assert watched.is_due(NOW)
    watched.look(Evidence(NOW, watched.event))
    assert [watched.is_due(NOW + after_s) for after_s in (1, SELDOM_S - 1, SELDOM_S, -1)] == [
        False,
        False,
        True,
        True,  # The clock was set back.
    ]
    watched.processes[DEAD] = NOW
    assert not watched.is_due(NOW + 1)
    watched.processes[Process(os.getpid())] = None
    assert watched.is_due(NOW + 1)
    watched.processes.clear()
    watched.event = Said(Status.IDLE, NOW + 1)
    assert watched.is_due(NOW + 1)


def test_work_in_a_worktree_is_the_repositorys(tmp_path: Path) -> None:
    """By the newest folder that its file names; a folder that is gone by then keeps what was known."""
    watched = Watched("fake", "s")
    main, tree = tmp_path / "main", tmp_path / "tree"
    part = main / ".git" / "worktrees" / "tree"
    part.mkdir(parents=True)
    (part / "commondir").write_text("../..\n")
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {part}\n")
    for cwd, expected in ((tree, main), (tmp_path, tmp_path), (tree, main)):
        watched.tail = Tail(Mark.WORKING, NOW, cwd=str(cwd))
        watched.follow_folder()
        assert (watched.cwd, watched.project) == (str(cwd), str(expected))
    shutil.rmtree(tree)
    watched.follow_folder()
    assert watched.project == str(main)
