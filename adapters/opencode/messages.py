"""What one message of a session says about cards: text that the user wrote, edits that succeeded.

A message was stored in three shapes so far: a record with its parts beside it (since 0.3), one with
its parts inside (before), and one whose text or calls stand in itself (``session_message``, from 1.14
on, so far unused). The values differ less than the places where they are kept.

``client.js`` reads the messages of a resumed session in the same way; one table of tests holds for both.
"""

import re
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple
from urllib.parse import unquote, urlsplit

from adapters.bytesearch import HEAD, Needles
from adapters.contract import ReadReport
from adapters.jsonl import parse
from adapters.paths import can_be_card, candidates_in_text, tool_path

Record = Mapping[str, object]

EDIT_TOOLS = frozenset({"edit", "write"})

PATCH_TOOL = "apply_patch"
"""Some models have it in the place of the other two; what it changed stands in its metadata."""

KNOWN_PARTS = (
    *("text", "reasoning", "tool", "file", "step-start", "step-finish", "snapshot", "patch"),
    *("agent", "retry", "compaction", "subtask", "tool-invocation", "source-url"),
)
"""Types of parts in the versions 0.1 to 1.18."""

LONGEST_BYTES = 4 * 1024 * 1024
"""A longer record is left out and told: parsing it would take several times its size."""

_END_MS = 253_402_300_800_000
"""No time of ours is behind the year 9999."""

_MAX_UNKNOWN = 100
_MAX_NAME_CHARS = 64

_TYPE = re.compile(HEAD + rb'"type"\s*:\s*"([^"\\]*)"')
_TOOL = re.compile(rb'"tool"\s*:\s*"([^"\\]*)"')
_HEAD_BYTES = 512
# Of these no words of the user's and no edits can come.
_IDLE = re.compile(rb'\s*\{\s*"type"\s*:\s*"(?:reasoning|step-start|step-finish|patch|snapshot)"')
_RELATIVE = re.compile(rb'"(?:filePath|movePath|path)"\s*:\s*"(?!/|\\/|\\u002[fF])')
_ENDING = re.compile(rb"\.[mM][dD]")
# Its path is spelled with percent signs.
_FILE_URL = re.compile(rb'"url"\s*:\s*"file:')


class Writer(NamedTuple):
    """Who wrote a message, and where."""

    is_user: bool
    cwd: Optional[str]
    """The folder in which the message was worked on; None when it does not say."""
    created_ms: float
    """0 when it does not say."""


def writer_of(message: Record) -> Writer:
    """Role, folder and time of a message in any of its shapes."""
    meta = member(message, "metadata")
    path = member(message, "path") or member(member(meta, "assistant"), "path")
    cwd = path.get("cwd")
    created = (member(message, "time") or member(meta, "time")).get("created")
    return Writer(
        is_user=message.get("role") == "user",
        cwd=cwd if isinstance(cwd, str) and cwd else None,
        created_ms=time_ms(created),
    )


def time_ms(value: object) -> float:
    """A time in milliseconds as it was stored; 0 for what is none."""
    is_time = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < _END_MS
    return float(value) if is_time and isinstance(value, (int, float)) else 0.0


def said(part: Record) -> Tuple[str, ...]:
    """Candidates in what a user typed or attached by name; none in what the program put there."""
    if part.get("synthetic") is True:
        return ()
    if part.get("type") == "file":
        return _cards(tool_path(_path_of_url(part.get("url")), None))
    text = part.get("text")
    return candidates_in_text(text) if part.get("type") == "text" and isinstance(text, str) else ()


def edited(part: Record, cwd: Optional[str]) -> Tuple[str, ...]:
    """What a tool part changed for sure, in its order; most tools change one file, or none."""
    state = member(part, "state")
    if part.get("type") != "tool" or state.get("status") != "completed":
        return ()
    tool = part.get("tool") or part.get("name")
    if tool == PATCH_TOOL:
        files = member(state, "metadata").get("files")
        left = [file for file in files if isinstance(file, dict)] if isinstance(files, list) else []
        paths = [
            file.get("movePath") or file.get("filePath") for file in left if file.get("type") != "delete"
        ]
        return _cards(*(tool_path(path, cwd) for path in paths))
    if not isinstance(tool, str) or tool not in EDIT_TOOLS:
        return ()
    given = member(state, "input")
    return _cards(tool_path(given.get("filePath", given.get("path")), cwd))


def _path_of_url(url: object) -> Optional[str]:
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        return unquote(parts.path, errors="strict") if parts and parts.scheme == "file" else None
    except ValueError:
        return None


def _cards(*paths: Optional[str]) -> Tuple[str, ...]:
    return tuple(path for path in paths if path is not None and can_be_card(path))


def inner_parts(message: Record) -> Iterator[Record]:
    """The parts that stand within a message, in the shape of those beside it."""
    for name in ("parts", "content"):
        parts = message.get(name)
        for part in parts if isinstance(parts, list) else []:
            if isinstance(part, dict):
                yield _as_tool(part, message) if part.get("type") == "tool-invocation" else part


def _as_tool(part: Record, message: Record) -> Record:
    """A call as the oldest versions kept it; whether it failed stands in the message's metadata."""
    call = member(part, "toolInvocation")
    told = member(member(member(message, "metadata"), "tool"), str(call.get("toolCallId")))
    done = call.get("state") == "result" and told.get("error") is not True
    state = {"status": "completed" if done else "", "input": call.get("args")}
    return {"type": "tool", "tool": call.get("toolName"), "state": state}


def member(record: Record, name: str) -> Record:
    """An object within an object; an empty one when there is none of that name."""
    value = record.get(name)
    return value if isinstance(value, dict) else {}


class Sieve:
    """Tells by their bytes which records have to be parsed, parses them, counts what was met."""

    def __init__(self, needles: Needles, report: ReadReport) -> None:
        self._needles = needles
        self._report = report
        self.too_long = 0
        """Records longer than :data:`LONGEST_BYTES` that might have mattered."""

    def part(self, data: object) -> Optional[Record]:
        """The part if it may lead to a card, else None."""
        if not isinstance(data, bytes):
            self._report.damaged += 1
            return None
        self._report.records += 1
        if _IDLE.match(data) or not self._is_of_use(data):
            return None
        return self._of_size(data)

    def message(self, data: object) -> Optional[Record]:
        """A message, whatever is in it; None when it is damaged."""
        if not isinstance(data, bytes):
            self._report.damaged += 1
            return None
        self._report.records += 1
        return self._of_size(data)

    def whole(self, data: object) -> Optional[Record]:
        """A message that holds its own parts, if it may lead to a card, else None."""
        if isinstance(data, bytes) and not self._may_lead(data):
            self._report.records += 1
            return None
        return self.message(data)

    def count(self, kind: object) -> None:
        """Count a part's type if it is unknown."""
        if not isinstance(kind, str) or kind in KNOWN_PARTS:
            return
        counts, name = self._report.unknown, f"part {kind[:_MAX_NAME_CHARS]}"
        if name in counts or len(counts) < _MAX_UNKNOWN:
            counts[name] = counts.get(name, 0) + 1

    def _is_of_use(self, data: bytes) -> bool:
        found = _TYPE.match(data, 0, _HEAD_BYTES)
        if found is None:
            return self._may_lead(data)
        kind = found[1]
        if kind == b"tool":
            tool = _TOOL.search(data, 0, _HEAD_BYTES)
            if tool is not None and tool[1] not in (b"edit", b"write", b"apply_patch"):
                return False
            return self._may_lead(data)
        if kind not in (b"text", b"file"):
            self.count(kind.decode("utf-8", errors="replace"))
            return False
        return self._may_lead(data)

    def _may_lead(self, data: bytes) -> bool:
        """False only for a record that certainly names no card on a board."""
        if not _ENDING.search(data):
            return False
        if self._needles.within(data, 0, len(data)):
            return True
        # A relative path is joined to a folder that stands elsewhere, maybe with a board's name.
        return bool(_RELATIVE.search(data) or _FILE_URL.search(data))

    def _of_size(self, data: bytes) -> Optional[Record]:
        if len(data) > LONGEST_BYTES:
            self.too_long += 1
            return None
        try:
            record = parse(data)
        except ValueError:
            self._report.records -= 1
            self._report.damaged += 1
            return None
        return record if isinstance(record, dict) else None


Place = Tuple[float, str, str]
"""Where in a session something stands: time and id of the message, id of the part."""


class Found:
    """Candidates of one session by their places in it, in whatever order they were met."""

    def __init__(self) -> None:
        self._found: List[Tuple[Place, Tuple[str, ...]]] = []

    def add(self, place: Place, paths: Tuple[str, ...]) -> None:
        """Note candidates; none are no news."""
        if paths:
            self._found.append((place, paths))

    def candidates(self) -> Tuple[str, ...]:
        """In the order of their places, without duplicates."""
        ordered: Dict[str, None] = {}
        for _, paths in sorted(self._found):
            ordered.update(dict.fromkeys(paths))
        return tuple(ordered)
