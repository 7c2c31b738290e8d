"""Finds the cards of sessions of which nobody reports, in their files.

Where policies keep hooks away, or only some of them, the agent's own records tell that a session runs and
acts, and its file what it works on. A file is read again when it has changed, a large one seldom.
"""

import threading
import time
from pathlib import Path
from typing import Callable, List, Mapping, Tuple

from adapters.contract import Adapter, ReadReport
from companion.core.clock import WallClock
from companion.sessions.chores import Chores
from companion.sessions.watched import Watched, stamp_of

PAUSE_S = 0.05
"""Between being asked and reading, in seconds."""
READ_SHARE = 0.02
"""At most so much of one core's time goes into a file that keeps growing."""

FoundCards = Callable[[Watched, Tuple[str, ...]], None]
"""Gets what may be cards of a session."""


class CardReader:
    """Reads files in a thread of its own, one by one.

    Args:
        adapters: harness name to adapter.
        needles: byte strings of which every interesting path in a session's file holds one.
        found: told of a file that names paths.
        now, monotonic: clocks in seconds.
    """

    def __init__(
        self,
        adapters: Mapping[str, Adapter],
        needles: Callable[[], Tuple[bytes, ...]],
        found: FoundCards,
        now: WallClock = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._adapters = adapters
        self._needles = needles
        self._found = found
        self._now = now
        self._monotonic = monotonic
        self._lock = threading.Lock()  # Guards the list.
        self._owing: List[Watched] = []
        self._chores = Chores(self._read_all, PAUSE_S)

    def offer(self, sessions: List[Watched]) -> None:
        """Look for cards in the files of those that nobody reports, if they have changed."""
        owing = [each for each in sessions if self._is_owing(each)]
        if owing:
            with self._lock:
                self._owing = owing
            self._chores.wake()

    def close(self) -> None:
        """Stop reading."""
        self._chores.close()

    def _is_owing(self, watched: Watched) -> bool:
        if not watched.needs_file or self._now() < watched.next_read_s:
            return False
        stamp = stamp_of(watched.file)
        return stamp is not None and stamp != watched.cards_stamp

    def _read_all(self) -> bool:
        with self._lock:
            owing, self._owing = self._owing, []
        for watched in owing:
            self._read(watched)
        return False  # Whoever offers more wakes us.

    def _read(self, watched: Watched) -> None:
        watched.cards_stamp = stamp_of(watched.file)
        began_s = self._monotonic()
        past = self._adapters[watched.harness].read_session(
            Path(str(watched.file)), self._needles(), watched.cwd, ReadReport()
        )
        watched.next_read_s = self._now() + (self._monotonic() - began_s) / READ_SHARE
        if past.card_paths:
            self._found(watched, past.card_paths)
