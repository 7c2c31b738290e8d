"""What jira is asked, and what its answers say."""

import json

import pytest

from companion.core.errors import ProgramFailed
from companion.enrich.jira import arguments, fields
from companion.enrich.urls import Link
from tests.fakes.fake_viewer import ticket

LINK = Link(ticket(3), "jira", "acme.atlassian.net", "SHOP-3")

ISSUE = {"key": "SHOP-3", "fields": {"summary": "A basket", "status": {"name": "In work"}}}
EXPECTED = {"key": "SHOP-3", "status": "In work", "title": "A basket"}


def test_what_jira_is_asked() -> None:
    """The key alone: which site is meant stands in its configuration."""
    assert arguments(LINK) == ["issue", "view", "SHOP-3", "--raw"]


def test_an_issue() -> None:
    """Key, state and title; the rest is passed over."""
    assert fields(LINK, json.dumps({**ISSUE, "id": "1", "expand": "all"})) == EXPECTED


@pytest.mark.parametrize(
    "differing",
    [
        {"key": ""},
        {"key": 3},
        {"key": None},
        {"fields": None},
        {"fields": []},
        {"fields": {"summary": "A basket"}},
        {"fields": {"summary": "A basket", "status": "In work"}},
        {"fields": {"summary": "A basket", "status": {"name": ""}}},
        {"fields": {"summary": "", "status": {"name": "In work"}}},
        {"fields": {"summary": 7, "status": {"name": "In work"}}},
        {"fields": {"status": {"name": "In work"}}},
    ],
)
def test_a_malformed_answer_is_a_failed_lookup(differing: object) -> None:
    """All three must be texts."""
    assert isinstance(differing, dict)
    with pytest.raises(ProgramFailed, match="jira's answer has no usable "):
        fields(LINK, json.dumps({**ISSUE, **differing}))
    with pytest.raises(ProgramFailed):
        fields(LINK, "No issue found")


def test_another_sites_issue_of_the_same_key_is_not_the_one_that_was_meant() -> None:
    """The program knows one site; the answer tells which, unless it goes through a gateway."""
    for own in ("https://acme.atlassian.net/rest/api/3/issue/1", "https://ACME.atlassian.net/x", None, 7):
        assert fields(LINK, json.dumps({**ISSUE, "self": own})) == EXPECTED
    assert fields(LINK, json.dumps({**ISSUE, "self": "https://api.atlassian.com/ex/jira/1"})) == EXPECTED
    with pytest.raises(ProgramFailed, match="jira is set up for another site"):
        fields(LINK, json.dumps({**ISSUE, "self": "https://other.atlassian.net/rest/api/3/issue/1"}))
