"""One hook event on its way from an agent to the ledger.

Under a lock per agent the adapter translates the payload and the session's state is saved; the
same lock hands out the session's turns, so that its events are recorded in the order in which
they came although that happens outside the lock: a slow disk under one session's card holds up
no other session.

A session that is resumed may have older cards in its transcript. That file can be huge, so it is
read in a thread of its own, outside every lock, and the hook waits for it only a moment.
"""

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Callable, Dict, Optional, Protocol, Tuple, Type

from adapters.contract import Adapter, HookEvent, ReadReport, Status, Translation
from companion.core.clock import WallClock, iso_utc
from companion.core.errors import CardReadError
from companion.core.logs import debug_event
from companion.sessions.evidence import Said
from companion.sessions.hookstates import HookStates

_log = logging.getLogger(__name__)

# Claude Code gives the command hook of SessionStart five seconds and its curl two; other hooks
# wait in line behind it. Most transcripts are read in a few milliseconds.
DISCOVERY_WAIT_S = 0.7
# Transcripts that are read at the same time: more would only fight for the interpreter.
MAX_READERS = 2
# A session id is a uuid in every agent that we know. Longer ones are not worth keeping.
MAX_SESSION_ID = 1_024
# One prompt may be 32 MiB of slashes. Nobody names more cards than this at once.
MAX_PATHS = 20_000
# Names of unknown events come from outside: the rest is counted together.
MAX_UNKNOWN_NAMES = 50
OTHER_NAMES = "(other)"


class EventLedger(Protocol):
    """What is needed of the ledger."""

    def ingest_event(
        self,
        harness: str,
        session_id: str,
        status: Status,
        card_paths: Tuple[str, ...],
        session_file: Optional[str],
    ) -> None:
        """Record a status on this event's cards and the session's. CardReadError at the end."""


class Heard(Protocol):
    """Is told of each event just before it is recorded; :meth:`Watcher.heard` is one."""

    def __call__(
        self,
        harness: str,
        session_id: str,
        said: Said,
        session_file: Optional[str] = None,
        header: Optional[str] = None,
    ) -> None:
        """Must not wait."""


@dataclass
class _Tally:
    """What was seen of one agent since the start, for people."""

    events: int = 0
    last_event: Optional[str] = None
    last_event_at: Optional[float] = None
    """Unix seconds."""
    unknown: Dict[str, int] = field(default_factory=dict)
    unusable: int = 0  # no object, no event name, or no session
    failed: int = 0  # an adapter raised, or a transcript could not be read
    unreadable_cards: int = 0

    def count_unknown(self, name: str) -> None:
        if name not in self.unknown and len(self.unknown) >= MAX_UNKNOWN_NAMES:
            name = OTHER_NAMES
        self.unknown[name] = self.unknown.get(name, 0) + 1

    def to_json(self) -> Dict[str, object]:
        return {
            "lastEvent": self.last_event,
            "lastEventAt": iso_utc(self.last_event_at) if self.last_event_at is not None else None,
            "events": self.events,
            "unknownEvents": dict(self.unknown),
            "unusable": self.unusable,
            "failed": self.failed,
            "unreadableCards": self.unreadable_cards,
        }


class _Desk:
    """One agent's line: its lock, its counters, and whose turn is last in each session."""

    def __init__(self) -> None:
        self.lock = threading.Lock()  # Guards all that follows, and the order of events.
        self.tally = _Tally()
        self.last_turn: Dict[str, _Turn] = {}

    def take_turn(self, session_id: str) -> "_Turn":
        """A place behind the session's earlier events. The lock must be held."""
        turn = _Turn(self, session_id, self.last_turn.get(session_id))
        self.last_turn[session_id] = turn
        return turn


class _Turn:
    """A context that is entered when all earlier turns of the session are over."""

    def __init__(self, desk: _Desk, session_id: str, before: Optional["_Turn"]) -> None:
        self._desk = desk
        self._session_id = session_id
        self._before = before
        # Held until the turn is over. A lock, because an event is ten times as dear; only the one
        # turn behind this one waits for it.
        self._going_on = threading.Lock()
        self._going_on.acquire()

    def __enter__(self) -> None:
        if self._before is not None:
            self._before._going_on.acquire()
            self._before = None  # Otherwise a busy session would hold a chain of all its turns.

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self._going_on.release()
        with self._desk.lock:
            if self._desk.last_turn.get(self._session_id) is self:
                del self._desk.last_turn[self._session_id]


class HookIntake:
    """Takes hook payloads of every agent.

    Args:
        ledger: gets what is worth publishing.
        state_path: the log of what adapters remember.
        now: wall clock, Unix seconds.
        needles: byte strings of which every interesting path in a transcript holds at least one;
            empty means that all paths are interesting.
        wait_s: how long a hook waits for its session's transcript, in seconds.
        heard: told of each event just before it is recorded; None: nobody wants to know.
    """

    def __init__(
        self,
        ledger: EventLedger,
        state_path: Path,
        now: WallClock = time.time,
        needles: Callable[[], Tuple[bytes, ...]] = tuple,
        wait_s: float = DISCOVERY_WAIT_S,
        heard: Optional[Heard] = None,
    ) -> None:
        self._ledger = ledger
        self._now = now
        self._needles = needles
        self._wait_s = wait_s
        self._heard = heard
        self._states = HookStates(state_path)
        self._lock = threading.Lock()  # Guards the dict below, not its values.
        self._desks: Dict[str, _Desk] = {}
        self._readers = threading.BoundedSemaphore(MAX_READERS)

    def load(self) -> None:
        """Take up what adapters remembered before a restart. Never raises."""
        self._states.load()

    def close(self) -> None:
        """Let go of the log of states."""
        self._states.close()

    def handle(self, adapter: Adapter, payload: object, header: Optional[str] = None) -> None:
        """Record what one hook body means; a body of no use is counted and forgotten.

        ``header``: what the sender says of the session's process, None when it says nothing.

        CardReadError when a card's file could not be read; all other cards are recorded then.
        """
        desk = self._desk(adapter.NAME)
        with desk.lock:
            event = self._understand(adapter, payload, desk.tally)
            if event is None:
                return
            said = Said(event.status, self._now(), desk.tally.last_event or "", event.paused)
            turn = desk.take_turn(event.session_id)
        with turn:
            if self._heard is not None:
                self._heard(adapter.NAME, event.session_id, said, event.session_file, header)
            self._record(adapter.NAME, desk, event, event.status, event.card_paths)
        if event.discover_from is not None:
            self._discover(adapter, desk, event)

    def facts(self) -> Dict[str, object]:
        """By harness: ``lastEvent``, ``lastEventAt`` (UTC ISO-8601), ``events``,
        ``unknownEvents`` (count by name), ``unusable``, ``failed``, ``unreadableCards``."""
        with self._lock:
            desks = dict(self._desks)
        facts: Dict[str, object] = {}
        for name, desk in desks.items():
            with desk.lock:
                facts[name] = desk.tally.to_json()
        return facts

    @property
    def problem(self) -> Optional[str]:
        """Why the states of sessions could not be kept on disk, or None."""
        return self._states.problem

    def _desk(self, harness: str) -> _Desk:
        with self._lock:
            desk = self._desks.get(harness)
            if desk is None:
                desk = self._desks[harness] = _Desk()
            return desk

    # -- understanding; under the desk's lock

    def _understand(self, adapter: Adapter, payload: object, tally: _Tally) -> Optional[HookEvent]:
        if not isinstance(payload, Mapping):
            tally.unusable += 1
            return None
        try:
            session_id = adapter.session_of(payload)
            remembered = self._states.get(adapter.NAME, session_id)
            found = adapter.translate(payload, remembered.session_state() if remembered else None)
        except Exception:  # Foreign data met code that did not expect it: never the agent's problem.
            tally.failed += 1
            _log.warning("The %s adapter could not translate a hook event", adapter.NAME, exc_info=True)
            return None
        self._count(found, tally)
        if not session_id or len(session_id) > MAX_SESSION_ID:
            tally.unusable += 1
            return None
        status = found.event.status if found.event is not None else None
        if found.state is not None or status is not None:
            self._states.put(adapter.NAME, session_id, found.state, status, iso_utc(self._now()))
        if found.event is None:
            debug_event("hook ignored", lambda: {"harness": adapter.NAME, "event": found.event_name})
        return found.event

    def _count(self, found: Translation, tally: _Tally) -> None:
        if not found.event_name:
            return
        tally.events += 1
        tally.last_event = found.event_name[:64]
        tally.last_event_at = self._now()
        if not found.known:
            tally.count_unknown(found.event_name[:64])

    # -- recording; in the session's turn

    def _record(
        self, harness: str, desk: _Desk, event: HookEvent, status: Status, paths: Tuple[str, ...]
    ) -> None:
        session_id = event.session_id
        try:
            self._ledger.ingest_event(harness, session_id, status, paths[:MAX_PATHS], event.session_file)
        except CardReadError:
            with desk.lock:
                desk.tally.unreadable_cards += 1
            raise
        debug_event(
            "hook recorded", lambda: {"harness": harness, "sessionId": session_id, "status": status.value}
        )

    # -- older cards of a session

    def _discover(self, adapter: Adapter, desk: _Desk, event: HookEvent) -> None:
        reader = threading.Thread(
            target=self._read_older_cards, args=(adapter, desk, event), name="transcript", daemon=True
        )
        try:
            reader.start()
        except RuntimeError:  # The system gives no more threads.
            self._count_failure(desk)
            return
        reader.join(self._wait_s)

    def _read_older_cards(self, adapter: Adapter, desk: _Desk, event: HookEvent) -> None:
        try:
            with self._readers:
                paths = self._older_cards(adapter, event)
            if not paths:
                return
            with desk.lock:
                # The session may have gone on meanwhile: its cards get the status of this moment.
                remembered = self._states.get(adapter.NAME, event.session_id)
                status = (remembered.status if remembered else None) or event.status
                turn = desk.take_turn(event.session_id)
            with turn:
                self._record(adapter.NAME, desk, event, status, paths)
        except FileNotFoundError:
            pass  # A session that has only begun has no transcript yet.
        except CardReadError as exc:
            _log.warning("%s", exc)
        except Exception:  # The top of a thread, and foreign data.
            self._count_failure(desk)
            _log.warning("Could not read %s", event.discover_from, exc_info=True)

    def _older_cards(self, adapter: Adapter, event: HookEvent) -> Tuple[str, ...]:
        assert event.discover_from is not None
        report = ReadReport()
        path = Path(event.discover_from)
        return adapter.read_session(path, self._needles(), event.discover_cwd, report).card_paths

    def _count_failure(self, desk: _Desk) -> None:
        with desk.lock:
            desk.tally.failed += 1
