"""Waits for the signals that ask this process to end, and misses none.

A handler in Python that sets an Event does not do. It may interrupt the main thread while that holds
the Event's own lock, and then waits for it for ever; and it is called only between two instructions,
so that one which comes just before the main thread begins to wait is not heard until that is over.
Here the handlers do nothing. For each signal the interpreter itself writes a byte at once, and that
byte is waited for.
"""

import select
import signal
import socket
from types import TracebackType
from typing import Any, Dict, Optional, Sequence, Type


class StopSignals:
    """Within a ``with`` block, on the main thread: signals do not end the process but :meth:`wait`.

    Afterwards they do again what they did before.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = numbers
        self._heard, self._told = socket.socketpair()
        self._told.setblocking(False)  # The interpreter must never wait in it.
        self._before: Dict[int, Any] = {}  # None for a handler that was not set by Python.
        self._wakeup_before = -1

    def __enter__(self) -> "StopSignals":
        self._wakeup_before = signal.set_wakeup_fd(self._told.fileno(), warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, _heard_elsewhere) for number in self._numbers}
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        signal.set_wakeup_fd(self._wakeup_before)
        self._heard.close()
        self._told.close()

    def wait(self, timeout_s: Optional[float] = None) -> bool:
        """Whether a signal has come; waits for the first one, at most ``timeout_s``."""
        return bool(select.select([self._heard], [], [], timeout_s)[0])


def _heard_elsewhere(*_: object) -> None:
    """Without a handler of Python's there would be no byte."""
