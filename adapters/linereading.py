"""What readers of line files share, whatever the agent: parsing one line, its time, and damage."""

from typing import Collection, Dict, List, Optional, Tuple

from adapters.bytesearch import Bytes, Newest
from adapters.contract import ReadReport
from adapters.jsonl import parse, without_padding

BRACE, END_BRACE = b"{}"
"""The bytes with which a line that holds an object begins and ends."""

_MAX_UNKNOWN = 100
_MAX_NAME_CHARS = 64


class LineReading:
    """The lines of one session. An agent's reader is one, and decides which lines are parsed.

    Args:
        newest: finds the greatest time.
        report: told of what is not understood.
    """

    def __init__(self, newest: Newest, report: ReadReport) -> None:
        self.newest = newest
        self._report = report
        self._lines = 0  # of the block at hand, that were not blank and not counted by other means
        self._damaged: Dict[int, None] = {}  # of these, by their end

    def _has_time(self, entry: Dict[str, object]) -> bool:
        """Whether the entry's time is one of the session."""
        return True

    def _trimmed(self, block: Bytes, start: int, end: int) -> Tuple[int, int]:
        """The object within a line that has something around it; an empty range when there is none."""
        skipped, length = without_padding(bytes(memoryview(block)[start:end]))
        if not length:
            self._lines -= 1  # a blank line is none
            return end, end
        start, end = start + skipped, start + skipped + length
        if block[start] == BRACE and block[end - 1] == END_BRACE:
            return start, end
        self._parse(block, start, end)  # counts it when it is not JSON at all
        return end, end

    def _note_newest(self, block: bytes) -> None:
        """Look at the file's end first: in most files the greatest time is there."""
        above = []
        for start, end in lines_of(block, 0, len(block)):
            raw = self.newest.above(block, start, end)
            if raw is not None:
                above.append((raw, start, end))
        self._confirm(block, above)

    def _confirm(self, block: Bytes, above: List[Tuple[bytes, int, int]]) -> None:
        """Parse lines that may hold the greatest time, the most promising first."""
        for raw, start, end in sorted(above, reverse=True):
            if not self.newest.beats(raw):
                return
            entry = self._parse(block, start, end)
            if entry is not None and self._has_time(entry):
                self.newest.take(entry)

    def _parse(self, block: Bytes, start: int, end: int) -> Optional[Dict[str, object]]:
        """The entry of a line; None for anything but an object. A damaged line is noted."""
        try:
            entry = parse(bytes(memoryview(block)[start:end]))
        except ValueError:
            self._damaged[end] = None
            return None
        return entry if isinstance(entry, dict) else None

    def _count(self, name: str, known: Collection[str], prefix: str = "") -> None:
        """Count a name that is not among the known ones; at most 100 different ones."""
        if name in known:
            return
        counts, name = self._report.unknown, prefix + name[:_MAX_NAME_CHARS]
        if name in counts or len(counts) < _MAX_UNKNOWN:
            counts[name] = counts.get(name, 0) + 1


def lines_of(block: Bytes, start: int, stop: int) -> List[Tuple[int, int]]:
    """(start, end) of each line between two positions that is not empty, without its LF."""
    found = []
    while start < stop:
        end = block.find(b"\n", start, stop)
        end = stop if end < 0 else end
        if end > start:
            found.append((start, end))
        start = end + 1
    return found
