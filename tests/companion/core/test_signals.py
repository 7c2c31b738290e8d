"""Signals that ask a process to end: none is missed, whenever it comes."""

import os
import signal
import threading
import time
from typing import List

import pytest

from companion.core.signals import heard

NUMBERS = [signal.SIGUSR1, signal.SIGUSR2]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_ends_the_wait_for_good(number: int) -> None:
    """Before it there is nothing to hear; afterwards it stays heard, also by who asks late."""
    with heard(NUMBERS) as stopped:
        assert not stopped(0)
        os.kill(os.getpid(), number)
        assert stopped(None) and stopped(0) and stopped(5)


def test_a_signal_that_another_thread_gets_is_heard() -> None:
    """The system may hand it to any thread."""
    with heard(NUMBERS) as stopped:
        threading.Timer(0.1, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)).start()
        assert stopped(30)


def test_a_flood_of_signals_does_no_harm() -> None:
    """More than the pipe can hold."""
    with heard(NUMBERS) as stopped:
        for _ in range(100_000):
            signal.raise_signal(signal.SIGUSR1)
        assert stopped(0)


def test_afterwards_all_is_as_before() -> None:
    """Whoever had a handler has it again, and the byte of the interpreter goes where it went."""
    came: List[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: came.append(number))
    try:
        wakeup = signal.set_wakeup_fd(-1)
        with heard(NUMBERS):
            os.kill(os.getpid(), signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGUSR1)
        assert came == [signal.SIGUSR1]
        assert signal.set_wakeup_fd(wakeup) == -1
        assert signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_signal_at_any_moment_is_heard() -> None:
    """Also in the middle of the call that begins to wait: with an Event some of these wait for ever."""
    for number in range(300):
        with heard(NUMBERS) as stopped:
            pauses_s = number % 30 / 10_000

            def tell(pause_s: float = pauses_s) -> None:
                time.sleep(pause_s)
                os.kill(os.getpid(), signal.SIGUSR1)

            teller = threading.Thread(target=tell)
            teller.start()
            assert stopped(30)
            teller.join()
