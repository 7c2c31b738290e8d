"""In what state the end of a transcript shows its session, and where the transcript is.

The newest entry that decides is looked for from the end on. Entries that no person and no model
wrote decide nothing: attachments, request records, reminders, the output of local commands. What a
sub-agent does stands in a file of its own, and would not say what the main thread does.
"""

import re
from pathlib import Path
from typing import List, Optional, Set

from adapters.claude.entries import Entry
from adapters.contract import Mark, ReadReport, Tail
from adapters.fileend import FileEnd, folder_of, newest_file, object_of, unix_s
from adapters.listing import entries_of

_SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")

# Entries of other types are many and long, and need not be parsed.
_MAYBE = (b'"user"', b'"assistant"', b'"system"')
_NEVER = (b'{"type":"api-request', b'{"type":"attachment"', b'{"type":"file-history')

_ASKING_TOOLS = ("AskUserQuestion", "ExitPlanMode")
_TURN_ENDS = ("turn_duration", "stop_hook_summary")
_STOPPED = ("end_turn", "stop_sequence", "max_tokens", "refusal")

_INTERRUPTED = "[Request interrupted by user"
# Text of role `user` after which nobody owes an answer: built-in commands, the user's own shell.
_LOCAL = (
    *("<command-name>", "<local-command-stdout>", "<local-command-caveat>"),
    *("<bash-input>", "<bash-stdout>"),
)


def session_file(root: Path, session_id: str) -> Optional[Path]:
    """The transcript of that name in one of the projects' folders, the newest of several; else None."""
    if not _SESSION_ID.fullmatch(session_id):
        return None
    folders = entries_of(root, ReadReport())
    paths = [Path(each.path, f"{session_id}.jsonl") for each in folders if each.is_dir(follow_symlinks=False)]
    return newest_file(paths)


def read_tail(path: Path, session_id: str) -> Optional[Tail]:
    """What the end of a transcript says; see :meth:`adapters.contract.Adapter.read_tail`.

    None when the newest entry that decides is farther from the end than is read.
    """
    walk = _Walk()
    with FileEnd(path) as file:
        for line in file.lines():
            entry = object_of(line) if _may_decide(line) else None
            if entry is not None and walk.take(entry):
                break
    if walk.tail is None and file.whole:
        return Tail(Mark.EMPTY, said="nobody has said anything yet", cwd=walk.cwd)
    return walk.tail


def _may_decide(line: bytes) -> bool:
    return not line.startswith(_NEVER) and any(kind in line for kind in _MAYBE)


class _Walk:
    """Looks at entries from the newest back."""

    def __init__(self) -> None:
        self.tail: Optional[Tail] = None
        self.cwd: Optional[str] = None
        self._answered: Set[str] = set()  # ids of calls whose results were met
        self._message: Optional[str] = None  # id of the reply whose calls are looked at

    def take(self, entry: Entry) -> bool:
        """Look at one entry. Whether all is known.

        A reply stands in an entry per call, and its calls end one by one: a question among them
        may be open although another call's result, or the call itself, is what stands last.
        """
        if entry.get("isSidechain") is True or "attachment" in entry:
            return False
        self.cwd = self.cwd or folder_of(entry.get("cwd"))
        kind = entry.get("type")
        if kind == "system":
            return self._system(entry)
        message = entry.get("message")
        if kind not in ("user", "assistant") or not isinstance(message, dict):
            return False
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        blocks = [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
        return self._assistant(entry, message, blocks) if kind == "assistant" else self._user(entry, blocks)

    def _system(self, entry: Entry) -> bool:
        if entry.get("subtype") not in _TURN_ENDS:
            return False
        return self.tail is not None or self._decide(Mark.ENDED, "the end of a turn", entry)

    def _user(self, entry: Entry, blocks: List[Entry]) -> bool:
        if entry.get("isMeta") is True or entry.get("isCompactSummary") is True:
            return False
        results = [block for block in blocks if block.get("type") == "tool_result"]
        if results:
            return self._results(entry, results)
        if self.tail is not None:
            return True
        words = [block.get("text") for block in blocks if block.get("type") == "text"]
        texts = [text for text in words if isinstance(text, str) and text]
        if any(text.startswith(_INTERRUPTED) for text in texts):
            return self._decide(Mark.INTERRUPTED, "an interruption by the user", entry)
        if len(words) == len(blocks) and all(text.startswith(_LOCAL) for text in texts):
            return False
        return self._decide(Mark.WORKING, "a prompt without an answer", entry)

    def _results(self, entry: Entry, results: List[Entry]) -> bool:
        if self.tail is None and _is_refused(entry):
            return self._decide(Mark.INTERRUPTED, "a tool call that the user refused", entry)
        if self.tail is None:
            self._decide(Mark.WORKING, "a tool's result", entry)
        calls = (block.get("tool_use_id") for block in results)
        self._answered.update(call for call in calls if isinstance(call, str))
        return False

    def _assistant(self, entry: Entry, message: Entry, blocks: List[Entry]) -> bool:
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        identity = message.get("id")
        reply = identity if isinstance(identity, str) else ""
        if self.tail is not None and (not calls or (self._message is not None and reply != self._message)):
            return True
        if calls:
            self._message = reply
            return self._calls(entry, calls)
        return self._text(entry, message)

    def _calls(self, entry: Entry, calls: List[Entry]) -> bool:
        open_calls = [call for call in calls if str(call.get("id")) not in self._answered]
        if any(call.get("name") in _ASKING_TOOLS for call in open_calls):
            return self._decide(Mark.ASKING, "a question without an answer", entry)
        if self.tail is None:
            said = "a tool call without a result" if open_calls else "a tool's result"
            self._decide(Mark.WORKING, said, entry)
        return False

    def _text(self, entry: Entry, message: Entry) -> bool:
        if entry.get("isApiErrorMessage") is True:
            return self._decide(Mark.ENDED, "an error of the model's service", entry)
        reason = message.get("stop_reason")
        if isinstance(reason, str) and reason in _STOPPED:
            return self._decide(Mark.ENDED, "the agent's answer", entry)
        return self._decide(Mark.WORKING, "a part of the agent's answer", entry)

    def _decide(self, mark: Mark, said: str, entry: Entry) -> bool:
        self.tail = Tail(mark, at_s=unix_s(entry.get("timestamp")), said=said, cwd=self.cwd)
        return True


def _is_refused(entry: Entry) -> bool:
    """Whether a person refused and said no more. After words of theirs, and after what the program's
    own rules refuse under that name, the agent goes on; both are told as an error or a decision."""
    result = entry.get("toolUseResult")
    goes_on = isinstance(entry.get("permissionDecision"), dict) or str(result).startswith("Error")
    return entry.get("toolDenialKind") == "user-rejected" and not goes_on
