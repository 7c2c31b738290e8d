"""Which boards there are, and which of them owns a path.

Boards live in ``companion.json`` under ``boards`` as ``{uuid, path, updatedAt}``. The file is read
anew whenever it has changed, so that a command in another terminal is heard at once.
"""

import logging
import os
import threading
import unicodedata
from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Optional, Tuple

from companion.boards.frontmatter import trimmed
from companion.core.clock import WallClock, iso_utc
from companion.core.config import ConfigFile, JsonObject
from companion.core.errors import BoardError, NotFound, StorageError

_log = logging.getLogger(__name__)

_KEY = "boards"

# Whose a path is, is asked for every event and card. So many answers are remembered, of paths of
# ordinary length.
_MAX_OWNERS = 4_096
_MAX_OWNED_CHARS = 1_024


@dataclass(frozen=True)
class Board:
    """One registered board."""

    uuid: str
    path: str
    """Absolute and normalised, in the spelling under which it was registered."""
    updated_at: str
    """UTC ISO-8601 time of the last registration."""


@dataclass(frozen=True)
class _Listing:
    """What one state of the configuration says."""

    content: JsonObject
    boards: Tuple[Board, ...]
    by_path: Dict[str, Board]
    by_nfc: Dict[str, Board]
    invalid: int
    owners: Dict[str, Tuple[Board, str]] = field(default_factory=dict)
    """By path as it was asked: answers of :meth:`BoardRegistry.owner_of` that follow from names alone."""

    def at(self, folder: str) -> Optional[Board]:
        """The board of a folder (normalised): by its name, its other Unicode form, its inode."""
        return self.named(folder) or _same_folder(folder, self.boards)

    def named(self, folder: str) -> Optional[Board]:
        """The same without a look at the disk: by its name or its other Unicode form."""
        return self.by_path.get(folder) or self.by_nfc.get(nfc(folder))

    def remember(self, path: str, owner: Tuple[Board, str]) -> None:
        """Keep an answer for the next time."""
        if len(path) <= _MAX_OWNED_CHARS:
            if len(self.owners) >= _MAX_OWNERS:
                self.owners.clear()
            self.owners[path] = owner


def normal_path(path: str, cwd: str) -> str:
    """The path as the contract compares it: absolute, without ``.``, ``..``, doubled or last slashes.

    Purely lexical: symlinks, ``~``, case and Unicode forms are left alone.
    """
    normal = os.path.normpath(os.path.join(cwd, path))
    # POSIX lets two leading slashes mean something else, so normpath keeps exactly two.
    return "/" + normal.lstrip("/") if normal.startswith("//") else normal


def nfc(text: str) -> str:
    """The text in Unicode's composed form, for comparing only: disks keep what they were given."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


class BoardRegistry:
    """The registered boards, in order of registration. May be used from any thread."""

    def __init__(self, config: ConfigFile, now: WallClock, cwd: str) -> None:
        self._config = config
        self._now = now
        self._cwd = cwd
        self._lock = threading.Lock()  # Guards the listing.
        self._listing: Optional[_Listing] = None
        self.save_problem: Optional[str] = None
        """Why the last registration holds in memory only, or None when it was saved."""

    def boards(self) -> List[Board]:
        """All boards, the one registered last at the end."""
        return list(self._read().boards)

    @property
    def invalid_entries(self) -> int:
        """How many entries of the configuration are no boards and are skipped."""
        return self._read().invalid

    def register(self, uuid: str, path: str) -> Board:
        """As :meth:`add`, but when it cannot be saved it holds in memory, with ``save_problem`` set."""
        board = self._new(uuid, path)
        try:
            self._save(board)
        except StorageError as exc:
            _log.warning("%s (until the companion stops, the board stays registered)", exc)
        return board

    def add(self, uuid: str, path: str) -> Board:
        """Add a board, or renew one: entries with the same uuid or the same path give way.

        Whether there is such a folder is not asked. BoardError when uuid or path is blank or no
        usable text; StorageError when it cannot be saved.
        """
        board = self._new(uuid, path)
        self._save(board)
        return board

    def _new(self, uuid: str, path: str) -> Board:
        return Board(_usable(uuid, "uuid"), self.normal(_usable(path, "path")), iso_utc(self._now()))

    def _save(self, board: Board) -> None:
        def edit(content: JsonObject) -> None:
            kept = [entry for entry in _entries(content) if not self._collides(entry, board)]
            content[_KEY] = [*kept, {"uuid": board.uuid, "path": board.path, "updatedAt": board.updated_at}]

        try:
            self._config.change(edit)
        except StorageError as exc:
            self.save_problem = str(exc)
            raise
        self.save_problem = None

    def remove(self, uuid_or_path: str) -> Board:
        """Forget a board; its files stay. NotFound when there is none; StorageError."""
        board = self.find(uuid_or_path)
        if board is None:
            raise NotFound(f"No registered board has this uuid or folder: {uuid_or_path}")

        def edit(content: JsonObject) -> None:
            content[_KEY] = [entry for entry in _entries(content) if not self._is(entry, board)]

        self._config.change(edit)
        return board

    def find(self, uuid_or_path: str) -> Optional[Board]:
        """The board with this uuid or folder (also through a symlink), or None."""
        wanted = trimmed(uuid_or_path)
        if not wanted:
            return None
        listing = self._read()
        for board in listing.boards:
            if board.uuid == wanted:
                return board
        return listing.at(self.normal(uuid_or_path))

    def owner_of(self, path: str) -> Optional[Tuple[Board, str]]:
        """The board a path is a direct child of, and the path as it is called there; or None.

        Beyond the contract, a folder that is the board's by another name (the real folder of a
        symlinked board, the other Unicode form of its name) is the board's too; the path is then
        given under the registered name. Whether the file exists is not asked.
        """
        listing = self._read()
        known = listing.owners.get(path)
        if known is not None:
            return known
        normal = self.normal(path)
        folder, name = os.path.split(normal)
        if not name or name.startswith("..") or "\\" in name or not _is_text(normal):
            return None
        board = listing.named(folder)
        if board is not None:
            owner = (board, os.path.join(board.path, name))
            listing.remember(path, owner)
            return owner
        board = _same_folder(folder, listing.boards)
        return (board, os.path.join(board.path, name)) if board is not None else None

    def normal(self, path: str) -> str:
        """The normalised path; a relative one starts at the companion's working directory."""
        return normal_path(path, self._cwd)

    def _read(self) -> _Listing:
        content = self._config.read()
        listing = self._listing
        if listing is not None and listing.content is content:
            return listing
        with self._lock:
            if self._listing is None or self._listing.content is not content:
                self._listing = self._parse(content)
            return self._listing

    def _parse(self, content: JsonObject) -> _Listing:
        found = [self._board(entry) for entry in _entries(content)]
        boards = tuple(board for board in found if board is not None)
        by_path: Dict[str, Board] = {}
        by_nfc: Dict[str, Board] = {}
        for board in boards:  # The first of two boards on one path owns it.
            by_path.setdefault(board.path, board)
            by_nfc.setdefault(nfc(board.path), board)
        unusable = content.get(_KEY) is not None and not isinstance(content[_KEY], list)
        return _Listing(content, boards, by_path, by_nfc, len(found) - len(boards) + unusable)

    def _board(self, entry: object) -> Optional[Board]:
        if not isinstance(entry, dict):
            return None
        uuid, path, updated_at = entry.get("uuid"), entry.get("path"), entry.get("updatedAt")
        if not (isinstance(uuid, str) and isinstance(path, str) and isinstance(updated_at, str)):
            return None
        if not (uuid and path and _is_text(uuid) and _is_text(path)):
            return None
        return Board(uuid, self.normal(path), updated_at)

    def _collides(self, entry: object, board: Board) -> bool:
        other = self._board(entry)
        return other is not None and (other.uuid == board.uuid or other.path == board.path)

    def _is(self, entry: object, board: Board) -> bool:
        other = self._board(entry)
        return other is not None and (other.uuid, other.path) == (board.uuid, board.path)


def _entries(content: JsonObject) -> List[object]:
    """What stands under ``boards``, valid or not; invalid entries survive a save."""
    entries = content.get(_KEY)
    return entries if isinstance(entries, list) else []


def _usable(text: str, what: str) -> str:
    value = trimmed(text)
    if not value:
        raise BoardError(f"A board needs a {what}")
    if not _is_text(value):
        raise BoardError(f"The board's {what} holds characters that no {what} can have: {value!r}")
    return value


def _is_text(text: str) -> bool:
    """Whether this can be written to a file or used as a path."""
    if text.isascii():
        return "\0" not in text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair out of a JSON escape
        return False
    return "\0" not in text


def _same_folder(folder: str, boards: Iterable[Board]) -> Optional[Board]:
    """The first board whose folder is this very one on disk, whatever it is called."""
    try:
        wanted = os.stat(folder)
    except (OSError, ValueError):
        return None
    for board in boards:
        try:
            if os.path.samestat(wanted, os.stat(board.path)):
                return board
        except (OSError, ValueError):
            continue
    return None
