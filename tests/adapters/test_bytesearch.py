"""Finding the newest time and names of folders in lines that are not parsed."""

from typing import Any

import pytest

from adapters.bytesearch import Needles, Newest


def newest_in(line: bytes, known: str = "") -> Any:
    newest = Newest("timestamp", before="details", width=4)
    newest.take({"timestamp": known})
    block = bytearray(b"\n" + line + b"\n")
    cut = newest.above_and_cut(block, 1, 1 + len(line))[0]
    assert newest.above(block, 1, 1 + len(line)) == cut or b'"details"' in line
    return cut


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'{"a":{"timestamp":"9999"},"timestamp":"2026","b":null,"c":"d"}', b"2026"),
        (b'{"timestamp":"2026","a":{"timestamp":"9999"}}', b"9999"),
        (b'{"a":{"b":1},"timestamp":"2026","details":{"timestamp":"9999"}' + b" " * 2000 + b"}", b"2026"),
        (b'{"timestamp":2026}', None),
        (b'{"a":"\\"timestamp\\":\\"2026\\""}', None),
        (b'{"timestamp" : "2026"}', b"2026"),
        (b'{"timestamp":"20\\u0032"}', b"\xff"),
        (b'{"timestamp":"2025"}', None),
        (b'{"timestamp":"twenty"}', b"twenty"),
        (b"{}", None),
    ],
)
def test_greatest_value_of_a_line(line: bytes, value: object) -> None:
    """Nested ones count only where it cannot be told that they are nested."""
    assert newest_in(line, "2025") == value


def test_value_at_the_head_of_a_line() -> None:
    """Found among the first members without a look at the rest."""
    newest = Newest("timestamp", before="details", width=4)
    line = b'{"type":"x","timestamp":"2026","a":{"timestamp":"9999"}}'
    assert newest.above_at_head(line, 0, len(line)) == b"2026"
    nested = b'{"type":{"timestamp":"2026"},"timestamp":"2027"}'
    assert newest.above_at_head(nested, 0, len(nested)) == b"2027"


def test_value_at_the_edges_of_a_long_line() -> None:
    """Told by either end; not told when neither shows it at the top level."""
    newest = Newest("timestamp", before="details", width=4)
    assert newest.at_edge(b'{"timestamp":"2026","a":{', b'"b":{}}') == b"2026"
    assert newest.at_edge(b'{"a":{', b'},"timestamp":"2026","b":1}') == b"2026"
    assert newest.at_edge(b'{"a":{"timestamp":"2026"', b'"timestamp":"2026"}}') is None


def test_needles_that_differ_in_front_are_one_search() -> None:
    """The slash may be spelled in three ways."""
    needles = Needles([b"/board", b"\\u002fboard", b'"board', b"/other"])
    assert needles.cores == (b"board", b"other")
    for text, hit in [
        (b"a /board", True),
        (b"\\/board", True),
        (b"\\u002fboard", True),
        (b'"board', True),
        (b"keyboard dashboard", False),
        (b"keyboard /board", True),
        (b"/other", True),
        (b"another", False),
    ]:
        assert needles.within(text, 0, len(text)) is hit
    assert not needles.within(b"x/board", 2, 7)
    assert Needles([]).within(b"", 0, 0)
