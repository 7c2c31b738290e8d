"""Reads a YAML text as a stream of documents: directives, ``---``, ``...``."""

from typing import List, Set, Tuple

from companion.boards.yaml_cursor import YamlError
from companion.boards.yaml_events import CLOSE, DOCUMENT, Draft, Event
from companion.boards.yaml_nodes import VALUE, read_node
from companion.boards.yaml_tags import read_directive


def read_events(text: str) -> List[Event]:
    """All events of all documents in the text. YamlError where js-yaml would refuse it."""
    if "\0" in text:
        raise YamlError("null byte", text.count("\n", 0, text.index("\0")))
    draft = Draft(text)
    at = draft.at
    while not at.at_end:
        at.skip_bom()
        at.skip_space()
        if not at.at_end:
            _document(draft)
    return draft.events


def _document(draft: Draft) -> None:
    at = draft.at
    draft.handles = {}
    explicit, compact = _document_start(draft)
    if not explicit and at.pos == at.line_start and at.char == "." and at.at_separator():
        at.pos += 3
        at.skip_space()
        return
    draft.add(DOCUMENT)
    read_node(draft, at.indent - 1, VALUE, compact=compact, key_props=compact)
    at.skip_space()
    ended = _document_end(draft)
    draft.add(CLOSE)
    if not ended and not at.at_end and not at.at_boundary():
        at.fail("text that belongs to nothing")


def _document_start(draft: Draft) -> Tuple[bool, bool]:
    """Directives and ``---``. (Whether there was one, whether a mapping may begin on this line.)"""
    at = draft.at
    seen: Set[str] = set()
    directives = False
    at.skip_space()
    while at.indent == 0 and at.char == "%":
        directives = True
        read_directive(at, draft.handles, seen)
        at.skip_space()
    if at.indent == 0 and at.char == "-" and at.at_separator():
        line = at.line
        at.pos += 3
        at.skip_space()
        return True, at.line > line
    if directives:
        at.fail("a directive without --- behind it")
    return False, True


def _document_end(draft: Draft) -> bool:
    """Pass ``...`` if it stands here."""
    at = draft.at
    if at.pos != at.line_start or at.char != "." or not at.at_separator():
        return False
    line = at.line
    at.pos += 3
    at.skip_space()
    if at.line == line and not at.at_end:
        at.fail("text behind the end of the document")
    return True
