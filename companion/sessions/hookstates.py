"""What adapters remember of their sessions between two hook events, kept across restarts."""

import contextlib
import json
import threading
from collections.abc import Mapping as AnyMapping
from json.encoder import encode_basestring
from pathlib import Path
from typing import Dict, Mapping, NamedTuple, Optional, Tuple

from adapters.contract import SessionState, Status
from companion.core.errors import StorageError
from companion.sessions.chores import Chores
from companion.sessions.journal import Journal
from companion.sessions.lines import json_bytes, text_bytes

# A person has a handful of sessions open; the rest may be resumed some day, and a session whose
# state is forgotten only starts from idle again.
MAX_SESSIONS = 2_000
MAX_STATE_BYTES = 64 * 1024
# All states of one agent together: a state is a few hundred bytes, unless an adapter errs.
MAX_TOTAL_BYTES = 8 * 1024 * 1024

# Pause in front of a shortening of the log, and between two when one fails.
SHORTEN_AFTER_S = 0.5

_STATUS = {status.value: status for status in Status}
_decoder = json.JSONDecoder()


class Remembered(NamedTuple):
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
        # Written by us, so nothing stands around the object.
        state: SessionState = _decoder.raw_decode(self.state.decode("utf-8"))[0]
        return state


class HookStates:
    """The states of all sessions of all agents. Safe to use from several threads.

    Args:
        path: the log.
        shorten_after_s: how long a log that has grown too long waits for its rewrite, in seconds;
            a thread of its own does it, and nobody who puts a state waits for it.
    """

    def __init__(self, path: Path, shorten_after_s: float = SHORTEN_AFTER_S) -> None:
        self._journal: Journal[Remembered] = Journal(
            path, parse=_parse, encode=_line, key=lambda each: (each.harness, each.session_id)
        )
        self._chores = Chores(self._shorten_log, shorten_after_s)
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
        with self._lock, contextlib.suppress(StorageError):
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
            encoded = self._encoded(state) if state is not None else (old.state if old else b"")
            status = status or (old.status if old else None)
            if old is not None and old.state == encoded and old.status is status:
                return
            new = Remembered(harness, session_id, encoded, status, updated_at)
            self._keep(new)
            self._journal.append(new)
            if self._overgrown():
                self._chores.wake()

    def close(self) -> None:
        """Save what is unsaved and let go of the log."""
        self._chores.close()
        self._journal.close()

    def _shorten_log(self) -> bool:
        """Leave one line for each session, if there are too many. When that fails, the next change
        of a state asks for it again; False, so that without one nothing happens."""
        with self._lock:
            if not self._overgrown():
                return False
            # Under our lock, so that memory and log tell of the same moment.
            mark = self._journal.mark()
            live = [each for sessions in self._sessions.values() for each in sessions.values()]
        if mark is not None:
            self._journal.rewrite_before(mark, live)
        return False

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

    def _overgrown(self) -> bool:
        live = sum(map(len, self._sessions.values()))
        return self._journal.lines > 2 * live + MAX_SESSIONS and not self._journal.unsaved


def _least_wanted(sessions: Dict[str, Remembered]) -> str:
    """The closed session that changed longest ago; when none is closed, the one that did."""
    newest = next(reversed(sessions))
    for session_id, each in sessions.items():
        if each.status is Status.CLOSED and session_id != newest:
            return session_id
    return next(iter(sessions))


def _line(each: Remembered) -> bytes:
    """One line of JSON. The state is JSON already, so it is set in as it is."""
    quote = encode_basestring
    state = f',"state":{each.state.decode("utf-8")}' if each.state else ""
    status = f',"status":"{each.status.value}"' if each.status is not None else ""
    return text_bytes(
        f'{{"harness":{quote(each.harness)},"sessionId":{quote(each.session_id)}{state}{status}'
        f',"updatedAt":{quote(each.updated_at)}}}'
    )


def _parse(record: object) -> Remembered:
    """ValueError for what is no record of ours."""
    if not isinstance(record, AnyMapping):
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
