"""Reads the fields of Claude Code's hook payloads.

Everything in a payload is foreign: a field of a wrong type, without end, or that cannot be written
as UTF-8 counts as missing. Nothing here raises.
"""

from collections.abc import Mapping
from typing import Optional, Tuple

from adapters import paths
from adapters.claude.state import ToolCall, digest_of, short_id
from adapters.contract import HookPayload
from adapters.foreign import text_or_empty

MAX_EVENT_NAME_CHARS = 64
MAX_NAME_CHARS = 512
"""Longest session id or server name that is believed."""

_IDENTITY_KEYS = ("tool_use_id", "elicitation_id", "request_id")
_MODIFYING_TOOLS = ("Edit", "MultiEdit", "Write")
_MACHINE_PROMPT = "<task-notification>"


def session_of(payload: HookPayload) -> str:
    """The session id a payload speaks of, or an empty string."""
    return text_or_empty(field_of(payload, "session_id"), MAX_NAME_CHARS)


def event_name_of(payload: HookPayload) -> str:
    """The event's name as sent, cut to a length fit to be shown; empty when there is none."""
    name = field_of(payload, "hook_event_name")
    if not isinstance(name, str):
        return ""
    return name[:MAX_EVENT_NAME_CHARS].encode("utf-8", "replace").decode("utf-8")


def thread_of(payload: HookPayload) -> str:
    """The subagent within which an event fired; empty for the main thread."""
    return short_id(payload.get("agent_id"))


def identity_of(payload: HookPayload) -> str:
    """The first id that can name a wait, or an empty string. ``agent_id`` is none: it names a thread."""
    found = (short_id(payload.get(key)) for key in _IDENTITY_KEYS)
    return next((identity for identity in found if identity), "")


def call_of(payload: HookPayload) -> ToolCall:
    """The tool call that an event speaks of; its identity is empty when the event has no id."""
    return ToolCall(
        identity=identity_of(payload),
        tool=short_id(payload.get("tool_name")),
        digest=digest_of(payload.get("tool_input")),
        thread=thread_of(payload),
    )


def from_machine(payload: HookPayload) -> bool:
    """Whether a prompt is the program's own (a background task reports), not a person's."""
    prompt = payload.get("prompt")
    # The field ``source`` is declared but was never seen; when it comes, it says so outright.
    told = payload.get("source") == "system"
    return told or (isinstance(prompt, str) and prompt.lstrip().startswith(_MACHINE_PROMPT))


def cards_of_prompt(payload: HookPayload) -> Tuple[str, ...]:
    """Candidate card paths in what a person wrote or pasted."""
    prompt = payload.get("prompt")
    if not isinstance(prompt, str) or from_machine(payload):
        return ()
    return paths.candidates_in_text(prompt)


def card_of_edit(payload: HookPayload) -> Tuple[str, ...]:
    """The file that a finished edit or write has changed, when it can be a card."""
    if payload.get("tool_name") not in _MODIFYING_TOOLS:
        return ()
    cwd = payload.get("cwd")
    folder = cwd if isinstance(cwd, str) else None
    path = paths.tool_path(field_of(payload.get("tool_input"), "file_path"), folder)
    return (path,) if path is not None and paths.can_be_card(path) else ()


def field_of(value: object, name: str) -> object:
    """One field of what should be an object; None when it is not there or there is no object."""
    # A dict nearly always; the abstract class answers more slowly.
    return value.get(name) if isinstance(value, (dict, Mapping)) else None


def path_or_none(value: object) -> Optional[str]:
    """A path as it is spelled, or None for what cannot be opened anyway."""
    return text_or_empty(value, paths.MAX_PATH_CHARS) or None
