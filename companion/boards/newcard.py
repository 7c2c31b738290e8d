"""Writes a new card from a title and a text, which may be anybody's."""

import json
import os
import re
import stat
import unicodedata
import uuid as uuids
from pathlib import Path

from companion.boards.boardfile import FILE_NAME, yaml_text
from companion.boards.cards import SUFFIX
from companion.core.errors import BoardError
from companion.core.files import write_new

MOST_SLUG_CHARACTERS = 60
_FALLBACK_SLUG = "card"
# More cards of one name than any board has; after them something else is wrong.
_MOST_OF_ONE_NAME = 10_000
_NOT_IN_SLUG = re.compile(r"[^a-z0-9]+")


def add_card(folder: Path, title: str, column: str, body: str, created: str) -> Path:
    """Write a card that is not there yet; its path. An existing file is never touched.

    ``created`` is its UTC ISO-8601 time. The file gets the rights that the board's own file has.
    BoardError with the reason; there is then no new file.
    """
    data = card_bytes(str(uuids.uuid4()), title, column, body, created)
    slug = slug_of(title)
    try:
        mode = _mode(folder)
        for number in range(_MOST_OF_ONE_NAME):
            path = folder / f"{slug}{f'-{number}' if number else ''}{SUFFIX}"
            if os.path.lexists(path):
                continue
            try:
                write_new(path, data, mode)
                return path
            except FileExistsError:
                continue
    except OSError as exc:
        raise BoardError(f"Cannot write a card into {folder}: {exc.strerror or exc}") from exc
    raise BoardError(f"Cannot write a card into {folder}: all names from {slug}{SUFFIX} on are taken")


def slug_of(title: str) -> str:
    """A file's name for a title, as the board's web page makes it; the suffix is not included."""
    slug = _NOT_IN_SLUG.sub("-", title.lower()).strip("-")[:MOST_SLUG_CHARACTERS].rstrip("-")
    return slug or _FALLBACK_SLUG


def card_bytes(uuid: str, title: str, column: str, body: str, created: str) -> bytes:
    """The content of a card with no tags. Nothing in title or body reaches into its front matter."""
    head = [
        "---",
        f"uuid: {uuid}",
        f"title: {_scalar(title)}",
        f"column: {_scalar(column)}",
        "tags: []",
        f"created: {created}",
        "---",
    ]
    text = "\n".join([*head, "", _text(body), ""])
    return text.encode("utf-8", "replace")


def _scalar(text: str) -> str:
    line = "".join(each for each in " ".join(text.split()) if _is_text(each))
    # What yaml_text would escape are joiners and the like, which YAML takes as they are; an escaped
    # pair of surrogates is two characters to some readers.
    return yaml_text(line) if line.isprintable() else json.dumps(line, ensure_ascii=False)


def _text(body: str) -> str:
    lines = body.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    return "".join(each for each in lines if each in "\n\t" or _is_text(each))


def _is_text(character: str) -> bool:
    """No control character, half of a pair, byte order mark, or what Unicode keeps unused."""
    code = ord(character)
    return unicodedata.category(character) not in ("Cc", "Cs") and code != 0xFEFF and code & 0xFFFE != 0xFFFE


def _mode(folder: Path) -> int:
    """Readable by whom the board's own file is readable; never executable."""
    return stat.S_IMODE(os.stat(folder / FILE_NAME).st_mode) & 0o666 | 0o600
