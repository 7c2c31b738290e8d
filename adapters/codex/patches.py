"""The files that a patch of Codex's own kind changes: told by the lines that begin each file's part.

A patch is the text of an ``apply_patch`` call, or stands in a shell command as a here-document. What
is in a file begins with a plus, a minus or a blank, so it cannot look like such a line.
"""

import re
from typing import Iterable, Optional, Tuple

from adapters.paths import MAX_TEXT_CHARS, can_be_card, tool_path

BEGIN = "*** Begin Patch"
"""The first line of every patch."""

_FILE = re.compile(r"^\*\*\* (?:Add File|Update File|Move to): *(.+?)[ \t\r]*$", re.MULTILINE)
_ELSEWHERE = re.compile(r"\s*cd\s+(?:'([^']+)'|\"([^\"]+)\"|([^\s'\";&|]+))\s*&&\s*apply_?patch\b")


def cards_in(patch: object, cwd: Optional[str]) -> Tuple[str, ...]:
    """Files that can be cards, in their order; deleted ones are none. Empty for what holds no patch."""
    start = patch.find(BEGIN, 0, MAX_TEXT_CHARS) if isinstance(patch, str) else -1
    if not isinstance(patch, str) or start < 0:
        return ()
    moved = _ELSEWHERE.match(patch, 0, start)
    folder = joined(next(filter(None, moved.groups())), cwd) if moved else cwd
    return cards_of(_FILE.findall(patch, start, start + MAX_TEXT_CHARS), folder)


def cards_of(paths: Iterable[object], cwd: Optional[str]) -> Tuple[str, ...]:
    """Those of some changed files that can be cards, without duplicates."""
    found = (tool_path(path, cwd) for path in paths)
    return tuple(dict.fromkeys(path for path in found if path is not None and can_be_card(path)))


def joined(folder: object, cwd: Optional[str]) -> Optional[str]:
    """A folder that a call names, below ``cwd`` when it is relative; ``cwd`` when it names none."""
    if not isinstance(folder, str) or not folder:
        return cwd
    return folder if folder.startswith("/") else f"{cwd}/{folder}" if cwd else None
