"""Card paths in text and in tool calls: the one definition.

A path in text is the shortest run of START, BODY and ``.md``, found from left to right without
overlaps, where

- START is ``/``, or one ASCII letter, a colon and ``/`` or a backslash, and the character in front
  of it is no ASCII letter, digit, underscore or dot;
- BODY is at least one character, none of them a line break, a quotation mark or a backtick;
- ``.md`` is lower case and followed by no ASCII letter, digit or underscore.

As one regular expression with a lazy body this is quadratic for a text full of slashes, because
each start looks at all the text behind it. Here the start, the end and the characters that may not
lie between them are looked for one after the other, each always forwards: linear.

``tests/fixtures/paths.json`` holds the rule as a table, for twins of this module in other languages.
"""

import posixpath
import re
from collections import deque
from itertools import islice
from typing import Deque, Dict, Iterator, List, NamedTuple, Optional, Tuple

_START = re.compile(r"(?<![A-Za-z0-9_.])(?:[A-Za-z]:[\\/]|/)")
_END = re.compile(r"\.md(?![A-Za-z0-9_])")
_BREAKS = "\n\r\"'`"
_BREAK = re.compile(f"[{_BREAKS}]")

MAX_TEXT_CHARS = 4 * 1024 * 1024
"""Candidates are looked for in so much of a text; a longer prompt fits no model."""
MAX_MATCHES = 4000
"""Matches, repeated ones included, from which candidates are taken."""
MAX_LATER_STARTS = 16
"""Later starts tried within one match: the ones nearest to its end, because those swallow least."""
MAX_EXTRA_CANDIDATES = 1000
"""Later starts tried in one text. The matches themselves are not counted in."""
MAX_PATH_CHARS = 4096
"""No longer path can be opened (PATH_MAX of Linux, in bytes)."""


class _Match(NamedTuple):
    start: int
    """Index of the first character of START."""
    body: int
    """Index of the first character of BODY."""
    dot: int
    """Index of the dot of the closing ``.md``."""
    end: int
    """Index behind the match."""


def paths_in_text(text: str) -> List[str]:
    """The paths in a text by the rule above: in order, without duplicates, not normalised."""
    return list(dict.fromkeys(text[match.start : match.end] for match in _matches(text)))


def candidates_in_text(text: str) -> Tuple[str, ...]:
    """Everything in a text that may be the path of a card, the likely reading of each match first.

    The shortest match still swallows words: in ``use /tmp/x and /a/b.md`` it begins at ``/tmp``.
    So behind each match come the paths from every later start within it to the same end. What
    cannot name a card (a Windows drive, an over-long path) is left out. Order of the text, no
    duplicates, not normalised; bounded by the constants above.
    """
    text = text[:MAX_TEXT_CHARS]
    found: Dict[str, None] = {}
    extra = 0
    for match in islice(_matches(text), MAX_MATCHES):
        found[text[match.start : match.end]] = None
        if extra < MAX_EXTRA_CANDIDATES:
            later = _later_starts(text, match)
            extra += len(later)
            found.update((text[start : match.end], None) for start in later)
    return tuple(path for path in found if can_be_card(path))


def can_be_card(path: str) -> bool:
    """Whether a path is absolute, short enough, and spelled in characters that a file name can have."""
    if not path.startswith("/") or len(path) > MAX_PATH_CHARS or "\0" in path:
        return False
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair: JSON can carry it, a file name cannot
        return False
    return True


def tool_path(value: object, cwd: Optional[str]) -> Optional[str]:
    """The path that a tool call names, or None when it cannot be a card.

    Ends in ``.md`` in any case. An absolute path stays as it is; a relative one is joined to
    ``cwd`` and normalised without a look at the disk, and is None when there is no such folder.
    """
    if not isinstance(value, str) or value[-3:].lower() != ".md":
        return None
    if value.startswith("/"):
        return value
    if not isinstance(cwd, str) or not cwd.startswith("/"):
        return None
    joined = posixpath.normpath(posixpath.join(cwd, value))
    # POSIX lets exactly two leading slashes stand; no board's folder is spelled so.
    return "/" + joined.lstrip("/")


def text_of(content: object) -> str:
    """The text of a message: a string as it is, of a list the ``text`` of its text blocks by line."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    blocks = (block for block in content if isinstance(block, dict) and block.get("type") == "text")
    texts = (block.get("text") for block in blocks)
    return "\n".join(text for text in texts if isinstance(text, str))


def _matches(text: str) -> Iterator[_Match]:
    """All matches from left to right. ``cursor`` and ``end`` only ever move forwards."""
    cursor = 0
    end = _END.search(text)
    while end is not None:
        start = _START.search(text, cursor)
        if start is None:
            return
        if end.start() <= start.end():  # no room for a body
            end = _END.search(text, start.end() + 1)
            continue
        if _BREAK.search(text, start.end(), end.start()):
            # This start cannot reach the next end, nor can any other in front of the last break.
            cursor = 1 + max(text.rfind(character, start.end(), end.start()) for character in _BREAKS)
            continue
        yield _Match(start.start(), start.end(), end.start(), end.end())
        cursor = end.end()


def _later_starts(text: str, match: _Match) -> Tuple[int, ...]:
    """Where else within a match a path with the same end could begin."""
    first = max(match.body, match.end - MAX_PATH_CHARS)
    starts = _START.finditer(text, first, match.dot)
    nearest: Deque[int] = deque(maxlen=MAX_LATER_STARTS)
    nearest.extend(start.start() for start in starts if start.end() < match.dot)
    return tuple(start for start in nearest if text[start] == "/")
