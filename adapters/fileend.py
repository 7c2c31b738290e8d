"""The end of a session's file, its lines from the newest back, and the times that stand in them.

Whoever asks in what state a session is asks often, and the answer stands in the last lines. So no
more than :data:`LIMIT_BYTES` are read of any file, and held, however long it or its lines are.
"""

import errno
import os
import re
import stat
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Dict, Iterable, Iterator, Optional

from adapters.foreign import text_or_empty
from adapters.jsonl import LineFile, parse
from adapters.paths import MAX_PATH_CHARS

STEP_BYTES = 64 * 1024
"""Read at once, further and further to the front; mostly the first step has the answer."""

LIMIT_BYTES = 1024 * 1024
"""What stands farther from the end is not looked at."""

_ISO = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]{1,9})?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class FileEnd(LineFile):
    """A line file that is read from its end. OSError as of :class:`adapters.jsonl.LineFile`, and for a
    path that cannot be."""

    def __init__(self, path: Path) -> None:
        try:
            super().__init__(path)
        except ValueError as exc:  # A name that no system can have, from a foreign payload.
            raise OSError(errno.EINVAL, str(exc)) from exc
        self.whole = False
        """Whether :meth:`lines` came through to the first line of the file."""

    def __enter__(self) -> "FileEnd":
        return self

    def lines(self) -> Iterator[bytes]:
        """Lines that are not empty, the last one first, without their LF. To be called once.

        A line that begins farther from the end than :data:`LIMIT_BYTES` is left out, and all before it.
        """
        first = max(0, self.size_bytes - LIMIT_BYTES)
        start, held = self.size_bytes, b""
        while start > first:
            end, start = start, max(first, start - STEP_BYTES)
            block = b"".join(part for _, part in self._reads(start, end))
            cut = block.rfind(b"\n")
            if cut < 0:
                held = block + held
                continue
            lines = block[:cut].split(b"\n")
            for line in (block[cut + 1 :] + held, *reversed(lines[1:])):
                if line:
                    yield line
            held = lines[0]
        self.whole = first == 0
        if self.whole and held:
            yield held

    def first_line(self) -> bytes:
        """The first line without its LF; empty when it is longer than :data:`STEP_BYTES`."""
        block = b"".join(part for _, part in self._reads(0, min(self.size_bytes, STEP_BYTES)))
        cut = block.find(b"\n")
        if cut < 0 and len(block) < self.size_bytes:
            return b""
        return block[:cut] if cut >= 0 else block


def newest_file(paths: Iterable[Path]) -> Optional[Path]:
    """Of those that are regular files, and no links to one, the one that was changed last."""
    found = []
    for path in paths:
        try:
            status = os.lstat(path)
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(status.st_mode):
            found.append((status.st_mtime_ns, path))
    return max(found)[1] if found else None


def object_of(line: bytes) -> Optional[Dict[str, object]]:
    """The object that a line holds; None for a torn line and for anything else."""
    try:
        entry = parse(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def unix_s(iso: object) -> Optional[float]:
    """Unix seconds of a time as ``2026-01-31T09:05:00.250Z`` or with an offset; None for anything else."""
    found = _ISO.fullmatch(iso) if isinstance(iso, str) else None
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in found.group(1, 2, 3, 4, 5, 6))
    fraction, sign, hours, minutes = found.group(7, 8, 9, 10)
    shift = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
    except ValueError:
        return None
    since = moment - _EPOCH + (shift if sign == "-" else -shift)
    return since.total_seconds() + float(fraction or 0)


def folder_of(value: object) -> Optional[str]:
    """A folder as a foreign record names it; None for what cannot be opened anyway."""
    folder = text_or_empty(value, MAX_PATH_CHARS)
    return folder if folder and "\0" not in folder else None
