"""Gives a YAML block or a card a uuid by adding as few bytes as possible; bytes in, bytes out.

Every proposal is read again before it counts: the uuid must be there and nothing else may mean
anything different. What cannot be done safely is refused with the reason.
"""

import re
from dataclasses import dataclass
from typing import Iterator, List, Tuple

from companion.boards.frontmatter import (
    BOM,
    card_uuid,
    find_block,
    read_front_matter,
    trimmed,
    why_no_uuid,
)
from companion.boards.yaml_cursor import YamlError
from companion.boards.yaml_documents import read_events
from companion.boards.yaml_events import CLOSE, DOCUMENT, MAPPING, SCALAR, SEQUENCE, Event
from companion.boards.yaml_values import load

_TWO_FENCES = re.compile(rb"---\r?\n(?=---)")
_LIKE_A_FENCE = re.compile(rb"[ \t\r\n]*---[ \t]*(?:[\r\n]|\Z)")
_FIRST_KEY = re.compile(rb"^( *)[^ \t\r\n#%]", re.MULTILINE)
_START_LINE = re.compile(rb"---[^\n]*\n")
_EMPTY_UUID = re.compile(
    rb"(?<![^\s{,])((?:uuid|\"uuid\"|'uuid')[ \t]*:)[ \t]*"
    rb"(~|null|Null|NULL|\"[ \t]*\"|'[ \t]*')?(?=[ \t\r\n,}]|\Z)"
)


class Refused(ValueError):
    """There is no safe way to add a uuid; the text says why."""


@dataclass(frozen=True)
class Repaired:
    """A card's bytes with a uuid in them."""

    data: bytes
    uuid: str
    notes: Tuple[str, ...]
    """What was done besides adding the uuid, in words for people."""


def card_with_uuid(data: bytes, uuid: str) -> Repaired:
    """The card with its own uuid, or else with the given one. Refused with the reason.

    A byte order mark in front is taken away, because it hides the front matter. Apart from that
    every byte stays.
    """
    notes: Tuple[str, ...] = ()
    if data.startswith(BOM):
        data = data[len(BOM) :]
        notes = ("removed the byte order mark in front",)
    if b"\0" in data:
        raise Refused("it is not UTF-8 text")
    own = card_uuid(data)
    if own is not None:
        return Repaired(data, own, notes)
    repaired = _card_with_line(data, uuid)
    if card_uuid(repaired) != uuid:
        raise Refused("no place was found where a uuid would be read")
    return Repaired(repaired, uuid, notes)


def block_with_uuid(block: bytes, uuid: str, newline: bytes = b"\n") -> bytes:
    """A YAML mapping (or nothing yet) with ``uuid`` added, or filled in where it is empty.

    YamlError when it is malformed, Refused when it is no mapping or holds a uuid already.
    """
    before = read_events(_text(block))
    value = load(_text(block)) if before else {}
    if not isinstance(value, dict):
        raise Refused("there are no keys in it")
    own = value.get("uuid")
    if own is not None and not (isinstance(own, str) and not trimmed(own)):
        raise Refused("it has a uuid already")
    proposals = _filled(block, uuid) if "uuid" in value else _extended(block, uuid, newline)
    for proposal in proposals:
        if _only_adds(uuid, before, proposal):
            return proposal
    raise Refused("no place was found where a uuid would be read")


def newline_of(data: bytes) -> bytes:
    """The line break that a file uses, by its first one."""
    first = data.find(b"\n")
    return b"\r\n" if first > 0 and data[first - 1 : first] == b"\r" else b"\n"


def _card_with_line(data: bytes, uuid: str) -> bytes:
    newline = newline_of(data)
    line = b"uuid: " + uuid.encode() + newline
    found = find_block(data)
    if found is not None:
        return _block_replaced(data, found[0], found[1], uuid)
    two_fences = _TWO_FENCES.match(data)
    if two_fences is not None:
        return data[: two_fences.end()] + line + data[two_fences.end() :]
    if _LIKE_A_FENCE.match(data) is not None:
        raise Refused(read_front_matter(data).problem or "")
    gap = b"" if not data or data[:1] in (b"\n", b"\r") else newline
    return b"---" + newline + line + b"---" + newline + gap + data


def _block_replaced(data: bytes, start: int, end: int, uuid: str) -> bytes:
    front = read_front_matter(data)
    if not isinstance(front.fields.get("uuid", ""), (str, type(None))):
        raise Refused(why_no_uuid(front))
    try:
        block = block_with_uuid(data[start:end], uuid, newline_of(data))
    except YamlError as exc:
        raise Refused(front.problem or str(exc)) from exc
    return data[:start] + block + data[end:]


def _extended(block: bytes, uuid: str, newline: bytes) -> Iterator[bytes]:
    """Ways to add a line (or, in braces, an entry), the nicest first."""
    key = _FIRST_KEY.search(block)
    line = (key.group(1) if key else b"") + b"uuid: " + uuid.encode()
    if key is not None:
        yield block[: key.start()] + line + newline + block[key.start() :]
    start = _START_LINE.search(block)
    if start is not None:
        yield block[: start.end()] + line + newline + block[start.end() :]
    if not block or block.endswith(b"\n"):
        yield block + line + (newline if block else b"")
    yield block + newline + line
    brace = block.find(b"{") + 1
    for comma in (b"", b", "):
        yield block[:brace] + b'"uuid": "' + uuid.encode() + b'"' + comma + block[brace:]


def _filled(block: bytes, uuid: str) -> Iterator[bytes]:
    for match in _EMPTY_UUID.finditer(block):
        end = match.end(1) if match.group(2) is None else match.end(2)
        yield block[: match.end(1)] + b" " + uuid.encode() + block[end:]


def _only_adds(uuid: str, before: List[Event], proposal: bytes) -> bool:
    try:
        after = read_events(_text(proposal))
        value = load(_text(proposal))
    except YamlError:
        return False
    added = isinstance(value, dict) and value.get("uuid") == uuid
    return added and _without_uuid(after) == _without_uuid(before)


def _without_uuid(events: List[Event]) -> List[Event]:
    """The events of a mapping but for its own ``uuid`` and the line numbers."""
    kept: List[Event] = []
    depth, at_key, skip = 0, True, 0
    for event in events or _NO_KEYS:
        depth -= event.kind == CLOSE
        inside = depth == 2 and event.kind not in (MAPPING, SEQUENCE)  # a node of the mapping ends here
        if inside and at_key and event.kind == SCALAR and event.text == "uuid":
            skip = 2  # The key and its value, which is a single event: blank, null or the uuid.
        if skip:
            skip -= 1
        else:
            kept.append(event._replace(line=0))
        if inside:
            at_key = not at_key
        depth += event.kind in (DOCUMENT, MAPPING, SEQUENCE)
    return kept


_NO_KEYS = [Event(DOCUMENT, 0, handles={}), Event(MAPPING, 0), Event(CLOSE, 0), Event(CLOSE, 0)]


def _text(block: bytes) -> str:
    return block.decode("utf-8", "replace")
