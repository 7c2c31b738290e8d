"""Alive, dead or unknown: by number and start time, with /proc and without."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List, Optional

import pytest

from companion.core.processes import PS_EVERY_S, Life, Process, ProcessTable, ask_ps

Program = subprocess.Popen[bytes]

NOBODY = 2**22 + 7
"""More than any Linux or macOS gives out."""


@pytest.fixture
def program() -> Iterator[Program]:
    """A process that ends when it is told to."""
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


class Ps:
    """Stands for ``ps`` where there is no /proc; says what it is told to."""

    def __init__(self, says: Optional[str]) -> None:
        self.says = says
        self.asked: List[int] = []

    def __call__(self, pid: int) -> Optional[str]:
        self.asked.append(pid)
        return self.says


def without_proc(tmp_path: Path, ps: Ps, clock: Optional[List[float]] = None) -> ProcessTable:
    """A system that keeps no /proc."""
    return ProcessTable(tmp_path / "proc", ps, (lambda: clock[0]) if clock else (lambda: 0.0))


def test_a_process_lives_until_it_has_ended(program: Program) -> None:
    """Killed, it is dead at once, though nobody has asked for its exit code yet."""
    table = ProcessTable()
    found = table.find(program.pid)
    assert found is not None and table.life(found) is Life.ALIVE
    program.kill()
    os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
    assert table.life(found) is Life.DEAD
    program.wait()
    assert (table.life(found), table.find(program.pid)) == (Life.DEAD, None)


def test_another_process_with_the_same_number_is_not_the_same() -> None:
    """It began at another time."""
    table = ProcessTable()
    mine = table.find(os.getpid())
    assert mine is not None and mine.begun
    assert table.life(mine) is Life.ALIVE
    assert table.life(mine._replace(begun=f"{mine.begun}1")) is Life.DEAD
    assert table.life(mine._replace(begun="")) is Life.ALIVE


@pytest.mark.parametrize("pid", [-1, 0, 1, NOBODY, 10**9, 10**30])
def test_what_is_no_process_is_not_found(pid: int) -> None:
    """Nor does process 1 report a session, though in a container it may be one."""
    assert ProcessTable().find(pid) is None
    assert ProcessTable().life(Process(pid, "no time")) is not Life.ALIVE


def test_numbers_of_another_namespace_say_nothing(program: Program) -> None:
    """A container counts for itself; our own namespace is not spelled out."""
    table = ProcessTable()
    elsewhere = Process(NOBODY, "1", "pid:[1]")
    assert table.life(elsewhere) is Life.UNKNOWN
    assert table.normal(elsewhere) == elsewhere
    ours = os.readlink("/proc/self/ns/pid")
    assert table.normal(Process(program.pid, "1", ours)) == Process(program.pid, "1")


def test_without_proc_ps_tells(tmp_path: Path, program: Program) -> None:
    """Asked at the first look, then every few seconds; a dead number costs nothing."""
    clock, ps = [100.0], Ps("S Tue Dec 1 12:00:00 2026")
    table = without_proc(tmp_path, ps, clock)
    found = table.find(program.pid)
    assert found == Process(program.pid, "lstart Tue Dec 1 12:00:00 2026")
    assert table.life(found) is Life.ALIVE and len(ps.asked) == 1
    ps.says = "S Wed Dec 2 12:00:00 2026"
    assert table.life(found) is Life.ALIVE and len(ps.asked) == 1
    clock[0] += PS_EVERY_S
    assert table.life(found) is Life.DEAD and len(ps.asked) == 2
    assert table.life(Process(NOBODY)) is Life.DEAD and len(ps.asked) == 2


@pytest.mark.parametrize(
    ("says", "expected"), [("Z Tue Dec 1 12:00:00 2026", Life.DEAD), ("", Life.DEAD), (None, Life.ALIVE)]
)
def test_without_proc_and_with_odd_answers(
    tmp_path: Path, program: Program, says: Optional[str], expected: Life
) -> None:
    """A zombie is dead; where ps does not run, the number has to do."""
    assert without_proc(tmp_path, Ps(says)).life(Process(program.pid)) is expected


def test_without_proc_times_that_others_spell_are_not_compared(tmp_path: Path, program: Program) -> None:
    """Nobody knows their form."""
    table = without_proc(tmp_path, Ps("S Tue Dec 1 12:00:00 2026"))
    assert table.life(Process(program.pid, "1796073979")) is Life.ALIVE


def test_the_real_ps(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """State and start time of one that lives, nothing of one that does not; where there is none, None."""
    said = ask_ps(program.pid)
    if said is not None:  # A machine may lack it.
        assert said[0] in "SRD" and str(NOBODY) not in said and len(said.split()) == 6
        assert ask_ps(NOBODY) == ""
    monkeypatch.setenv("PATH", "/nonexistent")
    assert ask_ps(program.pid) is None
