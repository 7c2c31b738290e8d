"""The YAML block at the head of a card, and the uuid in it.

Whether a file is a card is decided twice: here, and in the web app by js-yaml. Both must agree,
so a single malformed line anywhere in the block hides the uuid here as it does there.
"""

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Dict, List, Optional, Tuple, Union

from companion.boards.yaml_cursor import YamlError
from companion.boards.yaml_values import Scalar, Value, load

# Longer than any head that people or agents write; a file whose block is not closed by then is
# taken to have none, so that a huge file is never read as a whole.
HEAD_LIMIT_BYTES = 64 * 1024

BOM = b"\xef\xbb\xbf"

# What JavaScript's trim() takes away: its white space and line terminators. Python's own strip()
# takes more (U+001C to U+001F, U+0085) and leaves the byte order mark.
_JS_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_OPENING = re.compile(rb"---\r?\n")
_CLOSING = b"\n---"
_NO_BLOCK = "it has no front matter"
_NEAR_OPENING = re.compile(rb"\s*---[ \t]*\r?(?:\n|\Z|(?<=\r))")


class Nested(Enum):
    """Stands for a value whose inside is of no use here: a mapping, or a list of such."""

    VALUE = "a mapping or a nested list"


FieldValue = Union[Scalar, List[Scalar], Nested]


@dataclass(frozen=True)
class FrontMatter:
    """What a card's head says."""

    fields: Dict[str, FieldValue] = field(default_factory=dict)
    """Top-level keys, in order; empty when there is a problem."""
    problem: Optional[str] = None
    """Why there is nothing to read, in words for people; None when the block is fine."""
    body_start: int = 0
    """Byte offset of what follows the block; 0 when there is none."""

    @property
    def is_broken(self) -> bool:
        """Whether something stands there that cannot be read: whose card this is, is not known."""
        return self.problem not in (None, _NO_BLOCK)


def trimmed(text: str) -> str:
    """The text without surrounding white space, as JavaScript's ``trim()`` leaves it."""
    return text.strip(_JS_SPACE)


def read_front_matter(data: bytes) -> FrontMatter:
    """Read a card's head. ``data`` is the file, or so much of it as ``head_is_complete`` wants.

    Never raises.
    """
    block = find_block(data)
    if block is None:
        return FrontMatter(problem=_why_no_block(data))
    start, end, body_start = block
    try:
        value = load(data[start:end].decode("utf-8", "replace"))
    except YamlError as exc:
        # Lines as an editor counts them: from 1, and the opening fence is the first.
        return FrontMatter(problem=f"line {exc.line + 2}: {exc}", body_start=body_start)
    except RecursionError:
        return FrontMatter(problem="its front matter is nested too deep", body_start=body_start)
    if not isinstance(value, dict):
        return FrontMatter(problem="its front matter holds no keys", body_start=body_start)
    return FrontMatter({key: _field(item) for key, item in value.items()}, None, body_start)


def card_uuid(data: bytes) -> Optional[str]:
    """The card's identity, trimmed; None when this is no card."""
    return uuid_of(read_front_matter(data))


def uuid_of(front: FrontMatter) -> Optional[str]:
    """The ``uuid`` of a head that was read: a string that is not blank, trimmed; or None."""
    value = front.fields.get("uuid")
    return (trimmed(value) or None) if isinstance(value, str) else None


def why_no_uuid(front: FrontMatter) -> str:
    """Why a file whose head was read is no card, in words for people; empty when it is one."""
    if front.problem is not None:
        return front.problem
    if "uuid" not in front.fields:
        return "its front matter has no uuid"
    value = front.fields["uuid"]
    if value is None or (isinstance(value, str) and not trimmed(value)):
        return "its uuid is empty"
    if isinstance(value, str):
        return ""
    shown = value.value if isinstance(value, Nested) else "a list" if isinstance(value, list) else repr(value)
    return f"its uuid is not text but {shown} (quotes make it text)"


def find_block(data: bytes) -> Optional[Tuple[int, int, int]]:
    """(Start and end of the YAML between the fences, start of the body) as byte offsets, or None.

    The block ends at the first line that begins with three dashes; the rest of that line is body.
    """
    opening = _OPENING.match(data)
    if opening is None:
        return None
    start = opening.end()
    end = data.find(_CLOSING, start, HEAD_LIMIT_BYTES)
    if end == -1:
        return None
    body = end + len(_CLOSING)
    body += 2 if data.startswith(b"\r\n", body) else data.startswith(b"\n", body)
    if end > start and data[end - 1 : end] == b"\r":
        end -= 1
    return start, end, body


def head_is_complete(head: bytes) -> bool:
    """Whether reading more of the file cannot change what its head says."""
    if len(head) < len(b"---\r\n"):
        return False
    return len(head) >= HEAD_LIMIT_BYTES or _OPENING.match(head) is None or find_block(head) is not None


def _why_no_block(data: bytes) -> str:
    if data.startswith(BOM):
        return "a byte order mark stands in front of its front matter"
    if _OPENING.match(data) is not None:
        if len(data) >= HEAD_LIMIT_BYTES:
            return f"its front matter is not closed within {HEAD_LIMIT_BYTES // 1024} kB"
        return "its front matter is empty or never closed by ---"
    if _NEAR_OPENING.match(data) is not None:
        return "its first line is not exactly ---"
    return _NO_BLOCK


def _field(value: Value) -> FieldValue:
    """A value without depth: an alias can make a small text a huge or an endless value."""
    if isinstance(value, dict):
        return Nested.VALUE
    if not isinstance(value, list):
        return value
    scalars: List[Scalar] = []
    for item in value:
        if isinstance(item, (list, dict)):
            return Nested.VALUE
        scalars.append(item)
    return scalars
