"""The background thread: asleep until there is work, over when told so."""

import threading

import pytest

from companion.sessions.chores import Chores


def test_work_is_repeated_for_as_long_as_it_says_so() -> None:
    """And again after the next wake."""
    calls = []
    done = threading.Event()

    def work() -> bool:
        calls.append(1)
        if len(calls) % 3 == 0:
            done.set()
        return len(calls) % 3 != 0

    chores = Chores(work, 0.001)
    chores.wake()
    assert done.wait(30)
    done.clear()
    chores.wake()
    assert done.wait(30)
    chores.close()
    assert len(calls) == 6


def test_no_thread_without_work() -> None:
    """A companion that nobody needs costs nothing."""
    before = threading.active_count()
    chores = Chores(lambda: True, 0.001)
    assert threading.active_count() == before
    chores.close()
    chores.wake()
    assert threading.active_count() == before


def test_a_failing_chore_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """One fault does not end the thread."""
    tries = []
    done = threading.Event()

    def work() -> bool:
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("a fault")
        done.set()
        return False

    chores = Chores(work, 0.001)
    chores.wake()
    assert done.wait(30)
    chores.close()
    chores.close()
    assert "A background chore failed" in caplog.text


def test_closing_from_within_does_not_wait_for_itself() -> None:
    """Work that decides to stop everything."""
    over = threading.Event()
    chores = Chores(lambda: (chores.close(), over.set(), True)[2], 0.001)  # type: ignore[func-returns-value]
    chores.wake()
    assert over.wait(30)
