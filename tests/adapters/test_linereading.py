"""What every reader of line files does with one line."""

from typing import Dict

from adapters.bytesearch import Newest
from adapters.contract import ReadReport
from adapters.linereading import LineReading, lines_of


class Plain(LineReading):
    """A reader that gives the shared parts names to call them by."""

    def __init__(self) -> None:
        super().__init__(Newest("timestamp", before="message", width=4), ReadReport())
        self.trimmed, self.parse = self._trimmed, self._parse
        self.note_newest, self.count = self._note_newest, self._count
        self.report, self.damaged = self._report, self._damaged

    def _has_time(self, entry: Dict[str, object]) -> bool:
        return entry.get("type") != "none"


def test_lines_are_found_between_two_positions() -> None:
    """Empty ones are none, and the last needs no end."""
    assert lines_of(b"ab\n\ncd\nef", 0, 9) == [(0, 2), (4, 6), (7, 9)]
    assert lines_of(b"ab\n\ncd\nef", 3, 7) == [(4, 6)]
    assert lines_of(b"", 0, 0) == []


def test_only_objects_are_entries_and_damage_is_noted_by_its_end() -> None:
    """Other JSON is no damage."""
    reading = Plain()
    block = b'{"a":1}[1]{"a"'
    assert reading.parse(block, 0, 7) == {"a": 1}
    assert reading.parse(block, 7, 10) is None
    assert not reading.damaged
    assert reading.parse(block, 10, 14) is None
    assert list(reading.damaged) == [14]


def test_what_stands_around_an_object_is_left_out() -> None:
    """Padding goes; a line that is no object is empty, and damaged when it is no JSON."""
    reading = Plain()
    block = b'\0\0{"a":1} '
    assert reading.trimmed(block, 0, len(block)) == (2, 9)
    assert reading.trimmed(b"null", 0, 4) == (4, 4)
    assert not reading.damaged
    assert reading.trimmed(b"oops", 0, 4) == (4, 4)
    assert list(reading.damaged) == [4]


def test_the_greatest_time_is_that_of_an_entry_that_has_one() -> None:
    """Whether its time counts is the agent's to say."""
    reading = Plain()
    reading.note_newest(b'{"timestamp":"2027"}\n{"type":"none","timestamp":"2028"}\n{"timestamp":"2026"}')
    assert reading.newest.value == "2027"


def test_unknown_names_are_counted_and_bounded() -> None:
    """Known ones are not; a name is cut; of the hundred and first only nothing is kept."""
    reading = Plain()
    for _ in range(2):
        reading.count("new", ("old",), "role ")
    reading.count("old", ("old",))
    reading.count("x" * 70, ())
    assert reading.report.unknown == {"role new": 2, "x" * 64: 1}
    for number in range(200):
        reading.count(f"n{number}", ())
    assert len(reading.report.unknown) == 100
