"""Threads that wait at a door, and each serves the client that it let in itself.

Some are always waiting, so no client waits for a thread to be started, or woken by another one;
either took a good part of the time that the whole answer to a hook takes.
"""

import threading
from typing import Callable, Generic, Optional, TypeVar

Client = TypeVar("Client")

# Threads that stay at the door. Hooks and pages come a few at a time; when more come at once,
# threads are started, and end again afterwards.
_SPARE = 4


class Reception(Generic[Client]):
    """Any number of clients at once, a thread each.

    Args:
        wait: returns the next client, or None when there will be none any more. Several threads
            are in there at a time.
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
        self._changed = threading.Condition()  # Guards the number below; told when it falls.
        # Threads in ``wait``: at the door, with a client in hand when all is full, or just being started.
        self._waiting = 0

    def open(self) -> None:
        """Start receiving. RuntimeError when not even one thread is to be had."""
        self._start_waiting()

    def wait_closed(self, timeout_s: float) -> bool:
        """Once ``wait`` returns None: wait until nobody is in there."""
        with self._changed:
            return self._changed.wait_for(lambda: self._waiting == 0, timeout_s)

    def _start_waiting(self) -> None:
        thread = threading.Thread(target=self._work, name="client", daemon=True)
        with self._changed:  # Counted before it starts, or a second one would be started for nothing.
            self._waiting += 1
        try:
            thread.start()
        except RuntimeError:
            self._leave()
            raise

    def _leave(self) -> None:
        with self._changed:
            self._waiting -= 1
            self._changed.notify_all()

    def _return(self) -> bool:
        """Whether this thread is still wanted at the door; it is counted there then."""
        with self._changed:
            wanted = self._waiting < _SPARE
            self._waiting += wanted
            return wanted

    def _work(self) -> None:
        going_on = True
        while going_on:
            client = self._wait()
            self._leave()
            if client is None:
                return
            if self._is_kept():
                self._serve(client)
            else:
                self._turn_away(client)
            del client  # Otherwise it would live on until this thread has had its next turn.
            going_on = self._return()

    def _is_kept(self) -> bool:
        """Whether somebody stays at the door while this thread serves."""
        if self._waiting:
            return True
        try:
            self._start_waiting()
        except RuntimeError:
            return False
        return True
