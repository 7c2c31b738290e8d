"""What is remembered of one Claude Code session between two hook events.

A session is a *phase* and a set of *blockers*, dialogs that wait for a person. Each blocker belongs
to a *thread*: the main one or a subagent's, because the two go on and stop independently. Tool
calls are remembered while they run, and shortly after, for a permission request carries no id: it
is told apart by the call that it belongs to.

Nothing here knows a payload; :mod:`adapters.claude.hooks` says what an event does. The state is
small whatever comes in: ids that look unusual and all contents are kept as digests, lists have
limits and lose their oldest entries.
"""

import hashlib
import json
import re
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass, field, replace
from typing import AbstractSet, Dict, List, Mapping, Optional, Tuple, TypeVar

from adapters.contract import SessionState, Status

QUESTION = "question"
PERMISSION = "permission"
ELICITATION = "elicitation"
AGENT = "agent"
QUOTA = "quota"
_KINDS = (QUESTION, PERMISSION, ELICITATION, AGENT, QUOTA)
_PHASES = {
    status.value: status for status in (Status.IDLE, Status.RUNNING, Status.READY_FOR_REVIEW, Status.CLOSED)
}

MAIN = ""
"""The main thread; every other thread is named by its ``agent_id``."""
ANY_THREAD = "*"
"""Of a blocker that some notification told of, without saying whose it is."""

MAX_OPEN_CALLS = 128
MAX_FINISHED_CALLS = 32
MAX_BLOCKERS = 64
MAX_BACKGROUND = 64

_ORDINARY_ID = re.compile(r"[A-Za-z0-9_.:\-]{1,64}")
_KEPT_ID = re.compile(r"#[0-9a-f]{32}")
_Entry = TypeVar("_Entry")


@dataclass(frozen=True)
class Blocker:
    """A dialog that waits for a person."""

    kind: str
    identity: str
    """Empty: anonymous, released by the next fitting result of its thread."""
    thread: str


@dataclass(frozen=True)
class ToolCall:
    """A tool call between its start and its result, or shortly after."""

    identity: str
    """Its ``tool_use_id``; empty in a call that is only compared with others."""
    tool: str = ""
    digest: str = ""
    """Stands for the input; empty: unknown."""
    thread: str = MAIN
    asked: bool = False
    """Whether its permission request has been seen: a second one is then not to be expected."""

    def same_work(self, other: "ToolCall") -> bool:
        """Whether both call one tool with one input in one thread."""
        return self.same_tool(other) and self.digest == other.digest != ""

    def same_tool(self, other: "ToolCall") -> bool:
        """Whether both call one tool in one thread."""
        return (self.tool, self.thread) == (other.tool, other.thread)


@dataclass
class Memory:
    """One session. Made from and turned into JSON for each event; lists are oldest first."""

    seen: bool = False
    """False for a session of which nothing was remembered."""
    phase: Status = Status.IDLE
    """Never ``waiting_for_input``: that is what blockers make of a phase."""
    turn: str = ""
    """The ``prompt_id`` of the main thread's latest event."""
    blockers: List[Blocker] = field(default_factory=list)
    open_calls: List[ToolCall] = field(default_factory=list)
    finished: List[ToolCall] = field(default_factory=list)
    """Calls that ended without their permission request, which may have been overtaken."""
    background: List[str] = field(default_factory=list)
    """Subagents that went on working when the main thread stopped."""
    resolved: List[str] = field(default_factory=list)
    """Kinds of blockers that were released since the latest prompt."""
    paused: bool = False
    """Whether the main thread has stopped, and the session runs only by its subagents."""
    unread: bool = False
    """Whether the transcript may tell of older cards, and could not be read yet."""

    @property
    def status(self) -> Status:
        """What a person should see of the session."""
        if self.phase is not Status.CLOSED and self.blockers:
            return Status.WAITING_FOR_INPUT
        return self.phase

    def begin(self, phase: Status) -> None:
        """Forget all and start afresh in ``phase``."""
        vars(self).update(vars(Memory(seen=True, phase=phase)))

    def enter_turn(self, turn: str) -> None:
        """An event of the main thread belongs to ``turn`` (empty: unknown).

        A refused permission or an Esc ends a turn without any event, and a queued prompt's turn
        begins without one. The changed id is then the only sign that nobody waits any more.
        """
        if turn and self.turn and turn != self.turn:
            self.release_main()
            self.open_calls = [call for call in self.open_calls if call.thread != MAIN]
        self.turn = turn or self.turn

    def block(self, kind: str, identity: str, thread: str) -> None:
        """Add a blocker. An anonymous one adds nothing to one of its kind in the same thread."""
        blocker = Blocker(kind, identity, thread)
        if blocker in self.blockers or (not identity and self._has_kind(kind, thread)):
            return
        self.blockers = _newest([*self.blockers, blocker], MAX_BLOCKERS)

    def release(self, kinds: Tuple[str, ...], identity: str, thread: str) -> None:
        """Remove the blockers of that identity, and the anonymous ones of that thread."""
        self._remove(
            [
                blocker
                for blocker in self.blockers
                if blocker.kind in kinds
                and (
                    blocker.identity == identity
                    if blocker.identity
                    else blocker.thread in (thread, ANY_THREAD)
                )
            ]
        )

    def release_main(self) -> None:
        """Remove all blockers but those that belong to a subagent."""
        self.blockers = [blocker for blocker in self.blockers if blocker.thread not in (MAIN, ANY_THREAD)]

    def holds(self, kinds: Tuple[str, ...]) -> bool:
        """Whether there is any blocker of these kinds."""
        return any(blocker.kind in kinds for blocker in self.blockers)

    def start_call(self, call: ToolCall) -> None:
        """A tool call has begun."""
        self.finished = [other for other in self.finished if other.identity != call.identity]
        others = [other for other in self.open_calls if other.identity != call.identity]
        self.open_calls = _newest([*others, call], MAX_OPEN_CALLS)

    def finish_call(self, call: ToolCall) -> None:
        """A tool call has ended. What was remembered of it counts: inputs grow meanwhile."""
        known = next((other for other in self.open_calls if other.identity == call.identity), None)
        self.open_calls = [other for other in self.open_calls if other is not known]
        ended = known or call
        if ended.digest and not ended.asked and not self.is_finished(ended.identity):
            self.finished = _newest([*self.finished, ended], MAX_FINISHED_CALLS)

    def is_finished(self, identity: str) -> bool:
        """Whether a call of this id ended a short while ago."""
        return any(call.identity == identity for call in self.finished)

    def ask(self, request: ToolCall) -> Optional[ToolCall]:
        """The call to which a permission request without id belongs; None when no call fits.

        The newest open call of the same tool, input and thread; else one that has ended already
        (the request was overtaken); else the newest open one of the same tool and thread.
        """
        exact = [call for call in self.open_calls if call.same_work(request)]
        ended = [call for call in self.finished if call.same_work(request)]
        similar = [call for call in self.open_calls if call.same_tool(request)]
        for calls in (exact, ended, similar):
            if calls:
                unasked = [call for call in calls if not call.asked]
                return (unasked or calls)[-1]
        return None

    def mark_asked(self, identity: str) -> None:
        """The permission request of this call has been seen."""
        self.open_calls = [
            replace(call, asked=True) if call.identity == identity else call for call in self.open_calls
        ]

    def forget_request(self, identity: str) -> None:
        """The overtaken permission request of an ended call has been seen."""
        self.finished = [call for call in self.finished if call.identity != identity]

    def end_main(self, alive: Optional[AbstractSet[str]]) -> None:
        """The main thread stopped. Subagents in ``alive`` keep what is theirs; None: all of them."""

        def survives(thread: str) -> bool:
            return thread not in (MAIN, ANY_THREAD) and (alive is None or thread in alive)

        self.blockers = [blocker for blocker in self.blockers if survives(blocker.thread)]
        self.open_calls = [call for call in self.open_calls if survives(call.thread)]

    def end_agent(self, thread: str) -> None:
        """A subagent stopped: nothing of it is open any more."""
        self.background = [agent for agent in self.background if agent != thread]
        self.blockers = [blocker for blocker in self.blockers if blocker.thread != thread]
        self.open_calls = [call for call in self.open_calls if call.thread != thread]

    def _has_kind(self, kind: str, thread: str) -> bool:
        return any(
            blocker.kind == kind and (thread == ANY_THREAD or blocker.thread in (thread, ANY_THREAD))
            for blocker in self.blockers
        )

    def _remove(self, gone: List[Blocker]) -> None:
        self.blockers = [blocker for blocker in self.blockers if blocker not in gone]
        kinds = {blocker.kind for blocker in gone}
        self.resolved = [kind for kind in _KINDS if kind in self.resolved or kind in kinds]

    def to_json(self) -> SessionState:
        """The memory as a JSON object; parts that are empty have no key."""
        state: Dict[str, object] = {"phase": self.phase.value}
        if self.turn:
            state["turn"] = self.turn
        if self.blockers:
            state["blockers"] = [[item.kind, item.identity, item.thread] for item in self.blockers]
        if self.open_calls:
            state["open"] = [_call_row(call) for call in self.open_calls]
        if self.finished:
            state["finished"] = [_call_row(call) for call in self.finished]
        if self.background:
            state["background"] = list(self.background)
        if self.resolved:
            state["resolved"] = list(self.resolved)
        if self.paused:
            state["paused"] = True
        if self.unread:
            state["unread"] = True
        return state


def memory_from_json(state: object) -> Memory:
    """The memory that a JSON object holds. What does not look like ours is left out, silently:
    it may come from another version, and the next events make up for it."""
    if not isinstance(state, (dict, AnyMapping)):
        return Memory()
    resolved = _list(state.get("resolved"))
    return Memory(
        seen=True,
        phase=_PHASES.get(_string(state.get("phase")), Status.IDLE),
        turn=short_id(state.get("turn")),
        blockers=_newest([Blocker(*row) for row in _blocker_rows(state)], MAX_BLOCKERS),
        open_calls=_newest(_calls(state.get("open")), MAX_OPEN_CALLS),
        finished=_newest(_calls(state.get("finished")), MAX_FINISHED_CALLS),
        background=_newest(
            [item for item in map(short_id, _list(state.get("background"))) if item], MAX_BACKGROUND
        ),
        resolved=[kind for kind in _KINDS if kind in resolved] if resolved else [],
        paused=state.get("paused") is True,
        unread=state.get("unread") is True,
    )


def short_id(value: object) -> str:
    """A foreign id as we keep it: as it is when it is short and plain, else as a digest.

    Empty for what is no id at all.
    """
    if not isinstance(value, str) or not value:
        return ""
    if _ORDINARY_ID.fullmatch(value):
        return value
    return "#" + hashlib.blake2b(value.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def digest_of(value: object) -> str:
    """Stands for a JSON value of any size; empty for what JSON cannot say."""
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return ""
    return hashlib.blake2b(text.encode("ascii"), digest_size=8).hexdigest()


def _newest(entries: List[_Entry], limit: int) -> List[_Entry]:
    return entries[-limit:]


def _call_row(call: ToolCall) -> List[object]:
    return [call.identity, call.tool, call.digest, call.thread, call.asked]


def _calls(rows: object) -> List[ToolCall]:
    if not isinstance(rows, list):  # Mostly there are none.
        return []
    calls = []
    for row in rows:
        if isinstance(row, list) and len(row) == 5 and _kept_id(row[0]):
            identity, tool, digest, thread = (_kept_id(part) for part in row[:4])
            calls.append(ToolCall(identity, tool, digest, thread, asked=row[4] is True))
    return calls


def _blocker_rows(state: Mapping[str, object]) -> List[Tuple[str, str, str]]:
    rows = state.get("blockers")
    if not isinstance(rows, list):
        return []
    return [
        (row[0], _kept_id(row[1]), ANY_THREAD if row[2] == ANY_THREAD else _kept_id(row[2]))
        for row in rows
        if isinstance(row, list) and len(row) == 3 and row[0] in _KINDS
    ]


def _kept_id(value: object) -> str:
    """An id out of our own state; a digest stays what it is."""
    return value if isinstance(value, str) and _KEPT_ID.fullmatch(value) else short_id(value)


def _list(value: object) -> List[object]:
    return value if isinstance(value, list) else []


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
