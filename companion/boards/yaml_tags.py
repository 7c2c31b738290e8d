"""YAML tags (``!!str``), anchors' names and the ``%`` directives in front of a document."""

import re
from typing import Dict, List, Set

from companion.boards.yaml_cursor import EOL, FLOW_INDICATORS, Cursor

CORE_PREFIX = "tag:yaml.org,2002:"

_HANDLES = {"!": "!", "!!": CORE_PREFIX}
_HANDLE = re.compile(r"!|!!|![0-9A-Za-z-]+!")
_URI = r"(?:%[0-9A-Fa-f]{2}|[0-9A-Za-z\-#;/?:@&=+$,_.!~*'()\[\]])"
_SUFFIX = r"(?:%[0-9A-Fa-f]{2}|[0-9A-Za-z\-#;/?:@&=+$.~*'()_])"
_VERBATIM_NAME = re.compile(f"{_URI}*")
_SUFFIX_NAME = re.compile(f"{_SUFFIX}*")
_PREFIX = re.compile(f"!{_URI}*|{_SUFFIX}{_URI}*")

_WORD = re.compile(r"[^\0 \t\r\n]*")
_FLOW_WORD = re.compile(r"[^\0 \t\r\n,\[\]{}]*")
_VERSION = re.compile(r"([0-9]+)\.[0-9]+")
_LEADING_HEX = re.compile(r"[0-9A-Fa-f]{0,2}")


def read_name(cursor: Cursor) -> str:
    """The name behind ``&`` or ``*``, with the cursor on that sign."""
    match = _FLOW_WORD.match(cursor.text, cursor.pos + 1)
    if match is None or not match.group():
        cursor.fail("an anchor or alias without a name")
    cursor.pos = match.end()
    return match.group()


def read_tag(cursor: Cursor, in_flow: bool, handles: Dict[str, str]) -> str:
    """The tag as written, with the cursor on its ``!``."""
    start = cursor.pos
    if cursor.following == "<":
        _pass_verbatim(cursor)
    else:
        match = (_FLOW_WORD if in_flow else _WORD).match(cursor.text, start)
        assert match is not None  # both match the empty string
        _check_short(cursor, match.group(), handles)
        cursor.pos = match.end()
    return cursor.text[start : cursor.pos]


def _pass_verbatim(cursor: Cursor) -> None:
    end = cursor.text.find(">", cursor.pos)
    if end == -1 or _VERBATIM_NAME.fullmatch(cursor.text, cursor.pos + 2, end) is None:
        cursor.fail("a tag in <> is broken")
    cursor.pos = end + 1


def _check_short(cursor: Cursor, raw: str, handles: Dict[str, str]) -> None:
    handle, suffix = _split(raw)
    if _HANDLE.fullmatch(handle) is None or "!" in suffix:
        cursor.fail("a tag with an exclamation mark inside")
    if _SUFFIX_NAME.fullmatch(suffix) is None or any(char in FLOW_INDICATORS for char in suffix):
        cursor.fail("a tag with a character that tags cannot have")
    if handle not in _HANDLES and handle not in handles:
        cursor.fail("a tag that was not declared")


def _split(raw: str) -> List[str]:
    """[handle, suffix] of a short tag."""
    end = raw.find("!", 1) + 1 or 1
    return [raw[:end], raw[end:]]


def full_name(raw: str, handles: Dict[str, str]) -> str:
    """The tag a written one stands for: ``!!str`` is ``tag:yaml.org,2002:str``."""
    if raw.startswith("!<"):
        return _decoded(raw[2:-1])
    handle, suffix = _split(raw)
    prefix = handles.get(handle, _HANDLES.get(handle, handle))
    return _decoded(prefix) + _decoded(suffix)


def _decoded(text: str) -> str:
    """Percent signs resolved as js-yaml does it: without a check of what follows the first byte."""
    pieces = []
    index = 0
    while index < len(text):
        if text[index] != "%":
            pieces.append(text[index])
            index += 1
            continue
        code = _byte(text, index)
        index += 3
        if code >= 0xC0:
            more = 1 if code < 0xE0 else 2 if code < 0xF0 else 3
            code &= (1 << (6 - more)) - 1
            for _ in range(more):
                code = code << 6 | (_byte(text, index) & 0x3F)
                index += 3
        pieces.append(chr(code) if code < 0x110000 else "\ufffd")
    return "".join(pieces)


def _byte(text: str, index: int) -> int:
    match = _LEADING_HEX.match(text, index + 1)
    return int(match.group(), 16) if match is not None and match.group() else 0


def read_directive(cursor: Cursor, handles: Dict[str, str], seen: Set[str]) -> None:
    """Read one ``%`` line. ``handles`` and ``seen`` gather what the document has declared."""
    name, *arguments = _directive_words(cursor)
    if name == "%":
        cursor.fail("a directive without a name")
    if name == "%YAML":
        _check_version(cursor, arguments, seen)
    elif name == "%TAG":
        _declare(cursor, arguments, handles)


def _directive_words(cursor: Cursor) -> List[str]:
    words: List[str] = []
    while True:
        match = _WORD.match(cursor.text, cursor.pos)
        assert match is not None
        words.append(match.group())
        cursor.pos = match.end()
        cursor.skip_blanks()
        if cursor.char in "#\r\n\0":
            break
    # js-yaml stops at a comment and leaves it to the separation that follows.
    if cursor.char in EOL:
        cursor.skip_break()
    return words


def _check_version(cursor: Cursor, arguments: List[str], seen: Set[str]) -> None:
    match = _VERSION.fullmatch(arguments[0]) if len(arguments) == 1 else None
    if "YAML" in seen or match is None or match.group(1).lstrip("0") != "1":
        cursor.fail("a %YAML directive that cannot be used")
    seen.add("YAML")


def _declare(cursor: Cursor, arguments: List[str], handles: Dict[str, str]) -> None:
    if len(arguments) != 2 or arguments[0] in handles:
        cursor.fail("a %TAG directive that cannot be used")
    handle, prefix = arguments
    if _HANDLE.fullmatch(handle) is None or _PREFIX.fullmatch(prefix) is None:
        cursor.fail("a %TAG directive that cannot be used")
    handles[handle] = prefix
