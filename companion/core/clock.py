"""Wall time as the contract writes it, and one time budget over several waits."""

import math
import re
import time
from datetime import datetime, timezone
from typing import Callable, Optional, Tuple

WallClock = Callable[[], float]
"""Returns Unix seconds; ``time.time`` outside tests."""


_ISO = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?"
    r"([Zz]|[+-][0-9]{2}:?[0-9]{2})"
)

_last_second: Tuple[int, str] = (0, "1970-01-01T00:00:00")  # Events come in bursts: see iso_utc.


def iso_utc(unix_s: float) -> str:
    """UTC ISO-8601 with milliseconds and ``Z``, e.g. ``2026-01-31T09:05:00.250Z``.

    Milliseconds are cut, not rounded, so a time never lies in the future. (But for the hundredth
    of a millisecond that a float of today's size may lack: ``x.001`` must not become ``x.000``.)
    """
    global _last_second
    whole, ms = divmod(math.floor(round(unix_s * 1000, 2)), 1000)
    known, text = _last_second  # One object, so that threads never see halves of two.
    if known != whole:
        # strftime takes ten times as long.
        text = datetime.fromtimestamp(whole, timezone.utc).isoformat()[:19]
        _last_second = (whole, text)
    return f"{text}.{ms:03d}Z"


def parse_iso(text: str) -> Optional[float]:
    """Unix seconds of an ISO-8601 time with a zone, or None when it is not one.

    Up to nine digits of a second's fraction are read, six count. The parser of Python 3.9 knows
    neither ``Z`` nor other than three or six digits, that of 3.11 much more: what is admitted
    must not depend on it.
    """
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    date, clock, seconds, fraction, zone = found.groups()
    zone = "+00:00" if zone in "Zz" else f"{zone[:3]}:{zone[-2:]}"
    micros = f"{fraction or '':0<6}"[:6]
    try:
        return datetime.fromisoformat(f"{date}T{clock}:{seconds or '00'}.{micros}{zone}").timestamp()
    except (ValueError, OverflowError):
        return None


class Deadline:
    """A budget of seconds shared by several waits, on the monotonic clock."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        """The whole budget."""
        self._end = time.monotonic() + timeout_s

    def left_s(self) -> float:
        """Seconds left, never below zero."""
        return max(0.0, self._end - time.monotonic())

    def over(self) -> bool:
        """Whether the budget is spent."""
        return self.left_s() <= 0.0
