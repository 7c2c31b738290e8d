"""Keeps the status of sessions true: gathers what can be seen of each, and records the verdict.

A report of an agent is recorded as it comes, since a fresh one decides (:mod:`companion.sessions.verdict`);
the watcher is told of it just before. Every second it looks at what lives, cheaply: only what has changed is
read. Where the evidence says something else than the last report, that is recorded, and so is the end of a
session whose process is gone. Sessions of which nobody reports, because hooks are switched off, are found
by the agent's own records, and their cards in their files (:mod:`companion.sessions.unreported`).

The order of locks is looking, session, then the ledger's or ours for the table. While a verdict is recorded
its session's lock is held, so that a report that comes meanwhile stays the last word.
"""

import logging
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Callable, Dict, FrozenSet, List, Mapping, Optional, Protocol, Set, Tuple

from adapters.contract import Adapter, Status
from adapters.hookcommand import PROCESS_HEADER
from companion.core.clock import WallClock, parse_iso
from companion.core.errors import CompanionError
from companion.core.logs import debug_event
from companion.core.processes import Life, Process, ProcessTable
from companion.sessions.association import Association
from companion.sessions.chores import Chores
from companion.sessions.evidence import FROM_LOG, Evidence, Said
from companion.sessions.index import Session
from companion.sessions.intake import EventLedger
from companion.sessions.processbook import ProcessBook
from companion.sessions.records import MAX_FOLDERS, Found, RecordReader
from companion.sessions.unreported import CardReader
from companion.sessions.watched import Watched

_log = logging.getLogger(__name__)

HEADER = PROCESS_HEADER.lower()
"""Of a report: the number of the process in which the session runs and, behind a blank, when it began
as ``/proc/PID/stat`` has it (left out where there is no such file)."""

LOOK_S = 1.0
"""Pause between two looks, in seconds."""
STALE_LOOKS = 2.0
"""Before anything is told, a look older than so many pauses is made anew: the machine slept, perhaps."""
MAX_SESSIONS = 1_000
"""Sessions under watch; the one that nobody spoke of for longest is let go, a closed one first."""
MAX_DEAD = 10_000
_MAX_DIGITS = 9

_SAID = ("event", "ended", "nothing_known")
"""Verdicts that say no more than was reported. Clients report card by card: no card is told in advance."""
_STATUS = {status.value: status for status in Status}


class Ledger(EventLedger, Protocol):
    """What is needed of the ledger."""

    def statuses(self, harness: str, session_id: str) -> FrozenSet[Status]:
        """What the session's cards show now."""

    def sessions(self) -> List[Association]:
        """The newest record of every session."""


class Watcher:
    """Everything that is known of sessions beyond their cards. Safe for threads.

    Args:
        ledger: gets what is found out.
        adapters: harness name to adapter.
        home, environ: where the agents are told to keep their files.
        book_path: the log of processes.
        needles: byte strings of which every interesting path in a session's file holds one.
        now, monotonic: clocks in seconds.
        look_s: pause between two looks, in seconds.
        table: looks processes up.
    """

    def __init__(
        self,
        ledger: Ledger,
        adapters: Mapping[str, Adapter],
        home: Path,
        environ: Mapping[str, str],
        book_path: Path,
        needles: Callable[[], Tuple[bytes, ...]] = tuple,
        now: WallClock = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        look_s: float = LOOK_S,
        table: Optional[ProcessTable] = None,
    ) -> None:
        self._ledger = ledger
        self._adapters = adapters
        self._roots = {name: {each.sessions_root(home, environ)} for name, each in adapters.items()}
        self._now = now
        self._monotonic = monotonic
        self._look_s = look_s
        self._table = table or ProcessTable()
        self._looking = threading.Lock()  # One look at a time; guards the four below.
        self._records = RecordReader(adapters, home, environ)
        self._looked_at: Optional[Tuple[float, float]] = None  # Wall and monotonic time of the last look.
        self._by_process: Dict[Process, Watched] = {}  # By the records of the last look.
        self._dead: Set[Process] = set()  # Of which only records are left.
        self._lock = threading.Lock()  # Guards the table of sessions and the book; calls nobody.
        self._sessions: Dict[Session, Watched] = {}
        self._book = ProcessBook(book_path)
        self._chores = Chores(self._look_again, look_s)
        self._cards = CardReader(adapters, needles, self._found_cards, now, monotonic)

    # -- life

    def load(self) -> None:
        """Take up what earlier lives knew, and look at all of it: nothing stale may be told."""
        for each in self._ledger.sessions():
            if each.status is not Status.CLOSED:
                watched = self._watched((each.harness, each.session_id))
                watched.event = Said(each.status, parse_iso(each.updated_at) or 0.0, FROM_LOG)
                watched.file = each.session_file
        for session, processes in self._book.load(self._sessions.__contains__).items():
            self._sessions[session].processes = dict.fromkeys(processes)
        self.look()
        self._chores.wake()

    def close(self) -> None:
        """Stop looking and let go of the log."""
        self._chores.close()
        self._cards.close()
        with self._lock:
            self._book.close()

    # -- being told

    def heard(
        self,
        harness: str,
        session_id: str,
        said: Said,
        session_file: Optional[str] = None,
        header: Optional[str] = None,
    ) -> None:
        """A report is about to be recorded.

        ``header`` is what its sender says of its process (:data:`HEADER`), None when it says nothing; one
        that means no process of ours, as from a container, unsays all that was known.
        """
        watched = self._watched((harness, session_id))
        process = self._named(header) if header and header != watched.header else None
        with watched.lock:
            watched.hear(said)
            watched.file = session_file or watched.file
            if header is None:
                return
            if header == watched.header:
                # A dead one is looked for again: its last words may have lain at our door.
                watched.processes = dict.fromkeys(watched.processes)
                return
            watched.header = header
            if process is None:
                watched.processes = {}
            else:
                self._add(watched, process)

    def reported(self, body: object, header: str) -> None:
        """A client's report is about to be recorded; one of no use is nothing to us."""
        if not isinstance(body, dict):
            return
        harness, session_id, status = (body.get(key) for key in ("harness", "sessionId", "status"))
        known = _STATUS.get(status) if isinstance(status, str) else None
        if isinstance(harness, str) and harness and isinstance(session_id, str) and session_id and known:
            file = body.get("sessionFile")
            said = Said(known, self._now(), "report")
            self.heard(harness, session_id, said, file if isinstance(file, str) else None, header)

    def _named(self, header: str) -> Optional[Process]:
        """The process of ours that a header means, or None."""
        number, _, begun = header.partition(" ")
        if not (number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS):
            return None
        # One that began at another time is elsewhere: in a container, or behind a tunnel.
        process = self._table.find(int(number))
        return process if process is not None and begun in ("", process.begun) else None

    # -- asking

    def sessions(self) -> List[Watched]:
        """All sessions under watch, as of now; not to be changed."""
        self.refresh()
        with self._lock:
            return list(self._sessions.values())

    def session(self, harness: str, session_id: str) -> Optional[Watched]:
        """One session, looked at now, or None."""
        self.refresh()
        with self._lock:
            found = self._sessions.get((harness, session_id))
        if found is not None and found.is_due(self._now()):
            with self._looking:
                self._try_to_look_at(found, self._now())
        return found

    def refresh(self) -> None:
        """Look now if the last look is older than it should be: who asks gets nothing stale."""
        looked_at = self._looked_at
        if looked_at is not None:
            passed_s = (self._now() - looked_at[0], self._monotonic() - looked_at[1])
            if min(passed_s) >= 0 and max(passed_s) <= STALE_LOOKS * self._look_s:
                return
        self.look()

    def facts(self) -> Dict[str, object]:
        """``sessions`` (how many are under watch) and, by harness of agents that keep records of their
        processes, ``records``: see :meth:`RecordReader.facts`; ``running``: sessions that live by these,
        and ``silent``: how many of them do things that nobody reports. ``failed``: sessions that could
        not be looked at."""
        with self._lock:
            sessions = list(self._sessions.values())
        running = [each for each in sessions if each.records and each.evidence.live]
        records = self._records.facts()
        for harness, facts in records.items():
            own = [each for each in running if each.harness == harness]
            facts.update(running=len(own), silent=sum(each.needs_file for each in own))
        failed = sum(each.has_failed for each in sessions)
        return {"sessions": len(sessions), "failed": failed, "records": records}

    def problems(self) -> List[str]:
        """What keeps statuses from being sure, one line each: a log that cannot be kept, an agent's own
        records of which none could be read."""
        found = [self._book.problem] if self._book.problem else []
        for harness, facts in self._records.facts().items():
            problems = facts["problems"]
            if isinstance(problems, dict) and problems and not facts["records"]:
                path, reason = next(iter(problems.items()))
                found.append(
                    f"None of {harness}'s own records of its processes could be read: {path}: {reason}"
                )
        return found

    # -- looking

    def look(self) -> None:
        """Gather and judge, once. Returns when everything that follows from it is recorded."""
        with self._looking:
            now_s = self._now()
            self._take_records(self._records.read(), now_s)
            with self._lock:
                sessions = list(self._sessions.values())
            due = [each for each in sessions if each.is_due(now_s)]
            for each in due:
                self._try_to_look_at(each, now_s)
            self._looked_at = now_s, self._monotonic()
            self._tidy()
        self._cards.offer(due)

    def _look_again(self) -> bool:
        self.look()
        return True

    def _take_records(self, found: List[Found], now_s: float) -> None:
        """Whose are the records now? A process that keeps one runs one session at a time."""
        before, self._by_process = self._by_process, {}
        for watched in before.values():
            watched.records = {}
        for session, process, record in found:
            process = self._table.normal(process)
            if session not in self._sessions and self._is_dead(process):
                continue  # Killed agents leave their records for ever: they make no session known.
            watched = self._watched(session, is_news=False)
            self._by_process[process] = watched
            watched.records[process] = record
            with watched.lock:
                self._add(watched, process)
            earlier = before.get(process)
            if earlier is not None and earlier is not watched:
                with earlier.lock:
                    earlier.processes.pop(process, None)
                earlier.left_at_s = now_s

    def _is_dead(self, process: Process) -> bool:
        """Whether it is dead; one that was dead before is not looked up again."""
        if process not in self._dead and self._table.life(process) is Life.DEAD:
            if len(self._dead) >= MAX_DEAD:
                self._dead.clear()
            self._dead.add(process)
        return process in self._dead

    def _try_to_look_at(self, watched: Watched, now_s: float) -> None:
        try:
            self._look_at(watched, now_s)
        except Exception:  # Foreign files met code that did not expect them: no other session must suffer.
            if not watched.has_failed:
                watched.has_failed = True
                _log.exception("could not look at the %s session %s", *watched.session)

    def _look_at(self, watched: Watched, now_s: float) -> None:
        adapter = self._adapters.get(watched.harness)
        with watched.lock:
            watched.set_clock(now_s)
            seen = watched.look_at_processes(self._table, now_s)
            records = self._records.state(watched.harness)
        tail = None
        if adapter is not None:
            if watched.file is None and (watched.needs_file or (seen and not watched.searched)):
                watched.searched = True
                watched.file = self._search(adapter, watched)
            elif watched.file is not None and watched.file != watched.placed_file:
                watched.placed_file = watched.file
                self._learn_folders(adapter, watched)
            tail = watched.look_at_file(adapter)
            watched.follow_folder()
        with watched.lock:
            event, left_at_s = watched.event, watched.left_at_s
            verdict = watched.look(Evidence(now_s, event, seen, records, tail, left_at_s))
            untold = watched.is_corrected or watched.evidence.is_gone  # Nobody will report the other cards.
            if verdict.rule not in _SAID or (verdict.rule == "ended" and untold):
                self._correct(watched, verdict.status)

    def _search(self, adapter: Adapter, watched: Watched) -> Optional[str]:
        """The session's file, in any folder that the agent is known to use."""
        roots = self._roots[watched.harness]
        found = [adapter.session_file(root, watched.session_id) for root in roots]
        return next((str(path) for path in found if path is not None), None)

    def _learn_folders(self, adapter: Adapter, watched: Watched) -> None:
        """The file may lie in a folder of the agent's that our own environment knows nothing of."""
        folders = adapter.folders_of(Path(str(watched.file)))
        if folders is not None:
            roots = self._roots[watched.harness]
            if len(roots) < MAX_FOLDERS:
                roots.add(folders[0])
            self._records.add(watched.harness, adapter, folders[1])

    def _correct(self, watched: Watched, status: Status) -> None:
        """Tell the ledger, if that is news to it. The session's lock must be held."""
        shown = self._ledger.statuses(*watched.session)
        if shown and shown != {status}:
            self._record(watched, status, (), None)  # The file that was reported stays as it is.

    def _record(self, watched: Watched, status: Status, paths: Tuple[str, ...], file: Optional[str]) -> None:
        about = {"harness": watched.harness, "sessionId": watched.session_id, "status": status.value}
        debug_event("status found out", about)
        watched.is_corrected = True
        with suppress(CompanionError):  # Of one card; the others are recorded.
            self._ledger.ingest_event(*watched.session, status, paths, file)

    def _found_cards(self, watched: Watched, paths: Tuple[str, ...]) -> None:
        """The file of a session of which nobody reports names these paths. Each is told once: a card that
        was forgotten since is not brought back."""
        with watched.lock:
            new = tuple(path for path in paths if path not in watched.found_paths)
            if watched.verdict is not None and new:
                watched.found_paths.update(new)
                self._record(watched, watched.verdict.status, new, watched.file)

    # -- the table of sessions

    def _watched(self, session: Session, is_news: bool = True) -> Watched:
        with self._lock:
            known = self._sessions.get(session)
            if known is None:
                known = self._sessions[session] = Watched(*session)
            elif is_news:
                # The one that was spoken of last stands last.
                self._sessions[session] = self._sessions.pop(session)
            return known

    def _add(self, watched: Watched, process: Process) -> None:
        if process not in watched.processes:
            watched.processes[process] = None
            with self._lock:
                self._book.note(watched.session, process)

    def _tidy(self) -> None:
        with self._lock:
            surplus = len(self._sessions) - MAX_SESSIONS
            if surplus > 0:
                closed_first = sorted(self._sessions.values(), key=lambda each: each.is_open)
                for each in closed_first[:surplus]:
                    del self._sessions[each.session]
            if self._book.is_overgrown:
                open_ones = [each for each in self._sessions.values() if each.is_open]
                self._book.shorten({each.session: list(each.processes) for each in open_ones})
