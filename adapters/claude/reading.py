"""One pass over a transcript: which of its lines have to be parsed, told by their bytes.

A transcript is mostly request records that repeat system prompts and tool output, full of false
paths. What counts stands in ``user`` and ``assistant`` entries (:mod:`adapters.claude.entries`); of all
other lines only the timestamp matters, and only if it may be the greatest. A line that is not parsed
is known to change nothing; the tests hold this reader against one that parses everything.

Damage is therefore noticed where a line is parsed, or where it does not begin and end as an object.
"""

import re
from typing import Dict, List, Mapping, Optional, Tuple

from adapters.bytesearch import HEAD, Bytes, Needles, Newest
from adapters.claude.entries import EntryCards
from adapters.contract import ReadReport
from adapters.jsonl import LineFile, LongLine
from adapters.linereading import BRACE, END_BRACE, LineReading

# Repeats user texts and tool results of other entries: never read, not even for its time.
_BLOB = "api-request-blob"

_OTHER_TYPES = (  # the frequent ones first
    *("last-prompt", "mode", _BLOB, "api-request", "atis-latch", "api-request-shape", "cost-state"),
    *("file-history-snapshot", "file-history-delta", "queue-operation", "tools-used", "permission-mode"),
    *("custom-title", "agent-name", "agent-setting", "summary", "progress", "system", "attachment"),
)
KNOWN_TYPES = frozenset({"user", "assistant", *_OTHER_TYPES})
"""Entry types seen in versions 2.1.197 to 2.1.332, and two of older files."""

# The first members tell that an entry is neither a user's nor an assistant's: as today's versions
# spell it, and (ten times slower to find out) in any spelling.
_TYPE_FIRST = b'{"type":"'
_BLOB_START = b'{"type":"%s"' % _BLOB.encode("ascii")
_OTHER_STARTS = tuple(b'{"type":"%s"' % kind.encode("ascii") for kind in _OTHER_TYPES)
_MESSAGE = b'"message":'
_ATTACHMENT = b'"attachment":'
_OTHER = re.compile(HEAD + rb'(?:"type"\s*:\s*"(?!(?:user|assistant)")([^"\\]*)"|"attachment"\s*:)')
_HEAD_BYTES = 4096

# A line up to this length is searched for a time before anything else is tried.
_SHORT_BYTES = 2048

_RESULT_OF = re.compile(rb'"tool_use_id"\s*:\s*"([^"\\]*)(["\\])')

# With more names than this to search for, `.md` is searched for first.
_FEW_SEARCHES = 2


class Reading(LineReading):
    """What is known of one session while its files are read, each once from start to end."""

    def __init__(self, needles: Needles, cwd: Optional[str], report: ReadReport) -> None:
        newest = Newest("timestamp", before="toolUseResult", width=len("2026-01-31T09:05:00.250Z"))
        super().__init__(newest, report)
        self.session_id = ""
        self.is_sidechain: Optional[bool] = None
        """Whether the first user's or assistant's entry is a sub-agent's; None before that one."""
        self.cards = EntryCards(cwd)
        self._needles = needles
        self._md = (b".md",) if needles.all else (b".md", b".MD", b".Md", b".mD")
        # A relative path in an entry without a folder of its own is joined to this one, so that no
        # line needs to hold a needle.
        self._joins_cwd = cwd is not None
        self._anchors = _anchors(needles, self._md, self._joins_cwd)
        self._log = False  # whether a sub-agent's log is read
        self._knows_session = False  # all that the first lines tell

    def read(self, file: LineFile) -> None:
        """The session's own file. Stops where it turns out to be a sub-agent's."""
        self._note_newest(file.tail())
        self._walk(file)

    def read_log(self, file: LineFile) -> None:
        """A sub-agent's log: neither its time nor its id nor its texts count, its edits do."""
        self._log = self._knows_session = True
        self.cards.calls.clear()
        self._walk(file)

    def _walk(self, file: LineFile) -> None:
        too_long = 0
        for part in file.blocks():
            if not isinstance(part, LongLine):
                self._block(*part)
            elif self._must_hold(file, part):
                lean = file.lean(part)
                too_long += lean is None
                self._block(lean or b"", 0, len(lean or b""))
            else:
                self._report.records += 1
            if self.is_sidechain and not self._log:
                return
        if too_long:
            self._report.unread(file.path, f"{too_long} lines are too long to be read")

    def _block(self, block: Bytes, start: int, stop: int) -> None:
        """All lines of a block. Longer than it should be: of most lines everything is decided here,
        for a call costs as much as a search through a kilobyte.
        """
        self._lines = lines = 0
        self._damaged.clear()
        above = []
        newest, name, anchors, calls = self.newest, self.newest.name, self._anchors, self.cards.calls
        find, startswith = block.find, block.startswith
        while start < stop:
            end = find(b"\n", start, stop)
            if end < 0:
                end = stop
            raw, seen = None, end
            if end == start:
                pass
            elif not self._knows_session or block[start] != BRACE or block[end - 1] != END_BRACE:
                raw = self._line(block, start, end)
            elif startswith(_TYPE_FIRST, start):
                if not startswith(_OTHER_STARTS, start):
                    raw = self._line(block, start, end)
                else:
                    lines += 1
                    if end - start < _SHORT_BYTES and find(name, start, end) < 0:
                        pass
                    elif not (self._log or startswith(_BLOB_START, start)):
                        raw = newest.above_at_head(block, start, end)
            else:
                brace = find(b"{", start + 1, end)
                if startswith(_MESSAGE, brace - len(_MESSAGE)):
                    lines += 1
                    if not self._log:
                        raw, seen = newest.above_and_cut(block, start, end)
                        if seen < brace:
                            seen = end
                    # The message stands in front of `seen`.
                    for anchor in anchors:
                        if find(anchor, brace, seen) >= 0:
                            self._entry(block, start, end, seen)
                            break
                    else:
                        if calls and self._is_result(block, start, seen):
                            self._take(block, start, end, counted=False)
                elif startswith(_ATTACHMENT, brace - len(_ATTACHMENT)):
                    lines += 1
                    if not self._log:
                        raw = newest.above(block, start, end)
                else:
                    raw = self._line(block, start, end)
            if raw is not None:
                above.append((raw, start, end))
            start = end + 1
        self._confirm(block, above)
        self._report.records += lines + self._lines - len(self._damaged)
        self._report.damaged += len(self._damaged)

    def _entry(self, block: Bytes, start: int, end: int, seen: int) -> None:
        """Take an entry whose message ends before ``seen``, if it may matter."""
        if self._may_matter(block, start, seen):
            self._take(block, start, end, counted=False)

    def _line(self, block: Bytes, start: int, end: int) -> Optional[bytes]:
        """Take from a line of any spelling what it has. Its time when that may be the greatest."""
        self._lines += 1
        if block[start] != BRACE or block[end - 1] != END_BRACE:
            start, end = self._trimmed(block, start, end)
            if start == end:
                return None
        other, kind = self._kind(block, start, end)
        tells = not self.session_id or (self.is_sidechain is None and not other)
        if (tells and not self._log) or (not other and self._may_matter(block, start, end)):
            self._take(block, start, end, counted=kind != "")
        return None if self._log or kind == _BLOB else self.newest.above_at_head(block, start, end)

    def _kind(self, block: Bytes, start: int, end: int) -> Tuple[bool, str]:
        """(whether the entry is neither a user's nor an assistant's, its type if it is told)."""
        found = _OTHER.match(block, start, min(end, start + _HEAD_BYTES))
        if found is None or found[1] is None:
            return found is not None, ""
        kind = found[1].decode("utf-8", errors="replace")
        self._count(kind, KNOWN_TYPES)
        return True, kind

    def _may_matter(self, block: Bytes, start: int, end: int) -> bool:
        """False only for a line that certainly adds no card."""
        find = block.find
        if self.cards.calls and self._is_result(block, start, end):
            return True
        if not self._needles.within(block, start, end) and not (
            self._joins_cwd and find(b'"tool_use"', start, end) >= 0
        ):
            return False
        if all(find(spelling, start, end) < 0 for spelling in self._md):
            return False
        if find(b'"message"', start, end) < 0:
            return False
        return find(b'"user"', start, end) >= 0 or find(b'"tool_use"', start, end) >= 0

    def _is_result(self, block: Bytes, start: int, end: int) -> bool:
        """Whether a line answers one of the edits whose success is not known."""
        if block.find(b'"tool_use_id"', start, end) < 0:
            return False
        for found in _RESULT_OF.finditer(block, start, end):
            if found[2] != b'"' or found[1].decode("utf-8", errors="replace") in self.cards.calls:
                return True
        return False

    def _take(self, block: Bytes, start: int, end: int, counted: bool) -> None:
        entry = self._parse(block, start, end)
        if entry is None:
            return
        kind = entry.get("type")
        if isinstance(kind, str) and not counted:
            self._count(kind, KNOWN_TYPES)
        if not self._log:
            self._note_session(entry)
        self.cards.take(entry, with_text=not self._log)

    def _note_session(self, entry: Mapping[str, object]) -> None:
        if not self.session_id:
            names = (entry.get("sessionId"), entry.get("session_id"))
            self.session_id = next((name for name in names if isinstance(name, str) and name), "")
        is_talk = entry.get("type") in ("user", "assistant") and "attachment" not in entry
        if self.is_sidechain is None and is_talk:
            self.is_sidechain = entry.get("isSidechain") is True
        self._knows_session = bool(self.session_id) and self.is_sidechain is not None

    def _has_time(self, entry: Dict[str, object]) -> bool:
        return entry.get("type") != _BLOB

    def _must_hold(self, file: LineFile, line: LongLine) -> bool:
        """Whether a long line has to be looked at as a whole."""
        first, last = file.edges(line)
        if not self._knows_session or first[:1] != b"{" or last[-1:] != b"}":
            return True
        other = _OTHER.match(first)
        if other and other[1] == _BLOB.encode("ascii"):
            return False
        wanted: List[bytes] = []
        if other is None:
            wanted += self._needles.all if self._needles.all and not self._joins_cwd else (b'"message"',)
            wanted += [b'"tool_use_id"'] if self.cards.calls else []
        if not self._log:
            raw = self.newest.at_edge(first, last)
            if raw is None:
                wanted.append(b'"timestamp"')
            elif self.newest.beats(raw):
                return True
        return bool(wanted) and file.holds(line, wanted)


def _anchors(needles: Needles, md: Tuple[bytes, ...], joins_cwd: bool) -> Tuple[bytes, ...]:
    """Byte strings of which a line with an own message holds one if it may matter.

    With many folders to look for it is quicker to look for the ending of their cards.
    """
    if not 0 < len(needles.cores) <= _FEW_SEARCHES:
        return md
    return (*needles.cores, b'"tool_use"') if joins_cwd else needles.cores
