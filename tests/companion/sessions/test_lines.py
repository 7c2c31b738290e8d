"""JSON lines: encoding, splitting, shortening."""

import io
import json
from typing import List, Tuple

from hypothesis import given
from hypothesis import strategies as st

from companion.sessions.lines import (
    MAX_LINE_BYTES,
    compacted,
    json_bytes,
    lines_of,
    looks_whole,
    needles_of,
    surely_lacks,
)

_Record = Tuple[str, int]
_records = st.lists(st.tuples(st.sampled_from("abcdefg"), st.integers(0, 9)), max_size=60)


def _fold(records: List[_Record]) -> List[_Record]:
    return sorted({key: (key, value) for key, value in records}.values())


@given(_records, st.integers(0, 12))
def test_compaction_keeps_the_state_and_the_newest_records(records: List[_Record], newest: int) -> None:
    """Folding what is left gives the same, and the newest records are its end, in order."""
    numbered = list(enumerate(records))
    left = compacted(numbered, lambda each: each[1][0], newest)
    assert _fold([each for _, each in left]) == _fold(records)
    assert left == sorted(left)
    assert (
        left[len(left) - min(newest, len(numbered)) :]
        == numbered[len(numbered) - min(newest, len(numbered)) :]
    )
    assert len(left) <= newest + len(_fold(records))


def test_a_lone_surrogate_is_an_escape_and_other_text_stays_raw() -> None:
    """What JSON admits but UTF-8 does not survives; the rest is readable in the file."""
    line = json_bytes({"t": "é\u2028日\ud83d\n"})
    assert line == '{"t":"é\u2028日\\ud83d\\n"}'.encode()
    assert json.loads(line)["t"] == "é\u2028日\ud83d\n"


@given(st.text(st.characters(exclude_categories=())))
def test_every_text_survives_on_one_line(text: str) -> None:
    """Encoding and decoding any text gives the text that JSON itself would give."""
    line = json_bytes([text])
    assert b"\n" not in line
    assert json.loads(line) == json.loads(json.dumps([text]))


def test_a_monstrous_line_is_one_broken_line_and_costs_no_neighbour() -> None:
    """A line beyond the limit is cut short; the lines around it are whole."""
    data = b"first\n" + b"x" * (3 * MAX_LINE_BYTES + 5) + b"\nlast"
    lines = list(lines_of(io.BytesIO(data)))
    assert (lines[0], len(lines[1]), lines[2]) == (b"first\n", MAX_LINE_BYTES, b"last")


@given(st.text(st.characters(exclude_categories=())), st.text(), st.booleans())
def test_a_line_that_holds_a_text_is_never_said_to_lack_it(text: str, more: str, ascii_only: bool) -> None:
    """However the line was encoded, and whatever else it holds."""
    for line in (json_bytes({"a": text, "b": more}), json.dumps({"a": text}, ensure_ascii=True).encode()):
        assert looks_whole(line)
        assert not surely_lacks(line, needles_of([text]))


def test_a_line_without_the_text_is_told_apart() -> None:
    """That is the point; an escape, or a broken byte, leaves it open."""
    needles = needles_of(["c1", "s1"])
    assert surely_lacks(b'{"cardUuid":"c1","sessionId":"s2"}', needles)
    assert not surely_lacks(b'{"cardUuid":"c1","sessionId":"s1"}', needles)
    assert not surely_lacks(b'{"cardUuid":"\\u0063\\u0031"}', needles)
    assert needles_of(["a\ufffd", ""]) == []
    assert not looks_whole(b'{"torn":"') and not looks_whole(b"") and looks_whole(b'{"a":1}\r')
