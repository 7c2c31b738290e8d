"""A text is a stream of documents, of which a card's head may hold one."""

import pytest

from companion.boards.yaml_cursor import YamlError
from companion.boards.yaml_documents import read_events
from companion.boards.yaml_events import DOCUMENT


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("# c\n", 0),
        ("...\n", 0),
        ("a: b", 1),
        ("---\na: b\n...\n", 1),
        ("a\n---\nb", 2),
        ("---\n---", 2),
        ("%YAML 1.2\n---\na: b", 1),
        ("\ufeff# c\na: b", 1),
    ],
)
def test_documents_are_counted(text: str, count: int) -> None:
    """Comments and end marks alone are none."""
    assert sum(event.kind == DOCUMENT for event in read_events(text)) == count


@pytest.mark.parametrize(
    "text", ["a: b\n%YAML 1.2", "%YAML 1.2\na: b", "%YAML 2.0\n---\n", "% x\n---\n", "a\n... b", "a: b\0"]
)
def test_what_stands_between_documents_must_be_right(text: str) -> None:
    """Directives need a ``---``, end marks a line of their own; a null byte is never right."""
    with pytest.raises(YamlError):
        read_events(text)
