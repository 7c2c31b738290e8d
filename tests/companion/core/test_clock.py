"""Times as the contract writes them, and one budget over several waits."""

import time
from typing import Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.core.clock import Deadline, iso_utc, parse_iso


@pytest.mark.parametrize(
    ("unix_s", "text"),
    [
        (0.0, "1970-01-01T00:00:00.000Z"),
        (1769850300.25, "2026-01-31T09:05:00.250Z"),
        (1769850300.9999, "2026-01-31T09:05:00.999Z"),
        (1770000000.001, "2026-02-02T02:40:00.001Z"),
        (-0.5, "1969-12-31T23:59:59.500Z"),
    ],
)
def test_times_have_milliseconds_that_are_cut(unix_s: float, text: str) -> None:
    """Never a time of the future, never a millisecond lost to a float."""
    assert iso_utc(unix_s) == text


@given(st.integers(0, 4_000_000_000_000))
def test_writing_and_reading_a_time_gives_the_same(unix_ms: int) -> None:
    """Every millisecond survives, however often it is read and written."""
    text = iso_utc(unix_ms / 1000)
    again = parse_iso(text)
    assert again is not None and iso_utc(again) == text
    assert round(again * 1000) == unix_ms


@pytest.mark.parametrize(
    ("text", "unix_s"),
    [
        ("2026-01-31T09:05:00.250Z", 1769850300.25),
        ("2026-01-31T09:05:00Z", 1769850300.0),
        ("2026-01-31T09:05Z", 1769850300.0),
        ("2026-01-31 09:05:00.2z", 1769850300.2),
        ("2026-01-31T10:05:00,250000999+01:00", 1769850300.25),
        ("2026-01-31T04:05:00.25-0500", 1769850300.25),
        ("2026-01-31T09:05:00", None),
        ("2026-01-31", None),
        ("20260131T090500Z", None),
        ("2026-13-31T09:05:00Z", None),
        ("2026-01-31T09:05:61Z", None),
        ("2026-01-31T09:05:00+99:00", None),
        ("\u0662\u0660\u0662\u0666-01-31T09:05:00Z", None),
        ("0001-01-01T00:00:00+23:00", None),
        ("", None),
        ("now", None),
    ],
)
def test_only_times_with_a_zone_are_read(text: str, unix_s: Optional[float]) -> None:
    """The same answer on every version of Python."""
    if text.startswith("0001"):  # Before the first year in UTC: either nothing or a number, no crash.
        parse_iso(text)
        return
    assert parse_iso(text) == (pytest.approx(unix_s, abs=1e-6) if unix_s is not None else None)


def test_a_deadline_is_one_budget_for_several_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """It shrinks with time, never below zero."""
    moment = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: moment)
    deadline = Deadline(2.0)
    assert (deadline.left_s(), deadline.over()) == (2.0, False)
    moment = 101.5
    assert deadline.left_s() == 0.5
    moment = 109.0
    assert (deadline.left_s(), deadline.over()) == (0.0, True)
