"""Which file is which card: a path to a card, and all cards of all boards.

A card is a ``.md`` file directly in a registered board's folder whose head holds a uuid. Reading
stops where the head ends, and a file that has not changed is not read again.
"""

import errno
import os
import stat
import threading
import time
from dataclasses import dataclass, field
from typing import Dict, List, NamedTuple, Optional, Tuple

from companion.boards.frontmatter import (
    HEAD_LIMIT_BYTES,
    head_is_complete,
    read_front_matter,
    uuid_of,
    why_no_uuid,
)
from companion.boards.registry import Board, BoardRegistry, nfc
from companion.core.errors import CardReadError

SUFFIX = ".md"
NOT_UTF8 = "its name is not UTF-8"
"""Why a file can be no card: its path could not be told to anybody."""

_FIRST_READ_BYTES = 4096
# Remembered heads; a board that large is rare, and forgetting costs one small read per card.
_MAX_REMEMBERED = 20_000
# A file changed this recently may change again without its time stamp showing it: file systems
# stamp with the kernel's tick (up to 10 ms), network ones more coarsely.
_SETTLED_AFTER_NS = 100_000_000

_Stamp = Tuple[int, int, int, int]


class Card(NamedTuple):
    """A card and where it is now."""

    uuid: str
    path: str
    """Absolute, under the board's registered path."""
    board_uuid: str


class Resolution(NamedTuple):
    """What a path leads to: a card, a file that could become one, or (both None) nothing of ours."""

    card: Optional[Card]
    without_uuid: Optional[str] = None
    """Normalised path of an existing ``.md`` file of a board that has no readable uuid."""


@dataclass(frozen=True)
class Scan:
    """All cards of all boards at one moment."""

    cards: Dict[str, Card] = field(default_factory=dict)
    """By uuid, in order of boards and names; on duplicates the later one."""
    complete: bool = True
    """Whether every board and file, and every head that there is, could be read: only then is a card
    not listed really gone."""
    problems: Tuple[Tuple[str, str], ...] = ()
    """(path, reason) of boards and files that could not be read."""
    without_uuid: Tuple[Tuple[str, str], ...] = ()
    """(path, reason) of ``.md`` files that are no cards."""
    duplicates: Tuple[Tuple[str, Tuple[str, ...]], ...] = ()
    """(uuid, all paths) where different files hold the same uuid; the last path is the card."""


class _Head(NamedTuple):
    """What was read of one file."""

    uuid: Optional[str]
    why_none: str
    broken: bool
    """It may well be a card, though not now."""


class CardFinder:
    """Answers whose card a path is, and which cards there are. May be used from any thread."""

    def __init__(self, registry: BoardRegistry) -> None:
        self._registry = registry
        self._lock = threading.Lock()  # Guards the remembered heads.
        self._heads: Dict[str, Tuple[_Stamp, _Head]] = {}

    def resolve(self, path: str) -> Resolution:
        """Look a path up. CardReadError when the file is there but cannot be read.

        A name that does not exist in this spelling is looked for in the other Unicode form; the
        card's path is the one on disk.
        """
        owned = self._registry.owner_of(path)
        if owned is None or not owned[1].endswith(SUFFIX):
            return Resolution(None)
        try:
            found = self._find(owned[1])
        except (OSError, ValueError) as exc:
            raise CardReadError(f"{_reason(exc)}: {owned[1]}") from exc
        if found is None:
            return Resolution(None)
        path, head = found
        if head.uuid is None:
            return Resolution(None, path)
        return Resolution(Card(head.uuid, path, owned[0].uuid))

    def scan(self) -> Scan:
        """Read every board. Never raises; what could not be read is told in the result."""
        tally = _Tally()
        for board in self._registry.boards():
            self._scan_board(board, tally)
        return tally.result()

    def _scan_board(self, board: Board, tally: "_Tally") -> None:
        try:
            names = _card_names(board.path)
        except (OSError, ValueError) as exc:  # ValueError: a path that this locale cannot spell.
            tally.problems.append((board.path, _reason(exc)))
            return
        for name in names:
            path = os.path.join(board.path, name)
            if not _is_utf8(name):
                shown = os.fsencode(path).decode("utf-8", "replace")
                tally.without_uuid.append((shown, NOT_UTF8))
                continue
            try:
                head = self._head(path)
            except (OSError, ValueError) as exc:
                # Also when it vanished just now: perhaps an editor is replacing it.
                tally.problems.append((path, _reason(exc)))
                continue
            if head.uuid is None:
                tally.without_uuid.append((path, head.why_none))
                tally.broken |= head.broken
            else:
                tally.add(Card(head.uuid, path, board.uuid))

    def _find(self, path: str) -> Optional[Tuple[str, _Head]]:
        """(Path on disk, what its head says), or None when there is no such file in any spelling."""
        try:
            return path, self._head(path)
        except FileNotFoundError:
            other = _spelled_otherwise(path)
        try:
            return (other, self._head(other)) if other is not None else None
        except FileNotFoundError:
            return None

    def _head(self, path: str) -> _Head:
        """The head of a file, from memory if it has not changed. OSError as it comes."""
        stamp = _stamp(os.stat(path))
        with self._lock:
            known = self._heads.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        opened, data = _read(path)
        front = read_front_matter(data)
        head = _Head(uuid_of(front), why_no_uuid(front), front.is_broken)
        with self._lock:
            if opened is None:
                self._heads.pop(path, None)
            else:
                if len(self._heads) >= _MAX_REMEMBERED:
                    self._heads.clear()
                self._heads[path] = (opened, head)
        return head


class _Tally:
    """A scan in the making."""

    def __init__(self) -> None:
        self.problems: List[Tuple[str, str]] = []
        self.without_uuid: List[Tuple[str, str]] = []
        self.broken = False
        self._found: Dict[str, List[Card]] = {}

    def add(self, card: Card) -> None:
        self._found.setdefault(card.uuid, []).append(card)

    def result(self) -> Scan:
        return Scan(
            cards={uuid: cards[-1] for uuid, cards in self._found.items()},
            complete=not (self.problems or self.broken),
            problems=tuple(self.problems),
            without_uuid=tuple(self.without_uuid),
            duplicates=tuple(
                (uuid, tuple(card.path for card in cards))
                for uuid, cards in self._found.items()
                if len(cards) > 1 and _differ([card.path for card in cards])
            ),
        )


def _card_names(folder: str) -> List[str]:
    """Names of the regular ``.md`` files in a folder, sorted; links are left out. OSError."""
    names = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if not name.endswith(SUFFIX) or name.startswith("..") or "\\" in name:
                continue
            try:
                regular = entry.is_file(follow_symlinks=False)
            except OSError:
                regular = True  # Reading it will tell why.
            if regular:
                names.append(name)
    return sorted(names)


def _spelled_otherwise(path: str) -> Optional[str]:
    """The file beside this path whose name is the same but for Unicode's composition, or None."""
    folder, name = os.path.split(path)
    if name.isascii():
        return None
    wanted = nfc(name)
    try:
        alike = [entry for entry in os.listdir(folder) if nfc(entry) == wanted and _is_utf8(entry)]
    except (OSError, ValueError):
        return None
    return os.path.join(folder, min(alike)) if alike else None


def _read(path: str) -> Tuple[Optional[_Stamp], bytes]:
    """(Stamp, or None when the file is too young to be remembered; its head). OSError."""
    # Without O_NONBLOCK a named pipe would be waited for.
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        found = os.fstat(fd)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", path)
        settled = time.time_ns() - found.st_ctime_ns > _SETTLED_AFTER_NS
        return (_stamp(found) if settled else None), _read_head(fd)
    finally:
        os.close(fd)


def _read_head(fd: int) -> bytes:
    head = b""
    while not head_is_complete(head):
        # Doubling keeps the repeated search for the fence linear.
        wanted = min(max(_FIRST_READ_BYTES, len(head)), HEAD_LIMIT_BYTES - len(head))
        chunk = os.read(fd, wanted)
        if not chunk:
            break
        head += chunk
    return head


def _stamp(found: os.stat_result) -> _Stamp:
    """The change time too: it also tells of a time stamp set back and of permissions taken."""
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _differ(paths: List[str]) -> bool:
    """Whether these are not all one file, seen through two registrations of its folder."""
    try:
        return not all(os.path.samefile(paths[0], path) for path in paths[1:])
    except (OSError, ValueError):
        return True


def _is_utf8(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _reason(exc: Exception) -> str:
    return (exc.strerror if isinstance(exc, OSError) else None) or str(exc)
