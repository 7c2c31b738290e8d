"""Reads a file of JSON lines that another program is still writing; searches bytes first.

Parsing every line costs about ten times as much as looking for a few bytes in it. So a file is
walked in blocks of whole lines; whoever reads it decides by bytes which lines matter and parses
only those. Memory depends neither on the size of the file nor on the length of a line: a line
longer than :data:`DIRECT_BYTES` is never held, see :class:`LongLine`.
"""

import errno
import io
import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Iterator, NamedTuple, Optional, Sequence, Tuple, Type, Union

BLOCK_BYTES = 256 * 1024
"""Read at once. Small enough for a processor's cache, in which each block is searched repeatedly."""

DIRECT_BYTES = 2 * 1024 * 1024
"""A line up to about this length is handled as it is. With one character outside the basic plane,
text takes four bytes a character and exists three times while it is parsed: some 30 MB."""

KEPT_STRING_BYTES = 1024 * 1024
"""Longer strings within a longer line are read as empty: images, whole files."""

TAIL_BYTES = 32 * 1024
"""So much of a file's end is looked at before the rest, and of a small file a quarter."""

EDGE_BYTES = 64 * 1024
"""So much of either end of a long line is looked at before its middle is."""

_LEADING = re.compile(rb"\A(?:[\0 \t\r\n]|\xef\xbb\xbf)+")


class Block(NamedTuple):
    """Whole lines: ``data[start:end]``."""

    data: bytearray
    start: int
    end: int


@dataclass(frozen=True)
class LongLine:
    """Where a line of more than :data:`DIRECT_BYTES` stands; its content was not kept."""

    offset: int
    size_bytes: int


class LineFile:
    """A regular file opened for reading, up to the size it had at that moment.

    OSError as it comes; also for what is no regular file (a pipe would make us wait for ever).
    """

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        found = os.fstat(self._fd)
        if not stat.S_ISREG(found.st_mode):
            os.close(self._fd)
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        self._stream = io.FileIO(self._fd)  # Closes the descriptor with itself.
        self.path = path
        self.size_bytes: int = found.st_size

    def __enter__(self) -> "LineFile":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self._stream.close()

    def blocks(self) -> Iterator[Union["Block", LongLine]]:
        """The file in order: whole lines, each ending in LF but for the last one, or a long line.

        To be called once. A block is gone when the next one is asked for.
        """
        buffer = bytearray(BLOCK_BYTES)
        offset = held = 0  # of the next read; bytes of an unfinished line at the buffer's start
        long_from: Optional[int] = None  # where the line at hand begins that is too long to hold
        while True:
            if held > len(buffer) // 2:
                buffer.extend(bytes(len(buffer)))
            size = self._read_into(buffer, held, offset)
            if not size:
                break
            offset += size
            end = held + size
            start = 0
            if long_from is not None:
                start = buffer.find(b"\n", 0, end) + 1
                if not start:
                    continue
                yield LongLine(long_from, offset - end + start - 1 - long_from)
                long_from = None
            cut = buffer.rfind(b"\n", max(start, held), end) + 1
            if cut:
                yield Block(buffer, start, cut)
            cut = cut or start
            held = end - cut
            if held > DIRECT_BYTES:
                long_from, held = offset - held, 0
            elif cut:
                buffer[:held] = buffer[cut:end]
        if long_from is not None:
            yield LongLine(long_from, offset - long_from)
        elif held:
            yield Block(buffer, 0, held)

    def _read_into(self, buffer: bytearray, at: int, offset: int) -> int:
        """Fill the buffer from ``at`` on with what follows in the file; how many bytes that were."""
        room = min(len(buffer) - at, self.size_bytes - offset)
        with memoryview(buffer) as view, view[at : at + room] as free:
            return self._stream.readinto(free) or 0

    def tail(self) -> bytes:
        """The last whole lines, at most :data:`TAIL_BYTES`; empty when the last one is longer."""
        start = self.size_bytes - min(TAIL_BYTES, self.size_bytes // 4)
        block = b"".join(block for _, block in self._reads(start, self.size_bytes))
        return block[block.find(b"\n") + 1 or len(block) :]

    def edges(self, line: LongLine) -> Tuple[bytes, bytes]:
        """The first and the last :data:`EDGE_BYTES` of a long line."""
        end = line.offset + line.size_bytes
        first = self._reads(line.offset, line.offset + EDGE_BYTES)
        last = self._reads(end - EDGE_BYTES, end)
        return b"".join(block for _, block in first), b"".join(block for _, block in last)

    def holds(self, line: LongLine, needles: Sequence[bytes]) -> bool:
        """Whether any of the byte strings occurs in a long line."""
        overlap = max((len(needle) for needle in needles), default=1) - 1
        carried = b""
        for _, block in self._reads(line.offset, line.offset + line.size_bytes):
            window = carried + block
            if any(needle in window for needle in needles):
                return True
            carried = window[-overlap:] if overlap else b""
        return False

    def lean(self, line: LongLine) -> Optional[bytes]:
        """A long line with its huge strings emptied (:data:`KEPT_STRING_BYTES`).

        None when more than :data:`DIRECT_BYTES` are left even so: a line of millions of small parts.
        """
        lean = _Lean()
        for _, block in self._reads(line.offset, line.offset + line.size_bytes):
            lean.feed(block)
            if len(lean.kept) > DIRECT_BYTES + KEPT_STRING_BYTES:
                return None
        return bytes(lean.kept) if len(lean.kept) <= DIRECT_BYTES else None

    def _reads(self, start: int, end: int) -> Iterator[Tuple[int, bytes]]:
        """(offset, block) from ``start`` to ``end``; fewer when the file was cut short meanwhile."""
        while start < end:
            block = os.pread(self._fd, min(BLOCK_BYTES, end - start), start)
            if not block:
                return
            yield start, block
            start += len(block)


class _Lean:
    """Copies a JSON line piece by piece and leaves out the content of strings that grow too long."""

    def __init__(self) -> None:
        self.kept = bytearray()
        self._inside = False  # of a string literal
        self._dropping = False  # the string at hand was too long; its content is not kept
        self._begun = 0  # where in `kept` the content of the string at hand begins
        self._backslash = b""  # at the end of the last piece, waiting for what it escapes

    def feed(self, piece: bytes) -> None:
        piece = self._backslash + piece
        self._backslash = piece[-1:] if _is_escaped(piece, len(piece)) else b""
        end = len(piece) - len(self._backslash)
        start = 0
        while start < end:
            quote = piece.find(b'"', start, end)
            stop = end if quote < 0 else quote + 1
            closes = quote >= 0 and not (self._inside and _is_escaped(piece, quote))
            self._keep(piece[start : quote if closes else stop])
            if closes:
                self.kept += b'"'
                self._inside, self._dropping = not self._inside, False
                self._begun = len(self.kept)
            start = stop

    def _keep(self, part: bytes) -> None:
        if self._dropping:
            return
        self.kept += part
        if self._inside and len(self.kept) - self._begun > KEPT_STRING_BYTES:
            del self.kept[self._begun :]
            self._dropping = True


def _is_escaped(data: bytes, index: int) -> bool:
    """Whether an odd number of backslashes stands directly in front of ``index``."""
    first = index
    while first > 0 and data[first - 1] == 0x5C:
        first -= 1
    return (index - first) % 2 == 1


def parse(line: bytes) -> object:
    """The value of one line. ValueError when it is torn, spliced or otherwise not JSON.

    Bytes that are not UTF-8 become U+FFFD; NULs around the line, as a crash leaves them, are dropped.
    """
    start, length = without_padding(line)
    try:
        value: object = json.loads(line[start : start + length].decode("utf-8", errors="replace"))
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc
    return value


def without_padding(line: bytes) -> Tuple[int, int]:
    """(start, length) of what a line holds between NULs, blanks and a byte order mark; may be (n, 0)."""
    kept = _LEADING.sub(b"", line, count=1)
    return len(line) - len(kept), len(kept.rstrip(b"\0 \t\r\n"))
