"""The associations in memory and their log, kept in agreement.

Memory is the truth while we run; the log is what a restart finds. Nothing here knows of threads
or listeners: the ledger's lock guards a book, and the ledger tells what has changed.
"""

import logging
from dataclasses import replace
from pathlib import Path
from typing import AbstractSet, Callable, Dict, List, Mapping, Optional, Sequence, Set

from companion.core.errors import StorageError
from companion.sessions.association import Association, Key
from companion.sessions.index import Holdings
from companion.sessions.journal import Journal, association_journal
from companion.sessions.reconcile import Fate, Place, View, card_of, judge, place_of

_log = logging.getLogger(__name__)


class Book:
    """Every association and its history. Not safe for threads: its owner's lock guards it."""

    def __init__(self, path: Path) -> None:
        self.journal: Journal[Association] = association_journal(path)
        self.held = Holdings()
        self.missing: Set[Key] = set()
        """Keys that are kept although the last look at the boards did not find their card."""
        self._places: Set[Place] = set()  # At least every place that the log mentions.
        self._unread = False  # The log could not be read; tried again at every catching up.

    @property
    def overgrown(self) -> bool:
        """Whether the log deserves a compaction."""
        return self.journal.overgrown(len(self.held))

    def load(self) -> None:
        """Take up the log and make it ready for appending. Never raises; see the journal's
        ``problem``."""
        self._read_log()
        if self.overgrown:
            self.journal.compact(alone=True)
        self.journal.open()

    def places(self) -> Set[Place]:
        """Where the events say their cards are."""
        return set(self._places)

    def settle(self, record: Association) -> Association:
        """Keep a record unless it says nothing new; returns what stands in memory afterwards.

        A session file that is known is not lost to a record without one.
        """
        old = self.held.get(record.key)
        if old is not None:
            if old.session_file and not record.session_file:
                record = replace(record, session_file=old.session_file)
            if old.same_but_for_time(record):
                return old
        self.store(record)
        return record

    def store(self, record: Association) -> None:
        """Keep a record and log it. When the disk refuses, the journal holds it for later."""
        self.held.put(record)
        self._places.add(place_of(record))
        if not self.journal.append(record):
            if self.journal.unsaved == 1:  # Said once, not for every record that follows.
                _log.warning("%s", self.journal.problem)
        elif self.journal.replaced:
            self.catch_up()

    def forget(self, doomed: Callable[[Association], bool], hints: Sequence[str]) -> int:
        """Drop events from log and memory; how many the log held.

        ``hints`` are texts that every doomed event holds. StorageError when the log cannot be
        rewritten; nothing has changed then.
        """
        self.catch_up()
        dropped = self.journal.drop(doomed, hints)
        self.held.drop_where(doomed)
        self.missing = {key for key in self.missing if key in self.held}
        return dropped

    def tend(self) -> None:
        """Try again to write what is unsaved."""
        if self.journal.unsaved and self.journal.flush() and self.journal.replaced:
            self.catch_up()

    def catch_up(self) -> None:
        """Notice that somebody else changed the log, or that it can be read at last.

        Memory stays the truth: what only the log has is added to it, and what only memory has is
        written again.
        """
        if not (self.journal.touched() or self._unread):
            return
        logged = {event.key for event in self._read_log()}
        if not self._unread:
            for association in self.held.all():
                if association.key not in logged:
                    self.journal.append(association)

    def absent(self, view: View, fresh: AbstractSet[str]) -> Set[Place]:
        """Places of which a look at the boards says that their card is gone from everywhere."""
        return {place for place, fate in self._fates(view, fresh).items() if fate is Fate.GONE}

    def apply(self, view: View, absent: AbstractSet[Place], fresh: AbstractSet[str]) -> None:
        """Act on a look at the boards.

        Args:
            view: what was seen.
            absent: places whose card was absent in an earlier look too; only these may be dropped.
            fresh: uuids of cards that were seen alive since the look began.
        """
        fates = {
            place: fate
            for place, fate in self._fates(view, fresh).items()
            if fate is not Fate.GONE or place in absent
        }
        if any(fate in (Fate.MOVES, Fate.GONE) for fate in fates.values()):
            self._rewrite(fates, view)
        self.missing = {
            each.key
            for each in (self.held.all() if fates else ())
            if fates.get(place_of(each)) is Fate.MISSING
        }

    def _fates(self, view: View, fresh: AbstractSet[str]) -> Dict[Place, Fate]:
        """What becomes of places; those that stay as they are, nearly all, are left out."""
        judged = ((place, judge(place, view, fresh)) for place in self._places)
        fates: Dict[Place, Fate] = {place: fate for place, fate in judged if fate is not Fate.STAYS}
        # Of one card's events some may speak of a board that is not registered any more. They are
        # kept, so the later ones must be too: otherwise an old status would rise again.
        kept = {place.card_uuid for place, fate in fates.items() if fate is Fate.MISSING and place.card_uuid}
        for place, fate in fates.items():
            if fate is Fate.GONE and place.card_uuid in kept:
                fates[place] = Fate.MISSING
        return fates

    def _rewrite(self, fates: Mapping[Place, Fate], view: View) -> None:
        try:
            before = self.journal.read()
        except StorageError:
            before = []
        # The contract: only when the log yields nothing, memory is taken.
        events = before or self.held.all()
        after = [each for each in (_follow(event, fates, view) for event in events) if each is not None]
        self.held.fold(after)
        places = {place_of(event) for event in after}
        if after != before:
            try:
                self.journal.rewrite(after)
            except StorageError as exc:
                # Memory is right all the same. The old places stay known, so that the next
                # reconcile tries again.
                _log.warning("%s", exc)
                places |= self._places
        self._places = places

    def _read_log(self) -> List[Association]:
        """Read the log whole; memory takes from it the keys that it does not hold yet."""
        try:
            events = self.journal.read()
        except StorageError as exc:
            _log.warning("%s", exc)
            self._unread = True
            return []
        self._unread = False
        held = self.held.all()
        known = {each.key for each in held}
        for event in events:
            if event.key not in known:
                self.held.put(event)
        self._places = {place_of(event) for event in events} | {place_of(each) for each in held}
        return events


def _follow(event: Association, fates: Mapping[Place, Fate], view: View) -> Optional[Association]:
    """An event on the present place of its card; None when the card is gone."""
    place = place_of(event)
    fate = fates.get(place, Fate.STAYS)
    if fate is Fate.GONE:
        return None
    card = card_of(place, view) if fate is Fate.MOVES else None
    return event.moved_to(card.board_uuid, card.uuid, card.path) if card is not None else event
