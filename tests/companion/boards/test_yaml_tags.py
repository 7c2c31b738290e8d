"""Tags are told apart by their full names; what is no tag is refused."""

from typing import Dict

import pytest

from companion.boards.yaml_cursor import Cursor, YamlError
from companion.boards.yaml_tags import full_name, read_directive, read_name, read_tag


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("!!str", "tag:yaml.org,2002:str"),
        ("!x", "!x"),
        ("!e!x", "tag:e,1:x"),
        ("!<tag:y>", "tag:y"),
        ("!!s%74r", "tag:yaml.org,2002:str"),
        ("!%C3%A9", "!é"),
        ("!%E2%82%AC", "!€"),
    ],
)
def test_a_written_tag_has_a_full_name(raw: str, name: str) -> None:
    """Handles stand for what was declared; percent signs for bytes."""
    assert full_name(raw, {"!e!": "tag:e,1:"}) == name


@pytest.mark.parametrize("raw", ["!a!b", "!!a!b", "!a[", "!<a b>", "!<a", "!\u00e9", "!%4", "!_!a"])
def test_what_is_no_tag_is_refused(raw: str) -> None:
    """Undeclared handles, characters that tags cannot have, a bracket never closed."""
    with pytest.raises(YamlError):
        read_tag(Cursor(raw), False, {})


def test_a_tag_ends_at_a_bracket_inside_of_brackets() -> None:
    """There only."""
    at = Cursor("!a]")
    assert read_tag(at, True, {}) == "!a"
    assert at.char == "]"


def test_names_of_anchors_may_hold_anything_but_space_and_brackets() -> None:
    """One character at least."""
    assert read_name(Cursor("&\u00e9:x ")) == "\u00e9:x"
    with pytest.raises(YamlError):
        read_name(Cursor("& "))


def test_directives_declare_handles_once() -> None:
    """Unknown directives are passed over, repeated ones refused."""
    handles: Dict[str, str] = {}
    for line in ["%TAG !e! tag:e,1:\n", "%FOO bar baz\n", "%YAML 1.2 # c\n"]:
        read_directive(Cursor(line), handles, set())
    assert handles == {"!e!": "tag:e,1:"}
    for line in ["%TAG !e! tag:e,2:\n", "%TAG !a\n", "%TAG a b\n", "%YAML 3.0\n", "%YAML\n", "%\n"]:
        with pytest.raises(YamlError):
            read_directive(Cursor(line), handles, set())
