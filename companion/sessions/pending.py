"""Links between sessions and Markdown files that have no uuid yet.

An agent that writes a new card rarely gives it a uuid, and only a uuid makes an association. Until
then the link waits here, with the history of its statuses, in a log of its own: the same records
as associations, without the two uuids.
"""

import contextlib
from collections import deque
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Callable, Deque, Dict, Iterable, List, Optional, Sequence

from adapters.contract import Status
from companion.core.errors import StorageError
from companion.sessions.association import Association, Key
from companion.sessions.index import Holdings
from companion.sessions.journal import Journal, association_journal

# A session changes its status a few times a minute at most; older history of a card that nobody
# gave a uuid for so long is of no use.
MAX_EVENTS_PER_LINK = 200
MAX_LINKS = 1_000
# Of all links together; keeps the log below about eight megabytes.
MAX_EVENTS = 20_000

_MID_TURN = (Status.RUNNING, Status.WAITING_FOR_INPUT)


@dataclass(frozen=True)
class Link:
    """One session at work on a file that has no uuid yet, as people are told."""

    path: str
    """Normalised path of the file."""
    harness: str
    session_id: str
    session_file: Optional[str]
    status: Status
    """The last one."""
    since: str
    """UTC ISO-8601 time of the first event that is still held."""
    updated_at: str
    """UTC ISO-8601 time of the last event."""

    @property
    def mid_turn(self) -> bool:
        """Whether the agent may be writing right now."""
        return self.status in _MID_TURN


class PendingLinks:
    """All links, in memory and in their log. Not safe for threads: its owner's lock guards it."""

    def __init__(self, path: Path) -> None:
        self._journal: Journal[Association] = association_journal(path)
        self._last = Holdings()
        self._history: Dict[Key, Deque[Association]] = {}  # Least recently changed link first.
        self._events = 0
        self.dropped = 0
        """Links and events that were given up for want of room, since the start."""

    def __len__(self) -> int:
        return len(self._last)

    @property
    def problem(self) -> Optional[str]:
        """Why the log could not be read or written, or None."""
        return self._journal.problem

    @property
    def unsaved(self) -> int:
        """Records that are not on disk yet."""
        return self._journal.unsaved

    @property
    def overgrown(self) -> bool:
        """Whether the log is so much longer than what memory holds that a shortening is due."""
        return self._journal.lines > 2 * (self._events + MAX_LINKS)

    def load(self) -> None:
        """Take up what the log holds. An unreadable log is empty, with ``problem``."""
        try:
            events = self._journal.read()
        except StorageError:
            return
        for event in events:
            if not event.card_uuid:
                self._keep(event)

    def remember(self, event: Association) -> bool:
        """Add an event (without uuids) to its link. False when it says nothing new."""
        last = self._last.get(event.key)
        if last is not None:
            if last.session_file and not event.session_file:
                event = replace(event, session_file=last.session_file)
            if last.same_but_for_time(event):
                return False
        self._keep(event)
        self._journal.append(event)
        return True

    def of_path(self, path: str) -> List[List[Association]]:
        """The histories of all links to a file, oldest event first."""
        return [list(self._history[each.key]) for each in self._last.of_card(path)]

    def of_session(self, harness: str, session_id: str) -> List[Association]:
        """The last events of all links of a session, in order of their first."""
        return self._last.of_session(harness, session_id)

    def paths(self) -> List[str]:
        """The files concerned, each once."""
        return list(dict.fromkeys(each.card_path for each in self._last.all()))

    def move(self, old: str, new: str) -> None:
        """Take the links to a file along to its new path."""
        moved = [replace(event, card_path=new) for history in self.of_path(old) for event in history]
        for each in self._last.of_card(old):
            self._forget(each.key)
        for event in moved:
            self._keep(event)
        if moved:
            self._save()

    def drop_path(self, path: str) -> None:
        """Forget the links to a file."""
        self._drop(self._last.of_card(path))

    def drop_session(self, harness: str, session_id: str) -> None:
        """Forget the links of a session."""
        self._drop(self._last.of_session(harness, session_id))

    def links(self) -> List[Link]:
        """All links, in order of their first event."""
        return [_link(self._history[each.key]) for each in self._last.all()]

    def flush(self) -> None:
        """Try again to write what is unsaved."""
        self._journal.flush()

    def shortening(self) -> Optional[Callable[[], bool]]:
        """What brings an overgrown log to what memory holds now, or None when nothing is to be done.

        To be called without any lock, for it waits for a disk; what is remembered meanwhile is kept.
        False when it could not be done: the log is still overgrown then.
        """
        mark = self._journal.mark() if self.overgrown else None
        if mark is None:
            return None
        events = self._all()
        return partial(self._journal.rewrite_before, mark, events)

    def close(self) -> None:
        """Let go of the log."""
        self._journal.close()

    def _keep(self, event: Association) -> None:
        history = self._history.pop(event.key, deque())
        history.append(event)
        self._history[event.key] = history
        self._last.put(event)
        self._events += 1
        if len(history) > MAX_EVENTS_PER_LINK:
            history.popleft()
            self._events -= 1
            self.dropped += 1
        while len(self._history) > MAX_LINKS or self._events > MAX_EVENTS:
            self._forget(next(iter(self._history)))
            self.dropped += 1

    def _forget(self, key: Key) -> None:
        self._events -= len(self._history.pop(key))
        self._last.drop(key)

    def _drop(self, doomed: Sequence[Association]) -> None:
        for each in doomed:
            self._forget(each.key)
        if doomed:
            self._save()

    def _save(self) -> None:
        """Bring the log to what memory holds. When that fails, the log tells too much, which a
        restart sorts out: events that an association has already are not taken twice."""
        with contextlib.suppress(StorageError):  # The journal keeps the reason in its ``problem``.
            self._journal.rewrite(self._all())

    def _all(self) -> List[Association]:
        return [event for history in self._history.values() for event in history]


def read_links(path: Path) -> List[Link]:
    """The links in a log, for a command that runs beside (or without) the server.

    Nothing is written. StorageError when the file is there but cannot be read.
    """
    history: Dict[Key, List[Association]] = {}
    for event in association_journal(path).read():
        if not event.card_uuid:
            history.setdefault(event.key, []).append(event)
    return [_link(events) for events in history.values()]


def busy_on(links: Iterable[Link], path: str) -> List[Link]:
    """Those links to a file (normalised path) whose session is in the middle of a turn."""
    return [link for link in links if link.path == path and link.mid_turn]


def _link(events: Sequence[Association]) -> Link:
    first, last = events[0], events[-1]
    return Link(
        path=last.card_path,
        harness=last.harness,
        session_id=last.session_id,
        session_file=last.session_file,
        status=last.status,
        since=first.updated_at,
        updated_at=last.updated_at,
    )
