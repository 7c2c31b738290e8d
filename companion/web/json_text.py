"""JSON as the contract reads and writes it.

Stricter than Python's ``json`` (no ``NaN``, no ``Infinity``) and more patient: numbers of any
length and any depth of nesting are valid.
"""

import json
import json.decoder
import re
from typing import Dict, List, Tuple, Union

from companion.core.foreign_json import integer

# What lies deeper than this is checked but not kept: nobody looks there, and keeping it would
# cost 100 bytes of memory for each byte sent.
_KEPT_DEPTH = 200

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORDS: Tuple[Tuple[str, object], ...] = (("true", True), ("false", False), ("null", None))
_CLOSING = {ord("["): "]", ord("{"): "}"}


def loads(data: bytes) -> object:
    """The value of a UTF-8 text; bytes that are not UTF-8 become U+FFFD. ValueError with a reason."""
    text = data.decode("utf-8", errors="replace")
    try:
        value: object = _DECODER.decode(text)
    except RecursionError:
        return _Nested(text).read()
    return value


def dumps(value: object) -> bytes:
    """Compact JSON on a single line. Lone surrogates, which UTF-8 cannot carry, become escapes."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_int=integer, parse_constant=_no_constant)


class _Nested:
    """Reads a text that is nested more deeply than Python's own parser dares to go."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._open = bytearray()  # The brackets we are in: ``[`` or ``{`` each.
        self._kept: List[Union[List[object], Dict[str, object]]] = []  # Their values, outermost first.
        self._keys: List[str] = []  # For each kept value the key being read ("" in an array).

    def read(self) -> object:
        """The whole text's value. ValueError with a position."""
        while True:
            value, complete = self._begin_value()
            while complete:
                if not self._open:
                    self._expect_end()
                    return value
                self._attach(value)
                value, complete = self._after_value()

    def _begin_value(self) -> Tuple[object, bool]:
        """A scalar or an empty bracket is complete; any other bracket is only opened."""
        letter = self._peek()
        if letter not in ("[", "{"):
            return self._scalar(letter), True
        self._at += 1
        self._open.append(ord(letter))
        if len(self._open) <= _KEPT_DEPTH:
            self._kept.append([] if letter == "[" else {})
            self._keys.append("")
        if self._peek() == _CLOSING[self._open[-1]]:
            return self._close(), True
        if letter == "{":
            self._key()
        return None, False

    def _after_value(self) -> Tuple[object, bool]:
        """What follows a value inside a bracket: a comma and more, or the bracket's end."""
        letter = self._peek()
        if letter == ",":
            self._at += 1
            if self._open[-1] == ord("{"):
                self._key()
            return None, False
        if letter == _CLOSING[self._open[-1]]:
            return self._close(), True
        raise self._error()

    def _close(self) -> object:
        self._at += 1
        deep = len(self._open) > _KEPT_DEPTH
        self._open.pop()
        if deep:
            return None
        self._keys.pop()
        return self._kept.pop()

    def _attach(self, value: object) -> None:
        if len(self._open) > _KEPT_DEPTH:
            return
        holder = self._kept[-1]
        if isinstance(holder, list):
            holder.append(value)
        else:
            holder[self._keys[-1]] = value

    def _key(self) -> None:
        if self._peek() != '"':
            raise self._error()
        key = self._string()
        if self._peek() != ":":
            raise self._error()
        self._at += 1
        if len(self._open) <= _KEPT_DEPTH:
            self._keys[-1] = key

    def _scalar(self, letter: str) -> object:
        if letter == '"':
            return self._string()
        for word, value in _WORDS:
            if self._text.startswith(word, self._at):
                self._at += len(word)
                return value
        number = _NUMBER.match(self._text, self._at)
        if number is None:
            raise self._error()
        self._at = number.end()
        whole = number.group(1) is None and number.group(2) is None
        return integer(number.group()) if whole else float(number.group())

    def _string(self) -> str:
        # Public in all but name: the standard parser's own function, in C where there is one.
        text, self._at = json.decoder.scanstring(self._text, self._at + 1, True)  # type: ignore[attr-defined]
        return str(text)

    def _peek(self) -> str:
        """The next letter that is no space; empty at the end."""
        space = _SPACE.match(self._text, self._at)
        assert space is not None  # The pattern also matches nothing.
        self._at = space.end()
        return self._text[self._at : self._at + 1]

    def _expect_end(self) -> None:
        if self._peek():
            raise self._error()

    def _error(self) -> ValueError:
        return ValueError(f"Unexpected content at character {self._at}")
