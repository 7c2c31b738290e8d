"""A request target taken apart as a browser would: path and query values. No I/O."""

import functools
import re
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional
from urllib.parse import parse_qsl

_ABSOLUTE = re.compile(r"(?i)https?://([^/\\?#]*)(.*)")
_SLASH = re.compile(r"[/\\]")


@dataclass(frozen=True)
class Target:
    """Where a request goes."""

    path: str
    """Dot segments resolved, otherwise as sent: nothing is percent-decoded."""
    query: Mapping[str, str]
    """The first value of each name, decoded."""
    values: Mapping[str, List[str]]
    """All values of each name, in their order, decoded."""
    authority: Optional[str] = None
    """Host and port of the absolute form (``GET http://host/path``), which overrides ``Host``."""


# Agents ask for the same few paths over and over. At most 32 KiB each, so 2 MiB in all.
@functools.lru_cache(maxsize=64)
def parse_target(text: str) -> Optional[Target]:
    """The target of a request line, or None when it is neither a path, a URL nor ``*``."""
    authority = None
    absolute = _ABSOLUTE.fullmatch(text)
    if absolute is not None:
        authority, text = absolute.groups()
    elif text == "*":
        text = "/*"
    elif not text.startswith("/"):
        return None
    path, _, query = text.partition("#")[0].partition("?")
    values = _values(query)
    first = {name: each[0] for name, each in values.items()}
    return Target(_normal(path or "/"), first, values, authority)


def _normal(path: str) -> str:
    """WHATWG URL path state: a backslash is a slash, ``%2e`` is a dot, empty segments stay."""
    kept = []
    parts = _SLASH.split(path)[1:]
    for position, part in enumerate(parts):
        dots = part.lower().replace("%2e", ".")
        if dots not in (".", ".."):
            kept.append(part)
            continue
        if dots == ".." and kept:
            kept.pop()
        if position == len(parts) - 1:
            kept.append("")
    return "/" + "/".join(kept)


def _values(query: str) -> Dict[str, List[str]]:
    values: Dict[str, List[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        values.setdefault(name, []).append(value)
    return values
