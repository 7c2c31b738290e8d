"""Rebuilds one agent's associations in the log from its past sessions.

Replacement, not merging: what the agent's files tell is the truth about that agent. Events of other
agents stay as they are and come first. Of this one's, sessions that are gone are dropped, except what
cannot be judged now. A session that is still there loses no card: its file names the card by the place
where it was then, and the card may have been renamed, moved or put into an archive. The decision is one
pure function, :func:`rebuild`.
"""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Callable, Dict, Iterable, List, Optional, Protocol, Sequence, Tuple

from adapters.contract import PastSession, Status
from companion.boards.cards import Card, Resolution, Scan
from companion.core.clock import parse_iso
from companion.core.errors import CardReadError
from companion.sessions.association import Association, Key


class Log(Protocol):
    """The log of associations; :class:`companion.sessions.journal.Journal` is one."""

    def read(self) -> List[Association]:
        """Every event in order. StorageError when the file is there but cannot be read."""

    def rewrite(self, records: Iterable[Association]) -> None:
        """Replace the content in one step. StorageError when it cannot be written."""


class Finder(Protocol):
    """What is asked about cards; :class:`companion.boards.cards.CardFinder` is one."""

    def resolve(self, path: str) -> Resolution:
        """Whose card a path is. CardReadError for a file that cannot be read."""

    def scan(self) -> Scan:
        """Every card of every registered board. Never raises."""


@dataclass(frozen=True)
class Counts:
    """What a rebuild did."""

    scanned: int
    """Sessions within the window."""
    matched: int
    """Of these, sessions with an id that lead to at least one card."""
    found: int
    """Candidate paths of matched sessions that lead to a card, each occurrence counted."""
    added: int
    """Associations that the log did not have."""
    existing: int
    """Associations that it had already, of sessions that are still there."""
    purged: int
    """Associations that it had of sessions that are gone."""
    kept: int
    """The same, but kept because their cards, or some sessions, cannot be looked at now, or because the
    session's file is still there, in a folder that was not read."""


@dataclass
class Cards:
    """Looks paths up, each once, and remembers what stood in the way."""

    finder: Finder
    unreadable: Dict[str, str] = field(default_factory=dict)
    """Path to reason, of files that are there but could not be read."""
    without_uuid: Dict[str, None] = field(default_factory=dict)
    """Files on a board that would be cards if they had a uuid, in order of discovery."""
    _known: Dict[str, Optional[Card]] = field(default_factory=dict)

    def at(self, path: str) -> Optional[Card]:
        """The card at a path, or None."""
        if path not in self._known:
            self._known[path] = self._resolve(path)
        return self._known[path]

    def _resolve(self, path: str) -> Optional[Card]:
        try:
            resolution = self.finder.resolve(path)
        except CardReadError as exc:
            self.unreadable[path] = str(exc)
            return None
        if resolution.without_uuid is not None:
            self.without_uuid[resolution.without_uuid] = None
        return resolution.card


def backfill(
    harness: str,
    sessions: Sequence[PastSession],
    log: Log,
    cards: Cards,
    now: str,
    roots: Sequence[Path],
    any_boards: bool,
    all_read: bool = True,
) -> Counts:
    """Rebuild the log. Nothing else may write it meanwhile; StorageError leaves it as it was.

    ``roots`` is where the sessions were looked for; an agent may have been told of another folder before.
    ``any_boards`` False: no board is registered, so no card can be looked at, and nothing is purged.
    ``all_read`` False: there may be more sessions than these, so nothing is purged either.
    """
    seen = cards.finder.scan()
    old = log.read()

    def is_hidden(association: Association) -> bool:
        """Whether the card is not seen, and might be where nothing can be seen; or its session."""
        if not all_read or _lives_elsewhere(association.session_file, roots):
            return True
        if any_boards and seen.complete and not cards.unreadable:
            return False
        if association.card_uuid:
            return association.card_uuid not in seen.cards
        return all(card.path != association.card_path for card in seen.cards.values())

    new, counts = rebuild(harness, sessions, old, cards.at, now, is_hidden)
    log.rewrite(new)
    return counts


def other_roots(
    folders_of: Callable[[Path], Optional[Tuple[Path, Path]]],
    harness: str,
    old: Iterable[Association],
    root: Path,
) -> List[Path]:
    """Folders of sessions in which the files of known sessions lie, besides ``root``, by name: the agent
    was told of them when it ran, this process was not. Only such as are there."""
    files = {event.session_file for event in old if event.harness == harness and event.session_file}
    found = {folders[0] for folders in (folders_of(Path(file)) for file in files) if folders is not None}
    return sorted(path for path in found if path != root and os.path.isdir(path))


def _lives_elsewhere(session_file: Optional[str], roots: Sequence[Path]) -> bool:
    """Whether a session's file is there, but not where the sessions were looked for."""
    if session_file is None or not os.path.isabs(session_file):
        return False
    try:
        real = os.path.realpath(session_file)
        above = set(Path(real).parents)
        return os.path.exists(real) and not any(Path(os.path.realpath(root)) in above for root in roots)
    except (OSError, ValueError):  # The log is a file that anybody may have edited.
        return False


def rebuild(
    harness: str,
    sessions: Sequence[PastSession],
    old: Sequence[Association],
    card_at: Callable[[str], Optional[Card]],
    now: str,
    is_hidden: Callable[[Association], bool],
) -> Tuple[List[Association], Counts]:
    """(the new log, what changed).

    The new log: every event of other agents, unchanged; events of this agent's sessions that are still
    there, on cards that they do not lead to any more, and events on hidden cards; one record for each
    recovered card and session, in order of discovery. A recovered record is closed, unless the log
    knows the session as open: then it keeps that status and its time.
    """
    recovered, matched, found = _recover(harness, sessions, card_at, now)
    before = {event.key: event for event in old if event.harness == harness}
    here = {session.session_id for session in sessions if session.session_id}
    elsewhere = {key for key, event in before.items() if key not in recovered and event.session_id in here}
    gone = {key for key in before if key not in recovered and key not in elsewhere}
    hidden = {key for key in gone if is_hidden(before[key])}
    kept = elsewhere | hidden
    new = [event for event in old if event.harness != harness]
    new += [event for event in old if event.harness == harness and event.key in kept]
    new += [_with_old_status(record, before.get(key)) for key, record in recovered.items()]
    known = sum(key in before for key in recovered)
    return new, Counts(
        scanned=len(sessions),
        matched=matched,
        found=found,
        added=len(recovered) - known,
        existing=known + len(elsewhere),
        purged=len(gone) - len(hidden),
        kept=len(hidden),
    )


def _recover(
    harness: str,
    sessions: Sequence[PastSession],
    card_at: Callable[[str], Optional[Card]],
    now: str,
) -> Tuple[Dict[Key, Association], int, int]:
    """(records by key in order of discovery, matched sessions, found associations)."""
    recovered: Dict[Key, Association] = {}
    matched = found = 0
    for session in sessions:
        cards = [card_at(path) for path in session.card_paths] if session.session_id else []
        records = [_record(harness, session, card, now) for card in cards if card is not None]
        matched += bool(records)
        found += len(records)
        for record in records:
            # Two files can tell of one session; the one written last knows it best.
            known = recovered.get(record.key)
            if known is None or record.updated_at >= known.updated_at:
                recovered[record.key] = record
    return recovered, matched, found


def _record(harness: str, session: PastSession, card: Card, now: str) -> Association:
    updated_at = session.updated_at or ""
    return Association(
        card_path=card.path,
        harness=harness,
        session_id=session.session_id,
        status=Status.CLOSED,
        # A transcript is foreign: what is no time must not get into the log as one.
        updated_at=updated_at if parse_iso(updated_at) is not None else now,
        board_uuid=card.board_uuid,
        card_uuid=card.uuid,
        session_file=session.session_file,
    )


def _with_old_status(record: Association, old: Optional[Association]) -> Association:
    if old is None or old.status is Status.CLOSED:
        return record
    return replace(record, status=old.status, updated_at=old.updated_at)
