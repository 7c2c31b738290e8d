"""``mdello.yml``: a board's uuid, columns and settings. Read with care, written once when made."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Optional, Sequence, Tuple

from companion.boards.frontmatter import trimmed
from companion.boards.uuid_line import Refused, block_with_uuid, newline_of
from companion.boards.yaml_cursor import YamlError
from companion.boards.yaml_values import Value, load
from companion.core.errors import BoardError

FILE_NAME = "mdello.yml"
DEFAULT_COLUMNS = ("Backlog", "In progress", "Review", "Done")

# A board's file holds a handful of lines; a larger one is something else.
MAX_BYTES = 1024 * 1024

_HEADER = (
    "# The settings of this mdello board. The board's web page rewrites this file when they are\n"
    "# changed there: it keeps the six keys below, not comments or keys of your own.\n"
)


@dataclass(frozen=True)
class BoardFile:
    """What a board's file says."""

    data: bytes
    """As it is on disk."""
    uuid: Optional[str]
    """Trimmed; None when there is none yet."""
    columns: Tuple[str, ...]
    path: str
    """The folder as entered there; empty when missing."""
    companion: bool
    """Whether the web page connects to the companion for this board."""


def read_board_file(folder: Path) -> Optional[BoardFile]:
    """The board's file, or None when there is none. BoardError when it cannot be used."""
    path = folder / FILE_NAME
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as exc:
        raise BoardError(f"{path}: {getattr(exc, 'strerror', None) or exc}") from exc
    if len(data) > MAX_BYTES:
        raise BoardError(f"{path} is too large to be a board's file")
    return _parsed(path, data)


def _parsed(path: Path, data: bytes) -> BoardFile:
    keys = _keys(path, data)
    uuid = keys.get("uuid")
    if uuid is not None and not isinstance(uuid, str):
        raise BoardError(f"{path}: its uuid is not text but {uuid!r} (quotes make it text)")
    columns = keys.get("columns")
    names = [trimmed(name) for name in columns if isinstance(name, str)] if isinstance(columns, list) else []
    folder = keys.get("path")
    return BoardFile(
        data=data,
        uuid=(trimmed(uuid) or None) if uuid else None,
        columns=tuple(dict.fromkeys(name for name in names if name)),
        path=folder if isinstance(folder, str) else "",
        companion=keys.get("companion") is True,
    )


def _keys(path: Path, data: bytes) -> Dict[str, Value]:
    text = data.decode("utf-8", "replace")
    if not any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines()):
        return {}
    try:
        value = load(text)
    except YamlError as exc:
        raise BoardError(f"{path}, line {exc.line + 1}: {exc}") from exc
    except RecursionError as exc:
        raise BoardError(f"{path} is nested too deep") from exc
    if not isinstance(value, dict):
        raise BoardError(f"{path} holds no keys")
    return value


def with_board_uuid(folder: Path, data: bytes, uuid: str) -> bytes:
    """The file's content with one line more. BoardError when there is no place for it."""
    try:
        return block_with_uuid(data, uuid, newline_of(data))
    except (YamlError, Refused) as exc:
        raise BoardError(f"{folder / FILE_NAME} has no uuid, and none can be added: {exc}") from exc


def new_board_file(uuid: str, folder: str, columns: Sequence[str] = DEFAULT_COLUMNS) -> bytes:
    """The content for a new board: the six keys that the web page writes, in its order."""
    lines = [
        f"uuid: {uuid}",
        "columns:",
        *(f"  - {yaml_text(column)}" for column in columns),
        f"path: {yaml_text(folder)}",
        f"editor: {yaml_text('vscode://file{path}')}",
        "companion: true",
        "labels: []",
    ]
    return (_HEADER + "\n".join(lines) + "\n").encode("utf-8", "surrogateescape")


def yaml_text(text: str) -> str:
    """A string as one YAML scalar, quoted only where that is needed."""
    try:
        if load(f"key: {text}\n") == {"key": text} and text.isprintable():
            return text
    except YamlError:
        pass
    return json.dumps(text, ensure_ascii=not text.isprintable())
