"""What each of Claude Code's events does to a session: one small function per event.

All that changes a session is here and in :mod:`adapters.claude.notices`. What is peculiar to
Claude Code, and was seen on the real program:

- A refused permission and an Esc fire no event at all. The session keeps waiting (or running) until
  the next event; a changed ``prompt_id`` then says that the turn is another one.
- A permission request has no id. It takes that of the open tool call with the same tool, input and
  thread; ``AskUserQuestion`` asks for permission too, and that is the same wait.
- ``Stop`` with a running subagent in ``background_tasks`` is a pause: the session stays running.
  When that agent has stopped a machine prompt follows at once, so it stays running until then.
  A running background *shell* does not count: nobody knows whether it ever ends.
"""

from enum import Enum
from typing import Callable

from adapters.claude.payload import (
    MAX_NAME_CHARS,
    call_of,
    field_of,
    from_machine,
    identity_of,
    thread_of,
)
from adapters.claude.state import (
    ELICITATION,
    MAIN,
    MAX_BACKGROUND,
    PERMISSION,
    QUESTION,
    Memory,
    ToolCall,
    short_id,
)
from adapters.contract import HookPayload, Status
from adapters.foreign import text_or_empty

MAX_LISTED = 1000
"""Entries that are looked at in a list of a payload (calls of a batch, background tasks)."""

_ASK = "AskUserQuestion"


class Publish(Enum):
    """What an effect wants of its event."""

    ALWAYS = "always"
    """Tell the status, changed or not."""
    NEWS = "news"
    """Tell a changed status or a found card, else nothing: these events are many."""
    NEVER = "never"
    """The event came too late, or means nothing."""


Effect = Callable[[HookPayload, Memory], Publish]
"""Changes the memory by one payload."""


# Session and turn


def session_start(payload: HookPayload, memory: Memory) -> Publish:
    """A session opens, reopens, or goes on behind a compaction, which changes nothing."""
    if payload.get("source") == "compact":
        return Publish.ALWAYS if memory.seen else Publish.NEVER
    memory.begin(Status.IDLE)
    # A fork's transcript, with a copy of all that was before, appears behind its first prompt.
    memory.unread = payload.get("source") == "fork"
    return Publish.ALWAYS


def prompt(payload: HookPayload, memory: Memory) -> Publish:
    """A turn begins, or a prompt is queued behind the running one."""
    memory.phase = Status.RUNNING
    memory.resolved = []
    memory.finished = []
    if from_machine(payload):
        memory.release_main()
    else:
        # A person could type: no dialog was in the way, not even a subagent's.
        memory.blockers = []
    return Publish.ALWAYS


def stop(payload: HookPayload, memory: Memory) -> Publish:
    """The main thread's turn is over, well or not; what subagents wait for goes on."""
    tasks = payload.get("background_tasks")
    if isinstance(tasks, list):
        agents = [task for task in tasks[:MAX_LISTED] if field_of(task, "type") == "subagent"]
        listed = [short_id(field_of(task, "id")) for task in agents]
        memory.end_main(set(listed))
        memory.background = [
            agent for agent, task in zip(listed, agents) if agent and field_of(task, "status") == "running"
        ][:MAX_BACKGROUND]
    else:
        memory.end_main(None)
    memory.phase = Status.RUNNING if memory.background else Status.READY_FOR_REVIEW
    return Publish.ALWAYS


def session_end(payload: HookPayload, memory: Memory) -> Publish:
    """The session is closed until it is started again."""
    memory.begin(Status.CLOSED)
    return Publish.ALWAYS


def subagent_stop(payload: HookPayload, memory: Memory) -> Publish:
    """A subagent is through; the session itself is not."""
    # Inner helpers (an empty agent_type, never started) have nothing that could end. The payload
    # still lists the agent itself as running, so its background_tasks say nothing.
    thread = thread_of(payload)
    if thread != MAIN:
        memory.end_agent(thread)
    return Publish.NEWS


# Tools and permissions


def tool_begins(payload: HookPayload, memory: Memory) -> Publish:
    """A tool call begins; a question waits from here on."""
    call = call_of(payload)
    _go_on(memory, call.thread)
    if call.identity:
        memory.start_call(call)
    if call.tool != _ASK:
        return Publish.NEWS
    memory.block(QUESTION, call.identity, call.thread)
    return Publish.ALWAYS


def tool_ends(payload: HookPayload, memory: Memory) -> Publish:
    """A tool call has a result, or failed: whoever waited for it was answered."""
    call = call_of(payload)
    _go_on(memory, call.thread)
    _settle(memory, call)
    server = text_or_empty(field_of(payload.get("mcp_server"), "name"), MAX_NAME_CHARS)
    if server and not _others_at_server(memory, call):
        memory.release((ELICITATION,), _server_identity(server, call.thread), call.thread)
    return Publish.NEWS


def batch_ends(payload: HookPayload, memory: Memory) -> Publish:
    """All calls of one reply have results, refused ones included."""
    thread = thread_of(payload)
    _go_on(memory, thread)
    memory.release((QUESTION, PERMISSION), "", thread)
    calls = payload.get("tool_calls")
    for entry in calls[:MAX_LISTED] if isinstance(calls, list) else ():
        # Inputs are the model's raw ones here, so nothing but the id is of use.
        _settle(memory, ToolCall(short_id(field_of(entry, "tool_use_id")), thread=thread))
    return Publish.NEWS


def permission_wanted(payload: HookPayload, memory: Memory) -> Publish:
    """A permission dialog opens beside a tool call, or a question's dialog does."""
    request = call_of(payload)
    if not request.identity:
        request = memory.ask(request) or request
    if request.identity and memory.is_finished(request.identity):
        # Overtaken: sent beside the dialog, it can arrive behind the result.
        memory.forget_request(request.identity)
        return Publish.NEVER
    memory.mark_asked(request.identity)
    _go_on(memory, request.thread)
    memory.block(QUESTION if request.tool == _ASK else PERMISSION, request.identity, request.thread)
    return Publish.ALWAYS


def permission_denied(payload: HookPayload, memory: Memory) -> Publish:
    """A call was refused by the program's own judgement. A person's refusal fires nothing."""
    call = call_of(payload)
    if not call.identity:
        call = memory.ask(call) or call
    _go_on(memory, call.thread)
    memory.release((PERMISSION,), call.identity, call.thread)
    if call.identity:
        memory.finish_call(call)
    return Publish.ALWAYS


def _settle(memory: Memory, call: ToolCall) -> None:
    """A call has its result, so nobody waits for it any more."""
    memory.release((QUESTION, PERMISSION), call.identity, call.thread)
    if call.identity:
        memory.finish_call(call)


def _go_on(memory: Memory, thread: str) -> None:
    """An event of a turn: the session runs. A subagent that nobody reported as still running when
    the main thread stopped cannot wake it, for nothing would settle the session again."""
    if thread == MAIN or memory.phase is not Status.READY_FOR_REVIEW or thread in memory.background:
        memory.phase = Status.RUNNING


# Elicitations


def elicitation(payload: HookPayload, memory: Memory) -> Publish:
    """A tool server asks the person something."""
    thread = thread_of(payload)
    _go_on(memory, thread)
    memory.block(ELICITATION, _elicitation_identity(payload), thread)
    return Publish.ALWAYS


def elicitation_result(payload: HookPayload, memory: Memory) -> Publish:
    """The person has answered a tool server."""
    thread = thread_of(payload)
    _go_on(memory, thread)
    memory.release((ELICITATION,), _elicitation_identity(payload), thread)
    return Publish.ALWAYS


def _elicitation_identity(payload: HookPayload) -> str:
    """A form has no id of its own: a server asks one thing at a time in one thread."""
    server = text_or_empty(payload.get("mcp_server_name"), MAX_NAME_CHARS)
    return identity_of(payload) or (_server_identity(server, thread_of(payload)) if server else "")


def _server_identity(server: str, thread: str) -> str:
    return short_id(f"server:{server}:{thread}")


def _others_at_server(memory: Memory, call: ToolCall) -> bool:
    prefix = call.tool.rpartition("__")[0] + "__"
    return any(other.thread == call.thread and other.tool.startswith(prefix) for other in memory.open_calls)
