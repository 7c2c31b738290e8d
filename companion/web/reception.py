"""Threads that take turns at the door: one waits for the next client, and serves it itself.

Before it serves, another thread takes the door. So no client waits for a thread to be started or
woken; that took as long as the whole answer to a hook.
"""

import threading
from typing import Callable, Generic, Optional, TypeVar

Client = TypeVar("Client")

# Threads that wait behind the one at the door. Hooks and pages come a few at a time; when more come
# at once, threads are started, and end again afterwards.
_SPARE = 4


class Reception(Generic[Client]):
    """Any number of clients at once, a thread each.

    Args:
        wait: returns the next client, or None when there will be none any more. Only one thread
            at a time is in there.
        serve: serves one client to its end; must not raise.
        turn_away: gets a client for whom the system has no thread.
    """

    def __init__(
        self,
        wait: Callable[[], Optional[Client]],
        serve: Callable[[Client], None],
        turn_away: Callable[[Client], None],
    ) -> None:
        self._wait = wait
        self._serve = serve
        self._turn_away = turn_away
        self._door = threading.Lock()  # Held by the thread that waits for the next client.
        self._lock = threading.Lock()  # Guards the number below.
        self._followers = 0  # Threads that want the door: in line for it, or just being started.

    def open(self) -> None:
        """Start receiving. RuntimeError when not even one thread is to be had."""
        self._start_follower()

    def wait_closed(self, timeout_s: float) -> bool:
        """Once ``wait`` returns None: wait until nobody is in there."""
        closed = self._door.acquire(timeout=timeout_s)
        if closed:
            self._door.release()
        return closed

    def _start_follower(self) -> None:
        thread = threading.Thread(target=self._work, name="client", daemon=True)
        with self._lock:  # Counted before it starts, or a second one would be started for nothing.
            self._followers += 1
        try:
            thread.start()
        except RuntimeError:
            with self._lock:
                self._followers -= 1
            raise

    def _work(self) -> None:
        going_on = True
        while going_on:
            client = self._receive()
            if client is None:
                return
            self._serve(client)
            del client  # Otherwise it would live on until this thread has had its next turn.
            with self._lock:
                going_on = self._followers < _SPARE
                self._followers += going_on

    def _receive(self) -> Optional[Client]:
        with self._door:
            with self._lock:
                self._followers -= 1
            client = self._wait()
            while client is not None and not self._has_follower():
                self._turn_away(client)
                client = self._wait()
            return client

    def _has_follower(self) -> bool:
        """Whether the door will be kept while this thread serves."""
        with self._lock:
            if self._followers:
                return True
        try:
            self._start_follower()
        except RuntimeError:
            return False
        return True
