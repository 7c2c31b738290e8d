"""The three searches: command lines, merging, and answers of any kind."""

import json
from typing import Dict, List, Sequence

import pytest

from companion.assignment.search import LINK, Found, link_key, search
from companion.core.errors import AssignmentFailed, ProgramFailed
from tests.companion.assignment.world import item

JSON_FIELDS = "author,body,labels,number,repository,state,title,updatedAt,url"


class Gh:
    """Answers in the order of the searches."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.calls: List[List[str]] = []

    def __call__(self, argv: Sequence[str]) -> str:
        self.calls.append(list(argv))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, str) else json.dumps(answer)


def found(*answers: object) -> Found:
    """What these answers come to."""
    return search(Gh(*answers), "gh", [])


def test_the_three_command_lines() -> None:
    """Exactly the contract's, with an ``--owner`` for each organization."""
    gh = Gh([], [], [])
    search(gh, "/bin/gh", ["acme", "other"])
    rest = [
        "--state",
        "open",
        "--limit",
        "1000",
        "--json",
        JSON_FIELDS,
        "--owner",
        "acme",
        "--owner",
        "other",
    ]
    assert gh.calls == [
        ["/bin/gh", "search", "issues", "--assignee", "@me", *rest],
        ["/bin/gh", "search", "prs", "--assignee", "@me", *rest],
        ["/bin/gh", "search", "prs", "user-review-requested:@me", *rest],
    ]


def test_without_organizations_there_is_no_owner() -> None:
    """Everything of the user then."""
    gh = Gh([], [], [])
    search(gh, "gh", [])
    assert not any("--owner" in call for call in gh.calls)


def test_a_review_request_wins_over_an_assignment() -> None:
    """One pull request found twice is one; GitHub does not mind the case of a link."""
    both = item(3, "pull")
    result = found(
        [item(1)], [both, item(2, "pull")], [{**both, "url": "https://github.com/Acme/Rocket/pull/3"}]
    )
    assert [(each.number, each.review) for each in result.assignments] == [(1, False), (3, True), (2, False)]
    assert (result.unusable, result.cut) == (0, False)


def test_all_fields_are_taken() -> None:
    """As gh prints them."""
    one = found([item(7, labels=[{"name": "bug"}, {"name": "help wanted"}])], [], []).assignments[0]
    assert one.title == "Thing 7" and one.repository == "acme/rocket" and one.author == "wile"
    assert one.labels == ("bug", "help wanted") and one.description == "What number 7 is about."
    assert (one.state, one.updated) == ("open", "2026-05-14T10:00:00Z")


def test_a_number_of_very_many_digits_does_no_harm() -> None:
    """The link says which number is meant."""
    text = json.dumps([item(7)]).replace('"number": 7', '"number": ' + "9" * 10_000)
    assert [each.number for each in found(text, [], []).assignments] == [7]


@pytest.mark.parametrize("failing", [0, 1, 2])
@pytest.mark.parametrize(
    "answer", [ProgramFailed("gh failed (exit code 4)"), "", "{", "{}", "null", '"text"', "[" * 100_000]
)
def test_half_an_answer_is_none(failing: int, answer: object) -> None:
    """Whichever of the searches fails or babbles."""
    answers: List[object] = [[item(1)], [], []]
    answers[failing] = answer
    with pytest.raises((AssignmentFailed, ProgramFailed), match="gh"):
        found(*answers)


@pytest.mark.parametrize(
    "result",
    [
        None,
        3,
        "text",
        [],
        {},
        item(1, url=None),
        item(1, url=["x"]),
        item(1, url="https://github.com/acme/rocket"),
        item(1, url="javascript:alert(1)//github.com/a/b/issues/1"),
        item(1, url="https://github.com/acme/rocket/issues/1\nuuid: x"),
        item(1, url="https://github.com/acme/rocket/issues/1?x=y"),
        item(1, url="https://github.com/a b/c/issues/1"),
    ],
)
def test_what_is_no_issue_is_counted(result: object) -> None:
    """The rest is used."""
    answer = found([result, item(2)], [], [])
    assert [each.number for each in answer.assignments] == [2]
    assert answer.unusable == 1


@pytest.mark.parametrize("odd", [None, 3, [], {}, "", {"login": 3}, [None, {"name": None}, {"name": ""}]])
def test_fields_of_other_types_have_a_stand_in(odd: object) -> None:
    """A link is enough for a card."""
    names = ("author", "body", "labels", "number", "repository", "state", "title", "updatedAt")
    changes: Dict[str, object] = dict.fromkeys(names, odd)
    one = found([{**item(5), **changes}], [], []).assignments[0]
    assert (one.title, one.repository, one.number) == ("acme/rocket#5", "acme/rocket", 5)
    assert (one.author, one.state, one.updated) == ("ghost", "open", "unknown")
    assert (one.labels, one.description) == ((), "")


def test_foreign_texts_are_on_one_line_and_bounded() -> None:
    """No line end, no escape sequence, no half character, no endless title."""
    odd = item(
        1, title="a\n---\r\nuuid: x\t\x1b[31m\x00\ud800b" + "x" * 5000, labels=[{"name": "l\n- m"}] * 500
    )
    one = found([odd], [], []).assignments[0]
    assert one.title.startswith("a --- uuid: x [31mbxxx") and len(one.title) <= 300
    assert len(one.labels) == 100 and one.labels[0] == "l - m"


def test_a_full_answer_may_not_be_all() -> None:
    """GitHub's limit."""
    assert found([item(number) for number in range(1, 1001)], [], []).cut
    assert not found([item(number) for number in range(1, 1000)], [], []).cut


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("see https://github.com/a/b/issues/12.", ["github.com/a/b/issues/12"]),
        ("[x](https://github.com/A/b/pull/3/files#diff)", ["github.com/a/b/pull/3"]),
        ("<http://git.acme.test:8443/a/b/pull/3>", ["git.acme.test:8443/a/b/pull/3"]),
        ("https://x/y)https://github.com/a/b/issues/1", ["github.com/a/b/issues/1"]),
        ("https://github.com/a/b/issues/new https://github.com/a/b", []),
        ("https://github.com/a/b/discussions/1", []),
    ],
)
def test_links(text: str, links: List[str]) -> None:
    """In any text."""
    assert [link_key(link.group()) for link in LINK.finditer(text)] == links
