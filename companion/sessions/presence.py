"""Closes the sessions of clients whose process has died.

A client says ``closed`` when its agent ends. An agent that is killed says nothing (OpenCode's server and
its runs end so at Ctrl-C, too), and its cards would show it at work for ever. So clients name their
process with each report, and here is looked whether it still lives. That is known for this machine and
this user only: a number that means no process of ours, or one that began at another time, as from a
container or through a tunnel, is not watched.
"""

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Callable, Dict, Iterable, NamedTuple, Optional, Tuple

from adapters.contract import Status
from companion.core.errors import CompanionError
from companion.core.logs import debug_event
from companion.sessions.chores import Chores

HEADER = "mdello-process"
"""Of a report: the number of the process in which the session runs and, behind a blank, when it began
as ``/proc/PID/stat`` has it (left out where there is no such file)."""

LOOK_S = 3.0
MAX_SESSIONS = 1000  # The one that reported longest ago is let go.
_MAX_DIGITS = 9
_PROC = Path("/proc")

Session = Tuple[str, str]
"""Harness and id."""

Record = Callable[[str, str, Status, Iterable[str], Optional[str]], None]
"""As ``Ledger.ingest_event``. A CompanionError is swallowed."""


class _Process(NamedTuple):
    pid: int
    begun: str
    """Tells it from another one that gets the same number later."""


class Presence:
    """Watches processes of sessions. Safe for threads.

    Args:
        record: called, from a thread of ours, when a session's process is gone.
        look_s: pause between two looks, in seconds.
    """

    def __init__(self, record: Record, look_s: float = LOOK_S) -> None:
        self._record = record
        # Guards the sessions, and is held while one is closed: what its next process reports comes behind.
        self._lock = threading.Lock()
        # A session may be open in several processes; the one that reported last stands at the end.
        self._sessions: Dict[Session, Dict[_Process, None]] = {}
        self._chores = Chores(self._look, look_s)

    def note(self, body: object, process: str) -> None:
        """A report is about to be recorded; ``process`` is what its header says, or empty."""
        if not isinstance(body, dict):
            return
        harness, session_id = body.get("harness"), body.get("sessionId")
        if not isinstance(harness, str) or not isinstance(session_id, str):
            return
        found = _process(process) if body.get("status") != Status.CLOSED else None
        with self._lock:
            processes = self._sessions.pop((harness, session_id), {})
            if found is None:
                return
            self._sessions[harness, session_id] = {**processes, found: None}
            if len(self._sessions) > MAX_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        self._chores.wake()

    def close(self) -> None:
        """Stop watching."""
        self._chores.close()

    def _look(self) -> bool:
        with self._lock:
            gone = []
            for key, processes in self._sessions.items():
                for process in [each for each in processes if _begun(each.pid) != each.begun]:
                    del processes[process]
                if not processes:
                    gone.append(key)
            for harness, session_id in gone:
                del self._sessions[harness, session_id]
                debug_event("agent is gone", {"harness": harness, "sessionId": session_id})
                with suppress(CompanionError):  # Of one card; the others are recorded.
                    self._record(harness, session_id, Status.CLOSED, (), None)
            return bool(self._sessions)


def _process(told: str) -> Optional[_Process]:
    number, _, told_begun = told.partition(" ")
    if not (number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS and int(number) > 1):
        return None
    begun = _begun(int(number))
    return None if begun is None or told_begun not in ("", begun) else _Process(int(number), begun)


def _begun(pid: int) -> Optional[str]:
    """When a process of this user began, where the system tells; None when there is none, or a dead one."""
    try:
        os.kill(pid, 0)  # Refused for a process of somebody else.
        # The name in brackets may hold anything; the state is the third field, the start the 22nd.
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        return None if fields[0] in (b"Z", b"X") else fields[19].decode("ascii")
    except FileNotFoundError:
        return None if (_PROC / "self" / "stat").exists() else "unknown"
    except (OSError, IndexError, UnicodeDecodeError):  # Nobody, or somebody else's.
        return None
