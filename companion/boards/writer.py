"""Writes boards: makes a new one, and gives a uuid to a card that has none."""

import os
import stat
import uuid as uuids
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional, Tuple

from companion.boards.boardfile import (
    DEFAULT_COLUMNS,
    FILE_NAME,
    BoardFile,
    new_board_file,
    read_board_file,
    with_board_uuid,
    yaml_text,
)
from companion.boards.cards import SUFFIX
from companion.boards.uuid_line import Refused, card_with_uuid
from companion.core.clock import WallClock, iso_utc
from companion.core.errors import BoardError
from companion.core.files import write_atomically

WELCOME_NAME = "welcome.md"

# Files of a board are the user's own, to be shared like any text; unlike our state files.
_FILE_MODE = 0o644
# Cards are read by people; whatever is larger is not repaired but told.
MAX_CARD_BYTES = 32 * 1024 * 1024

_WELCOME = """---
uuid: {uuid}
title: Welcome to your board
column: {column}
created: {created}
---

Every Markdown file in this folder is a card. This one is yours to change or to throw away.

- Its place on the board is the `column` above; the columns are listed in `mdello.yml`.
- Name a card's path in a prompt, or let your agent write a new file here, and the session shows
  up on the card for as long as it works on it.
- A card needs a `uuid` of its own. `mdello.pyz board repair` adds one to those that have none.
- Finished cards go to `archive/`, into a folder named after the year and month.
"""


@dataclass(frozen=True)
class MadeBoard:
    """A board that is there now."""

    uuid: str
    path: str
    """Absolute and normalised."""
    written: Tuple[str, ...]
    """Paths of the files made or changed, in this order."""
    notes: Tuple[str, ...]
    """What the user should know about a board that was there before."""


@dataclass(frozen=True)
class RepairResult:
    """What became of one card."""

    path: str
    uuid: Optional[str]
    """The card's uuid now; None when it was refused."""
    changed: bool
    """Whether the file was written (or would be, in a dry run)."""
    notes: Tuple[str, ...] = ()
    """What was done besides adding the uuid."""
    refused: Optional[str] = None
    """Why nothing was done."""


def init_board(folder: Path, now: WallClock) -> MadeBoard:
    """Make a board of a folder, which may exist and hold cards; doing it again changes nothing.

    An existing ``mdello.yml`` stays as it is, but for one line when it has no uuid. The welcome
    card is written only where there is no Markdown file. BoardError with the reason.
    """
    path = os.path.abspath(folder)
    try:
        path.encode("utf-8")
        os.makedirs(path, exist_ok=True)
        return _settle(Path(path), iso_utc(now()))
    except OSError as exc:
        raise BoardError(f"Cannot make a board in {path}: {exc.strerror or exc}") from exc
    except UnicodeEncodeError as exc:
        raise BoardError(f"Cannot make a board in {path!r}: its name is not UTF-8") from exc


def _settle(folder: Path, created: str) -> MadeBoard:
    written: List[str] = []

    def write(name: str, data: bytes) -> None:
        write_atomically(folder / name, data, _FILE_MODE)
        written.append(str(folder / name))

    found = read_board_file(folder)
    board_uuid = (found and found.uuid) or str(uuids.uuid4())
    if found is None:
        write(FILE_NAME, new_board_file(board_uuid, str(folder)))
    elif found.uuid is None:
        write(FILE_NAME, with_board_uuid(folder, found.data, board_uuid))
    if not any(name.endswith(SUFFIX) for name in os.listdir(folder)):
        columns = (found and found.columns) or DEFAULT_COLUMNS
        write(WELCOME_NAME, _welcome_card(columns[0], created))
    return MadeBoard(board_uuid, str(folder), tuple(written), board_notes(found, str(folder)))


def board_notes(found: Optional[BoardFile], folder: str) -> Tuple[str, ...]:
    """What in an existing board's file keeps the web page from finding the companion."""
    notes = []
    if found is not None and not found.companion:
        notes.append(f"{FILE_NAME} does not say companion: true, so its web page will not connect")
    if found is not None and (not found.path or os.path.realpath(found.path) != os.path.realpath(folder)):
        notes.append(
            f"{FILE_NAME} should say path: {yaml_text(folder)}, so that its web page finds the cards"
        )
    return tuple(notes)


def _welcome_card(column: str, created: str) -> bytes:
    text = _WELCOME.format(uuid=uuids.uuid4(), column=yaml_text(column), created=created)
    return text.encode("utf-8")


def give_uuid(path: Path, new_uuid: str, dry_run: bool = False) -> RepairResult:
    """Give a card this uuid unless it has one; every byte but the new line stays. Never raises.

    The file is replaced as a whole, keeps its mode, and is left alone when somebody else wrote it
    in the meantime. A symlink stays one.
    """
    try:
        before = os.stat(path)
        data = _content(path)
        repaired = card_with_uuid(data, new_uuid)
        changed = repaired.data != data
        if changed and not dry_run:
            write_atomically(
                path, repaired.data, before_replacing=lambda: _check_unchanged(path, before, data)
            )
    except Refused as exc:
        return RepairResult(str(path), None, False, refused=str(exc))
    except (OSError, ValueError) as exc:
        return RepairResult(str(path), None, False, refused=getattr(exc, "strerror", None) or str(exc))
    return RepairResult(str(path), repaired.uuid, changed, repaired.notes)


def _content(path: Path) -> bytes:
    # Without O_NONBLOCK a named pipe would be waited for.
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise Refused("it is not a regular file")
        data = file.read(MAX_CARD_BYTES + 1)
    if len(data) > MAX_CARD_BYTES:
        raise Refused("it is too large to be rewritten")
    return data


def _check_unchanged(path: Path, before: os.stat_result, data: bytes) -> None:
    """Refused when the file is not what was read: an agent or an editor was quicker."""
    if not os.path.samestat(before, os.stat(path)) or _content(path) != data:
        raise Refused("it was changed in the meantime; try again")
