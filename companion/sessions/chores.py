"""One background thread for work that comes up now and then and may take a while."""

import logging
import threading
from typing import Callable, Optional

_log = logging.getLogger(__name__)


class Chores:
    """Runs ``work`` in a thread of its own, again every ``interval_s`` for as long as it says so.

    The thread starts at the first :meth:`wake` and sleeps without a timeout while there is
    nothing to do, so an idle companion costs nothing.

    Args:
        work: does what there is to do; True when it wants to be called again.
        interval_s: pause between two calls, in seconds.
    """

    def __init__(self, work: Callable[[], bool], interval_s: float) -> None:
        self._work = work
        self._interval_s = interval_s
        self._needed = threading.Event()
        self._closed = threading.Event()
        self._lock = threading.Lock()  # Guards the start of the thread.
        self._thread: Optional[threading.Thread] = None

    def wake(self) -> None:
        """There may be work. Returns at once; does nothing after :meth:`close`."""
        self._needed.set()
        with self._lock:
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._run, name="chores", daemon=True)
                self._thread.start()

    def close(self, timeout_s: float = 2.0) -> None:
        """Stop, waiting at most ``timeout_s`` for work under way. May be called twice."""
        with self._lock:
            self._closed.set()
            thread = self._thread
        self._needed.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout_s)

    def _run(self) -> None:
        while not self._closed.is_set():
            self._needed.wait()
            self._needed.clear()
            while not self._closed.wait(self._interval_s) and self._try_work():
                pass

    def _try_work(self) -> bool:
        try:
            return self._work()
        except Exception:  # The top of a thread: a fault must not end the chores for good.
            _log.exception("A background chore failed")
            return True
