"""What gh is asked, and what its answers say."""

import json
from typing import Dict, List

import pytest

from companion.core.errors import ProgramFailed
from companion.enrich.github import arguments, ci_status, fields
from companion.enrich.urls import Link
from tests.fakes.fake_viewer import issue, pull

PULL = Link(pull(12), "github", "pull")
ISSUE = Link(issue(7), "github", "issues")


def told(**differing: object) -> str:
    """What gh prints about a pull request."""
    usual: Dict[str, object] = {
        "isDraft": False,
        "number": 12,
        "state": "OPEN",
        "statusCheckRollup": [],
        "title": "A basket",
    }
    return json.dumps({**usual, **differing})


def test_what_gh_is_asked() -> None:
    """The URL as it stands, and only fields that are shown."""
    assert arguments(PULL) == [
        "pr",
        "view",
        pull(12),
        "--json",
        "isDraft,number,state,statusCheckRollup,title",
    ]
    assert arguments(ISSUE) == ["issue", "view", issue(7), "--json", "number,state,title"]


def test_a_pull_request() -> None:
    """Number, title, state, and how its checks fare."""
    expected = {"number": 12, "title": "A basket", "status": "open", "ciStatus": "none"}
    assert fields(PULL, told()) == expected
    assert fields(PULL, told(isDraft=True)) == {**expected, "status": "draft"}


def test_an_issue_has_no_checks() -> None:
    """Whatever else the answer holds."""
    text = '{"number": 7, "title": "Lost", "state": "OPEN", "statusCheckRollup": [1], "more": 1}'
    assert fields(ISSUE, text) == {"number": 7, "title": "Lost", "status": "open"}


@pytest.mark.parametrize(
    ("state", "draft", "status", "has_checks"),
    [
        ("OPEN", False, "open", True),
        ("OPEN", True, "draft", True),
        ("CLOSED", False, "closed", False),
        ("CLOSED", True, "draft", True),
        ("MERGED", False, "merged", False),
        ("OPEN", "yes", "open", True),
        ("OPEN", None, "open", True),
        ("whatever", True, "draft", True),
    ],
)
def test_states(state: str, draft: object, status: str, has_checks: bool) -> None:
    """A draft is a draft; checks count only as long as it is not closed."""
    found = fields(PULL, told(state=state, isDraft=draft))
    assert (found["status"], "ciStatus" in found) == (status, has_checks)


@pytest.mark.parametrize(
    "differing",
    [
        {"number": None},
        {"number": "12"},
        {"number": True},
        {"title": ""},
        {"title": None},
        {"title": ["A"]},
        {"title": "x" * 100_000},
        {"state": "open"},
        {"state": "REOPENED"},
        {"state": None},
        {"state": ["OPEN"]},
        {"statusCheckRollup": "all fine"},
        {"statusCheckRollup": {"state": "SUCCESS"}},
        {"statusCheckRollup": 7},
    ],
)
def test_a_malformed_answer_is_a_failed_lookup(differing: Dict[str, object]) -> None:
    """Nothing is guessed."""
    with pytest.raises(ProgramFailed, match="gh's answer has no usable "):
        fields(PULL, told(**differing))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "Not Found", '{"number": NaN}'])
def test_no_answer_at_all_is_a_failed_lookup(text: str) -> None:
    """Garbage too."""
    with pytest.raises(ProgramFailed):
        fields(PULL, text)


FAILING = ["ACTION_REQUIRED", "CANCELLED", "ERROR", "FAILURE", "STALE", "STARTUP_FAILURE", "TIMED_OUT"]
PENDING = ["EXPECTED", "IN_PROGRESS", "PENDING", "QUEUED", "REQUESTED", "WAITING"]
DONE = {"status": "COMPLETED", "conclusion": "SUCCESS"}


@pytest.mark.parametrize("name", ["conclusion", "state", "status"])
@pytest.mark.parametrize(
    ("values", "status"), [(FAILING, "failing"), (PENDING, "pending"), (["SUCCESS", "NEUTRAL"], "passing")]
)
def test_each_value_counts_wherever_it_stands(name: str, values: List[str], status: str) -> None:
    """Check runs have a status and a conclusion, commit statuses a state."""
    for value in values:
        assert ci_status([DONE, {name: value}]) == status


@pytest.mark.parametrize(
    ("rollup", "status"),
    [
        ([], "none"),
        (None, "none"),
        ([DONE], "passing"),
        ([DONE, {"status": "IN_PROGRESS", "conclusion": ""}], "pending"),
        ([{"state": "PENDING"}, DONE, {"state": "ERROR"}], "failing"),
        ([{"status": "QUEUED", "conclusion": "FAILURE"}], "failing"),
        (["SUCCESS", DONE], "pending"),
        ([None], "pending"),
        ([{}], "passing"),
        ([{"state": 7, "conclusion": ["FAILURE"], "status": None}], "passing"),
        ([{"conclusion": "failure"}], "passing"),
    ],
)
def test_checks_together(rollup: object, status: str) -> None:
    """The worst counts; what is no object is not done yet."""
    assert ci_status(rollup) == status
