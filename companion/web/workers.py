"""Threads that serve one client each and are used again: starting one costs as much as an answer."""

import queue
import threading
from typing import Callable, Optional

Task = Callable[[], None]

# Hooks and pages come a few at a time; whoever needs more at once waits for a thread to be started.
_SPARE = 8


class Workers:
    """Runs every task at once on a thread of its own; there is no limit here."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # Guards the two below.
        self._waiting = 0  # Threads that wait for a task and have not been promised one.
        self._closed = False
        self._tasks: queue.SimpleQueue[Optional[Task]] = queue.SimpleQueue()

    def run(self, task: Task) -> None:
        """Run a task, which must not raise. RuntimeError when the system gives no more threads."""
        with self._lock:
            if self._waiting:
                self._waiting -= 1
                self._tasks.put(task)
                return
        threading.Thread(target=self._work, args=(task,), name="client", daemon=True).start()

    def close(self) -> None:
        """Let every thread end with the task it has. May be called twice."""
        with self._lock:
            self._closed = True
            for _ in range(self._waiting):
                self._tasks.put(None)
            self._waiting = 0

    def _work(self, first: Task) -> None:
        task: Optional[Task] = first
        while task is not None:
            task()
            with self._lock:
                if self._closed or self._waiting >= _SPARE:
                    return
                self._waiting += 1
            del task  # Otherwise the last client's connection lives on until the next one comes.
            task = self._tasks.get()
