"""Where sessions run in herdr: asked in the background, remembered, never waited for for long.

A *sync* is one look at everything: agents, tabs and workspaces. Each subscription of a page costs one,
and so does the first change of a session that is neither known nor was looked for since then. All
else is answered from memory. A herdr that is slow or hangs delays only the labels.
"""

import logging
import threading
import time
from typing import AbstractSet, Callable, Dict, List, Mapping, Optional, Sequence, Set

from adapters.contract import Adapter
from companion.core.errors import ProgramFailed
from companion.core.logs import debug_event
from companion.core.programs import Programs
from companion.herdr.answers import Entry, Table, entries, label_table, session_value

_log = logging.getLogger(__name__)

# How long a new stream waits for its sync, so that its first snapshot has the labels already. herdr
# answers in a few milliseconds; a page that opens half a second later is not felt to be slow.
SUBSCRIPTION_WAIT_S = 0.5
# What one of the three commands may take. Nobody waits for it.
SYNC_TIMEOUT_S = 5.0
# Sessions that were looked for; beyond that the oldest may be looked for once more.
MOST_CHECKED = 20_000

_KINDS = ("agents", "tabs", "workspaces")

Tell = Callable[[AbstractSet[str]], None]
"""Gets the sessions (as herdr calls them) whose labels came, changed or went."""


class HerdrLabels:
    """The labels of sessions, and the thread that asks for them. Safe to use from several threads.

    Nothing runs before :meth:`start`, and no program ever where there is no herdr.

    Args:
        programs: runs herdr.
        adapters: say which agents' sessions herdr knows by their files.
        wait_s: how long :meth:`refresh` waits at most, in seconds.
        timeout_s: what one herdr command may take, in seconds.
    """

    def __init__(
        self,
        programs: Programs,
        adapters: Mapping[str, Adapter],
        wait_s: float = SUBSCRIPTION_WAIT_S,
        timeout_s: float = SYNC_TIMEOUT_S,
    ) -> None:
        self._programs = programs
        self._adapters = adapters
        self._wait_s = wait_s
        self._timeout_s = timeout_s
        self.problem: Optional[str] = None
        """Why the last sync failed, for people; None when it went well or there is no herdr."""
        self._table: Table = {}  # Replaced as a whole, only when it differs; read without the lock.
        self._changed = threading.Condition()  # Guards all below; told when a sync is wanted or over.
        # In order of the looking; read without the lock too, where a stale answer costs one lock.
        self._checked: Dict[str, None] = {}
        self._wanted = False
        self._begun = 0  # Syncs; one is running while it is greater than the next.
        self._ended = 0
        self._begun_s = 0.0  # Monotonic.
        self._late: Set[str] = set()  # Sessions that asked while a sync ran.
        self._waiting = 0  # Subscriptions that will tell everybody when the sync is over.
        self._slow = False  # The last sync took longer than a subscription waits.
        self._closed = False
        self._thread: Optional[threading.Thread] = None

    # -- life

    def start(self, tell: Tell) -> None:
        """Begin to ask. ``tell`` is called from our thread, which holds no lock then."""
        self._thread = threading.Thread(target=self._run, args=(tell,), name="herdr", daemon=True)
        self._thread.start()

    def close(self, timeout_s: float = 2.0) -> None:
        """Ask no more. Close the programs first: what still runs is waited for, but not for ever."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout_s)

    # -- what is known

    def table(self) -> Table:
        """What is known now. Never changed, only replaced, and never by an equal one."""
        return self._table

    def session_value(self, harness: str, session_id: str, session_file: Optional[str]) -> Optional[str]:
        """The key of a session in the table, or None when that cannot be told yet."""
        return session_value(self._adapters, harness, session_id, session_file)

    # -- when to ask

    def refresh(self, sessions: Sequence[str]) -> None:
        """A page subscribes: sync once, and take all these sessions for looked for.

        Waits a moment for the sync, unless herdr was too slow the last time. Whoever calls tells
        all listeners the whole state afterwards, whatever came of it.
        """
        with self._changed:
            self._checked = dict.fromkeys(sessions[-MOST_CHECKED:])
            if self._thread is None or self._closed:
                return
            sync = self._request()
            begun_s = self._begun_s if sync == self._begun else time.monotonic()
            wait_s = 0.0 if self._slow else begun_s + self._wait_s - time.monotonic()
            self._waiting += 1
            self._changed.wait_for(lambda: self._ended >= sync or self._closed, max(0.0, wait_s))
            self._waiting -= 1

    def recorded(self, session: Optional[str]) -> None:
        """A session's change was recorded: look for it if that was not done yet. Never waits."""
        if session is None or session in self._checked or session in self._table:
            return
        with self._changed:
            while len(self._checked) >= MOST_CHECKED:
                del self._checked[next(iter(self._checked))]
            self._checked[session] = None
            if self._request() == self._begun:
                self._late.add(session)

    def _request(self) -> int:
        """The number of the sync that answers what is asked now: that which runs, else the next."""
        if self._begun > self._ended:
            return self._begun
        self._wanted = True
        self._changed.notify_all()
        return self._begun + 1

    # -- asking; on our thread

    def _run(self, tell: Tell) -> None:
        while self._next():
            problem: Optional[str] = None
            table: Table = {}
            try:
                table = self._look()
            except ProgramFailed as exc:
                problem = str(exc)
                debug_event("herdr state sync failed", {"error": problem})
            except Exception as exc:  # The top of a thread, and foreign data.
                problem = f"herdr's answer could not be used: {exc}"
                _log.exception("herdr could not be asked")
            changed = self._finish(problem, table)
            try:
                if changed:
                    tell(changed)
            except Exception:  # The top of a thread: later labels must not be lost to it.
                _log.exception("labels could not be told")

    def _next(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._wanted or self._closed)
            self._wanted = False
            self._late = set()
            self._begun += 1
            self._begun_s = time.monotonic()
            return not self._closed

    def _look(self) -> Table:
        """The labels of all sessions; none where there is no herdr. ProgramFailed when herdr fails."""
        program = self._programs.path("herdr")
        if program is None:
            return {}
        answers: List[Sequence[Entry]] = [(), (), ()]
        failures: List[ProgramFailed] = []

        def ask(number: int) -> None:
            kind = _KINDS[number]
            command = [program, kind[:-1], "list"]
            try:
                answers[number] = entries(self._programs.run(command, self._timeout_s), kind)
            except ProgramFailed as exc:
                failures.append(exc)

        others = [threading.Thread(target=ask, args=(number,), daemon=True) for number in (1, 2)]
        for thread in others:
            thread.start()
        ask(0)
        for thread in others:
            thread.join()
        if failures:
            raise failures[0]
        return label_table(*answers)

    def _finish(self, problem: Optional[str], table: Table) -> Set[str]:
        """Take a sync's outcome; the sessions of which our thread has to tell."""
        with self._changed:
            before = self._table
            if table != before:
                self._table = table
            self.problem = problem
            self._ended = self._begun
            self._slow = time.monotonic() - self._begun_s > self._wait_s
            # Who came while herdr was answering may be missing in the answer: one more look.
            if problem is None and table and not self._late <= table.keys():
                self._wanted = True
            self._changed.notify_all()
            if self._waiting:
                return set()
        return {each for each in before.keys() | table.keys() if before.get(each) != table.get(each)}
