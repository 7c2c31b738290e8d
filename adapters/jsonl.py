"""Reads a file of JSON lines that another program is still writing; searches bytes first.

Parsing every line costs about ten times as much as looking for a few bytes in it. So a file is
walked in blocks of whole lines; whoever reads it decides by bytes which lines matter and parses
only those. Memory depends neither on the size of the file nor on the length of a line: a line
longer than :data:`DIRECT_BYTES` is never held, see :class:`LongLine`.

Two things are assumed of whoever writes the lines, both true of every JSON writer: an object names
each key once, and ASCII letters are not written as ``\\u`` escapes.
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
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Type, Union

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

# One member without escapes, as it can be read from either end of a line.
_PAIR = rb'"[^"\\]*"\s*:\s*(?:"[^"\\]*"|[^"{}\[\],\s]+)\s*'

HEAD = rb"\s*\{\s*(?:" + _PAIR + rb",\s*)*?"
"""Pattern: an object's start and plain members, so that what follows is a member of the top."""

# What follows a value at the end of the top level, from its closing quote on.
_REST = re.compile(rb'"\s*(?:,\s*' + _PAIR + rb")*\}\s*\Z")

# The first bytes of a line, in which a member at its head is looked for.
_HEAD_BYTES = 1024

# Ends of lines that are remembered, so that they are matched once: their length and number.
_TAIL_BYTES = 1024
_MAX_TAILS = 256


Bytes = Union[bytes, bytearray]


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
        self._stream = io.FileIO(self._fd)
        found = os.fstat(self._fd)
        if not stat.S_ISREG(found.st_mode):
            self._stream.close()
            raise OSError(errno.EINVAL, "not a regular file", str(path))
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


def is_plain(line: Bytes, start: int, at: int) -> bool:
    """Whether no other object was opened between a line's brace at ``start`` and ``at``.

    A member that begins there is one of the top level: in a string its quotes would be escaped.
    """
    return line.find(b"{", start + 1, at) < 0 and line[at - 1] != 0x5C


class Newest:
    """Finds the lexically greatest string under one key of the top level, mostly without parsing.

    ``value`` is the greatest one that was confirmed by parsing its line. A line can only change it
    when its bytes hold a greater one, so in a file that grows in time, and whose end is looked at
    first, next to no line is parsed.
    """

    def __init__(self, key: str, before: str, width: int) -> None:
        """``before``: a member that only the top level has, and that may follow the one looked for.
        ``width``: how long the value is as a rule, in bytes; other lengths take more time.
        """
        self._key = key
        self._name = b'"%s"' % key.encode("ascii")
        self._start = self._name + b':"'
        self._member = re.compile(self._name + rb'\s*:\s*"([^"\\]*)(["\\])')
        self._before = b'","%s":' % before.encode("ascii")
        self._width = width
        self._member_bytes = len(self._start) + width
        self._tails: Set[bytes] = set()  # what stood behind the value at the end of other lines
        self._bytes = b""
        self.value: Optional[str] = None

    def above(self, block: Bytes, start: int, end: int) -> Optional[bytes]:
        """The greatest raw value of the line ``block[start:end]`` that exceeds ``value``, or None.

        A value at the end of the top level is known to be the one; otherwise each occurrence in the
        line counts, nested ones too.
        """
        at = block.rfind(self._name, max(start, end - _TAIL_BYTES), end)
        if at > 0 and block[at - 1] != 0x5C:
            close = at + self._member_bytes
            if block.startswith(self._start, at) and self._is_last(block, close, end):
                raw = bytes(block[close - self._width : close])
                if b'"' not in raw and b"\\" not in raw:
                    return raw if raw > self._bytes else None
        return self._greatest(block, start, end)

    def above_and_cut(self, block: Bytes, start: int, end: int) -> Tuple[Optional[bytes], int]:
        """Like :meth:`above`, for a line that may hold ``before`` in its middle.

        Then, instead of ``end``, comes the place where that begins, up to which all was looked at.
        """
        # Every other line of a transcript comes by here; a regular expression would take half of
        # all the time. So it is the spelling of a writer that puts no blanks in, else the long way.
        at = block.rfind(self._name, max(start, end - _TAIL_BYTES), end)
        if at < 0:
            close = block.find(self._before, start, end)
            at = close - self._member_bytes
            if at > start and block.startswith(self._start, at) and block[at - 1] != 0x5C:
                raw = bytes(block[close - self._width : close])
                if b'"' not in raw and b"\\" not in raw:
                    return (raw if raw > self._bytes else None), at
        return self.above(block, start, end), end

    def _is_last(self, block: Bytes, close: int, end: int) -> bool:
        """Whether only plain members follow the value whose closing quote stands at ``close``."""
        tail = bytes(block[close : min(end, close + _TAIL_BYTES)])
        if tail in self._tails:
            return True
        if len(tail) == _TAIL_BYTES or not _REST.match(tail):
            return False
        if len(self._tails) < _MAX_TAILS:  # most lines of a file end in the same way
            self._tails.add(tail)
        return True

    def above_at_head(self, block: Bytes, start: int, end: int) -> Optional[bytes]:
        """Like :meth:`above`, for a line that is likely to name it among its first members."""
        at = block.find(self._name, start, min(end, start + _HEAD_BYTES))
        found = self._member.match(block, at, end) if at > 0 and is_plain(block, start, at) else None
        if found is None or found[2] != b'"':
            return self.above(block, start, end)
        return found[1] if found[1] > self._bytes else None

    def _greatest(self, block: Bytes, start: int, end: int) -> Optional[bytes]:
        """The greatest of all raw values in a line that exceed ``value``."""
        greatest = None
        at = block.rfind(self._name, start, end)
        while at >= 0:
            found = self._member.match(block, at, end)
            if found:
                raw = found[1] if found[2] == b'"' else _UNTOLD
                if raw > self._bytes and (greatest is None or raw > greatest):
                    greatest = raw
            at = block.rfind(self._name, start, at)
        return greatest

    def at_edge(self, first: bytes, last: bytes) -> Optional[bytes]:
        """The value of a long line, told by its first and last bytes; None when they do not tell."""
        at = first.find(self._name)
        found = self._member.match(first, at) if at > 0 and is_plain(first, 0, at) else None
        if found is None:
            at = last.rfind(self._name)
            found = self._member.match(last, at) if at > 0 and last[at - 1] != 0x5C else None
            if found and not self._is_last(last, found.end() - 1, len(last)):
                return None
        return found[1] if found and found[2] == b'"' else None

    def beats(self, raw: bytes) -> bool:
        """Whether a value, as bytes, would be the greatest."""
        return raw > self._bytes

    def take(self, entry: Mapping[str, object]) -> None:
        """Note the value of an entry, if it has one."""
        value = entry.get(self._key)
        if not isinstance(value, str):
            return
        raw = value.encode("utf-8", errors="surrogatepass")
        if raw > self._bytes:
            self._bytes, self.value = raw, value


# Stands for a value with escapes: greater than any text, so that its line gets parsed.
_UNTOLD = b"\xff"


class Needles:
    """Looks for any of several byte strings; those that differ only in front are one search.

    Without needles everything is a hit.
    """

    def __init__(self, needles: Sequence[bytes]) -> None:
        self._all = tuple(needles)
        groups: Dict[bytes, List[bytes]] = {}
        for needle in needles:
            groups.setdefault(_FRONT.sub(b"", needle) or needle, []).append(needle)
        self._groups = tuple(groups.items())
        self._reach = max((len(needle) for needle in needles), default=0)

    @property
    def cores(self) -> Tuple[bytes, ...]:
        """What is searched for: a line without any of these holds no needle."""
        return tuple(core for core, _ in self._groups)

    @property
    def all(self) -> Tuple[bytes, ...]:
        """The needles as given."""
        return self._all

    def within(self, block: Bytes, start: int, end: int) -> bool:
        """Whether ``block[start:end]`` holds any needle."""
        if not self._all:
            return True
        for core, needles in self._groups:
            at = block.find(core, start, end)
            while at >= 0:
                around = block[max(start, at - self._reach) : min(end, at + self._reach)]
                if any(needle in around for needle in needles):
                    return True
                at = block.find(core, at + 1, end)
        return False


# What may stand in front of a folder's name: a slash, spelled in any of three ways, or a quote.
_FRONT = re.compile(rb'\A(?:\\u[0-9A-Fa-f]{4}|[/"\\])+')
