"""The cursor counts lines, indentation and tabs, and looks ahead without losing its place."""

import pytest

from companion.boards.yaml_cursor import Cursor, YamlError


def test_space_is_passed_over_lines_and_comments() -> None:
    """The number of line breaks, the indentation of the line reached, the first tab in it."""
    at = Cursor("  # one\r\n\n \t# two\r   x")
    assert at.skip_space() == 3
    assert (at.char, at.line, at.indent, at.first_tab) == ("x", 3, 3, -1)


def test_a_comment_needs_space_in_front() -> None:
    """``a#b`` is one word."""
    at = Cursor("a#b")
    at.pos = 1
    assert at.skip_space() == 0
    assert at.char == "#"


def test_a_tab_is_noticed_where_it_stands() -> None:
    """Tabs may separate, not indent: the reader asks for the first one of a line."""
    at = Cursor("\n \tx")
    at.skip_space()
    assert (at.indent, at.first_tab) == (1, 2)


@pytest.mark.parametrize(
    ("text", "boundary"),
    [
        ("---", True),
        ("--- x", True),
        ("...\n", True),
        ("----", False),
        ("..x", False),
        ("\ufeff\n---", True),
        ("\ufeff# c\n%YAML", True),
        ("\ufeffx", False),
        ("x", False),
    ],
)
def test_a_document_ends_at_a_separator_or_a_byte_order_mark_before_one(text: str, boundary: bool) -> None:
    """Three dashes or dots alone, at the beginning of a line; looking does not move."""
    at = Cursor(text)
    assert at.at_boundary() is boundary
    assert at.pos == 0


def test_a_place_can_be_returned_to() -> None:
    """Line, indentation and tab are part of it."""
    at = Cursor("a\n  b")
    place = at.place()
    at.pos = 1
    at.skip_space()
    at.back_to(place)
    assert (at.char, at.line, at.indent) == ("a", 0, 0)


def test_a_failure_tells_the_line() -> None:
    """From 0."""
    at = Cursor("a\nb")
    at.pos = 1
    at.skip_space()
    with pytest.raises(YamlError, match="odd") as caught:
        at.fail("odd")
    assert caught.value.line == 1
