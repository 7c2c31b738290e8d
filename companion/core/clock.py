"""Wall time as the contract writes it, and one time budget over several waits."""

import time
from datetime import datetime, timezone
from typing import Callable, Optional

WallClock = Callable[[], float]
"""Returns Unix seconds; ``time.time`` outside tests."""


def iso_utc(unix_s: float) -> str:
    """UTC ISO-8601 with milliseconds and ``Z``, e.g. ``2026-01-31T09:05:00.250Z``.

    Milliseconds are cut, not rounded, so a time never lies in the future.
    """
    whole, ms = divmod(int(unix_s * 1000), 1000)
    moment = datetime.fromtimestamp(whole, timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms:03d}Z"


def parse_iso(text: str) -> Optional[float]:
    """Unix seconds of an ISO-8601 time with a zone, or None when it is not one.

    Python 3.9 and 3.10 do not know ``Z``, hence the replacement.
    """
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        return None
    try:
        return moment.timestamp()
    except (ValueError, OverflowError):
        return None


class Deadline:
    """A budget of seconds shared by several waits, on the monotonic clock."""

    def __init__(self, timeout_s: float) -> None:
        self._end = time.monotonic() + timeout_s

    def left_s(self) -> float:
        """Seconds left, never below zero."""
        return max(0.0, self._end - time.monotonic())

    def over(self) -> bool:
        """Whether the budget is spent."""
        return self.left_s() <= 0.0
