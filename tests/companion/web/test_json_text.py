"""JSON as the contract reads and writes it, compared with the standard parser where both agree."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.web import json_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def nested(text: str) -> object:
    """What the reader for deep texts makes of any text."""
    return json_text._Nested(text).read()


@given(VALUES, st.sampled_from([None, 1]))
def test_the_deep_reader_agrees_with_the_standard_one(value: Any, indent: Any) -> None:
    """On every text that both can read."""
    text = json.dumps(value, indent=indent)
    assert nested(text) == json.loads(text) == json_text.loads(text.encode("utf-8"))


@given(VALUES, st.integers(0, 30), st.sampled_from('{}[],:"01.e-+tfn \\'))
def test_both_readers_refuse_the_same_texts(value: Any, at: int, letter: str) -> None:
    """One letter changed: both understand it in the same way, or neither does."""
    text = json.dumps(value)
    text = text[:at] + letter + text[at + 1 :]
    try:
        expected: object = json.loads(text, parse_constant=json_text._no_constant)
    except ValueError:
        with pytest.raises(ValueError):
            nested(text)
    else:
        assert nested(text) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"\xef\xbb\xbf{}",
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"{'a':1}",
        b"01",
        b"1.",
        b"[1,]",
        b'"\n"',
        b"{} {}",
        b"tru",
        b'{"a" 1}',
        b"{1:2}",
        b"\xff",
    ],
)
def test_what_is_no_json(data: bytes) -> None:
    """A BOM, NaN and Infinity are refused like any other rubbish."""
    with pytest.raises(ValueError, match=r"."):
        json_text.loads(data)


@pytest.mark.parametrize("digits", [20, 4_000, 4_001, 60_000, 1_000_000])
def test_numbers_may_have_any_length(digits: int) -> None:
    """Also those that Python itself refuses to convert; they become infinite, as in JavaScript."""
    value = json_text.loads(b"[" + b"7" * digits + b"]")
    assert isinstance(value, list)
    assert value[0] > 10**19 and (digits <= 4_000 or math.isinf(value[0]))


@pytest.mark.parametrize(
    ("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"b":[1,2],"c":', b"}]")]
)
def test_nesting_may_be_deep(opening: bytes, closing: bytes) -> None:
    """Far deeper than Python's recursion limit; the outermost levels are there to be looked at."""
    count = 50_000
    value = json_text.loads(opening * count + b"1" + closing * count)
    assert isinstance(value, (list, dict)) and len(value) == 1


def test_what_stands_beside_a_deep_value_is_kept() -> None:
    """The part of a payload that matters survives a deep part that does not."""
    deep = b"[" * 100_000 + b"]" * 100_000
    value = json_text.loads(b'{"first": "a", "deep": ' + deep + b', "last": {"b": [true]}}')
    assert isinstance(value, dict)
    assert (value["first"], value["last"]) == ("a", {"b": [True]})


@pytest.mark.parametrize(
    "data",
    [b"[" * 65_536, b'{"a":' * 20_000, b"[" * 3_000 + b"x" + b"]" * 3_000, b"[" * 70_000 + b"}" * 70_000],
)
def test_a_deep_text_that_is_broken_is_refused(data: bytes) -> None:
    """With a ValueError like any other broken text."""
    with pytest.raises(ValueError):
        json_text.loads(data)


def test_bytes_that_are_no_utf_8_are_replaced() -> None:
    """They become U+FFFD, as browsers and Node do it."""
    assert json_text.loads(b'"a\xff\xed\xa0\x80b"') == "a\ufffd\ufffd\ufffd\ufffdb"


def test_lone_surrogates_come_and_go() -> None:
    """They are valid as escapes, and leave as the same escapes."""
    value = json_text.loads(b'{"a":"\\ud83d"}')
    assert value == {"a": "\ud83d"}
    assert json_text.dumps(value) == b'{"a":"\\ud83d"}'


def test_text_leaves_as_utf_8_on_a_single_line() -> None:
    """Compact, without needless escapes."""
    assert json_text.dumps({"ü": ["\n", 1]}) == '{"ü":["\\n",1]}'.encode()
