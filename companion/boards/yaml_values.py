"""Makes values of YAML: the core schema of YAML 1.2, keys as JavaScript spells them.

Mappings are dicts whose keys are strings (``1``, ``0x1`` and ``"1"`` are the same key, as in a
JavaScript object), in the order of the text. Numbers beyond 2**53 are floats. An alias shares
the value it names and may even contain itself: never walk a result without a limit.
"""

import math
import re
from typing import Dict, List, Optional, Tuple, Union

from companion.boards.yaml_cursor import YamlError
from companion.boards.yaml_documents import read_events
from companion.boards.yaml_events import (
    ALIAS,
    CLOSE,
    DOCUMENT,
    SCALAR,
    SEQUENCE,
    Event,
)
from companion.boards.yaml_tags import CORE_PREFIX, full_name

Scalar = Union[None, bool, int, float, str]
Value = Union[Scalar, List["Value"], Dict[str, "Value"]]

_NULLS = ("", "~", "null", "Null", "NULL")
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+|[-+]?[0-9]+")
_TAGGED_INT = re.compile(r"[-+]?(?:0b[01]+|0o[0-7]+|0x[0-9a-fA-F]+|[0-9]+)")
_FLOAT = re.compile(
    r"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|[-+]?\.[0-9]+(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_SPECIAL = {".inf": math.inf, "-.inf": -math.inf, ".nan": math.nan}
_BASES = {"0b": 2, "0o": 8, "0x": 16}
_EXACT_DIGITS = 15  # Decimal digits that fit a double exactly.

_STR = CORE_PREFIX + "str"
_SEQ = CORE_PREFIX + "seq"
_MAP = CORE_PREFIX + "map"

Unresolved = Tuple[()]
_UNRESOLVED: Unresolved = ()


def load(text: str) -> Value:
    """The single document in the text. YamlError when it is malformed, empty or not single."""
    documents = _Builder(read_events(text)).documents()
    if len(documents) != 1:
        raise YamlError("more than one document" if documents else "nothing in it", 0)
    return documents[0]


def plain_value(text: str) -> Scalar:
    """What a scalar without quotes stands for."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if text[0] in "+-.0123456789":
        number = _number(text)
        return text if isinstance(number, tuple) else number
    return text


def _number(text: str) -> Union[int, float, Unresolved]:
    if _INT.fullmatch(text):
        number = _int(text)
        if not isinstance(number, tuple):
            return number
    return _float(text) if _FLOAT.fullmatch(text) else _UNRESOLVED


def _int(text: str) -> Union[int, float, Unresolved]:
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-")
    base = _BASES.get(digits[:2])
    if base is None and len(digits) > _EXACT_DIGITS:
        return _finite(sign * float(digits))  # int() of many decimal digits is slow or refused.
    number = int(digits[2:], base) if base else int(digits)
    if number < 2**53:
        return sign * number
    try:
        return _finite(sign * float(number))
    except OverflowError:
        return _UNRESOLVED


def _float(text: str) -> Union[float, Unresolved]:
    special = _SPECIAL.get(text.lower().lstrip("+"))
    return _finite(float(text)) if special is None else special


def _finite(number: float) -> Union[float, Unresolved]:
    return number if math.isfinite(number) else _UNRESOLVED


def _tagged_scalar(name: str, text: str) -> Union[Value, Unresolved]:
    """A scalar under an explicit tag, by the tag's full name."""
    kind = name[len(CORE_PREFIX) :] if name.startswith(CORE_PREFIX) else ""
    if kind == "str":
        return text
    if kind == "null":
        return None if text in _NULLS else _UNRESOLVED
    if kind == "bool":
        return _BOOLS.get(text, _UNRESOLVED)
    if kind == "int":
        return _int(text) if _TAGGED_INT.fullmatch(text) else _UNRESOLVED
    if kind == "float":
        return _float(text) if _FLOAT.fullmatch(text) else _UNRESOLVED
    if kind == "seq" and not text:
        return []
    return {} if kind == "map" and not text else _UNRESOLVED


def key_text(key: Scalar) -> str:
    """A key as JavaScript's ``String(key)`` spells it."""
    if isinstance(key, str):
        return key
    if key is None:
        return "null"
    if isinstance(key, bool):
        return "true" if key else "false"
    return _number_text(float(key))


def _number_text(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    digits, point = _digits(abs(number))
    if 0 < point <= 21:
        padded = digits.ljust(point, "0")
        return sign + padded[:point] + ("." + padded[point:] if padded[point:] else "")
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    fraction = "." + digits[1:] if digits[1:] else ""
    return f"{sign}{digits[0]}{fraction}e{point - 1:+d}"


def _digits(number: float) -> Tuple[str, int]:
    """The shortest decimal digits of a positive number, and where the point stands in them."""
    mantissa, _, exponent = repr(number).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    return digits.rstrip("0"), point


class _Open:
    """A collection or document that is not closed yet."""

    def __init__(self, value: Value) -> None:
        self.value = value
        self.key: Optional[str] = None  # of a mapping: the key that waits for its value


class _Builder:
    def __init__(self, events: List[Event]) -> None:
        self._events = events
        self._documents: List[Value] = []
        self._open: List[_Open] = []
        self._anchors: Dict[str, Value] = {}
        self._handles: Dict[str, str] = {}

    def documents(self) -> List[Value]:
        for event in self._events:
            if event.kind == DOCUMENT:
                self._anchors, self._handles = {}, event.handles or {}
                self._open.append(_Open([]))
            elif event.kind == SCALAR:
                value = self._scalar(event)
                self._anchor(event, value)
                self._put(event, value)
            elif event.kind == ALIAS:
                self._put(event, self._named(event))
            elif event.kind == CLOSE:
                self._close(event)
            else:
                self._begin(event)
        return self._documents

    def _scalar(self, event: Event) -> Value:
        if event.tag in ("", "!"):
            return plain_value(event.text) if event.plain and not event.tag else event.text
        value = _tagged_scalar(full_name(event.tag, self._handles), event.text)
        if isinstance(value, tuple):
            raise YamlError(f"the tag {event.tag} is unknown or does not fit its value", event.line)
        return value

    def _anchor(self, event: Event, value: Value) -> None:
        if event.anchor:
            self._anchors[event.anchor] = value

    def _named(self, event: Event) -> Value:
        if event.text not in self._anchors:
            raise YamlError(f"the alias *{event.text} names nothing", event.line)
        return self._anchors[event.text]

    def _begin(self, event: Event) -> None:
        expected = _SEQ if event.kind == SEQUENCE else _MAP
        if event.tag not in ("", "!") and full_name(event.tag, self._handles) != expected:
            raise YamlError(f"the tag {event.tag} is unknown or does not fit its value", event.line)
        value: Value = [] if event.kind == SEQUENCE else {}
        self._anchor(event, value)
        self._open.append(_Open(value))

    def _close(self, event: Event) -> None:
        closed = self._open.pop()
        if closed.key is not None:
            raise YamlError("a key without a value", event.line)
        if self._open:
            self._put(event, closed.value)
        else:
            assert isinstance(closed.value, list)  # the document's own holder
            self._documents.append(closed.value[-1])

    def _put(self, event: Event, value: Value) -> None:
        parent = self._open[-1]
        if isinstance(parent.value, list):
            parent.value.append(value)
            return
        assert isinstance(parent.value, dict)
        if parent.key is None:
            if isinstance(value, (list, dict)):
                raise YamlError("a list or mapping as a key", event.line)
            parent.key = key_text(value)
            return
        if parent.key in parent.value:
            raise YamlError(f"the key {parent.key!r} stands there twice", event.line)
        parent.value[parent.key] = value
        parent.key = None
