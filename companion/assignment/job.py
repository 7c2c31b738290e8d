"""The job's thread: sleeps until the schedule says so, and tells how it went."""

import logging
import threading
import time
from dataclasses import dataclass
from typing import Callable, Dict, Optional

from companion.assignment.cron import next_run
from companion.assignment.run import Outcome
from companion.assignment.setting import Setting
from companion.core.clock import WallClock, iso_utc
from companion.core.errors import CompanionError

_log = logging.getLogger(__name__)

# How soon a change of the configuration is heard, and how late a run may be after the machine
# slept: the clock that waits are measured by stands still meanwhile. Costs one stat each time.
LOOK_S = 5.0
# A clock that was set back by more than this starts the schedule anew, else it would wait for the
# time before; one that was set right by less must not run the job twice.
_SET_BACK_S = 60.0


@dataclass(frozen=True)
class _LastRun:
    at_s: float
    outcome: Outcome


class Job:
    """Runs when the schedule says so, at most once for all the times that passed meanwhile.

    Only its own thread runs it, so that two runs never overlap.

    Args:
        read: the job as it is set up now, or None; CompanionError when it cannot be used.
        run: does the work and tells how it went.
        now: wall clock.
    """

    def __init__(
        self,
        read: Callable[[], Optional[Setting]],
        run: Callable[[Setting], Outcome],
        now: WallClock = time.time,
        look_s: float = LOOK_S,
    ) -> None:
        self._read = read
        self._run = run
        self._now = now
        self._look_s = look_s
        self._closed = threading.Event()
        self._thread: Optional[threading.Thread] = None
        # Of its own thread alone: due times after this one have not been served.
        self._since_s: Optional[float] = None
        self._expression = ""
        # Written by its own thread, each in one step; read by any.
        self._setting: Optional[Setting] = None
        self._wrong: Optional[str] = None
        self._due_s: Optional[float] = None
        self._last: Optional[_LastRun] = None

    def start(self) -> None:
        """Start the thread. What is wrong with the setting is known then."""
        self._current()
        self._thread = threading.Thread(target=self._work, name="assignment", daemon=True)
        self._thread.start()

    def close(self, timeout_s: float = 2.0) -> None:
        """Stop; waits at most ``timeout_s`` for a run that is under way. A second call is allowed."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def stopping(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed.is_set()

    @property
    def problem(self) -> Optional[str]:
        """Why it does not run, or why its last run failed; None when all is well or nothing is set up."""
        if self._wrong is not None:
            return f"The GitHub assignment job is off: {self._wrong}"
        last = self._last
        if self._setting is None or last is None or last.outcome.failure is None:
            return None
        return f"The GitHub assignment job failed: {last.outcome.failure}"

    def facts(self) -> Dict[str, object]:
        """For ``/health``: ``enabled``, and when there is a setting what it says and how it goes.

        Times are UTC ISO-8601; a time that is not known is null.
        """
        setting, due_s = self._setting, self._due_s
        facts: Dict[str, object] = {"enabled": setting is not None}
        if self._wrong is not None:
            facts["problem"] = self._wrong
        if setting is not None:
            facts["schedule"] = setting.expression
            facts["boardUuid"] = setting.board_uuid
            facts["nextRun"] = iso_utc(due_s) if due_s is not None else None
            facts["lastRun"] = self._last_run()
        return facts

    def _last_run(self) -> Optional[Dict[str, object]]:
        last = self._last
        if last is None:
            return None
        return {
            "at": iso_utc(last.at_s),
            "created": len(last.outcome.created),
            "skipped": last.outcome.known,
            "unusable": last.outcome.unusable,
            "more": last.outcome.cut,
            "failure": last.outcome.failure,
        }

    def look(self) -> float:
        """Read the setting, run if it is time. Seconds until the next look."""
        before = self._wrong
        setting = self._current()
        if self._wrong is not None and self._wrong != before:
            _log.warning("The GitHub assignment job is off: %s", self._wrong)
        now_s = self._now()
        if setting is None:
            self._since_s = self._due_s = None
            return self._look_s
        if (
            self._since_s is None
            or setting.expression != self._expression
            or now_s < self._since_s - _SET_BACK_S
        ):
            self._since_s, self._expression = now_s, setting.expression
        # Reckoned anew each time: whoever travels changes the time zone too.
        if hasattr(time, "tzset"):
            time.tzset()
        due_s = self._due_s = next_run(setting.schedule, self._since_s)
        if due_s <= now_s:
            self._since_s = now_s
            self._run_now(setting, now_s)
            now_s = self._since_s = max(now_s, self._now())
            due_s = self._due_s = next_run(setting.schedule, now_s)
        return min(self._look_s, max(0.0, due_s - now_s))

    def _current(self) -> Optional[Setting]:
        try:
            self._setting, self._wrong = self._read(), None
        except CompanionError as exc:
            self._setting, self._wrong = None, str(exc)
        return self._setting

    def _run_now(self, setting: Setting, now_s: float) -> None:
        before = self._last
        outcome = self._run(setting)
        if self.stopping():
            return  # Its programs were ended with us.
        self._last = _LastRun(now_s, outcome)
        # Said once, however often the schedule tries.
        if outcome.failure is not None and (before is None or before.outcome.failure != outcome.failure):
            _log.warning("The GitHub assignment job failed: %s", outcome.failure)
        elif outcome.created:
            _log.info("%d card(s) made of GitHub assignments", len(outcome.created))

    def _work(self) -> None:
        wait_s = 0.0
        while not self._closed.wait(wait_s):
            try:
                wait_s = self.look()
            except Exception:  # The top of a thread: a fault must not end the job for good.
                _log.exception("The GitHub assignment job failed")
                wait_s = self._look_s
