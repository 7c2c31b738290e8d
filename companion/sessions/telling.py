"""How associations look to clients, and who gets them when."""

from typing import AbstractSet, Dict, List, Tuple

from companion.core.hub import Hub
from companion.sessions.association import Association, Key
from companion.sessions.book import Book

Presented = Dict[str, object]
"""An association as clients get it: the stored fields, and ``cardMissing`` when that is true."""


class Telling:
    """Reads the book, writes to the hub. Runs under the ledger's lock, and never waits.

    Args:
        book: what is told.
        hub: who listens; a topic is a board's uuid.
    """

    def __init__(self, book: Book, hub: Hub) -> None:
        self._book = book
        self._hub = hub
        # A browser with many boards and tabs asks for the same ones again and again.
        self._snapshots: Dict[str, bytes] = {}
        self._snapshots_of: Tuple[int, AbstractSet[Key]] = (0, frozenset())

    def present(self, association: Association) -> Presented:
        """One association as clients get it."""
        shown: Presented = dict(association.to_json())
        if association.key in self._book.missing:
            shown["cardMissing"] = True
        return shown

    def select(self, board_uuid: str, card_uuid: str) -> List[Presented]:
        """Associations in order of first appearance; a filter counts when it is not empty."""
        found = self._book.held.of_card(card_uuid) if card_uuid else self._book.held.all()
        return [
            self.present(each)
            for each in found
            if (not board_uuid or each.board_uuid == board_uuid)
            # The index holds legacy records too, by their path: a path is no card uuid.
            and (not card_uuid or each.card_uuid == card_uuid)
        ]

    def snapshot(self, board_uuid: str) -> bytes:
        """All associations of a board as one line of JSON, made once for each state of the book."""
        state = (self._book.held.changes, frozenset(self._book.missing))
        if state != self._snapshots_of:
            self._snapshots = {}
            self._snapshots_of = state
        made = self._snapshots.get(board_uuid)
        if made is None:
            shown = [self._encoded(each) for each in self._book.held.all() if each.board_uuid == board_uuid]
            made = self._snapshots[board_uuid] = b"[%b]" % b",".join(shown)
        return made

    def publish(self, association: Association) -> None:
        """Tell the listeners of its board of one change."""
        self._hub.publish(association.board_uuid, "association", self._encoded(association))

    def publish_snapshot(self, board_uuid: str) -> None:
        """Give the listeners of one board, if there are any, the whole state."""
        if board_uuid in self._hub.topics():
            self._hub.publish(board_uuid, "snapshot", self.snapshot(board_uuid))

    def publish_snapshots(self) -> None:
        """Give every open stream the whole state of its board."""
        for topic in self._hub.topics():
            self._hub.publish(topic, "snapshot", self.snapshot(topic))

    def _encoded(self, association: Association) -> bytes:
        """:meth:`present` as JSON."""
        if not self._book.missing or association.key not in self._book.missing:
            return association.encoded
        return association.encoded[:-1] + b',"cardMissing":true}'
