"""Asks ``gh`` what is assigned to the user or waits for the user's review."""

import re
import unicodedata
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from companion.core import foreign_json
from companion.core.errors import AssignmentFailed

RESULT_LIMIT = 1000
"""GitHub gives no more results to one search."""

_FIELDS = "author,body,labels,number,repository,state,title,updatedAt,url"
# (Whether a review is asked for; what to search). Of one thing found twice the later kind counts.
_SEARCHES: Tuple[Tuple[bool, Tuple[str, ...]], ...] = (
    (False, ("issues", "--assignee", "@me")),
    (False, ("prs", "--assignee", "@me")),
    (True, ("prs", "user-review-requested:@me")),
)

_SEGMENT = r"[^\s/<>()\[\]\"'`?#]{1,200}"
LINK = re.compile(rf"https?://{_SEGMENT}/({_SEGMENT}/{_SEGMENT})/(?:issues|pull)/([0-9]{{1,12}})", re.ASCII)
"""A link to an issue or pull request (of GitHub, or of a company's own); owner/repository, number."""

# GitHub admits titles of 256 characters, labels of 50, names of 39.
_TITLE_CHARACTERS = 300
_NAME_CHARACTERS = 150
_MOST_LABELS = 100

Run = Callable[[Sequence[str]], str]
"""Runs a program; what it prints. ProgramFailed."""


class Assignment(NamedTuple):
    """An open issue or pull request. All texts are foreign; all but the description are one line."""

    review: bool
    """Whether the user's review is asked for; else it is assigned to the user."""
    url: str
    title: str
    repository: str
    """Owner and name."""
    number: int
    author: str
    state: str
    updated: str
    labels: Tuple[str, ...]
    description: str


def link_key(link: str) -> str:
    """What makes two links the same: GitHub minds neither their case nor whether they say https."""
    return link.lower().partition("://")[2]


class Found(NamedTuple):
    """The answers of all searches together."""

    assignments: List[Assignment]
    """Each once, in the order of the searches."""
    unusable: int
    """Results that are no issues or pull requests as we know them."""
    cut: bool
    """Whether a search gave as many results as it may, so that there may be more."""


def search(run: Run, gh: str, organizations: Sequence[str]) -> Found:
    """Run the three searches. CompanionError when one fails: half an answer is none."""
    owners = [part for name in organizations for part in ("--owner", name)]
    limits = ["--state", "open", "--limit", str(RESULT_LIMIT), "--json", _FIELDS]
    found: Dict[str, Assignment] = {}
    unusable, cut = 0, False
    for review, what in _SEARCHES:
        results = _results(run([gh, "search", *what, *limits, *owners]), " ".join(what))
        cut = cut or len(results) >= RESULT_LIMIT
        for result in results:
            assignment = _assignment(result, review)
            if assignment is None:
                unusable += 1
            else:
                found[link_key(assignment.url)] = assignment
    return Found(list(found.values()), unusable, cut)


def _results(text: str, what: str) -> List[object]:
    try:
        results = foreign_json.loads(text)
    except ValueError as exc:
        raise AssignmentFailed(f"gh search {what}: its answer is not JSON") from exc
    if not isinstance(results, list):
        raise AssignmentFailed(f"gh search {what}: its answer is no list")
    return results


def _assignment(result: object, review: bool) -> Optional[Assignment]:
    if not isinstance(result, dict):
        return None
    url = result.get("url")
    link = LINK.fullmatch(url) if isinstance(url, str) else None
    if link is None:
        return None
    number = int(link.group(2))
    labels = result.get("labels")
    names = [_line(_inner(label, "name")) for label in labels] if isinstance(labels, list) else []
    body = result.get("body")
    return Assignment(
        review=review,
        url=link.group(),
        title=_line(result.get("title"), _TITLE_CHARACTERS) or f"{link.group(1)}#{number}",
        repository=_line(_inner(result.get("repository"), "nameWithOwner")) or link.group(1),
        number=number,
        author=_line(_inner(result.get("author"), "login")) or "ghost",
        state=_line(result.get("state")) or "open",
        updated=_line(result.get("updatedAt")) or "unknown",
        labels=tuple(name for name in names[:_MOST_LABELS] if name),
        description=body if isinstance(body, str) else "",
    )


def _inner(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def _line(value: object, most: int = _NAME_CHARACTERS) -> str:
    """A text on one line, fit for a terminal; empty when it is none."""
    if not isinstance(value, str):
        return ""
    line = " ".join(value[: 2 * most].split())[:most].rstrip()
    return "".join(each for each in line if unicodedata.category(each) not in ("Cc", "Cs"))
