"""Cron expressions: what they mean, when they are due, and what the clock's own jumps do to them."""

import os
import subprocess
import sys
from datetime import datetime, timezone
from typing import List
from zoneinfo import ZoneInfo

import pytest

from companion.assignment.cron import next_run, parse
from tests.conftest import ROOT

UTC = ZoneInfo("UTC")


def at(text: str, zone: str = "UTC") -> float:
    """Unix seconds of a wall time; ``+`` behind it: of its second occurrence."""
    fold = text.endswith("+")
    moment = datetime.fromisoformat(text.rstrip("+")).replace(tzinfo=ZoneInfo(zone), fold=int(fold))
    return moment.timestamp()


def runs(expression: str, after: str, count: int, zone: str = "UTC") -> List[str]:
    """The next wall times, with ``+`` where the clock shows them for the second time."""
    found, now = [], at(after, zone)
    schedule = parse(expression)
    for _ in range(count):
        now = next_run(schedule, now, ZoneInfo(zone))
        moment = datetime.fromtimestamp(now, ZoneInfo(zone))
        found.append(moment.strftime("%y-%m-%d %H:%M:%S") + ("+" if moment.fold else ""))
    return found


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("* * * * *", ["26-05-14 12:35:00", "26-05-14 12:36:00"]),
        ("* * * * * *", ["26-05-14 12:34:57", "26-05-14 12:34:58"]),
        ("*/15 * * * *", ["26-05-14 12:45:00", "26-05-14 13:00:00"]),
        ("5/20 * * * *", ["26-05-14 12:45:00", "26-05-14 13:05:00"]),
        ("/30 * * * *", ["26-05-14 13:00:00", "26-05-14 13:30:00"]),
        ("10-20/5 8 * * *", ["26-05-15 08:10:00", "26-05-15 08:15:00", "26-05-15 08:20:00"]),
        ("30 10 9 * * *", ["26-05-15 09:10:30"]),
        ("0 9,17 * * *", ["26-05-14 17:00:00", "26-05-15 09:00:00"]),
        ("*/15 8-18 * * MON-FRI", ["26-05-14 12:45:00"]),
        ("0 9 * * mon", ["26-05-18 09:00:00", "26-05-25 09:00:00"]),
        ("0 9 * * 0", ["26-05-17 09:00:00"]),
        ("0 9 * * 7", ["26-05-17 09:00:00", "26-05-24 09:00:00"]),
        ("0 9 * * SAT-SUN", ["26-05-16 09:00:00", "26-05-17 09:00:00", "26-05-23 09:00:00"]),
        ("0 9 * * 5-7", ["26-05-15 09:00:00", "26-05-16 09:00:00", "26-05-17 09:00:00"]),
        ("0 0 1 JAN,dec *", ["26-12-01 00:00:00", "27-01-01 00:00:00"]),
        # Restricted both: either will do. A star with a step is a restriction, as croner has it.
        ("0 0 15 * MON", ["26-05-15 00:00:00", "26-05-18 00:00:00"]),
        ("0 0 1-7 * MON", ["26-05-18 00:00:00", "26-05-25 00:00:00", "26-06-01 00:00:00"]),
        ("0 0 */10 * MON", ["26-05-18 00:00:00", "26-05-21 00:00:00"]),
        ("0 0 ? * MON", ["26-05-18 00:00:00", "26-05-25 00:00:00"]),
        ("0 0 20 * ?", ["26-05-20 00:00:00", "26-06-20 00:00:00"]),
        ("0 0 L * *", ["26-05-31 00:00:00", "26-06-30 00:00:00"]),
        (
            "0 0 15,L 2 *",
            ["27-02-15 00:00:00", "27-02-28 00:00:00", "28-02-15 00:00:00", "28-02-29 00:00:00"],
        ),
        ("0 0 31 * *", ["26-05-31 00:00:00", "26-07-31 00:00:00", "26-08-31 00:00:00"]),
        ("0 0 29 2 *", ["28-02-29 00:00:00", "32-02-29 00:00:00"]),
        ("0 0 * * MON#2", ["26-06-08 00:00:00", "26-07-13 00:00:00"]),
        ("0 0 * * MON-TUE#1", ["26-06-01 00:00:00", "26-06-02 00:00:00", "26-07-06 00:00:00"]),
        ("0 0 * * FRI#L", ["26-05-29 00:00:00", "26-06-26 00:00:00"]),
        ("0 0 * * 5L", ["26-05-29 00:00:00", "26-06-26 00:00:00"]),
        ("0 0 * 2 FRI#5", ["36-02-29 00:00:00", "64-02-29 00:00:00"]),
        ("@hourly", ["26-05-14 13:00:00"]),
        ("@Daily", ["26-05-15 00:00:00"]),
        ("@midnight", ["26-05-15 00:00:00"]),
        ("@weekly", ["26-05-17 00:00:00"]),
        ("@monthly", ["26-06-01 00:00:00"]),
        ("@yearly", ["27-01-01 00:00:00"]),
        ("  0\t9 *  * * ", ["26-05-15 09:00:00"]),
    ],
)
def test_when_it_is_due(expression: str, expected: List[str]) -> None:
    """After Thursday, 14 May 2026, 12:34:56."""
    assert runs(expression, "2026-05-14 12:34:56", len(expected)) == expected


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("", "five fields"),
        ("every morning", "five fields"),
        ("* * * *", "five fields"),
        ("* * * * * * 2030", "five fields"),
        ("@reboot", "@hourly"),
        ("@", "@hourly"),
        ("60 * * * *", "0 to 59"),
        ("* 24 * * *", "0 to 23"),
        ("0 0 0 * *", "1 to 31"),
        ("0 0 32 * *", "1 to 31"),
        ("0 0 * 13 *", "1 to 12"),
        ("0 0 * * 8", "0 to 7"),
        ("5-1 * * * *", "0 to 59"),
        ("*/0 * * * *", "steps"),
        ("*/61 * * * *", "steps"),
        ("1,,2 * * * *", "not understood"),
        (", * * * *", "not understood"),
        ("1* * * * *", "not understood"),
        ("0-5/2/3 * * * *", "not understood"),
        ("-5 * * * *", "not understood"),
        ("0 0 15W * *", "not understood"),
        ("0 0 L-2 * *", "not understood"),
        ("0 0 * * L", "not understood"),
        ("0 0 * * MON#6", "not understood"),
        ("0 0 * * #2", "not understood"),
        ("0 0 1#2 * *", "not understood"),
        ("0 0 * * SUNDAY", "not understood"),
        ("0 0 * MON *", "not understood"),
        ("JAN * * * *", "not understood"),
        ("٣ * * * *", "not understood"),
        ("99999999999 * * * *", "not understood"),
        ("0 0 30 2 *", "never comes"),
        ("0 0 31 4,6,9,11 *", "never comes"),
        ("*," * 400 + "* * * * *", "five fields"),
    ],
)
def test_what_is_no_expression_is_refused_with_a_reason(expression: str, reason: str) -> None:
    """Each names what is wrong; a long one is not repeated whole."""
    with pytest.raises(ValueError, match=reason) as refused:
        parse(expression)
    assert len(str(refused.value)) < 160


def test_the_next_run_is_always_later() -> None:
    """A run at the very second, or a fraction behind it, is not due again."""
    schedule = parse("0 9 * * *")
    nine = at("2026-05-14 09:00:00")
    assert next_run(schedule, nine - 0.001, UTC) == nine
    assert next_run(schedule, nine, UTC) == nine + 86_400
    assert next_run(schedule, nine + 0.5, UTC) == nine + 86_400


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        # 29 March 2026: from 02:00 to 03:00.
        ("30 2 * * *", "2026-03-28 12:00:00", ["26-03-29 03:00:00", "26-03-30 02:30:00"]),
        ("*/20 2 * * *", "2026-03-29 00:00:00", ["26-03-29 03:00:00", "26-03-30 02:00:00"]),
        ("*/20 2-3 * * *", "2026-03-29 00:00:00", ["26-03-29 03:00:00", "26-03-29 03:20:00"]),
        (
            "*/20 * * * *",
            "2026-03-29 01:30:00",
            ["26-03-29 01:40:00", "26-03-29 03:00:00", "26-03-29 03:20:00"],
        ),
        ("30 * * * *", "2026-03-29 01:30:00", ["26-03-29 03:30:00", "26-03-29 04:30:00"]),
        ("0 9 * * *", "2026-03-28 09:00:00", ["26-03-29 09:00:00"]),
        # 25 October 2026: from 03:00 back to 02:00.
        ("30 2 * * *", "2026-10-24 12:00:00", ["26-10-25 02:30:00", "26-10-26 02:30:00"]),
        ("*/30 1-3 * * *", "2026-10-25 02:00:00", ["26-10-25 02:30:00", "26-10-25 03:00:00"]),
        ("*/30 1-3 * * *", "2026-10-25 02:10:00+", ["26-10-25 03:00:00"]),
        (
            "*/30 * * * *",
            "2026-10-25 01:45:00",
            [
                "26-10-25 02:00:00",
                "26-10-25 02:30:00",
                "26-10-25 02:00:00+",
                "26-10-25 02:30:00+",
                "26-10-25 03:00:00",
            ],
        ),
        ("* * * * * *", "2026-10-25 02:59:58", ["26-10-25 02:59:59", "26-10-25 02:00:00+"]),
    ],
)
def test_daylight_saving(expression: str, after: str, expected: List[str]) -> None:
    """A wall time that is left out runs right after the jump; one that comes twice runs once."""
    assert runs(expression, after, len(expected), "Europe/Berlin") == expected


@pytest.mark.parametrize(
    ("zone", "expression", "after", "expected"),
    [
        # Midnight itself is left out.
        ("Africa/Cairo", "0 0 * * *", "2026-04-23 12:00:00", ["26-04-24 01:00:00", "26-04-25 00:00:00"]),
        # Half an hour; and a zone of odd minutes without any change.
        (
            "Australia/Lord_Howe",
            "15 2 * * *",
            "2026-10-03 12:00:00",
            ["26-10-04 02:30:00", "26-10-05 02:15:00"],
        ),
        ("Asia/Kathmandu", "@hourly", "2026-10-03 12:20:00", ["26-10-03 13:00:00"]),
        # A whole day that never was.
        ("Pacific/Apia", "0 12 * * *", "2011-12-29 12:00:00", ["11-12-31 00:00:00", "11-12-31 12:00:00"]),
    ],
)
def test_odd_zones(zone: str, expression: str, after: str, expected: List[str]) -> None:
    """Clocks that jump by other amounts, or at other times."""
    assert runs(expression, after, len(expected), zone) == expected


def test_the_machines_own_zone_is_followed() -> None:
    """Without a zone the C library's clock counts, jumps included."""
    code = (
        "from companion.assignment.cron import next_run, parse\n"
        "print(next_run(parse('30 2 * * *'), 1774695600))\n"
        "print(next_run(parse('30 2 * * *'), 1792838400))\n"
        "print(next_run(parse('*/30 * * * *'), 1792888200))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "TZ": "Europe/Berlin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    due = [datetime.fromtimestamp(float(line), timezone.utc) for line in done.stdout.split()]
    assert [moment.strftime("%m-%d %H:%M") for moment in due] == ["03-29 01:00", "10-25 00:30", "10-25 01:00"]


def test_the_end_of_the_calendar_is_an_error_and_no_endless_search() -> None:
    """Python's years end with 9999."""
    with pytest.raises((ValueError, OverflowError)):
        next_run(parse("0 0 1 1 *"), at("9999-06-01"), UTC)
