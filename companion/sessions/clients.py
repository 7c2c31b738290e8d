"""Which clients have reported since the start: the proof that an installed client is at work."""

import threading
import time
from dataclasses import dataclass
from typing import Dict, Optional

from companion.core.clock import WallClock, iso_utc

# Names come from outside: more harnesses than this are counted together.
MAX_HARNESSES = 50
MAX_NAME_CHARS = 64
OTHER_NAMES = "(other)"
UNKNOWN = "unknown"


@dataclass
class _Tally:
    reports: int = 0
    unknown_cards: int = 0
    last_report_at: Optional[float] = None
    """Unix seconds."""


class Clients:
    """Counts what comes in at ``POST /associations``, by harness. Safe for threads.

    Args:
        now: wall clock, Unix seconds.
    """

    def __init__(self, now: WallClock = time.time) -> None:
        self._now = now
        self._lock = threading.Lock()  # Guards the tallies.
        self._tallies: Dict[str, _Tally] = {}

    def count(self, body: object, known_card: bool) -> None:
        """One report that was taken; ``known_card``: it was about a card of a registered board."""
        harness = body.get("harness") if isinstance(body, dict) else None
        name = harness if isinstance(harness, str) and harness else UNKNOWN
        with self._lock:
            tally = self._tally(name)
            tally.reports += 1
            tally.unknown_cards += not known_card
            tally.last_report_at = self._now()

    def facts(self) -> Dict[str, object]:
        """By harness: ``reports``, ``unknownCards`` (of these, about no card of a board) and
        ``lastReportAt`` (UTC ISO-8601)."""
        with self._lock:
            return {
                name: {
                    "reports": tally.reports,
                    "unknownCards": tally.unknown_cards,
                    "lastReportAt": iso_utc(tally.last_report_at) if tally.last_report_at else None,
                }
                for name, tally in self._tallies.items()
            }

    def _tally(self, name: str) -> _Tally:
        known = self._tallies.get(name)
        if known is None:
            if len(name) > MAX_NAME_CHARS or len(self._tallies) >= MAX_HARNESSES:
                name = OTHER_NAMES
            known = self._tallies.setdefault(name, _Tally())
        return known
