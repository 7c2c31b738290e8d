"""The setting ``extensions["github-assignment"]`` of ``companion.json``: read strictly."""

from dataclasses import dataclass
from typing import Callable, Mapping, Optional, Sequence, Tuple

from companion.assignment.cron import Schedule, parse
from companion.core.errors import AssignmentFailed

KEY = "github-assignment"
COLUMN = "Triage"
"""Where the cards are put; the board must have it."""

FolderOf = Callable[[str], Optional[str]]
"""The folder of the registered board with this uuid, or None."""
ColumnsOf = Callable[[str], Sequence[str]]
"""The columns of the board in a folder. CompanionError when its file cannot be used."""


@dataclass(frozen=True)
class Setting:
    """A job that can run."""

    expression: str
    """The cron expression as it was written."""
    schedule: Schedule
    organizations: Tuple[str, ...]
    """Owners to search in; empty: everywhere."""
    board_uuid: str
    folder: str
    """Of the board; absolute."""


def read_setting(
    content: Mapping[str, object], folder_of: FolderOf, columns_of: ColumnsOf
) -> Optional[Setting]:
    """The job as set up in the configuration, or None when there is none (or ``null``).

    CompanionError, with the key to be mended, when it cannot be used.
    """
    extensions = content.get("extensions")
    entry = extensions.get(KEY) if isinstance(extensions, dict) else None
    if entry is None:
        return None
    if not isinstance(entry, dict):
        raise _wrong("it is no JSON object")
    expression, schedule = _schedule(entry.get("schedule"))
    organizations = _organizations(entry.get("organizations"))
    board_uuid = entry.get("boardUuid")
    if not isinstance(board_uuid, str) or not board_uuid.strip():
        raise _wrong("boardUuid names no board (see: mdello.pyz board list)")
    folder = folder_of(board_uuid.strip())
    if folder is None:
        raise _wrong(f"boardUuid is not that of a registered board: {board_uuid[:80]!r}")
    if COLUMN not in columns_of(folder):
        raise _wrong(f"the board in {folder} has no column {COLUMN} in its mdello.yml")
    return Setting(expression, schedule, organizations, board_uuid.strip(), folder)


def _schedule(value: object) -> Tuple[str, Schedule]:
    if not isinstance(value, str) or not value.strip():
        raise _wrong('schedule is no cron expression, such as "*/15 8-18 * * MON-FRI"')
    try:
        return value.strip(), parse(value)
    except ValueError as exc:
        raise _wrong(f"schedule: {exc}") from exc


def _organizations(value: object) -> Tuple[str, ...]:
    if not isinstance(value, list):
        raise _wrong("organizations is no list of names (an empty list means all)")
    names = [name.strip() for name in value if isinstance(name, str)]
    if len(names) != len(value) or not all(names):
        raise _wrong("organizations holds something that is no name")
    return tuple(dict.fromkeys(names))


def _wrong(reason: str) -> AssignmentFailed:
    return AssignmentFailed(f'extensions["{KEY}"] in companion.json: {reason}')
