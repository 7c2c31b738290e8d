"""Whether a process still lives: alive, dead, or unknown, which is never taken for dead.

A number alone proves nothing, since the system gives it out again: a process is known by its number and
the time at which it began. Linux tells both in ``/proc``; elsewhere ``ps`` does, which costs a process of its
own and is asked seldom.
"""

import os
import subprocess
import time
from enum import Enum
from pathlib import Path
from typing import Callable, Dict, NamedTuple, Optional, Tuple

PS_EVERY_S = 5.0
"""Where there is no ``/proc``, a start time is believed for so long, in seconds."""
PS_TIMEOUT_S = 2.0
_MAX_DIGITS = 9
_BY_PS = "lstart "
"""In front of a start time that ``ps`` told."""


class Life(str, Enum):
    """What is known of a process."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


class Process(NamedTuple):
    """One process of this user."""

    pid: int
    begun: str = ""
    """When it began, as the system spells it; empty: not known."""
    domain: str = ""
    """The pid namespace in which the number counts, ``pid:[...]``; empty: ours."""


def ask_ps(pid: int) -> Optional[str]:
    """(State and start time) of a process as ``ps`` has them, in one text; None when it cannot be told."""
    try:
        done = subprocess.run(
            ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PS_TIMEOUT_S,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return " ".join(done.stdout.decode("ascii", "replace").split())


class ProcessTable:
    """Looks processes up. May be used from several threads.

    Args:
        proc: where the system tells of processes; one that is not there (macOS) is done without.
        ps: asked instead, see :func:`ask_ps`.
        monotonic: a clock in seconds.
    """

    def __init__(
        self,
        proc: Path = Path("/proc"),
        ps: Callable[[int], Optional[str]] = ask_ps,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._proc = proc
        self._has_proc = (proc / "self" / "stat").exists()
        self._ps = ps
        self._monotonic = monotonic
        self._domain = _link(proc / "self" / "ns" / "pid")
        # By pid: when ps was asked, and what it said. Replaced, never changed: needs no lock.
        self._asked: Dict[int, Tuple[float, Optional[str]]] = {}

    def normal(self, process: Process) -> Process:
        """The same without a namespace, where that is ours."""
        return process._replace(domain="") if process.domain == self._domain else process

    def find(self, pid: int) -> Optional[Process]:
        """The process of this user that has this number now; None when there is none."""
        begun = self._begun(pid) if 1 < pid < 10**_MAX_DIGITS else None
        return Process(pid, begun) if begun is not None else None

    def life(self, process: Process) -> Life:
        """Whether a process that was seen earlier still lives."""
        if process.domain and process.domain != self._domain:
            return Life.UNKNOWN
        if not 0 < process.pid < 10**_MAX_DIGITS:
            return Life.UNKNOWN
        begun = self._begun(process.pid)
        if begun is None:
            return Life.DEAD
        # Other programs spell times in their own way where there is no /proc.
        same = (
            not process.begun
            or begun in ("", process.begun)
            or (not self._has_proc and not process.begun.startswith(_BY_PS))
        )
        return Life.ALIVE if same else Life.DEAD

    def _begun(self, pid: int) -> Optional[str]:
        """When a process of this user began; empty: it cannot be told; None: it is dead, or not ours."""
        try:
            os.kill(pid, 0)  # Refused for a process of somebody else.
        except (OSError, OverflowError):
            self._asked.pop(pid, None)
            return None
        return self._from_proc(pid) if self._has_proc else self._from_ps(pid)

    def _from_proc(self, pid: int) -> Optional[str]:
        try:
            # The name in brackets may hold anything; the state is the third field, the start the 22nd.
            fields = (self._proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
            return None if fields[0] in (b"Z", b"X") else fields[19].decode("ascii")
        except (OSError, IndexError, UnicodeDecodeError):  # It has ended this very moment.
            return None

    def _from_ps(self, pid: int) -> Optional[str]:
        asked_at, said = self._asked.get(pid, (0.0, None))
        if said is None or self._monotonic() - asked_at >= PS_EVERY_S:
            said = self._ps(pid)
            self._asked[pid] = (self._monotonic(), said)
        if said is None:
            return ""
        state, _, begun = said.partition(" ")
        return None if not state or state.startswith("Z") else f"{_BY_PS}{begun}"


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
