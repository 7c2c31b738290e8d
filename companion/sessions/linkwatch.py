"""Notices that a file without a uuid got one, was moved, or is gone for good."""

import os
import threading
from typing import Callable, Dict, Iterable, List, Optional, Tuple

from companion.boards.cards import SUFFIX, Card
from companion.core.clock import WallClock
from companion.core.errors import CardReadError
from companion.sessions.reconcile import Finder, Registry

# Editors that save by renaming leave a moment without a file. A link is given up only when its
# file is still not there this long after that was first seen.
GONE_AFTER_S = 2.0

_Stamp = Tuple[int, int, int, int]
# Device, inode, size and time of change. An inode alone may belong to a new file already.
_File = Tuple[int, int, int, int]


class LinkWatch:
    """Looks at the files of pending links; only those that changed since the last look are read.

    Args:
        paths: the files to look at.
        adopt: called with a card when a file has become one.
        follow: called with the old and the new path of a file that was moved within the boards.
        give_up: called with the path of a file that is gone from a readable board.
    """

    def __init__(
        self,
        finder: Finder,
        registry: Registry,
        now: WallClock,
        paths: Callable[[], List[str]],
        adopt: Callable[[Card], None],
        follow: Callable[[str, str], None],
        give_up: Callable[[str], None],
    ) -> None:
        self._finder = finder
        self._registry = registry
        self._now = now
        self._paths = paths
        self._adopt = adopt
        self._follow = follow
        self._give_up = give_up
        self._lock = threading.Lock()  # One look at a time; guards the three below.
        self._stamps: Dict[str, _Stamp] = {}
        self._files: Dict[str, _File] = {}
        self._gone_since: Dict[str, float] = {}

    def look(self) -> None:
        """One look at every file. Reads disks; must not be called with a lock held."""
        with self._lock:
            paths = self._paths()
            self._stamps = {path: self._stamps[path] for path in paths if path in self._stamps}
            self._files = {path: self._files[path] for path in paths if path in self._files}
            self._gone_since = {path: self._gone_since[path] for path in paths if path in self._gone_since}
            for path in paths:
                self._look_at(path)

    def _look_at(self, path: str) -> None:
        found = _stat(path)  # Taken first: a change during the reading shows the next time.
        if found is None:
            self._stamps.pop(path, None)
            if not self._follow_moved(path):
                self._consider_gone(path)
            return
        stamp = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        self._files[path] = _file(found)
        self._gone_since.pop(path, None)
        if stamp == self._stamps.get(path):
            return
        try:
            card = self._finder.resolve(path).card
        except CardReadError:
            return
        if card is not None:
            self._adopt(card)
        elif self._registry.owner_of(path) is not None:
            # With its board unregistered the file says nothing; it is asked again every time.
            self._stamps[path] = stamp

    def _follow_moved(self, path: str) -> bool:
        """Whether the file that was at ``path`` is now elsewhere in a board, and its links with it."""
        file = self._files.get(path)
        place = None if file is None else _place_of(file, [board.path for board in self._registry.boards()])
        if place is None:
            return False
        del self._files[path]
        self._follow(path, place)
        self._look_at(place)
        return True

    def _consider_gone(self, path: str) -> None:
        owner = self._registry.owner_of(path)
        if owner is None or not _readable(owner[0].path) or os.path.lexists(path):
            self._gone_since.pop(path, None)
            return
        since = self._gone_since.setdefault(path, self._now())
        if self._now() - since >= GONE_AFTER_S:
            del self._gone_since[path]
            self._give_up(path)


def _stat(path: str) -> Optional[os.stat_result]:
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


def _file(found: os.stat_result) -> _File:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _place_of(file: _File, folders: Iterable[str]) -> Optional[str]:
    """Where a file is now that was moved, unchanged, into one of these folders."""
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.endswith(SUFFIX) and entry.inode() == file[1]:
                        found = _stat(entry.path)
                        if found is not None and _file(found) == file:
                            return entry.path
        except (OSError, ValueError):
            continue
    return None


def _readable(folder: str) -> bool:
    try:
        with os.scandir(folder):
            return True
    except (OSError, ValueError):
        return False
