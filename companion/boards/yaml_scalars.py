"""Reads one YAML scalar at the cursor: plain, quoted in either way, or a block.

Every function returns the text, or None when no such scalar begins here; YamlError when one
begins but is broken. ``indent`` is the least indentation that further lines need.
"""

import re
from typing import List, Optional, Tuple

from companion.boards.yaml_cursor import (
    BLANK,
    END,
    EOL,
    FLOW_INDICATORS,
    SPACE,
    SPACE_OR_END,
    Cursor,
)

_NO_PLAIN_START = SPACE_OR_END + "#&*!|>'\"%@`" + FLOW_INDICATORS
_PLAIN_RUN = re.compile(r"[^\0\r\n:#,\[\]{}]+")
_SINGLE_RUN = re.compile(r"[^'\0-\x08\x0a-\x1f]+")
_DOUBLE_RUN = re.compile(r'[^"\\\0-\x08\x0a-\x1f]+')
_NOT_PRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")
_LINE_BREAK = re.compile(r"\r\n?|\n")
_SURROGATE = re.compile("[\ud800-\udfff]")
_HEX = re.compile(r"[0-9A-Fa-f]*")

_ESCAPES = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "\t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    " ": " ",
    '"': '"',
    "/": "/",
    "\\": "\\",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}
_HEX_ESCAPES = {"x": 2, "u": 4, "U": 8}


def read_plain(cursor: Cursor, indent: int, in_flow: bool) -> Optional[str]:
    """A scalar without quotes; it may go on over lines that are indented enough."""
    if not _plain_begins(cursor, in_flow):
        return None
    start = end = cursor.pos
    while not _plain_ends(cursor, in_flow):
        if cursor.char in EOL:
            before = cursor.place()
            cursor.skip_space(comments=False)
            if cursor.indent < indent:
                # The first tab seen is kept, as js-yaml keeps it.
                cursor.back_to(before._replace(first_tab=cursor.first_tab))
                break
            continue
        run = _PLAIN_RUN.match(cursor.text, cursor.pos)
        if run is None:  # an indicator that is text here: a colon or comma inside a word
            cursor.pos += 1
            end = cursor.pos
            continue
        cursor.pos = run.end()
        words = run.group().rstrip(BLANK)
        end = run.start() + len(words) if words else end
    if end == start:
        return None
    _check_printable(cursor, cursor.text[start:end])
    return _fold(cursor.text[start:end])


def _plain_begins(cursor: Cursor, in_flow: bool) -> bool:
    if cursor.char in _NO_PLAIN_START:
        return False
    if cursor.char in "?-":
        return not (cursor.following in SPACE_OR_END or (in_flow and cursor.following in FLOW_INDICATORS))
    return True


def _plain_ends(cursor: Cursor, in_flow: bool) -> bool:
    char = cursor.char
    if char == END or cursor.at_boundary():
        return True
    if char == ":":
        return cursor.following in SPACE_OR_END or (in_flow and cursor.following in FLOW_INDICATORS)
    if char == "#":
        return cursor.text[cursor.pos - 1] in SPACE
    return in_flow and char in FLOW_INDICATORS


def read_single_quoted(cursor: Cursor, indent: int) -> Optional[str]:
    """A scalar in single quotes, in which ``''`` stands for one quote."""
    if cursor.char != "'":
        return None
    cursor.pos += 1
    start = cursor.pos
    while True:
        if cursor.char == "'":
            if cursor.following != "'":
                break
            cursor.pos += 2
        else:
            _pass_quoted(cursor, _SINGLE_RUN, indent)
    raw = cursor.text[start : cursor.pos]
    cursor.pos += 1
    return _fold(raw).replace("''", "'")


def read_double_quoted(cursor: Cursor, indent: int) -> Optional[str]:
    """A scalar in double quotes, with escapes."""
    if cursor.char != '"':
        return None
    cursor.pos += 1
    pieces: List[str] = []  # Finished text; blanks before a line break are already gone.
    start = cursor.pos
    while cursor.char != '"':
        if cursor.char == "\\":
            pieces += [_fold(cursor.text[start : cursor.pos]), _escape(cursor, indent)]
            start = cursor.pos
        else:
            _pass_quoted(cursor, _DOUBLE_RUN, indent)
    pieces.append(_fold(cursor.text[start : cursor.pos]))
    cursor.pos += 1
    return _joined_surrogates("".join(pieces))


def _pass_quoted(cursor: Cursor, run: "re.Pattern[str]", indent: int) -> None:
    """Pass ordinary text or one line break inside quotes."""
    if cursor.char in EOL:
        _pass_quoted_break(cursor, indent)
        return
    if cursor.pos == cursor.line_start and cursor.at_separator():
        cursor.fail("the document ends inside a quoted value")
    match = run.match(cursor.text, cursor.pos)
    if match is None:
        cursor.fail("a quoted value is never closed" if cursor.at_end else "control character in quotes")
    cursor.pos = match.end()


def _pass_quoted_break(cursor: Cursor, indent: int) -> None:
    cursor.skip_space(comments=False)
    if cursor.indent < indent:
        cursor.fail("a quoted value goes on with too little indentation")


def _escape(cursor: Cursor, indent: int) -> str:
    kind = cursor.following
    cursor.pos += 1
    if kind in EOL:
        _pass_quoted_break(cursor, indent)
        return ""
    if kind in _ESCAPES:
        cursor.pos += 1
        return _ESCAPES[kind]
    length = _HEX_ESCAPES.get(kind)
    if length is None:
        cursor.fail("unknown escape in double quotes")
    digits = cursor.text[cursor.pos + 1 : cursor.pos + 1 + length]
    match = _HEX.match(digits)
    if match is None or match.end() < length:
        cursor.fail("an escape needs hexadecimal digits")
    cursor.pos += 1 + length
    return _from_code(int(digits, 16))


def _from_code(code: int) -> str:
    """The character of a code as JavaScript computes it: 32 bits with a sign, then UTF-16."""
    if code >= 0x80000000 or code <= 0xFFFF:
        return chr(code & 0xFFFF)
    if code <= 0x10FFFF:
        return chr(code)
    high = (((code - 0x10000) >> 10) + 0xD800) & 0xFFFF
    return chr(high) + chr(((code - 0x10000) & 0x3FF) + 0xDC00)


def _joined_surrogates(text: str) -> str:
    """Two escaped halves of one character become that character; a lone half cannot be kept."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _fold(raw: str) -> str:
    """A single line break becomes a space, more of them one break less; blanks around vanish."""
    first, *rest = _LINE_BREAK.split(raw)
    if not rest:
        return raw
    pieces = [first.rstrip(BLANK)]
    breaks, last = 0, len(rest) - 1
    for number, line in enumerate(rest):
        breaks += 1
        words = line.lstrip(BLANK) if number == last else line.strip(BLANK)
        if words or number == last:
            pieces += [" " if breaks == 1 else "\n" * (breaks - 1), words]
            breaks = 0
    return "".join(pieces)


def _check_printable(cursor: Cursor, text: str) -> None:
    if _NOT_PRINTABLE.search(text) is not None:
        cursor.fail("control character")


def read_block(cursor: Cursor, indent: int) -> Optional[str]:
    """A literal (``|``) or folded (``>``) scalar."""
    if cursor.char not in "|>":
        return None
    folded = cursor.char == ">"
    cursor.pos += 1
    chomping, explicit = _block_header(cursor, indent)
    start = cursor.pos
    end, content_indent = _block_lines(cursor, indent, explicit)
    _check_printable(cursor, cursor.text[start:end])
    return _block_value(cursor.text[start:end], content_indent, chomping, folded)


def _block_header(cursor: Cursor, indent: int) -> Tuple[str, int]:
    """(chomping ``+``, ``-`` or empty; indentation of the content, or -1 when to be found)."""
    chomping, explicit = "", -1
    while cursor.char in "+-0123456789":
        if cursor.char in "+-":
            if chomping:
                cursor.fail("a block value says twice how it ends")
            chomping = cursor.char
        elif cursor.char == "0" or explicit != -1:
            cursor.fail("a block value needs one indentation from 1 to 9")
        else:
            explicit = indent + int(cursor.char) - 1
        cursor.pos += 1
    if cursor.skip_blanks() and cursor.char == "#":
        cursor.skip_line()
    if cursor.char in EOL:
        cursor.skip_break()
    elif not cursor.at_end:
        cursor.fail("text behind the mark of a block value")
    return chomping, explicit


def _block_lines(cursor: Cursor, indent: int, content: int) -> Tuple[int, int]:
    """Pass the lines of a block. (End of its text, indentation of its content or -1.)"""
    deepest_empty = 0
    end = cursor.pos
    while cursor.char != END:
        column = cursor.column_of_spaces()
        first = cursor.text[cursor.pos + column]
        if first == END and column > max(content, 0):
            end = cursor.pos + column
        if first == END or cursor.at_boundary():
            break
        if first not in EOL:
            if content == -1:
                _check_block_indent(cursor, indent, column, deepest_empty)
            if column < (indent if content == -1 else content):
                cursor.indent = column
                cursor.pos += column
                break
            content = column if content == -1 else content
        elif content == -1:
            deepest_empty = max(deepest_empty, column)
        cursor.skip_line()
        if cursor.char in EOL:
            cursor.skip_break()
        end = cursor.pos
    return end, content


def _check_block_indent(cursor: Cursor, indent: int, column: int, deepest_empty: int) -> None:
    if cursor.text[cursor.pos + column] == "\t" and column < indent:
        cursor.fail("tab used as indentation")
    if indent <= column < deepest_empty:
        cursor.fail("bad indentation of a block value")


def _block_value(region: str, indent: int, chomping: str, folded: bool) -> str:
    lines = _LINE_BREAK.split(region)
    if not lines[-1]:
        lines.pop()
    pieces: List[str] = []
    empty, deeper = 0, False
    for line in lines:
        if indent < 0 or len(line) <= indent:
            empty += 1
            continue
        content = line[indent:]
        was_deeper, deeper = deeper, folded and content[0] in BLANK
        if folded and not deeper and not was_deeper:
            glue = "\n" * empty or (" " if pieces else "")
        else:
            glue = "\n" * (empty + 1 if pieces else empty)
        pieces += [glue, content]
        empty = 0
    if chomping == "+":
        pieces.append("\n" * (empty + 1 if pieces else empty))
    elif not chomping and pieces:
        pieces.append("\n")
    return "".join(pieces)
