"""Waits for the signals that ask this process to end, and misses none.

A handler in Python that sets an Event does not do. It may interrupt the main thread while that holds
the Event's own lock, and then waits for it for ever; and it is called only between two instructions,
so that one which comes just before the main thread begins to wait is not heard until that is over.
Here the handlers do nothing. For each signal the interpreter itself writes a byte at once, and that
byte is waited for.
"""

import contextlib
import select
import signal
import socket
from typing import Callable, Iterator, Optional, Sequence


@contextlib.contextmanager
def heard(numbers: Sequence[int]) -> Iterator[Callable[[Optional[float]], bool]]:
    """Within the block, on the main thread: these signals do not end the process.

    Yields a function that waits for the first of them, at most so many seconds (None: for ever), and
    says whether one has come. Afterwards they do again what they did before.
    """
    ear, mouth = socket.socketpair()
    with ear, mouth:
        mouth.setblocking(False)  # The interpreter must never wait in it.
        wakeup = signal.set_wakeup_fd(mouth.fileno(), warn_on_full_buffer=False)
        before = {number: signal.signal(number, _heard_elsewhere) for number in numbers}
        try:
            yield lambda timeout_s: bool(select.select([ear], [], [], timeout_s)[0])
        finally:
            for number, handler in before.items():
                # None stands for a handler that was not set by Python.
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
            signal.set_wakeup_fd(wakeup)


def _heard_elsewhere(*_: object) -> None:
    """Without a handler of Python's there would be no byte."""
