"""One pass over a rollout: which of its records have to be parsed, told by their bytes.

Most of a rollout is the model's items, bookkeeping and tool output, which say nothing about cards. A
record begins with its time, its kind and its payload's kind; with these most are done. One that is not
parsed is known to change nothing; the tests hold this reader against one that parses everything.
"""

import re
from typing import Optional, Tuple

from adapters.bytesearch import HEAD, Bytes, Needles, Newest
from adapters.codex.patches import BEGIN
from adapters.codex.rollout import PLACES, SPAWN, RolloutCards
from adapters.contract import ReadReport
from adapters.jsonl import LineFile, LongLine
from adapters.linereading import BRACE, END_BRACE, LineReading

_ITEMS = (
    *("message", "reasoning", "function_call", "function_call_output", "custom_tool_call"),
    *("custom_tool_call_output", "local_shell_call", "web_search_call", "additional_tools"),
    *("agent_message", "tool_search_call", "tool_search_output", "image_generation_call"),
    *("ghost_snapshot", "compaction", "compaction_summary", "context_compaction", "other"),
)
_EVENTS = (
    *("item_completed", "user_message", "agent_message", "agent_reasoning", "token_count", "task_started"),
    *("agent_reasoning_raw_content", "task_complete", "turn_started", "turn_complete", "turn_aborted"),
    *("thread_settings_applied", "thread_name_updated", "context_compacted", "thread_rolled_back"),
    *("entered_review_mode", "exited_review_mode", "undo_completed", "image_generation_end", "error"),
    *("injected_message", "guardian_assessment", "web_search_end", "exec_command_end", "patch_apply_end"),
    *("mcp_tool_call_end", "view_image_tool_call", "collab_agent_spawn_end", "collab_waiting_end"),
    *("collab_agent_interaction_end", "collab_close_end", "collab_resume_end", "thread_goal_updated"),
    *("dynamic_tool_call_request", "dynamic_tool_call_response", "sub_agent_activity"),
)
_TURN_ITEMS = (
    *("UserMessage", "AgentMessage", "FileChange", "CommandExecution", "McpToolCall", "Reasoning", "Plan"),
    *("SubAgentActivity", "CollabAgentToolCall", "HookPrompt", "FunctionCallOutput", "DynamicToolCall"),
    *("WebSearch", "ImageView", "Sleep", "ImageGeneration", "EnteredReviewMode", "ExitedReviewMode"),
    *("ContextCompaction",),
)
_QUIET = ("world_state", "token_usage_record", "compacted", "inter_agent_communication_metadata")
KNOWN = {"": ("session_meta", "turn_context", "event_msg", "response_item", *_QUIET), "event_msg": _EVENTS}
KNOWN["response_item"], KNOWN["item_completed"] = _ITEMS, _TURN_ITEMS
"""Kinds of records, and of what is in them, of the versions up to 0.171."""

# Nothing is opened in front of a member that belongs to the same object.
_BETWEEN = rb"[^{}\[\]]*?"
_KIND = re.compile(HEAD + rb'"type"\s*:\s*"([^"\\]*)"')
_INNER = re.compile(_BETWEEN + rb'"payload"\s*:\s*\{\s*"type"\s*:\s*"([^"\\]*)"')
_TURN_ITEM = re.compile(_BETWEEN + rb'"item"\s*:\s*\{\s*"type"\s*:\s*"([^"\\]*)"')
_HEAD_BYTES = 1024

_ALWAYS = ("SubAgentActivity", "CollabAgentToolCall", "collab_agent_spawn_end")
_TEXTS = ("UserMessage", "user_message")
_CHANGES = ("FileChange", "patch_apply_end")
_ENDINGS = (b".md", b".MD", b".Md", b".mD")
_BEGIN = BEGIN.encode("ascii")
_SPAWN = f'"{SPAWN}"'.encode("ascii")
_PLACES = tuple(place.encode("ascii") for place in PLACES)


class Reading(LineReading):
    """What is known of one thread while its file is read from start to end."""

    def __init__(self, needles: Needles, cards: RolloutCards, report: ReadReport) -> None:
        super().__init__(Newest("timestamp", "payload", len("2026-01-31T09:05:00.250Z")), report)
        self.cards = cards
        self._needles = needles

    def read(self, file: LineFile) -> None:
        """The whole file, its end first: in most files the greatest time is there."""
        self._note_newest(file.tail())
        too_long = 0
        for part in file.blocks():
            if not isinstance(part, LongLine):
                self._block(*part)
                continue
            first, _ = file.edges(part)
            if self._rule(first, 0, len(first)) in ("quiet", "result") and self.cards.thread:
                self._report.records += 1
                continue
            lean = file.lean(part)
            too_long += lean is None
            self._block(lean or b"", 0, len(lean or b""))
        if too_long:
            self._report.unread(file.path, f"{too_long} lines are too long to be read")

    def _block(self, block: Bytes, start: int, stop: int) -> None:
        self._lines = 0
        self._damaged.clear()
        above = []
        while start < stop:
            end = block.find(b"\n", start, stop)
            end = stop if end < 0 else end
            if end > start:
                raw = self._line(block, start, end)
                if raw is not None:
                    above.append((raw, start, end))
            start = end + 1
        self._confirm(block, above)
        self._report.records += self._lines - len(self._damaged)
        self._report.damaged += len(self._damaged)

    def _line(self, block: Bytes, start: int, end: int) -> Optional[bytes]:
        """Take from a line what it has. Its time when that may be the greatest."""
        self._lines += 1
        if block[start] != BRACE or block[end - 1] != END_BRACE:
            start, end = self._trimmed(block, start, end)
            if start == end:
                return None
        rule = self._rule(block, start, end, counted=True)
        if self._matters(rule, block, start, end):
            record = self._parse(block, start, end)
            if record is not None:
                self.cards.take(record)
        return self.newest.above_at_head(block, start, end)

    def _rule(self, block: Bytes, start: int, end: int, counted: bool = False) -> str:
        """What has to hold for a line to matter: a name for :meth:`_matters`."""
        kind, inner, item = _kinds(block, start, end)
        if kind is None:
            return "always"
        if counted:
            self._count_kinds(kind, inner, item)
        what = inner if item is None else item
        if kind in _QUIET:
            return "quiet"
        if kind not in ("event_msg", "response_item") or what in (None, "item_completed", *_ALWAYS):
            return "always"
        if kind == "event_msg":
            return "text" if what in _TEXTS else "change" if what in _CHANGES else "quiet"
        if what == "message":
            return "input"
        return "result" if what.endswith("_output") else "call" if what.endswith("_call") else "quiet"

    def _count_kinds(self, kind: str, inner: Optional[str], item: Optional[str]) -> None:
        """Count what is unknown of a record, its payload or that one's item: one name per record."""
        if item is not None:
            self._count(item, KNOWN["item_completed"], "item_completed ")
        elif inner is not None and kind in KNOWN:
            self._count(inner, KNOWN[kind], f"{kind} ")
        else:
            self._count(kind, KNOWN[""])

    def _matters(self, rule: str, block: Bytes, start: int, end: int) -> bool:
        """False only for a line that certainly changes nothing."""
        find, calls = block.find, self.cards.calls
        if rule in ("always", "quiet"):
            return rule == "always"
        if rule == "text" and not self.cards.told:
            return True
        if rule == "result" or (rule == "change" and calls):
            found = bool(calls) and any(find(call.encode("utf-8"), start, end) >= 0 for call in calls)
            if found or rule == "result":
                return found
        if rule == "input" and find(b'"user"', start, end) < 0:
            return False
        if rule == "input" and not self.cards.placed and any(find(at, start, end) >= 0 for at in _PLACES):
            return True
        if rule == "call" and find(_SPAWN, start, end) >= 0:
            return True
        if rule == "call" and find(_BEGIN, start, end) < 0:
            return False
        if all(find(ending, start, end) < 0 for ending in _ENDINGS):
            return False
        # Relative paths of edits need not hold a board's name.
        return rule in ("call", "change") or self._needles.within(block, start, end)


def _kinds(block: Bytes, start: int, end: int) -> Tuple[Optional[str], Optional[str], Optional[str]]:
    """(kind of a record, of its payload, of the item that an event tells of); None for what is not told
    at the beginning. A bare item of the oldest files is a payload without a record."""
    near = min(end, start + _HEAD_BYTES)
    found = _KIND.match(block, start, near)
    if found is None:
        return None, None, None
    kind = _name(found)
    if kind in _ITEMS:
        return "response_item", kind, None
    inner = _INNER.match(block, found.end(), near)
    if inner is None or kind != "event_msg" or _name(inner) != "item_completed":
        return kind, None if inner is None else _name(inner), None
    item = _TURN_ITEM.match(block, inner.end(), near)
    return kind, "item_completed", None if item is None else _name(item)


def _name(found: "re.Match[bytes]") -> str:
    return found[1].decode("utf-8", errors="replace")
