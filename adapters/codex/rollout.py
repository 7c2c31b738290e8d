"""What one record of a rollout, Codex's session file, says about cards and about other rollouts.

Since 0.15x what happened stands in ``item_completed`` events. Before that there were events of single
kinds (``user_message``, ``patch_apply_end``), and edits only as the model's calls with their results.
The oldest files hold the model's items alone, bare. All three are read; what is told twice counts once.
"""

import json
import re
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from adapters.codex.patches import cards_in, cards_of, joined
from adapters.codex.usertext import is_injected, typed
from adapters.paths import MAX_PATH_CHARS, candidates_in_text

Record = Mapping[str, object]

SPAWN = "spawn_agent"
"""The tool by which a sub-agent is sent out; until 0.15x its result alone tells of whom."""

_AGENT = re.compile(r"\s*\{\s*\"agent_id\"\s*:\s*\"([^\"\\]+)\"")
_OK = "Success. Updated the following files"
_CODE = re.compile(r"(?:Process exited with code|Exit code:|\"exit_code\":)\s*(-?[0-9]+)")
# Arguments under which the tools of all versions were given a command or a patch.
_COMMANDS = ("command", "cmd", "input", "patch")
_FOLDERS = ("workdir", "cwd")
PLACES = ("<cwd>", "Current working directory: ")
"""In the model's input, what stands in front of the folder; the oldest files tell it nowhere else."""
_CWD = re.compile(rf"{PLACES[0]}([^<]+)<|{PLACES[1]}(\S.*)")


class Base(NamedTuple):
    """Where a fork's own records begin: behind so many bytes of another thread."""

    thread: str
    size_bytes: int


class RolloutCards:
    """Collects what the records of one thread tell, given in the order of the file.

    Args:
        cwd: folder of relative paths until a record names one.
        with_text: False for what was not said by the user: a sub-agent's task.
    """

    def __init__(self, cwd: Optional[str], with_text: bool = True) -> None:
        self.thread = ""
        """Its id, of the first header; those behind it are copies."""
        self.is_subagent = False
        """Whether another thread, or Codex itself, has started it."""
        self.base: Optional[Base] = None
        self.agents: Dict[str, None] = {}
        """Threads of the sub-agents that it has sent out."""
        self.calls: Dict[str, Tuple[str, ...]] = {}
        """Calls whose result is wanted: id of the call to the cards of an edit, none for a sub-agent."""
        self.told = False
        """Whether an event tells the user's texts; else they are looked for in the model's input."""
        self.placed = False
        """Whether a record has named the folder of relative paths."""
        self._cwd = cwd
        self._with_text = with_text
        self._found: Dict[str, None] = {}
        # Named in the model's input.
        self._inputs: Dict[str, None] = {}

    def take(self, record: Record) -> None:
        """Look at one record; what is none of a known kind tells nothing."""
        kind, payload = record.get("type"), record.get("payload")
        if not isinstance(payload, dict):  # Bare.
            if "type" not in record and isinstance(record.get("id"), str):
                self._header(record)
            else:
                self._item(record)
        elif kind == "session_meta":
            self._header(payload)
        elif kind == "turn_context":
            self._place(payload.get("cwd"))
        elif kind == "event_msg":
            self._event(payload)
        elif kind == "response_item":
            self._item(payload)

    def found(self) -> Tuple[str, ...]:
        """Candidates in the order of discovery, the user's texts of old files last."""
        return tuple(self._found if self.told else {**self._found, **self._inputs})

    def _header(self, meta: Record) -> None:
        thread = meta.get("id")
        if self.thread or not isinstance(thread, str):
            return
        self.thread = thread
        self._place(meta.get("cwd"))
        source, base = meta.get("source"), meta.get("history_base")
        self.is_subagent = (
            (isinstance(source, dict) and bool({"subagent", "subAgent", "internal"} & set(source)))
            or meta.get("thread_source") in ("subagent", "memory_consolidation")
            or isinstance(meta.get("parent_thread_id"), str)
        )
        if isinstance(base, dict):
            other, size = base.get("thread_id"), base.get("end_byte_offset")
            if isinstance(other, str) and type(size) is int:
                self.base = Base(other, size)

    def _event(self, event: Record) -> None:
        kind, item = event.get("type"), event.get("item")
        if kind == "item_completed" and isinstance(item, dict):
            self._completed(item)
        elif kind == "user_message":
            self._said([event.get("message")] if event.get("kind") in (None, "plain") else [])
        elif kind == "patch_apply_end" and event.get("success") is True:
            self._changed(event.get("changes"))
            self._succeeded(event.get("call_id"))
        elif kind == "collab_agent_spawn_end":
            self._sent([event.get("new_thread_id")])

    def _completed(self, item: Record) -> None:
        kind, receivers = item.get("type"), item.get("receiver_thread_ids")
        if kind == "UserMessage":
            self._said(_texts(item.get("content"), "text"))
        elif kind == "FileChange" and item.get("status") == "completed":
            self._changed(item.get("changes"))
        elif kind == "SubAgentActivity":
            self._sent([item.get("agent_thread_id")])
        elif kind == "CollabAgentToolCall" and isinstance(receivers, list):
            self._sent(receivers)

    def _item(self, item: Record) -> None:
        kind, call = item.get("type"), item.get("call_id")
        if kind == "message" and item.get("role") == "user":
            self._input(_texts(item.get("content"), "input_text"))
        elif kind in ("function_call", "custom_tool_call", "local_shell_call") and isinstance(call, str):
            cards = self._edit(item)
            if cards or item.get("name") == SPAWN:
                self.calls[call] = cards
        elif kind in ("function_call_output", "custom_tool_call_output") and isinstance(call, str):
            self._result(call, item.get("output"))

    def _said(self, texts: Iterable[object]) -> None:
        self.told = True
        if self._with_text:
            for text in texts:
                self._found.update(dict.fromkeys(candidates_in_text(typed(text))))

    def _input(self, texts: Iterable[object]) -> None:
        for text in texts:
            if not isinstance(text, str):
                continue
            if not is_injected(text):
                if self._with_text:
                    self._inputs.update(dict.fromkeys(candidates_in_text(typed(text))))
            elif not self.placed:
                named = _CWD.search(text)
                self._place((named[1] or named[2]).strip() if named else None)

    def _place(self, folder: object) -> None:
        if isinstance(folder, str) and folder.startswith("/") and len(folder) <= MAX_PATH_CHARS:
            self._cwd, self.placed = folder, True

    def _changed(self, changes: object) -> None:
        for path, change in changes.items() if isinstance(changes, dict) else ():
            # Kinds of changes were members once: {"update": {...}} for what is {"type": "update", ...}.
            told = change if isinstance(change, dict) else {}
            inner = told.get("update")
            moved = (inner if isinstance(inner, dict) else told).get("move_path")
            gone = "delete" in told or told.get("type") == "delete"
            self._found.update(dict.fromkeys(cards_of([moved if gone else path, moved], self._cwd)))

    def _edit(self, call: Record) -> Tuple[str, ...]:
        given: object = call.get("arguments", call.get("action"))
        if call.get("name") == "apply_patch" and isinstance(call.get("input"), str):
            given = {"input": call["input"]}
        if isinstance(given, str):
            try:
                given = json.loads(given)
            except (ValueError, RecursionError):
                return ()
        if not isinstance(given, dict):
            return ()
        folder = next((given[name] for name in _FOLDERS if isinstance(given.get(name), str)), None)
        cwd = joined(folder, self._cwd)
        commands = (given.get(name) for name in _COMMANDS)
        parts = (
            part for command in commands for part in (command if isinstance(command, list) else [command])
        )
        return tuple(dict.fromkeys(card for part in parts for card in cards_in(part, cwd)))

    def _result(self, call: str, output: object) -> None:
        if self.calls.get(call):
            if _succeeds(output):
                self._succeeded(call)
        elif call in self.calls and isinstance(output, str):
            told = _AGENT.match(output)
            self._sent([told[1]] if told else [])

    def _succeeded(self, call: object) -> None:
        cards = self.calls.pop(call, ()) if isinstance(call, str) else ()
        self._found.update(dict.fromkeys(cards))

    def _sent(self, threads: Iterable[object]) -> None:
        self.agents.update((thread, None) for thread in threads if isinstance(thread, str))


def _texts(content: object, kind: str) -> List[object]:
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    return [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == kind]


def _succeeds(output: object) -> bool:
    """Whether a result, in any of its forms, is that of an edit that was made."""
    if not isinstance(output, str):
        try:
            output = json.dumps(output)
        except (TypeError, ValueError, RecursionError):
            return False
    code = _CODE.search(output)
    return code[1] == "0" if code else _OK in output
