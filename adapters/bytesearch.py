"""Finds things in a line of JSON by its bytes, without parsing it.

Two things are assumed of whoever writes the lines, both true of every JSON writer: an object names
each key once, and ASCII letters are not written as ``\\u`` escapes. Then a key stands in a line as it
is, and nothing within a string looks like one, for there its quotes are escaped.

All functions take a line as ``block[start:end]``, so that no line has to be copied.
"""

import re
from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

Bytes = Union[bytes, bytearray]

# One member without escapes, as it can be read from either end of a line.
_PAIR = rb'"[^"\\]*"\s*:\s*(?:"[^"\\]*"|[^"{}\[\],\s]+)\s*'

HEAD = rb"\s*\{\s*(?:" + _PAIR + rb",\s*)*?"
"""Pattern: an object's start and plain members, so that what follows is a member of the top."""

# What follows a value at the end of the top level, from its closing quote on.
_REST = re.compile(rb'"\s*(?:,\s*' + _PAIR + rb")*\}\s*\Z")

# The first bytes of a line, in which a member at its head is looked for.
_HEAD_BYTES = 1024

# Ends of lines that are remembered, so that they are matched once: their length and number.
_TAIL_BYTES = 512
_MAX_TAILS = 256


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
        self.name = b'"%s"' % key.encode("ascii")
        """The key as it stands in a line: one without it has no value."""
        self._start = self.name + b':"'
        self._member = re.compile(self.name + rb'\s*:\s*"([^"\\]*)(["\\])')
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
        return self._above_at_tail(block, start, end, block.rfind(self.name, start, end))

    def above_and_cut(self, block: Bytes, start: int, end: int) -> Tuple[Optional[bytes], int]:
        """Like :meth:`above`, for a line that may hold ``before`` in its middle.

        Then, instead of ``end``, comes the place where that begins, up to which all was looked at.
        """
        # Every other line of a transcript comes by here; a regular expression would take half of
        # all the time. So it is the spelling of a writer that puts no blanks in, else the long way.
        at = block.rfind(self.name, end - _TAIL_BYTES if end - start > _TAIL_BYTES else start, end)
        if at >= 0:
            return self._above_at_tail(block, start, end, at), end
        close = block.find(self._before, start, end)
        at = close - self._member_bytes
        if at > start and block.startswith(self._start, at) and block[at - 1] != 0x5C:
            raw = bytes(block[close - self._width : close])
            if b'"' not in raw and b"\\" not in raw:
                return (raw if raw > self._bytes else None), at
        return self._greatest(block, start, end), end

    def _above_at_tail(self, block: Bytes, start: int, end: int, at: int) -> Optional[bytes]:
        """Like :meth:`above`; ``at`` is where the key stands last in the line, or -1."""
        if at > start and block[at - 1] != 0x5C and block.startswith(self._start, at):
            close = at + self._member_bytes
            raw = bytes(block[close - self._width : close])
            if b'"' not in raw and b"\\" not in raw and self._is_last(block, close, end):
                return raw if raw > self._bytes else None
        return self._greatest(block, start, end) if at >= 0 else None

    def _is_last(self, block: Bytes, close: int, end: int) -> bool:
        """Whether only plain members follow the value whose closing quote stands at ``close``."""
        if end - close > _TAIL_BYTES:
            return False
        tail = bytes(block[close:end])
        if tail in self._tails:
            return True
        if not _REST.match(tail):
            return False
        if len(self._tails) < _MAX_TAILS:  # most lines of a file end in the same way
            self._tails.add(tail)
        return True

    def above_at_head(self, block: Bytes, start: int, end: int) -> Optional[bytes]:
        """Like :meth:`above`, for a line that is likely to name it among its first members."""
        at = block.find(self.name, start, min(end, start + _HEAD_BYTES))
        found = self._member.match(block, at, end) if at > 0 and is_plain(block, start, at) else None
        if found is None or found[2] != b'"':
            return self.above(block, start, end)
        return found[1] if found[1] > self._bytes else None

    def _greatest(self, block: Bytes, start: int, end: int) -> Optional[bytes]:
        """The greatest of all raw values in a line that exceed ``value``."""
        greatest = None
        at = block.rfind(self.name, start, end)
        while at >= 0:
            found = self._member.match(block, at, end)
            if found:
                raw = found[1] if found[2] == b'"' else _UNTOLD
                if raw > self._bytes and (greatest is None or raw > greatest):
                    greatest = raw
            at = block.rfind(self.name, start, at)
        return greatest

    def at_edge(self, first: bytes, last: bytes) -> Optional[bytes]:
        """The value of a long line, told by its first and last bytes; None when they do not tell."""
        at = first.find(self.name)
        found = self._member.match(first, at) if at > 0 and is_plain(first, 0, at) else None
        if found is None:
            at = last.rfind(self.name)
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
