"""What Claude Code's hook payloads mean: status, blockers, and cards of a session.

A payload's event is looked up in the table below; :mod:`adapters.claude.effects` and
:mod:`adapters.claude.notices` hold what each does, :mod:`adapters.claude.state` what is remembered
in between. A payload is foreign: a field of a wrong type counts as missing, and nothing raises.
"""

from typing import Callable, Dict, Optional, Tuple

from adapters.claude import effects, notices
from adapters.claude.effects import Effect, Publish
from adapters.claude.events import EVENTS
from adapters.claude.payload import (
    card_of_edit,
    cards_of_prompt,
    event_name_of,
    field_of,
    path_or_none,
    session_of,
    thread_of,
)
from adapters.claude.state import MAIN, Memory, memory_from_json, short_id
from adapters.contract import HookEvent, HookPayload, SessionState, Status, Translation

NAME = "claude"
TITLE = "Claude Code"
ENVIRONMENT: Tuple[Tuple[str, str], ...] = (
    ("CLAUDE_CONFIG_DIR", "Claude Code's folder (~/.claude)"),
    ("CLAUDE_SESSIONS_DIR", "Its transcripts (<folder>/projects)"),
)

EFFECTS: Dict[str, Effect] = {
    "SessionStart": effects.session_start,
    "UserPromptSubmit": effects.prompt,
    "Stop": effects.stop,
    "StopFailure": effects.stop,
    "SessionEnd": effects.session_end,
    "PreToolUse": effects.tool_begins,
    "PermissionRequest": effects.permission_wanted,
    "PermissionDenied": effects.permission_denied,
    "PostToolUse": effects.tool_ends,
    "PostToolUseFailure": effects.tool_ends,
    "PostToolBatch": effects.batch_ends,
    "SubagentStop": effects.subagent_stop,
    "Elicitation": effects.elicitation,
    "ElicitationResult": effects.elicitation_result,
    "Notification": notices.notification,
}
"""What each lifecycle event does; the other known events do nothing."""

_CARDS: Dict[str, Callable[[HookPayload], Tuple[str, ...]]] = {
    "UserPromptSubmit": cards_of_prompt,
    "PostToolUse": card_of_edit,
}
"""Where cards are found."""

_TURN_EVENTS = frozenset(
    (
        "UserPromptSubmit",
        "PreToolUse",
        "PermissionRequest",
        "PermissionDenied",
        "PostToolUse",
        "PostToolUseFailure",
        "PostToolBatch",
        "Elicitation",
        "ElicitationResult",
    )
)
"""Events whose ``prompt_id`` is that of the turn they belong to."""

_STOPS = ("Stop", "StopFailure")

_KNOWN = frozenset(EVENTS)


def translate(payload: HookPayload, state: Optional[SessionState]) -> Translation:
    """What one payload means, given what is remembered of its session (None: unseen).

    Pure, and never raises: what is not understood has ``event`` None. An event name that is
    unknown, or missing, has ``known`` False.
    """
    name = field_of(payload, "hook_event_name")
    if not isinstance(name, str) or name not in _KNOWN:
        return Translation(event_name_of(payload), known=False)
    effect = EFFECTS.get(name)
    session_id = session_of(payload)
    if effect is None or not session_id:
        return Translation(name, known=True)
    memory = memory_from_json(state)
    if memory.phase is Status.CLOSED and name != "SessionStart":
        return Translation(name, known=True)
    return _apply(name, effect, payload, memory, state)


def _apply(
    name: str, effect: Effect, payload: HookPayload, memory: Memory, state: Optional[SessionState]
) -> Translation:
    before = (memory.status, memory.paused)
    # A session that is first heard of in its middle has a past as well: our start was missed, or (a
    # fork in 2.1.197) never told under this id.
    unread = memory.unread or (not memory.seen and name != "SessionStart")
    if name in _TURN_EVENTS and thread_of(payload) == MAIN:
        memory.enter_turn(short_id(payload.get("prompt_id")))
    publish = effect(payload, memory)
    if publish is not Publish.NEVER:
        memory.paused = _is_paused(name, payload, memory)
    cards = _CARDS[name](payload) if name in _CARDS else ()
    told = publish is Publish.ALWAYS or (
        publish is Publish.NEWS and (bool(cards) or (memory.status, memory.paused) != before)
    )
    # Behind a prompt, the transcript of a new session or of a fork is not there yet.
    reads = name == "SessionStart" or (unread and name != "UserPromptSubmit")
    if told and name != "SessionStart":
        memory.unread = unread and not reads
    event = _hook_event(payload, memory, cards, reads) if told else None
    after = memory.to_json()
    same = after == (Memory().to_json() if state is None and not told else state)
    return Translation(name, known=True, state=None if same else after, event=event)


def _is_paused(name: str, payload: HookPayload, memory: Memory) -> bool:
    """Whether the main thread has stopped while its subagents work on.

    What the main thread's own transcript says is then the end of a turn, and Claude Code may call itself
    idle, if only for an instant: neither means that the work is over, or that its user stopped it. When
    the last subagent has stopped, or was killed, the pause lasts until the machine prompt, which follows
    at once.
    """
    if memory.phase is not Status.RUNNING:
        return False
    if name in _STOPS:
        return bool(memory.background)
    return memory.paused and not (name in _TURN_EVENTS and thread_of(payload) == MAIN)


def _hook_event(payload: HookPayload, memory: Memory, cards: Tuple[str, ...], reads: bool) -> HookEvent:
    session_file = path_or_none(payload.get("transcript_path"))
    reads = reads and session_file is not None
    return HookEvent(
        session_id=session_of(payload),
        status=memory.status,
        card_paths=cards,
        session_file=session_file,
        discover_from=session_file if reads else None,
        paused=memory.paused,
        discover_cwd=path_or_none(payload.get("cwd")) if reads else None,
    )
