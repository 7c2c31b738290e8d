"""Nodes are nested as deep as js-yaml nests them, and no deeper."""

import pytest

from companion.boards.yaml_cursor import YamlError
from companion.boards.yaml_documents import read_events
from companion.boards.yaml_events import ALIAS, CLOSE, DOCUMENT, MAPPING, SCALAR, SEQUENCE
from companion.boards.yaml_nodes import MAX_DEPTH


def _kinds(text: str) -> "list[int]":
    return [event.kind for event in read_events(text)]


def test_block_and_flow_collections_give_the_same_events() -> None:
    """The form of writing leaves no trace."""
    expected = [DOCUMENT, MAPPING, SCALAR, SEQUENCE, SCALAR, SCALAR, CLOSE, CLOSE, CLOSE]
    for text in ["a:\n- b\n- c", "a: [b, c]", "{a: [b, c]}", "? a\n: - b\n  - c"]:
        assert _kinds(text) == expected, text


def test_a_pair_in_a_list_is_a_mapping() -> None:
    """``[a: b]`` is a list of one mapping, noticed only at the colon."""
    assert _kinds("[a: b]") == [DOCUMENT, SEQUENCE, MAPPING, SCALAR, SCALAR, CLOSE, CLOSE, CLOSE]


def test_an_anchor_in_front_of_a_key_is_the_keys() -> None:
    """On one line it belongs to the key; on a line of its own to the mapping."""
    key = [event.anchor for event in read_events("&x a: b")]
    mapping = [event.anchor for event in read_events("&x\na: b")]
    assert key == ["", "", "x", "", "", ""]
    assert mapping == ["", "x", "", "", "", ""]


def test_aliases_are_events_of_their_own() -> None:
    """They take no anchor or tag."""
    assert _kinds("a: &x b\nc: *x").count(ALIAS) == 1
    with pytest.raises(YamlError):
        read_events("a: &x b\nc: !!str *x")


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_depth_has_a_limit(opening: str) -> None:
    """js-yaml refuses there too; the reader never runs out of stack."""
    with pytest.raises(YamlError, match="deep"):
        read_events(opening * (MAX_DEPTH + 1))


@pytest.mark.parametrize("text", ["\ta: b", "a:\n\t- b", "-\t- a", "a:\n  b: c\n\td: e"])
def test_tabs_do_not_indent(text: str) -> None:
    """Wherever a block collection would begin behind one."""
    with pytest.raises(YamlError):
        read_events(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title: Fix: x", "needs quotes"),
        ("a: b\nt: 'x' : y", "needs quotes"),
        ("a: 'b' c", "text behind"),
    ],
)
def test_a_colon_in_a_value_is_told_as_such(text: str, said: str) -> None:
    """The slip that agents make most often, in words that tell what to do."""
    with pytest.raises(YamlError, match=said):
        read_events(text)
