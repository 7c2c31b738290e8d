"""What adapters remember of their sessions between two hook events, kept across restarts."""

import contextlib
import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Mapping, Optional, Tuple

from adapters.contract import SessionState, Status
from companion.core.errors import StorageError
from companion.sessions.journal import Journal
from companion.sessions.lines import json_bytes

# A person has a handful of sessions open; the rest may be resumed some day, and a session whose
# state is forgotten only starts from idle again.
MAX_SESSIONS = 2_000
MAX_STATE_BYTES = 64 * 1024
# All states of one agent together: a state is a few hundred bytes, unless an adapter errs.
MAX_TOTAL_BYTES = 8 * 1024 * 1024

_STATUS = {status.value: status for status in Status}


@dataclass(frozen=True)
class Remembered:
    """One session as it was after its last event."""

    harness: str
    session_id: str
    state: bytes
    """The adapter's own JSON object; empty when it has none."""
    status: Optional[Status]
    """The last published one; None when nothing was published yet."""
    updated_at: str
    """UTC ISO-8601."""

    def session_state(self) -> Optional[SessionState]:
        """A copy that the adapter may do with what it likes; None when there is none."""
        if not self.state:
            return None
        state: SessionState = json.loads(self.state)
        return state


class HookStates:
    """The states of all sessions of all agents. Safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self._journal: Journal[Remembered] = Journal(
            path, parse=_parse, dump=_dump, key=lambda each: (each.harness, each.session_id)
        )
        self._lock = threading.Lock()  # Guards all that follows.
        # By harness, then by session id; the session that changed longest ago comes first.
        self._sessions: Dict[str, Dict[str, Remembered]] = {}
        self._bytes: Dict[str, int] = {}
        self.oversized = 0
        """States that were dropped because they were too large, since the start."""

    @property
    def problem(self) -> Optional[str]:
        """Why the log could not be read or written, or None."""
        return self._journal.problem

    def load(self) -> None:
        """Take up what the log holds. An unreadable log is empty, with ``problem``."""
        with self._lock:
            with contextlib.suppress(StorageError):
                for each in self._journal.read():
                    self._keep(each)
            self._shorten_log()

    def get(self, harness: str, session_id: str) -> Optional[Remembered]:
        """What is remembered of a session, or None."""
        with self._lock:
            return self._sessions.get(harness, {}).get(session_id)

    def count(self, harness: str) -> int:
        """How many sessions of an agent are remembered."""
        with self._lock:
            return len(self._sessions.get(harness, ()))

    def put(
        self,
        harness: str,
        session_id: str,
        state: Optional[SessionState],
        status: Optional[Status],
        updated_at: str,
    ) -> None:
        """Remember a session; None leaves its state, or its status, as it was.

        A state that is too large, or no JSON, is dropped: the session then counts as unseen.
        Nothing is written when nothing changed.
        """
        with self._lock:
            old = self._sessions.get(harness, {}).get(session_id)
            new = Remembered(
                harness=harness,
                session_id=session_id,
                state=self._encoded(state) if state is not None else (old.state if old else b""),
                status=status or (old.status if old else None),
                updated_at=updated_at,
            )
            if old is not None and (old.state, old.status) == (new.state, new.status):
                return
            self._keep(new)
            self._journal.append(new)
            self._shorten_log()

    def close(self) -> None:
        """Save what is unsaved and let go of the log."""
        self._journal.close()

    # Everything below runs under the lock.

    def _encoded(self, state: SessionState) -> bytes:
        try:
            encoded = json_bytes(state)
        except (TypeError, ValueError, RecursionError):  # an adapter's mistake
            encoded = b""
        if not encoded or len(encoded) > MAX_STATE_BYTES:
            self.oversized += 1
            return b""
        return encoded

    def _keep(self, new: Remembered) -> None:
        sessions = self._sessions.setdefault(new.harness, {})
        old = sessions.pop(new.session_id, None)
        sessions[new.session_id] = new
        size = self._bytes.get(new.harness, 0) + len(new.state) - (len(old.state) if old else 0)
        while len(sessions) > MAX_SESSIONS or (size > MAX_TOTAL_BYTES and len(sessions) > 1):
            size -= len(sessions.pop(_least_wanted(sessions)).state)
        self._bytes[new.harness] = size

    def _shorten_log(self) -> None:
        live = sum(map(len, self._sessions.values()))
        if self._journal.lines <= 2 * live + MAX_SESSIONS or self._journal.unsaved:
            return
        with contextlib.suppress(StorageError):  # The journal keeps the reason in ``problem``.
            self._journal.rewrite(each for sessions in self._sessions.values() for each in sessions.values())


def _least_wanted(sessions: Dict[str, Remembered]) -> str:
    """The closed session that changed longest ago; when none is closed, the one that did."""
    newest = next(reversed(sessions))
    for session_id, each in sessions.items():
        if each.status is Status.CLOSED and session_id != newest:
            return session_id
    return next(iter(sessions))


def _dump(each: Remembered) -> Mapping[str, object]:
    record: Dict[str, object] = {"harness": each.harness, "sessionId": each.session_id}
    if each.state:
        record["state"] = json.loads(each.state)
    if each.status is not None:
        record["status"] = each.status.value
    record["updatedAt"] = each.updated_at
    return record


def _parse(record: object) -> Remembered:
    """ValueError for what is no record of ours."""
    if not isinstance(record, Mapping):
        raise ValueError("not an object")
    harness, session_id, updated_at = _texts(record, "harness", "sessionId", "updatedAt")
    state = record.get("state")
    if state is not None and not isinstance(state, dict):
        raise ValueError("state")
    encoded = json_bytes(state) if state is not None else b""
    status = record.get("status")
    return Remembered(
        harness=harness,
        session_id=session_id,
        state=encoded if len(encoded) <= MAX_STATE_BYTES else b"",
        status=_STATUS.get(status) if isinstance(status, str) else None,
        updated_at=updated_at,
    )


def _texts(record: Mapping[str, object], *names: str) -> Tuple[str, ...]:
    values = tuple(record.get(name) for name in names)
    if not all(isinstance(value, str) and value for value in values):
        raise ValueError(" or ".join(names))
    return tuple(str(value) for value in values)
