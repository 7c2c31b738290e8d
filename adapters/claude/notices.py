"""What each kind of notification does to a session.

Notifications of a dialog come about six seconds after it opened, without an id, and may come late.
The event of the dialog itself came first; so they block only when nothing better is known.
"""

from typing import Dict, Tuple

from adapters.claude.effects import Effect, Publish
from adapters.claude.payload import identity_of, thread_of
from adapters.claude.state import AGENT, ANY_THREAD, ELICITATION, MAIN, PERMISSION, QUESTION, QUOTA, Memory
from adapters.contract import HookPayload, Status


def notification(payload: HookPayload, memory: Memory) -> Publish:
    """Looks the type up in the table below."""
    kind = payload.get("notification_type")
    effect = NOTIFICATION_EFFECTS.get(kind) if isinstance(kind, str) else None
    return effect(payload, memory) if effect else Publish.NEVER


def _permission_notice(payload: HookPayload, memory: Memory) -> Publish:
    return _dialog_notice(payload, memory, (PERMISSION, QUESTION))


def _elicitation_notice(payload: HookPayload, memory: Memory) -> Publish:
    return _dialog_notice(payload, memory, (ELICITATION,))


def _dialog_notice(payload: HookPayload, memory: Memory, kinds: Tuple[str, ...]) -> Publish:
    """A dialog has been open for some seconds. ``kinds``: as what it may be known already; the
    first one is what it becomes if it is not."""
    identity = identity_of(payload)
    if memory.holds(kinds) and not identity:
        return Publish.ALWAYS
    if _moved_on(memory, kinds) or (identity and memory.is_finished(identity)):
        return Publish.NEVER
    memory.phase = Status.RUNNING
    memory.block(kinds[0], identity, thread_of(payload) or ANY_THREAD)
    return Publish.ALWAYS


def _moved_on(memory: Memory, kinds: Tuple[str, ...]) -> bool:
    settled = memory.phase is Status.READY_FOR_REVIEW and not memory.background
    answered = any(kind in memory.resolved for kind in kinds) and not memory.open_calls
    return settled or answered


def _elicitation_answered(payload: HookPayload, memory: Memory) -> Publish:
    memory.release((ELICITATION,), identity_of(payload), thread_of(payload))
    if memory.phase is Status.READY_FOR_REVIEW:
        return Publish.NEWS
    memory.phase = Status.RUNNING
    return Publish.ALWAYS


def _agent_waits(payload: HookPayload, memory: Memory) -> Publish:
    memory.block(AGENT, identity_of(payload) or thread_of(payload), MAIN)
    return Publish.ALWAYS


def _agent_completed(payload: HookPayload, memory: Memory) -> Publish:
    memory.release((AGENT,), identity_of(payload) or thread_of(payload), MAIN)
    return Publish.NEWS


def _quota_fired(payload: HookPayload, memory: Memory) -> Publish:
    memory.release((QUOTA,), identity_of(payload), MAIN)
    memory.phase = Status.RUNNING
    return Publish.ALWAYS


def _quota_stale(payload: HookPayload, memory: Memory) -> Publish:
    memory.block(QUOTA, identity_of(payload), MAIN)
    return Publish.ALWAYS


def _quota_disabled(payload: HookPayload, memory: Memory) -> Publish:
    memory.release((QUOTA,), identity_of(payload), MAIN)
    memory.phase = Status.READY_FOR_REVIEW
    return Publish.ALWAYS


NOTIFICATION_EFFECTS: Dict[str, Effect] = {
    "permission_prompt": _permission_notice,
    "worker_permission_prompt": _permission_notice,
    "agent_needs_input": _agent_waits,
    "agent_completed": _agent_completed,
    "elicitation_dialog": _elicitation_notice,
    "elicitation_url_dialog": _elicitation_notice,
    "elicitation_complete": _elicitation_answered,
    "elicitation_response": _elicitation_answered,
    "quota_auto_resume_fired": _quota_fired,
    "quota_auto_resume_stale": _quota_stale,
    "quota_auto_resume_disabled": _quota_disabled,
}
"""What each notification does; other types do nothing."""
