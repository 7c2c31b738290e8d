"""One pass over a session file: which of its lines have to be parsed, told by their bytes.

Most of a session is tool output, which says nothing about cards. Every entry begins with its type, its
time and, if it is a message, its role; with these three most lines are done. A line that is not parsed
is known to change nothing; the tests hold this reader against one that parses everything.

Damage is therefore noticed where a line is parsed, or where it does not begin and end as an object.
"""

import os
import re
from typing import Optional

from adapters.bytesearch import HEAD, Bytes, Needles, Newest
from adapters.contract import ReadReport
from adapters.jsonl import LineFile, LongLine
from adapters.linereading import BRACE, END_BRACE, LineReading, lines_of
from adapters.pi.entries import NESTED_CALLS, Entry, SessionEntries

KNOWN_TYPES = (
    *("session", "message", "model_change", "thinking_level_change", "usage", "compaction"),
    *("branch_summary", "custom", "custom_message", "context_edit", "label", "session_info"),
)
"""Entry types of the versions 0.7 to 1.6."""
KNOWN_ROLES = (
    *("user", "assistant", "toolResult", "system", "bashExecution", "custom", "hookMessage"),
    *("branchSummary", "compactionSummary"),
)
"""Roles of messages in the same versions."""

# How today's versions spell the beginning of a message; other spellings take the long way.
_START = b'{"type":"message"'
_MESSAGE = b'"message":{"role":"'
_TIME = b'"timestamp":"'
# From the brace of a message to its start and to its role; from a time's name to its value.
_TO_START, _TO_ROLE, _TO_TIME = len(b'"message":'), len(b'{"role":"'), len(_TIME)
_USER, _ASSISTANT, _RESULT = b'user"', b'assistant"', b'toolResult"'

_TYPE = re.compile(HEAD + rb'"type"\s*:\s*"([^"\\]*)"')
_ROLE_OF = re.compile(rb'"message"\s*:\s*\{\s*"role"\s*:\s*"([^"\\]*)"')
_RESULT_OF = re.compile(rb'"toolCallId"\s*:\s*"([^"\\]*)(["\\])')
_HEAD_BYTES = 4096

# A message that adds a card is the user's, or calls a tool of one of these names.
_WORDS = (b'"user"', b'"write"', b'"edit"')
# In a result, what says that it holds calls too.
_NESTED = b'"%s"' % NESTED_CALLS.encode("ascii")
# And what says that not all of them are there.
_PARTLY = re.compile(rb'"complete"\s*:\s*false')
# In front of a path it goes, so the path does not begin behind a quote.
_AT = b'"@'

# In any case, for so a tool may have been told; the first is by far the most frequent.
_ENDINGS = (b".md", b".MD", b".Md", b".mD")
# With more names than this to search for, the ending is searched for first.
_FEW_SEARCHES = 2


class Reading(LineReading):
    """What is known of one session while its file is read from start to end."""

    def __init__(self, needles: Needles, cwd: Optional[str], report: ReadReport) -> None:
        newest = Newest("timestamp", before="message", width=len("2026-01-31T09:05:00.250Z"))
        super().__init__(newest, report)
        self.entries = SessionEntries(cwd)
        self.misjudged = False
        """Messages were passed over before it was known that relative paths lead to a card: the file
        must be read again, with the folder that is known by now."""
        self._needles = needles
        few = 0 < len(needles.cores) <= _FEW_SEARCHES
        self._anchors = needles.cores if few else _ENDINGS
        self._joins = False  # whether a relative path leads to a card without holding a needle
        self._passed = False  # whether messages were passed over
        self._set_folder()

    def read(self, file: LineFile) -> None:
        """The whole file, its end first: in most files the greatest time is there."""
        self._note_newest(file.tail())
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
        if too_long:
            self._report.unread(file.path, f"{too_long} lines are too long to be read")

    def read_results(self, file: LineFile) -> None:
        """Look for results that stand in front of their calls, as the format does not forbid."""
        for part in file.blocks():
            if not self.entries.unsettled:
                return
            if not isinstance(part, LongLine):  # an edit's result is no such line
                for start, end in lines_of(part.data, part.start, part.end):
                    if self._is_wanted(part.data, start, end):
                        self._take(part.data, start, end)

    def _block(self, block: Bytes, start: int, stop: int) -> None:
        """All lines of a block. Longer than it should be: of most lines everything is decided here,
        for a call costs as much as a search through a kilobyte.
        """
        self._lines = lines = 0
        self._damaged.clear()
        above = []
        newest, beats = self.newest, self.newest.beats
        anchors, unsettled = self._anchors, self.entries.unsettled
        find, startswith = block.find, block.startswith
        while start < stop:
            end = find(b"\n", start, stop)
            if end < 0:
                end = stop
            raw = None
            brace = find(b"{", start + 1, end) if startswith(_START, start) else -1
            if brace < 0 or block[end - 1] != END_BRACE or not startswith(_MESSAGE, brace - _TO_START):
                if end > start:
                    self._passed = self._passed or lines > 0
                    raw = self._line(block, start, end)
                    anchors = self._anchors
            else:
                lines += 1
                at = find(_TIME, start, brace) + _TO_TIME
                if at < _TO_TIME:
                    raw = newest.above(block, start, end)
                else:
                    raw = bytes(block[at : find(b'"', at, brace)])
                    if b"\\" in raw:
                        raw = newest.above(block, start, end)
                    elif not beats(raw):
                        raw = None
                role = brace + _TO_ROLE
                if startswith(_RESULT, role):
                    wanted = unsettled and self._is_wanted(block, brace, end)
                    if wanted or (find(_NESTED, brace, end) >= 0 and self._may_matter(block, brace, end)):
                        self._take(block, start, end)
                elif startswith(_USER, role) or startswith(_ASSISTANT, role):
                    for anchor in anchors:
                        if find(anchor, brace, end) >= 0:
                            if self._may_matter(block, brace, end):
                                self._take(block, start, end)
                            break
                else:
                    self._count_role(bytes(block[role : find(b'"', role, end)]))
            if raw is not None:
                above.append((raw, start, end))
            start = end + 1
        self._passed = self._passed or lines > 0
        self._confirm(block, above)
        self._report.records += lines + self._lines - len(self._damaged)
        self._report.damaged += len(self._damaged)

    def _line(self, block: Bytes, start: int, end: int) -> Optional[bytes]:
        """Take from a line of any spelling what it has. Its time when that may be the greatest."""
        self._lines += 1
        if block[start] != BRACE or block[end - 1] != END_BRACE:
            start, end = self._trimmed(block, start, end)
            if start == end:
                return None
        found = _TYPE.match(block, start, min(end, start + _HEAD_BYTES))
        kind = None if found is None else found[1].decode("utf-8", errors="replace")
        if kind is not None:
            self._count(kind, KNOWN_TYPES)
        if kind is None or kind == "session" or (kind == "message" and self._must_parse(block, start, end)):
            entry = self._take(block, start, end)
            if kind is None and entry is not None and isinstance(entry.get("type"), str):
                self._count(str(entry["type"]), KNOWN_TYPES)
        self._passed = self._passed or kind == "message"
        return self.newest.above_at_head(block, start, end)

    def _must_parse(self, block: Bytes, start: int, end: int) -> bool:
        if self.entries.unsettled and self._is_wanted(block, start, end):
            return True
        return self._may_matter(block, start, end)

    def _may_matter(self, block: Bytes, start: int, end: int) -> bool:
        """False only for a message that certainly adds no card by itself, nor a doubt."""
        if block.find(_NESTED, start, end) >= 0 and _PARTLY.search(block, start, end):
            return True
        if (
            not self._joins
            and block.find(_AT, start, end) < 0
            and not self._needles.within(block, start, end)
        ):
            return False
        if all(block.find(ending, start, end) < 0 for ending in _ENDINGS):
            return False
        return any(block.find(word, start, end) >= 0 for word in _WORDS)

    def _is_wanted(self, block: Bytes, start: int, end: int) -> bool:
        """Whether a line answers one of the edits whose success is not known."""
        found = _RESULT_OF.search(block, start, end)
        if found is None:
            return False
        return found[2] != b'"' or found[1].decode("utf-8", errors="replace") in self.entries.unsettled

    def _take(self, block: Bytes, start: int, end: int) -> Optional[Entry]:
        entry = self._parse(block, start, end)
        if entry is not None:
            self.entries.take(entry)
            if entry.get("type") == "session":
                self._set_folder()
        return entry

    def _set_folder(self) -> None:
        """Within a board's folder relative paths do not hold its name: all of them may matter. So do
        those that begin with ``~/`` if the home is a board."""
        if self._joins or not self._needles.all:
            return
        for folder in (self.entries.cwd or "", os.path.expanduser("~")):
            spelled = b'"%s"' % folder.encode("utf-8", errors="surrogatepass")
            if self._needles.within(spelled, 0, len(spelled)):
                self._joins, self._anchors = True, _ENDINGS
                self.misjudged = self._passed

    def _must_hold(self, file: LineFile, line: LongLine) -> bool:
        """Whether a long line has to be looked at as a whole."""
        self._passed = True
        first, last = file.edges(line)
        raw = self.newest.at_edge(first, last)
        found = _TYPE.match(first, 0, _HEAD_BYTES)
        told = first[:1] == b"{" and last[-1:] == b"}" and raw is not None and found is not None
        if not told or (raw is not None and self.newest.beats(raw)):
            return True
        kind = b"" if found is None else found[1]
        if kind != b"message":
            if kind != b"session":
                self._count(kind.decode("utf-8", errors="replace"), KNOWN_TYPES)
            return kind == b"session"
        role = _ROLE_OF.search(first, 0, _HEAD_BYTES)
        if role is None or (role[1] == b"toolResult" and self._is_wanted(first, 0, len(first))):
            return True
        if role[1] == b"toolResult":
            return file.holds(line, (_NESTED,))
        if role[1] not in (b"user", b"assistant"):
            self._count_role(role[1])
            return False
        return file.holds(line, _ENDINGS if self._joins else (*(self._needles.all or _ENDINGS), _AT))

    def _count_role(self, role: bytes) -> None:
        self._count(role.decode("utf-8", errors="replace"), KNOWN_ROLES, "message of role ")
