"""What one entry of a Pi session says about cards: text that the user wrote, edits that succeeded.

Entries form a tree, and what was compacted or branched off still stands in the file: all of it counts,
for all of it was worked on. A fork begins with a copy of what it was forked from, and continues it.

``client.js`` reads the entries of a resumed session in the same way; one table of tests holds for both.
"""

import os
import re
from posixpath import normpath
from typing import Dict, List, Mapping, Optional, Set, Tuple
from urllib.parse import unquote, urlsplit

from adapters.paths import can_be_card, candidates_in_text, tool_path

Entry = Mapping[str, object]

EDIT_TOOLS = frozenset({"edit", "write"})

NESTED_CALLS = "nestedCalls"
"""The member of a result that lists what a script of the model's called by itself (since 1.5)."""

_ENDING = ".md"
_ODD_BLANKS = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_MAX_NESTED = 256  # Pi keeps no more calls of one script.


class SessionEntries:
    """Collects what the entries of one file tell, given in any order of calls and results."""

    def __init__(self, cwd: Optional[str]) -> None:
        self.session_id = ""
        """Of the last header that names one."""
        self.cwd = cwd
        """The folder in which the session works, against which relative paths are resolved."""
        self.succeeded: Set[str] = set()
        """Ids of tool calls whose result is known to be no error."""
        self.unsettled: Set[str] = set()
        """Ids of edits that lead to a candidate if they succeeded, which nobody has said yet."""
        self.lost: Set[str] = set()
        """Ids of calls by scripts that Pi did not keep in full, and may have been edits."""
        self._texts: Dict[str, None] = {}
        self._calls: List[Tuple[str, str]] = []

    def take(self, entry: Entry) -> None:
        """Look at one entry; what is neither a header nor a message tells nothing."""
        kind, message = entry.get("type"), entry.get("message")
        if kind == "session":
            self._header(entry)
        elif kind == "message" and isinstance(message, dict):
            role = message.get("role")
            if role == "user":
                self._user(message.get("content"))
            elif role == "assistant":
                self._assistant(message.get("content"))
            elif role == "toolResult":
                self._result(message)

    def candidates(self) -> Tuple[str, ...]:
        """The user's texts first, then the edits that succeeded, each in the order of the file."""
        found = dict(self._texts)
        for call, given in self._calls:
            path = tool_path(as_pi_reads(given), self.cwd) if call in self.succeeded else None
            if path is not None and can_be_card(path):
                found[path] = None
        return tuple(found)

    def _header(self, entry: Entry) -> None:
        session_id, cwd = entry.get("id"), entry.get("cwd")
        if isinstance(session_id, str) and session_id:
            self.session_id = session_id
        if isinstance(cwd, str) and cwd:
            self.cwd = cwd

    def _user(self, content: object) -> None:
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks if isinstance(blocks, list) else []:
            text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
            if isinstance(text, str):
                self._texts.update(dict.fromkeys(candidates_in_text(text)))

    def _assistant(self, content: object) -> None:
        for block in content if isinstance(content, list) else []:
            if isinstance(block, dict) and block.get("type") == "toolCall":
                self._call(block)

    def _call(self, call: Entry) -> None:
        """Note an edit's call; whether it succeeded is another question."""
        identity, name, given = call.get("id"), call.get("name"), call.get("arguments")
        path = given.get("path") if isinstance(given, dict) else None
        is_edit = isinstance(name, str) and name in EDIT_TOOLS
        if not is_edit or not isinstance(identity, str) or not isinstance(path, str):
            return
        if path[-len(_ENDING) :].lower() == _ENDING:
            self._calls.append((identity, path))
            if identity not in self.succeeded:
                self.unsettled.add(identity)

    def _result(self, message: Entry) -> None:
        call, tool = message.get("toolCallId"), message.get("toolName")
        is_edit = isinstance(tool, str) and tool in EDIT_TOOLS
        if is_edit and message.get("isError") is not True and isinstance(call, str):
            self._succeed(call)
        nested = message.get(NESTED_CALLS)
        calls = nested.get("calls") if isinstance(nested, dict) else None
        if isinstance(nested, dict) and nested.get("complete") is False:
            self.lost |= _lost(str(call), calls if isinstance(calls, list) else [])
        for each in calls if isinstance(calls, list) else []:
            if isinstance(each, dict) and each.get("status") == "ok" and isinstance(each.get("id"), str):
                self._succeed(str(each["id"]))
                self._call(each)

    def _succeed(self, call: str) -> None:
        self.succeeded.add(call)
        self.unsettled.discard(call)


def _lost(script: str, calls: List[object]) -> Set[str]:
    """Which of a script's calls may have been edits of which nothing is left to read; the script's
    own id stands for those that were not even noted."""
    bare = {
        str(call.get("id"))
        for call in calls
        if isinstance(call, dict)
        and call.get("status") == "ok"
        and call.get("name") in ("edit", "write")
        and "arguments" not in call
    }
    return bare | ({script} if len(calls) >= _MAX_NESTED else set())


def as_pi_reads(path: str) -> str:
    """A path of a tool call as Pi itself takes it: odd blanks are plain ones, an ``@`` in front goes,
    ``~/`` is the home. Empty for a ``file://`` address that Pi refuses."""
    plain = _ODD_BLANKS.sub(" ", path)
    plain = plain[1:] if plain.startswith("@") else plain
    if plain.startswith("~/"):
        return os.path.expanduser(plain)
    return _path_of_address(plain) if plain.startswith("file://") else plain


def _path_of_address(address: str) -> str:
    try:
        parts = urlsplit(address)
        path = unquote(parts.path, errors="strict")
    except ValueError:
        return ""
    here = parts.netloc in ("", "localhost") and path.startswith("/") and "%2f" not in parts.path.lower()
    return "/" + normpath(path).lstrip("/") if here else ""
