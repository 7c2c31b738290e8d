"""The sessions of all stores, each once: OpenCode moved its data twice and left the old where it was.

A store tells its sessions' heads and, asked for one of them, the cards that it leads to. Of a session
that several stores know, the copy that was written last counts, and of equals the newer kind of store.

Sub-agents work in sessions of their own that name a parent. They are no sessions for us: what they
edit belongs to the session that sent them, and what they were told was not said by the user.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Dict, Iterable, List, Optional, Protocol, Tuple

from adapters.contract import PastSession, ReadReport
from adapters.opencode.messages import Found

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Head:
    """What is told of a session before its messages are looked at."""

    session_id: str
    parent_id: str
    """Of the session that sent this one; empty for a session of its own."""
    directory: Optional[str]
    """The folder in which it works."""
    updated_ms: float
    """Unix time in milliseconds; 0 when unknown."""
    file: str
    """Where it is stored: a database, or the session's own file."""


class Unreadable(Exception):
    """A store, or one session of it, is there but cannot be read; the text says why."""


class Store(Protocol):
    """One place where sessions are kept."""

    path: str
    """The database or the folder, for the report."""

    def heads(self) -> List[Head]:
        """All of its sessions. Unreadable when they cannot be listed."""

    def collect(self, head: Head, with_text: bool, found: Found) -> None:
        """Note the candidates of one session; without its texts only what it edited. Unreadable."""


class Index:
    """Sessions by id over all stores."""

    def __init__(self, report: ReadReport) -> None:
        self._report = report
        self._known: Dict[str, Tuple[Head, Store]] = {}

    def add(self, store: Store) -> None:
        """Take up a store's sessions; of two that were written at the same time, the first added counts."""
        try:
            heads = store.heads()
        except Unreadable as exc:
            self._report.unread(store.path, exc)
            return
        for head in heads:
            known = self._known.get(head.session_id)
            if known is None or head.updated_ms > known[0].updated_ms:
                self._known[head.session_id] = (head, store)

    def families(self, newer_than_ms: float) -> List[List[Tuple[Head, Store]]]:
        """Each session changed at or after a time, with those it sent out behind it; oldest first."""
        families = {
            head.session_id: [(head, store)]
            for head, store in sorted(self._known.values(), key=lambda each: each[0].updated_ms)
            if not head.parent_id and head.updated_ms >= newer_than_ms
        }
        orphans = timeless = 0
        for head, store in self._known.values():
            root = self._root(head)
            if root in families and head.parent_id:
                families[root].append((head, store))
            timeless += not head.parent_id and not head.updated_ms and newer_than_ms > 0
            orphans += not root and head.updated_ms >= newer_than_ms
        if orphans:
            reason = f"{orphans} sessions of sub-agents whose own session is not there"
            self._report.skipped.append((self._where(), reason))
        if timeless:
            self._report.unread(self._where(), f"{timeless} sessions of which no time is known")
        return list(families.values())

    def _root(self, head: Head) -> str:
        """The id of the session that a chain of parents leads to; empty when it leads nowhere."""
        for _ in range(len(self._known)):  # A chain that is longer goes round in a circle.
            if not head.parent_id:
                return head.session_id
            known = self._known.get(head.parent_id)
            if known is None:
                return ""
            head = known[0]
        return ""

    def _where(self) -> str:
        return min(store.path for _, store in self._known.values())


def read_family(family: Iterable[Tuple[Head, Store]], report: ReadReport) -> PastSession:
    """The first one's session with the cards of all; what could not be read stands in the report."""
    first: Optional[Head] = None
    paths: Dict[str, None] = {}
    for head, store in family:
        found = Found()
        try:
            with report.damage_in(f"{store.path}: session {head.session_id}"):
                store.collect(head, first is None, found)
        except Unreadable as exc:
            report.unread(store.path, f"session {head.session_id}: {exc}")
        first = first or head
        paths.update(dict.fromkeys(found.candidates()))
    if first is None:
        return PastSession("", None, None, ())
    return PastSession(first.session_id, first.file, iso_utc(first.updated_ms), tuple(paths))


def iso_utc(unix_ms: float) -> Optional[str]:
    """UTC ISO-8601 with milliseconds, None for what is no time."""
    try:
        moment = _EPOCH + timedelta(milliseconds=unix_ms) if unix_ms > 0 else None
    except (OverflowError, ValueError):
        moment = None
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
