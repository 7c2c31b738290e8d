"""Cron expressions as croner reads them, and when one is due next. Pure: no clock, no waiting.

croner (https://croner.56k.guru) is what schedules of this setting were written for: five fields, an
optional sixth for seconds in front, lists, ranges, steps, names, ``L`` and ``#``, nicknames; of day
of the month and day of the week, either will do when both are restricted. Left out are ``W``, ``+``
and years. ``?`` means ``*``, as the versions since 10 have it.
"""

import calendar
import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Tuple

# The rarest date is a 29 February on a certain weekday: every 28 years, 40 around a year like 2100.
SPAN_YEARS = 41
LONGEST_EXPRESSION = 300

_SECOND = timedelta(seconds=1)
_EPOCH = datetime(1970, 1, 1)
_EVERY = ("*", "?")
# Of a weekday: which one in its month. The fifth may be the last too.
_ANY, _LAST = 0, -1

_NICKNAMES = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class _Field(NamedTuple):
    name: str
    least: int
    most: int
    words: Dict[str, int] = {}


_FIELDS = (
    _Field("seconds", 0, 59),
    _Field("minutes", 0, 59),
    _Field("hours", 0, 23),
    _Field("days of the month", 1, 31),
    _Field("months", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Field("days of the week", 0, 7, {name: number for number, name in enumerate(_WEEKDAYS)}),
)
_ITEM = re.compile(r"(?:[*?]|([0-9]{1,4})(?:-([0-9]{1,4}))?)?(?:/([0-9]{1,4}))?(#[1-5L]|L)?")


@dataclass(frozen=True)
class Schedule:
    """When to run, in local time. Made by :func:`parse`."""

    seconds: Tuple[int, ...]
    minutes: Tuple[int, ...]
    hours: Tuple[int, ...]
    """These three ascending."""
    months: FrozenSet[int]
    days: Optional[FrozenSet[int]]
    """Days of the month; None: not restricted. 0 is the month's last."""
    weekdays: Optional[FrozenSet[Tuple[int, int]]]
    """(Day of the week, 0 = Sunday; which one in its month: 0 any, 1 to 5, -1 the last), or None."""

    def first_from(self, moment: datetime) -> Optional[datetime]:
        """The first matching wall time at or after ``moment`` (both without zone), or None."""
        if moment.microsecond:
            moment = moment.replace(microsecond=0) + _SECOND
        for day in self._days_from(moment.date()):
            clock = self._clock_from(moment.time() if day == moment.date() else time())
            if clock is not None:
                return datetime.combine(day, clock)
        return None

    def _days_from(self, start: date) -> Iterator[date]:
        for number in range(SPAN_YEARS * 12):
            year, month = divmod(start.year * 12 + start.month - 1 + number, 12)
            if year > date.max.year:
                return
            if month + 1 not in self.months:
                continue
            length = calendar.monthrange(year, month + 1)[1]
            for day in range(1 if number else start.day, length + 1):
                if self._has(date(year, month + 1, day), length):
                    yield date(year, month + 1, day)

    def _has(self, day: date, length: int) -> bool:
        by_day = self.days is not None and (day.day in self.days or (day.day == length and 0 in self.days))
        if self.weekdays is None:
            return by_day or self.days is None
        which = (_ANY, (day.day - 1) // 7 + 1, *([_LAST] if day.day + 7 > length else []))
        return by_day or any((day.isoweekday() % 7, each) in self.weekdays for each in which)

    def _clock_from(self, start: time) -> Optional[time]:
        for hour in self.hours:
            if hour < start.hour:
                continue
            for minute in self.minutes:
                if (hour, minute) < (start.hour, start.minute):
                    continue
                for second in self.seconds:
                    if (hour, minute, second) >= (start.hour, start.minute, start.second):
                        return time(hour, minute, second)
        return None


def parse(expression: str) -> Schedule:
    """The schedule an expression means. ValueError, with a reason for people, when it means none."""
    text = expression.strip().upper()
    parts = _NICKNAMES.get(text, text).split()
    if text.startswith("@") and text not in _NICKNAMES:
        known = ", ".join(name.lower() for name in _NICKNAMES)
        raise ValueError(f"{_short(expression)} is none of {known}")
    if len(parts) not in (5, 6) or len(text) > LONGEST_EXPRESSION:
        raise ValueError(f"{_short(expression)} is no cron expression of five fields, or six with seconds")
    parts = ["0", *parts] if len(parts) == 5 else parts
    found = [_values(field, part) for field, part in zip(_FIELDS, parts)]
    numbers = [frozenset(number for number, _ in values) for values in found]
    schedule = Schedule(
        seconds=tuple(sorted(numbers[0])),
        minutes=tuple(sorted(numbers[1])),
        hours=tuple(sorted(numbers[2])),
        days=None if parts[3] in _EVERY else numbers[3],
        months=numbers[4],
        weekdays=None if parts[5] in _EVERY else frozenset((day % 7, which) for day, which in found[5]),
    )
    if schedule.first_from(datetime(2000, 1, 1)) is None:
        raise ValueError(f"{_short(expression)} names a date that never comes")
    return schedule


def next_run(schedule: Schedule, after_s: float, zone: Optional[tzinfo] = None) -> float:
    """The first time after ``after_s`` at which it is due; both in Unix seconds.

    A wall time that daylight saving leaves out is due right after the jump, once. One that comes
    twice is due the first time only; but a schedule for all hours goes on through both.

    Args:
        zone: whose wall time counts; None for this machine's.
    """
    start = int(after_s // 1) + 1
    if len(schedule.hours) == 24:
        return _in_all_hours(schedule, start, zone)
    local = _local(start, zone).replace(fold=0)
    while True:
        local = _found(schedule.first_from(local))
        due = _instant(local, zone)
        if due >= start:
            return float(due)
        local += _SECOND


def _in_all_hours(schedule: Schedule, start: int, zone: Optional[tzinfo]) -> float:
    """Counts real seconds, between one change of the clock and the next."""
    while True:
        local = _local(start, zone).replace(fold=0)
        due = start + int((_found(schedule.first_from(local)) - local).total_seconds())
        if _offset(due, zone) == _offset(start, zone):
            return float(due)
        start = _change(start, due, zone)


def _found(moment: Optional[datetime]) -> datetime:
    if moment is None:  # Not within a lifetime: only at the end of the calendar.
        raise ValueError("the schedule has no date left")
    return moment


def _instant(local: datetime, zone: Optional[tzinfo]) -> int:
    """Unix seconds of a wall time: its first occurrence, or the jump that leaves it out."""
    first, second = (int(local.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (0, 1))
    # For a time that does not exist, fold 0 counts by the clock before the jump, which is later.
    return first if first <= second else _change(second, first, zone)


def _change(before: int, behind: int, zone: Optional[tzinfo]) -> int:
    """The first second with another offset than ``before`` has; ``behind`` has another one."""
    offset = _offset(before, zone)
    while behind - before > 1:
        middle = (before + behind) // 2
        if _offset(middle, zone) == offset:
            before = middle
        else:
            behind = middle
    return behind


def _local(unix_s: int, zone: Optional[tzinfo]) -> datetime:
    return datetime.fromtimestamp(unix_s, zone).replace(tzinfo=None)


def _offset(unix_s: int, zone: Optional[tzinfo]) -> timedelta:
    return _local(unix_s, zone) - (_EPOCH + timedelta(seconds=unix_s))


def _values(field: _Field, text: str) -> List[Tuple[int, int]]:
    """(Value, which one in its month) of one field. ValueError."""
    values: List[Tuple[int, int]] = []
    for item in text.split(","):
        if field.name == "days of the month" and item == "L":
            values.append((0, _ANY))
        else:
            values += _item(field, item)
    return values


def _item(field: _Field, item: str) -> List[Tuple[int, int]]:
    what = f"{_short(item)} in the {field.name}"
    match = _ITEM.fullmatch(re.sub(r"-?[A-Z]{2,}", lambda word: _number(field, word.group(), what), item))
    if match is None or not item:
        raise ValueError(f"{what} is not understood")
    first, last, step, which = match.groups()
    if which and (field.most != 7 or first is None or (which == "L" and (last or step))):
        raise ValueError(f"{what} is not understood")
    low = int(first) if first else field.least
    high = int(last) if last else low if first and not step else field.most
    if not field.least <= low <= high <= field.most:
        raise ValueError(f"{what} is not within {field.least} to {field.most}")
    if step is not None and not 0 < int(step) <= field.most - field.least + 1:
        raise ValueError(f"{what}: such steps are impossible")
    nth = _ANY if not which else _LAST if which[-1] == "L" else int(which[-1])
    return [(value, nth) for value in range(low, high + 1, int(step or 1))]


def _number(field: _Field, word: str, what: str) -> str:
    """A name's number. Sunday at the end of a range is 7, so that the range goes upwards."""
    dash = "-" if word.startswith("-") else ""
    number = field.words.get(word.lstrip("-"))
    if number is None:
        raise ValueError(f"{what} is not understood")
    return f"{dash}{7 if dash and word == '-SUN' else number}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")
