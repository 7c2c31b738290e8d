"""What Codex's hook payloads mean: status, waits, and cards of a session. Pure; nothing raises.

Seen on the real program (0.171): everything within a subagent carries the id of the session that
sent it, and the subagent's in ``agent_id``. A permission request has no id, but the tool and the input
of the call that it belongs to. A tool call that fails or is refused has no ``PostToolUse``, nor has a
shell command that is a patch, which Codex applies by itself. Nothing is said when a turn ends by an
error of the model's service; the session's file tells it.
"""

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Mapping, Optional, Tuple

from adapters.codex.events import EVENTS
from adapters.codex.patches import cards_in
from adapters.codex.usertext import typed
from adapters.contract import HookEvent, HookPayload, SessionState, Status, Translation
from adapters.foreign import text_or_empty
from adapters.paths import MAX_PATH_CHARS, candidates_in_text

_MAX_ID_CHARS = 512
_MAX_NAME_CHARS = 64
_MAX_WAITS = 64
_PHASES = {each.value: each for each in Status if each is not Status.WAITING_FOR_INPUT}
_EXIT_CODE = re.compile(r"\s*Exit code: (-?[0-9]+)")
# Its full name begins with that of its namespace.
_QUESTION = "request_user_input"
_PATCH = "apply_patch"


@dataclass
class _Memory:
    """One session between two events."""

    seen: bool = False
    phase: Status = Status.IDLE
    waits: List[List[str]] = field(default_factory=list)
    """Dialogs that wait for a person: [thread, digest of the call]."""
    turn: str = ""
    """The main thread's turn."""
    dead: str = ""
    """A turn that was interrupted: late events of it wake nobody."""
    unread: bool = False
    """Whether the session's file may tell of older cards, and could not be read yet."""
    patched: bool = False
    """Whether a shell command held a patch of cards: whether it was applied, only the file tells."""

    @property
    def status(self) -> Status:
        if self.waits and self.phase is not Status.CLOSED:
            return Status.WAITING_FOR_INPUT
        return self.phase

    def begin(self, phase: Status) -> None:
        vars(self).update(vars(_Memory(seen=True, phase=phase)))

    def to_json(self) -> SessionState:
        values = {name: value for name, value in vars(self).items() if value and name != "seen"}
        return {**values, "phase": self.phase.value}


def session_of(payload: HookPayload) -> str:
    """The session id a payload speaks of, or an empty string."""
    return text_or_empty(payload.get("session_id"), _MAX_ID_CHARS)


def translate(payload: HookPayload, state: Optional[SessionState]) -> Translation:
    """What one payload means, given what is remembered of its session (None: unseen)."""
    name = payload.get("hook_event_name")
    if not isinstance(name, str) or name not in EVENTS:
        shown = name[:_MAX_NAME_CHARS] if isinstance(name, str) else ""
        return Translation(shown.encode("utf-8", "replace").decode("utf-8"), known=False)
    effect, memory = _EFFECTS.get(name), _memory(state)
    if effect is None or not session_of(payload):
        return Translation(name, known=True)
    thread = _thread(payload)
    if memory.phase is Status.CLOSED and (thread or name not in ("SessionStart", "UserPromptSubmit")):
        return Translation(name, known=True)
    before = memory.status if memory.seen else None
    # A session that is first heard of in its middle has a past as well.
    memory.unread = memory.unread or not memory.seen
    memory.seen = True
    cards = effect(payload, memory)
    told = cards is not None and (bool(cards) or name in _ALWAYS or memory.status is not before)
    event = _event(name, payload, memory, cards or ()) if told else None
    after = memory.to_json()
    return Translation(name, known=True, state=None if after == state else after, event=event)


def _event(name: str, payload: HookPayload, memory: _Memory, cards: Tuple[str, ...]) -> HookEvent:
    # The path in a payload of a subagent is that of the subagent's own file.
    file = None if _thread(payload) else text_or_empty(payload.get("transcript_path"), MAX_PATH_CHARS) or None
    # Behind the prompt a new session's file, or a fork's, is not there yet.
    early = name == "UserPromptSubmit" or (name == "SessionStart" and payload.get("source") != "resume")
    patched = memory.patched and name in ("Stop", "Interrupt")
    reads = file is not None and (patched or (memory.unread and not early))
    if reads:
        memory.unread, memory.patched = False, memory.patched and not patched
    return HookEvent(
        session_id=session_of(payload),
        status=memory.status,
        card_paths=cards,
        session_file=file,
        discover_from=file if reads else None,
        discover_cwd=text_or_empty(payload.get("cwd"), MAX_PATH_CHARS) or None if reads else None,
    )


# What each event does: the cards it names, or None when it means nothing (any more).

_Cards = Optional[Tuple[str, ...]]


def _session_start(payload: HookPayload, memory: _Memory) -> _Cards:
    if payload.get("source") == "compact" or _thread(payload):
        return None
    memory.begin(Status.IDLE)
    memory.unread = payload.get("source") in ("resume", "fork")
    return ()


def _prompt(payload: HookPayload, memory: _Memory) -> _Cards:
    if _thread(payload):  # A subagent's task: not the user's words.
        return None
    memory.waits, memory.dead = [], ""
    _go_on(payload, memory)
    return candidates_in_text(typed(payload.get("prompt")))


def _tool_begins(payload: HookPayload, memory: _Memory) -> _Cards:
    _go_on(payload, memory)
    tool = text_or_empty(payload.get("tool_name"), _MAX_ID_CHARS)
    if tool.endswith(_QUESTION):
        _wait(payload, memory)
    if tool != _PATCH and _patch_cards(payload):
        memory.patched = True
    return ()


def _permission(payload: HookPayload, memory: _Memory) -> _Cards:
    _go_on(payload, memory)
    _wait(payload, memory)
    return ()


def _tool_ends(payload: HookPayload, memory: _Memory) -> _Cards:
    _go_on(payload, memory)
    if _call(payload) in memory.waits:
        memory.waits.remove(_call(payload))
    response = payload.get("tool_response")
    code = _EXIT_CODE.match(response) if isinstance(response, str) else None
    return () if code and code[1] != "0" else _patch_cards(payload)


def _patch_cards(payload: HookPayload) -> Tuple[str, ...]:
    given, cwd = payload.get("tool_input"), payload.get("cwd")
    command = given.get("command") if isinstance(given, Mapping) else None
    return cards_in(command, cwd if isinstance(cwd, str) else None)


def _agent_stops(payload: HookPayload, memory: _Memory) -> _Cards:
    thread = _thread(payload)
    memory.waits = [wait for wait in memory.waits if wait[0] != thread]
    return ()


def _stop(payload: HookPayload, memory: _Memory) -> _Cards:
    _agent_stops(payload, memory)
    if not _thread(payload):
        memory.phase = Status.READY_FOR_REVIEW
    return ()


def _interrupt(payload: HookPayload, memory: _Memory) -> _Cards:
    turn = _turn(payload)
    if turn and memory.turn and turn != memory.turn:
        return None  # A subagent's: the payload says nothing else of it.
    memory.waits, memory.dead, memory.phase = [], turn, Status.READY_FOR_REVIEW
    return ()


def _session_end(payload: HookPayload, memory: _Memory) -> _Cards:
    memory.begin(Status.CLOSED)
    return ()


_EFFECTS: Dict[str, Callable[[HookPayload, _Memory], _Cards]] = {
    "SessionStart": _session_start,
    "UserPromptSubmit": _prompt,
    "PreToolUse": _tool_begins,
    "PermissionRequest": _permission,
    "PostToolUse": _tool_ends,
    "SubagentStop": _agent_stops,
    "Stop": _stop,
    "Interrupt": _interrupt,
    "SessionEnd": _session_end,
}
# Told even when they change nothing; tool calls are too many for that.
_ALWAYS = ("SessionStart", "UserPromptSubmit", "PermissionRequest", "Stop", "Interrupt", "SessionEnd")


def _go_on(payload: HookPayload, memory: _Memory) -> None:
    """The main thread's turn runs. A subagent wakes nobody: its end would settle nothing."""
    turn = _turn(payload)
    if not _thread(payload) and not (turn and turn == memory.dead):
        memory.turn, memory.phase = turn or memory.turn, Status.RUNNING


def _wait(payload: HookPayload, memory: _Memory) -> None:
    memory.waits = [*memory.waits, _call(payload)][-_MAX_WAITS:]


def _call(payload: HookPayload) -> List[str]:
    """What a request and its call have in common. The patch of a request lacks its last line end."""
    given = payload.get("tool_input")
    command = given.get("command") if isinstance(given, Mapping) else None
    told = [payload.get("tool_name"), command.strip() if isinstance(command, str) else given]
    try:
        text = json.dumps(told, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        text = ""
    return [_thread(payload), hashlib.blake2b(text.encode("ascii"), digest_size=8).hexdigest()]


def _thread(payload: HookPayload) -> str:
    """The subagent within which an event fired; empty for the main thread."""
    return text_or_empty(payload.get("agent_id"), _MAX_ID_CHARS)


def _turn(payload: HookPayload) -> str:
    return text_or_empty(payload.get("turn_id"), _MAX_ID_CHARS)


def _memory(state: object) -> _Memory:
    """What a JSON object remembers; what does not look like ours is left out."""
    if not isinstance(state, Mapping):
        return _Memory()
    phase, waits = state.get("phase"), state.get("waits")
    return _Memory(
        seen=True,
        phase=_PHASES.get(phase, Status.IDLE) if isinstance(phase, str) else Status.IDLE,
        waits=[
            wait
            for wait in (waits if isinstance(waits, list) else [])
            if isinstance(wait, list) and len(wait) == 2 and all(isinstance(part, str) for part in wait)
        ][-_MAX_WAITS:],
        turn=text_or_empty(state.get("turn"), _MAX_ID_CHARS),
        dead=text_or_empty(state.get("dead"), _MAX_ID_CHARS),
        unread=state.get("unread") is True,
        patched=state.get("patched") is True,
    )
