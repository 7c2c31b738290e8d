"""Which session works on which card: records it, tells it, forgets it.

Everything that changes an association goes through here, one change at a time. What is slow
(reading cards, scanning boards) happens before the lock is taken; under it stand only memory, one
append to the journal, and handing frames to the hub, which never waits. The exceptions are rare:
forgetting, and a reconcile that found a card moved or gone, rewrite the log.

Order of locks: reconcile, link watch, ledger, then journal, hub or labels. Nobody calls upwards.
"""

import threading
import time
from collections.abc import Mapping as AnyMapping
from dataclasses import replace
from pathlib import Path
from typing import AbstractSet, Callable, Dict, FrozenSet, Iterable, List, Mapping, Optional, Set, Tuple

from adapters.contract import Status
from companion.boards.cards import Card, Resolution
from companion.core.clock import WallClock, iso_utc
from companion.core.errors import BadRequest, CardReadError
from companion.core.hub import Hub, Subscription
from companion.core.logs import debug_event
from companion.sessions.association import Association, InvalidAssociation
from companion.sessions.book import Book
from companion.sessions.chores import Chores
from companion.sessions.facts import ledger_facts
from companion.sessions.linkwatch import LinkWatch
from companion.sessions.pending import Link, PendingLinks
from companion.sessions.reconcile import Finder, Registry, look_at_boards
from companion.sessions.report import Event, on_card, on_path, requested_path
from companion.sessions.telling import Labels, NoLabels, Presented, Telling

# How often files without a uuid are looked at (one stat each) and an unwilling disk is tried again.
POLL_S = 1.0

# A card on its way from one board to another may be missed by one scan. Before anything is
# dropped, the boards are looked at again after this pause.
SECOND_LOOK_S = 0.05


class Ledger:
    """The live associations, their log, and the links that wait for a uuid.

    Args:
        data_path: the contract's log.
        pending_path: the log of links to files without a uuid.
        finder: says whose card a path is.
        registry: says which boards there are.
        hub: gets ``association`` and ``snapshot`` frames; a topic is a board's uuid.
        now: wall clock, Unix seconds.
        poll_s: pause between two looks at files without a uuid, in seconds.
        second_look_s: pause before the look that confirms that a card is gone, in seconds.
        labels: where sessions run; part of what is told, never of what is kept.
    """

    def __init__(
        self,
        data_path: Path,
        pending_path: Path,
        finder: Finder,
        registry: Registry,
        hub: Hub,
        now: WallClock = time.time,
        poll_s: float = POLL_S,
        second_look_s: float = SECOND_LOOK_S,
        labels: Optional[Labels] = None,
    ) -> None:
        self._finder = finder
        self._registry = registry
        self._hub = hub
        self._now = now
        self._second_look_s = second_look_s
        self._reconciling = threading.Lock()  # One look at the boards at a time.
        # Serialises every change and guards all that follows. Re-entrant, because the hub asks
        # for a snapshot while we hold it.
        self._lock = threading.RLock()
        self._book = Book(data_path)
        self._labels: Labels = labels if labels is not None else NoLabels()
        self._telling = Telling(self._book, hub, self._labels)
        self._fresh: Set[str] = set()  # Card uuids seen alive since the present look began.
        self._pending = PendingLinks(pending_path)
        self._board_problems: Tuple[str, ...] = ()  # Of the last look.
        self._unreadable_cards = 0
        self._watch = LinkWatch(
            finder, registry, now, self._pending_paths, self._adopt, self._follow, self._give_up
        )
        self._chores = Chores(self._do_chores, poll_s)

    # -- life

    def load(self) -> None:
        """Take up both logs. Never raises: what cannot be read is told by :meth:`facts`."""
        with self._lock:
            self._book.load()
            self._pending.load()
            if len(self._pending):
                self._chores.wake()

    def close(self) -> None:
        """Stop the background work, save what is unsaved, let go of the files."""
        self._chores.close()
        with self._lock:
            self._book.journal.close()
            self._pending.close()

    # -- recording

    def ingest(self, body: object) -> Optional[Association]:
        """Record what a client reports: the stored record, or None for an unknown card.

        A report that says nothing new changes nothing and gives the older record.

        Raises:
            InvalidAssociation: the card is known, but a field breaks the contract.
            CardReadError: the card's file is there but cannot be read.
        """
        if body is None:
            raise InvalidAssociation("not an object")
        path = requested_path(body)
        if path is None or not isinstance(body, AnyMapping):
            return None
        try:
            resolution = self._resolve(path)
        except CardReadError:
            self._follow_session(body, path)
            raise
        if resolution.card is not None:
            return self._record(lambda card, updated_at: on_card(body, card, updated_at), resolution.card)
        if resolution.without_uuid is not None:
            self._remember_link(body, resolution.without_uuid)
        self._follow_session(body, path)
        debug_event("association ignored", lambda: {"reason": "unknown_card", "path": path})
        return None

    def ingest_event(
        self,
        harness: str,
        session_id: str,
        status: Status,
        card_paths: Iterable[str],
        session_file: Optional[str],
    ) -> None:
        """Record a session's status on the cards of this event, then on all that it has already.

        Paths that are no card are skipped. A card whose file cannot be read does not keep the
        others from being recorded; the first such CardReadError is raised at the end.
        """
        event = Event(harness, session_id, status, session_file)
        failures: List[CardReadError] = []
        done: Set[str] = set()
        for path in dict.fromkeys(card_paths):
            done.update(self._record_at(path, event, failures))
        with self._lock:
            held = self._book.held.of_session(harness, session_id)
            links = self._pending.of_session(harness, session_id)
        for association in held:
            if association.key[0] not in done:
                self._record_again(association, event, failures)
        for link in links:
            if link.card_path not in done:
                self._record_at(link.card_path, event, failures)
        if failures:
            raise failures[0]

    # -- asking

    def associations(self, board_uuid: str = "", card_uuid: str = "") -> List[Presented]:
        """What is held, in order of first appearance; each filter counts when it is not empty."""
        with self._lock:
            return self._telling.select(board_uuid, card_uuid)

    def sessions(self) -> List[Association]:
        """The newest record of every session, on whatever card."""
        newest: Dict[Tuple[str, str], Association] = {}
        with self._lock:
            for each in self._book.held.all():
                known = newest.get(each.key[1:])
                if known is None or each.updated_at > known.updated_at:
                    newest[each.key[1:]] = each
        return list(newest.values())

    def statuses(self, harness: str, session_id: str) -> FrozenSet[Status]:
        """What a session shows now, on its cards and on files that may become some."""
        with self._lock:
            held = self._book.held.of_session(harness, session_id)
            links = self._pending.of_session(harness, session_id)
            return frozenset(each.status for each in (*held, *links))

    def links(self) -> List[Link]:
        """Sessions at work on files that have no uuid yet."""
        with self._lock:
            return self._pending.links()

    def facts(self) -> Dict[str, object]:
        """For the health report; see :func:`companion.sessions.facts.ledger_facts`."""
        with self._lock:
            facts = ledger_facts(self._book, self._pending, self._board_problems)
        facts["counts"].update(unreadableCards=self._unreadable_cards, listeners=self._hub.listeners())
        return dict(facts)

    # -- forgetting

    def forget(self, card_uuid: str, harness: str, session_id: str) -> int:
        """Drop events from memory and log: of a card, of a session, or of a session on a card.

        Returns how many events the log held of them. Every open stream gets a fresh snapshot.

        Raises:
            BadRequest: neither a card nor a whole session is named.
            StorageError: the log cannot be rewritten; nothing has changed then.
        """
        if not (card_uuid or (harness and session_id)) or bool(harness) != bool(session_id):
            raise BadRequest("cardUuid or harness and sessionId are required")

        def doomed(event: Association) -> bool:
            return (not card_uuid or event.card_uuid == card_uuid) and (
                not session_id or (event.harness, event.session_id) == (harness, session_id)
            )

        with self._lock:
            removed = self._book.forget(doomed, [text for text in (card_uuid, session_id) if text])
            if session_id and not card_uuid:
                self._pending.drop_session(harness, session_id)
            self._telling.publish_snapshots()
            return removed

    # -- listening

    def subscribe(
        self, board_uuid: str, last_event_id: Optional[str], on_overflow: Callable[[], None]
    ) -> Subscription:
        """Reconcile, look where sessions run, give every open stream a fresh snapshot, open one more.

        The subscription holds its own snapshot already. ``on_overflow`` is called, from a
        publisher's thread, when its reader is too slow; it must not wait.
        """
        self.reconcile()
        with self._lock:
            sessions = self._telling.sessions()
        self._labels.refresh(sessions)
        with self._lock:
            self._telling.publish_snapshots()
            return self._hub.subscribe(
                board_uuid, lambda: self._telling.snapshot(board_uuid), last_event_id, on_overflow
            )

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription. May be called twice."""
        self._hub.unsubscribe(subscription)

    def relabelled(self, sessions: AbstractSet[str]) -> None:
        """Where these sessions run is known anew: tell who listens."""
        with self._lock:
            self._telling.publish_relabelled(sessions)

    def reconcile(self) -> None:
        """Bring all associations to where their cards are now; drop those whose card is gone.

        Dropped is only what is surely gone: every registered board could be read, twice. The log
        is rewritten only when something changed. What is recorded meanwhile is left alone.
        """
        self._watch.look()
        with self._reconciling:
            with self._lock:
                self._book.catch_up()
                self._fresh = set()
                places = self._book.places()
            view = look_at_boards(self._finder, self._registry, places)
            with self._lock:
                absent = self._book.absent(view, self._fresh)
            if absent:
                time.sleep(self._second_look_s)
                view = look_at_boards(self._finder, self._registry, places)
            with self._lock:
                self._board_problems = view.problems
                self._book.apply(view, absent, self._fresh)

    # -- recording, in detail

    def _resolve(self, path: str) -> Resolution:
        try:
            return self._finder.resolve(path)
        except CardReadError:
            self._unreadable_cards += 1  # A number for people; a lost count would not matter.
            raise

    def _record_at(self, path: str, event: Event, failures: List[CardReadError]) -> List[str]:
        """Record an event at a path. Returns what is thereby done: a card's uuid, or a path."""
        try:
            resolution = self._resolve(path)
        except CardReadError as exc:
            failures.append(exc)
            return [path]
        try:
            if resolution.card is not None:
                self._record(event.on_card, resolution.card)
                return [resolution.card.uuid, resolution.card.path]
            if resolution.without_uuid is not None:
                self._remember_link(event.to_json(), resolution.without_uuid)
                return [resolution.without_uuid]
        except InvalidAssociation as exc:
            reason = f"invalid {exc}"
            debug_event("hook ignored", lambda: {"reason": reason})
        return []

    def _follow_session(self, body: Mapping[str, object], path: str) -> None:
        """A client names its cards by the places where they were when it met them. One that was renamed,
        moved or removed since is still its session's, and has the status that is said of the old place.
        """
        try:
            said = on_path(body, path, iso_utc(self._now()))
        except InvalidAssociation:
            return
        event = Event(said.harness, said.session_id, said.status, said.session_file)
        with self._lock:
            held = self._book.held.of_session(said.harness, said.session_id)
        for association in held:
            if association.status is not said.status:
                self._record_again(association, event, [])

    def _record_again(self, held: Association, event: Event, failures: List[CardReadError]) -> None:
        """Record an event on a card that its session has already.

        When the card is not at its old place (moved, its board away, unreadable), the status is
        kept all the same, on the old place: it is the session's, and the next reconcile finds the
        card. Another card that lives at the old path today is none of its business.
        """
        card: Optional[Card] = None
        try:
            card = self._resolve(held.card_path).card
        except CardReadError as exc:
            failures.append(exc)
        if card is not None and held.card_uuid in ("", card.uuid):
            self._record(event.on_card, card)
            return
        with self._lock:
            now_held = self._book.held.get(held.key)
            if now_held is not None:  # Otherwise it was forgotten meanwhile.
                self._settle(
                    replace(
                        now_held,
                        status=event.status,
                        updated_at=iso_utc(self._now()),
                        session_file=event.session_file,
                    )
                )

    def _record(self, make: Callable[[Card, str], Association], card: Card) -> Association:
        """The contract's steps 3 to 6 for a card that was found; ``make`` gets it and the time."""
        with self._lock:
            record = make(card, iso_utc(self._now()))
            if len(self._pending):
                self._adopt(card)
            self._fresh.add(card.uuid)
            key = record.key
            before = self._book.held.get(key)
            found_again = key in self._book.missing
            self._book.missing.discard(key)
            stored = self._settle(record)
            if found_again and stored is before:
                self._telling.publish(stored)  # Nothing new but that its card is there again.
            return stored

    def _settle(self, record: Association) -> Association:
        """Keep a record and tell of it, unless it says nothing new; what stands in memory then."""
        old = self._book.held.get(record.key)
        stored = self._book.settle(record)
        if stored is old:
            debug_event("association unchanged", lambda: {"key": record.key})
            return stored
        if old is not None and old.board_uuid != stored.board_uuid:
            self._telling.publish_snapshot(old.board_uuid)  # Its listeners would show the card for ever.
        self._telling.publish(stored)
        self._wake_if_needed()
        debug_event("association recorded", stored.to_json)
        return stored

    def _wake_if_needed(self) -> None:
        if self._book.journal.unsaved or self._book.overgrown or len(self._pending):
            self._chores.wake()

    # -- links to files without a uuid

    def _remember_link(self, body: Mapping[str, object], path: str) -> None:
        with self._lock:
            try:
                link = on_path(body, path, iso_utc(self._now()))
            except InvalidAssociation:
                return  # Unknown card, whatever the fields hold: the caller is told no more.
            self._pending.remember(link)
            self._chores.wake()

    def _adopt(self, card: Card) -> None:
        """Turn the links to a file that has become a card into associations with their history.

        Events no younger than what is held already are left out: they were taken before a crash,
        or the session came to the card by another way.
        """
        with self._lock:
            histories = self._pending.of_path(card.path)
            for history in histories:
                self._adopt_history(
                    [each.moved_to(card.board_uuid, card.uuid, card.path) for each in history]
                )
            if histories:
                self._fresh.add(card.uuid)
                self._pending.drop_path(card.path)

    def _adopt_history(self, events: List[Association]) -> None:
        held = self._book.held.get(events[0].key)
        newer = [each for each in events if held is None or each.updated_at > held.updated_at]
        for event in newer:
            if held is not None and held.session_file and not event.session_file:
                event = replace(event, session_file=held.session_file)
            self._book.store(event)
            held = event
        if newer and held is not None:
            self._book.missing.discard(held.key)
            self._telling.publish(held)

    def _follow(self, old: str, new: str) -> None:
        with self._lock:
            self._pending.move(old, new)

    def _give_up(self, path: str) -> None:
        with self._lock:
            self._pending.drop_path(path)

    def _pending_paths(self) -> List[str]:
        with self._lock:
            return self._pending.paths()

    def _do_chores(self) -> bool:
        self._watch.look()
        with self._lock:
            self._pending.flush()
            self._book.tend()
            overgrown = self._book.overgrown
            shorten = self._pending.shortening()
        # Both without our lock: nobody who reports waits for them.
        if overgrown:
            self._book.journal.compact()
        if shorten is not None:
            shorten()
        with self._lock:
            waiting = self._pending.unsaved or self._pending.overgrown or self._book.journal.unsaved
            return bool(len(self._pending) or waiting)
