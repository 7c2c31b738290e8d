"""Associations in memory, in order of first appearance, found by card and by session."""

from typing import Callable, Dict, Hashable, Iterable, List, Optional, Tuple, TypeVar

from companion.sessions.association import Association, Key

Entry = TypeVar("Entry", bound=Hashable)

Session = Tuple[str, str]
"""(harness, sessionId)."""


class Holdings:
    """The last record of every key. Not safe for threads: its owner's lock guards it."""

    def __init__(self) -> None:
        self._held: Dict[Key, Association] = {}
        # Both indexes hold keys in order of their first appearance; an empty entry is removed.
        self._by_card: Dict[str, Dict[Key, None]] = {}
        self._by_session: Dict[Session, Dict[Key, None]] = {}
        self.changes = 0
        """Grows with every change: what was made of the records at an equal number still holds."""

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: Key) -> bool:
        return key in self._held

    def get(self, key: Key) -> Optional[Association]:
        """The record of a key, or None."""
        return self._held.get(key)

    def put(self, association: Association) -> None:
        """Keep this record for its key; a known key keeps its position."""
        key = association.key
        if key not in self._held:
            self._by_card.setdefault(key[0], {})[key] = None
            self._by_session.setdefault(key[1:], {})[key] = None
        self._held[key] = association
        self.changes += 1

    def drop(self, key: Key) -> None:
        """Forget a key; one that is not held is no error."""
        if self._held.pop(key, None) is None:
            return
        self.changes += 1
        _discard(self._by_card, key[0], key)
        _discard(self._by_session, key[1:], key)

    def drop_where(self, doomed: Callable[[Association], bool]) -> None:
        """Forget every record for which ``doomed`` is true."""
        for association in [each for each in self._held.values() if doomed(each)]:
            self.drop(association.key)

    def fold(self, events: Iterable[Association]) -> None:
        """Forget everything, then keep the last event of every key."""
        self.changes += 1
        self._held.clear()
        self._by_card.clear()
        self._by_session.clear()
        for event in events:
            self.put(event)

    def all(self) -> List[Association]:
        """Every record, in order of first appearance of its key."""
        return list(self._held.values())

    def of_card(self, card: str) -> List[Association]:
        """Records of a card uuid (of a path, for records without a uuid), in order."""
        return [self._held[key] for key in self._by_card.get(card, ())]

    def of_session(self, harness: str, session_id: str) -> List[Association]:
        """Records of one session, in order."""
        return [self._held[key] for key in self._by_session.get((harness, session_id), ())]

    def cards(self) -> int:
        """How many different cards are held."""
        return len(self._by_card)

    def sessions(self) -> int:
        """How many different sessions are held."""
        return len(self._by_session)


def _discard(index: Dict[Entry, Dict[Key, None]], entry: Entry, key: Key) -> None:
    keys = index.get(entry, {})
    keys.pop(key, None)
    if not keys:
        index.pop(entry, None)
