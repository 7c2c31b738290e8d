"""What one entry of a transcript says about cards: text that the user wrote, edits that succeeded."""

import re
from typing import Dict, Iterator, List, Mapping, Optional

from adapters.paths import can_be_card, candidates_in_text, tool_path

Entry = Mapping[str, object]

EDIT_TOOLS = frozenset({"Edit", "MultiEdit", "Write"})

# Text of role `user` that no user wrote.
_MACHINE_TEXT = (
    "<command-name>",
    "<local-command-stdout>",
    "<local-command-caveat>",
    "<bash-input>",
    "<bash-stdout>",
    "<task-notification>",
    "[Request interrupted by user",
)
# A slash command of the user's own is kept in tags; what was typed behind its name counts.
_COMMAND = "<command-message>"
_COMMAND_ARGS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)


class EntryCards:
    """Collects candidate card paths from entries given in the order of the file."""

    def __init__(self, cwd: Optional[str]) -> None:
        self.found: Dict[str, None] = {}
        """Candidates in order of discovery; a dict for its order and its lack of duplicates."""
        self.calls: Dict[str, str] = {}
        """Edits whose success is not known: id of the tool call to the path."""
        self._cwd = cwd  # for entries that name no folder of their own

    def take(self, entry: Entry, with_text: bool = True) -> None:
        """Look at one entry. ``with_text`` False: only at its tool calls and their results."""
        kind = entry.get("type")
        message = entry.get("message")
        if isinstance(kind, str) and kind not in ("user", "assistant"):
            return  # request records repeat prompts and results, and are none
        if not isinstance(message, dict) or "attachment" in entry:
            return
        content = message.get("content")
        if with_text and kind != "assistant" and message.get("role") == "user" and _is_by_user(entry):
            for text in _user_texts(content):
                self._add(*candidates_in_text(text))
        for block in content if isinstance(content, list) else []:
            if isinstance(block, dict):
                self._block(block, entry)

    def _block(self, block: Entry, entry: Entry) -> None:
        # An entry with this member answers calls and makes none (so that it need not be searched).
        if block.get("type") == "tool_use" and "toolUseResult" not in entry:
            cwd = entry.get("cwd")
            self._call(block, cwd if isinstance(cwd, str) and cwd else self._cwd)
        elif block.get("type") == "tool_result" and block.get("is_error") is not True:
            call = block.get("tool_use_id")
            path = self.calls.pop(call, None) if isinstance(call, str) else None
            if path is not None:
                self._add(path)

    def _call(self, block: Entry, cwd: Optional[str]) -> None:
        call, name, given = block.get("id"), block.get("name"), block.get("input")
        if not (isinstance(call, str) and isinstance(name, str) and isinstance(given, dict)):
            return
        path = tool_path(given.get("file_path"), cwd) if name in EDIT_TOOLS else None
        if path is not None:
            self.calls[call] = path

    def _add(self, *paths: str) -> None:
        self.found.update((path, None) for path in paths if can_be_card(path))


def _is_by_user(entry: Entry) -> bool:
    """Whether a person wrote this text: no reminder, summary, notice, nor an agent's task."""
    if any(entry.get(mark) is True for mark in ("isMeta", "isSidechain", "isCompactSummary")):
        return False
    origin = entry.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else None
    return kind in (None, "human") and entry.get("promptSource") != "system"


def _user_texts(content: object) -> Iterator[str]:
    """The texts of a message that a person wrote, block by block."""
    for text in _texts(content):
        if text.startswith(_COMMAND):
            yield from _COMMAND_ARGS.findall(text)
        elif not text.startswith(_MACHINE_TEXT):
            yield text


def _texts(content: object) -> List[str]:
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    texts = (each.get("text") for each in blocks if isinstance(each, dict) and each.get("type") == "text")
    return [text for text in texts if isinstance(text, str)]
