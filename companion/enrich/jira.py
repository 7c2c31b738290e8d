"""Jira's issues, by ``jira`` (jira-cli). Pure: what to ask, and what the answer says."""

import re
from typing import Dict, List

from companion.core.errors import ProgramFailed
from companion.enrich.answers import Fields, json_object, text_of
from companion.enrich.urls import Link

PROGRAM = "jira"

_SITE = re.compile(r"https://([A-Za-z0-9-]+\.atlassian\.net)/")


def arguments(link: Link) -> List[str]:
    """What ``jira`` is asked. Which site it asks stands in its own configuration."""
    return ["issue", "view", link.key, "--raw"]


def fields(link: Link, text: str) -> Fields:
    """``key``, ``status`` and ``title``. ProgramFailed when the answer does not tell them.

    Also when it says that it is about another site's issue: the same key may exist on both.
    """
    answer = json_object(PROGRAM, text)
    site = _SITE.match(str(answer.get("self")))
    if site is not None and site.group(1).lower() != link.place.lower():
        raise ProgramFailed("jira is set up for another site than the link's")
    of_issue = _object(answer.get("fields"))
    return {
        "key": text_of(PROGRAM, answer.get("key"), "key"),
        "status": text_of(PROGRAM, _object(of_issue.get("status")).get("name"), "status"),
        "title": text_of(PROGRAM, of_issue.get("summary"), "title"),
    }


def _object(value: object) -> Dict[str, object]:
    return value if isinstance(value, dict) else {}
