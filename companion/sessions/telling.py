"""How associations look to clients, and who gets them when."""

from typing import Dict, List

from companion.core.hub import Hub
from companion.sessions.association import Association
from companion.sessions.book import Book
from companion.sessions.lines import json_bytes

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
        """All associations of a board as one line of JSON."""
        return json_bytes(self.select(board_uuid, ""))

    def publish(self, association: Association) -> None:
        """Tell the listeners of its board of one change."""
        self._hub.publish(association.board_uuid, "association", json_bytes(self.present(association)))

    def publish_snapshot(self, board_uuid: str) -> None:
        """Give the listeners of one board, if there are any, the whole state."""
        if board_uuid in self._hub.topics():
            self._hub.publish(board_uuid, "snapshot", self.snapshot(board_uuid))

    def publish_snapshots(self) -> None:
        """Give every open stream the whole state of its board."""
        for topic in self._hub.topics():
            self._hub.publish(topic, "snapshot", self.snapshot(topic))
