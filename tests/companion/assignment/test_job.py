"""The job's thread: when it runs, what it tells, how it ends. Its clock is ours."""

import logging
import subprocess
import sys
import threading
from datetime import datetime
from typing import List, Optional

import pytest

from companion.assignment.cron import parse
from companion.assignment.job import LOOK_S, Job
from companion.assignment.run import Outcome
from companion.assignment.setting import Setting
from companion.core.clock import iso_utc
from companion.core.errors import AssignmentFailed
from tests.companion.assignment.world import PATIENCE_S, wait_until
from tests.conftest import ROOT

NOON = datetime(2026, 5, 14, 12, 0, 30).timestamp()


def setting(expression: str = "0 * * * *") -> Setting:
    """A job."""
    return Setting(expression, parse(expression), (), "board-1", "/board")


class Script:
    """A clock, a setting and runs that a test controls."""

    def __init__(self) -> None:
        self.now_s = NOON
        self.setting: Optional[Setting] = setting()
        self.wrong: Optional[str] = None
        self.outcome = Outcome(created=(("t", "p"),), known=2)
        self.takes_s = 0.0
        self.runs: List[float] = []
        self.job = Job(self.read, self.run, lambda: self.now_s)

    def read(self) -> Optional[Setting]:
        """What is set up."""
        if self.wrong is not None:
            raise AssignmentFailed(self.wrong)
        return self.setting

    def run(self, current: Setting) -> Outcome:
        """A run, which takes its time."""
        self.runs.append(self.now_s - NOON)
        self.now_s += self.takes_s
        return self.outcome

    def at(self, *offsets: float) -> List[float]:
        """Look at these seconds after noon; the runs until now."""
        for offset in offsets:
            self.now_s = NOON + offset
            self.job.look()
        return self.runs


@pytest.fixture
def script() -> Script:
    """Hourly, at twelve and a half minutes past."""
    return Script()


def test_it_runs_when_it_is_due_and_not_before(script: Script) -> None:
    """On the full hour; not at the start."""
    assert script.at(0, 10, 3560) == []
    assert script.at(3570) == [3570]
    assert script.at(3571, 3600, 7000) == [3570]
    assert script.at(7175) == [3570, 7175]


def test_it_sleeps_until_the_next_look_or_the_next_run(script: Script) -> None:
    """Whichever is earlier."""
    assert script.job.look() == LOOK_S
    script.now_s = NOON + 3566
    assert script.job.look() == 4.0


def test_after_a_sleep_of_the_machine_it_runs_once(script: Script) -> None:
    """However many hours were missed."""
    assert script.at(0, 50_000, 50_010, 50_020) == [50_000]


def test_a_run_that_takes_longer_than_the_schedule_does_not_pile_up(script: Script) -> None:
    """What was due meanwhile is not made up for."""
    script.setting = setting("* * * * *")
    script.takes_s = 300
    script.at(0, 30)
    assert script.runs == [30]
    script.takes_s = 0
    assert script.at(331, 340) == [30]
    assert script.at(391) == [30, 391]


def test_a_clock_that_is_set_back_does_not_stop_it(script: Script) -> None:
    """A day back: the schedule begins anew. A moment back: not a second run."""
    assert script.at(0, 3570) == [3570]
    assert script.at(3569, 3570) == [3570]
    script.at(-86_400)
    assert script.at(-86_400 + 3570) == [3570, -86_400 + 3570]


def test_whoever_travels_takes_the_schedule_along() -> None:
    """The machine's zone may change while we run: nine o'clock is that of the place."""
    code = (
        "import os\n"
        "from companion.assignment.cron import parse\n"
        "from companion.assignment.job import Job\n"
        "from companion.assignment.setting import Setting\n"
        "nine = Setting('0 9 * * *', parse('0 9 * * *'), (), 'b', '/b')\n"
        "job = Job(lambda: nine, lambda _: None, lambda: 1778716800.0)\n"
        "for zone in ('UTC', 'Asia/Tokyo', 'America/New_York'):\n"
        "    os.environ['TZ'] = zone\n"
        "    job.look()\n"
        "    print(job.facts()['nextRun'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == [
        "2026-05-14T09:00:00.000Z",
        "2026-05-15T00:00:00.000Z",
        "2026-05-14T13:00:00.000Z",
    ]


def test_a_changed_schedule_counts_from_now(script: Script) -> None:
    """It neither makes up for the past nor waits for the old time."""
    script.at(0)
    script.setting = setting("*/5 * * * *")
    assert script.at(200) == []
    assert script.at(270) == [270]
    script.setting = None
    assert script.at(8000) == [270]
    script.setting = setting("0 * * * *")
    assert script.at(9000) == [270]


def test_a_setting_that_is_wrong_is_a_problem_until_it_is_mended(
    script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    """Told in health and said once in the log; the job rests."""
    script.at(0)
    script.wrong = "no such board"
    assert script.at(10, 20, 4000) == []
    assert script.job.problem == "The GitHub assignment job is off: no such board"
    assert script.job.facts() == {"enabled": False, "problem": "no such board"}
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1
    script.wrong = None
    script.at(4010)
    assert script.job.problem is None and script.job.facts()["enabled"] is True
    assert script.runs == []


def test_facts(script: Script) -> None:
    """Next and last run."""
    script.at(0)
    facts = script.job.facts()
    assert (facts["enabled"], facts["schedule"], facts["boardUuid"]) == (True, "0 * * * *", "board-1")
    assert facts["nextRun"] == iso_utc(NOON + 3570) and facts["lastRun"] is None
    script.at(3570)
    last = script.job.facts()["lastRun"]
    counts = {"created": 1, "skipped": 2, "unusable": 0, "more": False, "failure": None}
    assert last == {"at": iso_utc(NOON + 3570), **counts}
    script.setting = None
    script.at(3600)
    assert script.job.facts() == {"enabled": False} and script.job.problem is None


def test_a_failed_run_is_a_problem_until_one_goes_well(
    script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    """The log hears of it once, however often it fails."""
    script.setting = setting("* * * * * *")
    script.outcome = Outcome(failure="gh failed")
    script.at(0, 1, 2, 3)
    assert len(script.runs) == 3
    assert script.job.problem == "The GitHub assignment job failed: gh failed"
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1
    script.outcome = Outcome()
    script.at(4)
    assert script.job.problem is None


def test_a_thread_runs_it_and_ends() -> None:
    """On a real clock, each second; closing twice is allowed."""
    runs: List[float] = []

    def run(_: Setting) -> Outcome:
        runs.append(1)
        return Outcome()

    job = Job(lambda: setting("* * * * * *"), run)
    job.start()
    wait_until(lambda: len(runs) >= 2)
    job.close()
    job.close()
    assert job.stopping() and "assignment" not in [thread.name for thread in threading.enumerate()]


def test_what_is_wrong_is_known_as_soon_as_it_is_started() -> None:
    """The companion tells it when it starts."""

    def read() -> Optional[Setting]:
        raise AssignmentFailed("no such board")

    job = Job(read, lambda _: Outcome())
    job.start()
    try:
        assert job.problem is not None
    finally:
        job.close()


def test_a_fault_of_ours_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    """It is in the log, and the next run is tried."""
    tries = threading.Semaphore(0)

    def run(_: Setting) -> Outcome:
        tries.release()
        raise ZeroDivisionError

    job = Job(lambda: setting("* * * * * *"), run, look_s=0.05)
    job.start()
    assert tries.acquire(timeout=PATIENCE_S) and tries.acquire(timeout=PATIENCE_S)
    job.close()
    assert any(record.exc_info for record in caplog.records)


def test_a_run_that_ends_with_us_is_no_failure() -> None:
    """Its program was killed at shutdown."""
    began, done = threading.Event(), threading.Event()

    def run(_: Setting) -> Outcome:
        began.set()
        done.wait(PATIENCE_S)
        return Outcome(failure="gh is not run: the companion stops")

    job = Job(lambda: setting("* * * * * *"), run)
    job.start()
    assert began.wait(PATIENCE_S)
    job.close(0.0)
    done.set()
    job.close()
    assert job.problem is None


def test_closing_before_starting_does_nothing() -> None:
    """The port may have been taken."""
    Job(lambda: None, lambda _: Outcome()).close()
