"""What a card says."""

import pytest

from companion.assignment.cards import body_of, shortened, title_of
from companion.assignment.search import Assignment

ONE = Assignment(
    review=True,
    url="https://github.com/acme/rocket/pull/7",
    title="Fix the fuse",
    repository="acme/rocket",
    number=7,
    author="wile",
    state="open",
    updated="2026-05-14T10:00:00Z",
    labels=("bug", "help wanted"),
    description="It burns.\n\nToo fast.",
)


def test_a_title_tells_why_it_is_here() -> None:
    """Review or assignment."""
    assert title_of(ONE) == "Review Requested: Fix the fuse"
    assert title_of(ONE._replace(review=False)) == "Issue Assigned: Fix the fuse"


def test_a_body_is_link_list_and_description() -> None:
    """In this order."""
    assert body_of(ONE) == (
        "https://github.com/acme/rocket/pull/7\n\n"
        "- Repository: acme/rocket\n- Number: #7\n- Author: wile\n- State: open\n"
        "- Updated: 2026-05-14T10:00:00Z\n- Labels: bug, help wanted\n\n"
        "It burns.\n\nToo fast."
    )


def test_without_labels_and_description() -> None:
    """No empty paragraph at the end."""
    assert body_of(ONE._replace(labels=(), description=" \n")).endswith("- Labels: none")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("short", "short"),
        ("x" * 10, "x" * 10),
        ("x" * 11, "x" * 10 + "…"),
        ("  xxxxxxxxxxx", "x" * 10 + "…"),
        ("xxxxxxxxx yz", "x" * 9 + "…"),
        ("x" * 9 + "e\u0301\u0302 rest", "x" * 9 + "…"),
        ("x" * 8 + "e\u0301 rest", "x" * 8 + "e\u0301…"),
        ("x" * 9 + "\U0001f469\u200d\U0001f467 rest", "x" * 9 + "…"),
        ("x" * 8 + "\U0001f469\u200d\U0001f467 rest", "x" * 8 + "…"),
        ("x" * 9 + "\U0001f44d\U0001f3fd rest", "x" * 9 + "…"),
        ("x" * 9 + "\U0001f1e9\U0001f1ea rest", "x" * 9 + "…"),
        ("x" * 9 + "\r\nrest", "x" * 9 + "…"),
        ("\U0001f600" * 11, "\U0001f600" * 10 + "…"),
    ],
)
def test_a_long_text_is_cut_between_letters(text: str, kept: str) -> None:
    """Accents, joined pictures, colours of skin and flags stay whole or go."""
    assert shortened(text, 10) == kept


def test_a_text_that_is_one_endless_letter_is_cut_all_the_same() -> None:
    """Thousands of accents."""
    assert len(shortened("e" + "\u0301" * 5000, 2000)) > 1900


def test_the_limit_of_a_description() -> None:
    """Two thousand characters and an ellipsis."""
    assert body_of(ONE._replace(description="x" * 2000)).endswith("x" * 2000)
    cut = body_of(ONE._replace(description="x" * 2001))
    assert cut.endswith("\n\n" + "x" * 2000 + "…")
