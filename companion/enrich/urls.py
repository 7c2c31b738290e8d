"""Which links can be looked up, and where. Pure."""

import re
from typing import NamedTuple, Optional

_GITHUB = re.compile(
    r"https://(?:www\.)?github\.com/[^/?#\s]+/[^/?#\s]+/(pull|issues)/[0-9]+(?:[/?#][^\x00-\x1f\x7f]*)?"
)
_JIRA = re.compile(
    r"https://([A-Za-z0-9-]+\.atlassian\.net)/browse/([A-Z][A-Z0-9]*-[0-9]+)(?:[/?#][^\x00-\x1f\x7f]*)?"
)


class Link(NamedTuple):
    """A link that can be looked up."""

    url: str
    """Exactly as it was asked for."""
    provider: str
    """``github`` or ``jira``."""
    place: str
    """GitHub: ``pull`` or ``issues``. Jira: the host."""
    key: str = ""
    """Jira: the issue's key."""


def parse_link(url: str) -> Optional[Link]:
    """The link, or None when nobody can look it up: another host, plain http, no issue's page."""
    found = _GITHUB.fullmatch(url)
    if found is not None:
        return Link(url, "github", found.group(1))
    found = _JIRA.fullmatch(url)
    return found and Link(url, "jira", found.group(1), found.group(2))
