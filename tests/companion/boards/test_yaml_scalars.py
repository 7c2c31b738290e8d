"""Each kind of scalar is read up to its own end; broken ones are told."""

import pytest

from companion.boards import yaml_scalars
from companion.boards.yaml_cursor import Cursor, YamlError


def test_a_plain_scalar_ends_at_a_key_sign_a_comment_or_less_indentation() -> None:
    """What follows is left for the next reader."""
    for text, value, rest in [("a b: c", "a b", ": c"), ("a #c", "a", "#c"), ("a\n  b\nc", "a b", "\nc")]:
        at = Cursor(text)
        assert yaml_scalars.read_plain(at, 1, in_flow=False) == value
        assert at.text[at.pos :].rstrip("\0") == rest


def test_brackets_end_a_plain_scalar_only_in_a_flow_collection() -> None:
    """Outside they are text."""
    assert yaml_scalars.read_plain(Cursor("a,b]"), 0, in_flow=True) == "a"
    assert yaml_scalars.read_plain(Cursor("a,b]"), 0, in_flow=False) == "a,b]"


@pytest.mark.parametrize("text", ["'a", '"a', '"\\q"', '"\\x4"', "'a\n---\n'", "'\x01'"])
def test_a_broken_quoted_scalar_is_an_error(text: str) -> None:
    """Never closed, an unknown escape, the end of the document inside, a control character."""
    read = yaml_scalars.read_single_quoted if text[0] == "'" else yaml_scalars.read_double_quoted
    with pytest.raises(YamlError):
        read(Cursor(text), 0)


def test_line_breaks_in_quotes_are_folded() -> None:
    """One becomes a space, two become one; an escaped one vanishes."""
    assert yaml_scalars.read_single_quoted(Cursor("'a  \n  b\n\n  c'"), 0) == "a b\nc"
    assert yaml_scalars.read_double_quoted(Cursor('"a \\\n  b\n c"'), 0) == "a b c"


def test_two_escaped_halves_make_one_character() -> None:
    """JSON writes such characters so; half a one becomes the replacement character."""
    assert yaml_scalars.read_double_quoted(Cursor('"\\ud83d\\ude00"'), 0) == "\U0001f600"
    assert yaml_scalars.read_double_quoted(Cursor('"\\ud83d"'), 0) == "\ufffd"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("|\n a\n b\n", "a\nb\n"),
        (">\n a\n b\n", "a b\n"),
        ("|-\n a\n", "a"),
        ("|+\n a\n\n", "a\n\n"),
        ("|2\n   a\n", " a\n"),
        (">\n a\n\n  b\n c\n", "a\n\n b\nc\n"),
        ("|\n", ""),
        ("| # c\n a", "a\n"),
    ],
)
def test_block_scalars_keep_or_fold_their_lines(text: str, value: str) -> None:
    """Literal and folded, with each way to end and an indentation of their own."""
    assert yaml_scalars.read_block(Cursor(text), 1) == value


@pytest.mark.parametrize("reader", ["read_block", "read_single_quoted", "read_double_quoted"])
def test_what_begins_otherwise_is_left_alone(reader: str) -> None:
    """None, and the cursor has not moved."""
    at = Cursor("x")
    assert getattr(yaml_scalars, reader)(at, 0) is None
    assert at.pos == 0
