"""How associations look to clients, and who gets them when."""

from json.encoder import encode_basestring
from typing import AbstractSet, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple

from companion.core.hub import Hub
from companion.sessions.association import Association, Key
from companion.sessions.book import Book
from companion.sessions.lines import text_bytes

Presented = Dict[str, object]
"""An association as clients get it: the stored fields; ``herdrWorkspace`` and ``herdrTab`` when
they are known; ``cardMissing`` when that is true."""

LabelTable = Mapping[str, Tuple[str, str]]
"""What the terminal calls a session, to its (workspace, tab)."""

# Of more than this on one board a snapshot tells in one frame.
MOST_RELABELLED = 16


class Labels(Protocol):
    """Where sessions run, as far as is known. Only :meth:`refresh` waits, and not for long."""

    def table(self) -> LabelTable:
        """What is known now; replaced when it changes, otherwise the same object."""

    def session_value(self, harness: str, session_id: str, session_file: Optional[str]) -> Optional[str]:
        """The key of a session in the table; None when it has none."""

    def recorded(self, session: Optional[str]) -> None:
        """Something of this session was told: it may have to be looked for."""

    def refresh(self, sessions: Sequence[str]) -> None:
        """A listener comes: look again, now, for all that runs. These are all the sessions held."""


class NoLabels:
    """Where nothing is known of terminals."""

    def table(self) -> LabelTable:
        """Nothing."""
        return {}

    def session_value(self, harness: str, session_id: str, session_file: Optional[str]) -> Optional[str]:
        """No session has a key."""
        return None

    def recorded(self, session: Optional[str]) -> None:
        """There is nothing to look for."""

    def refresh(self, sessions: Sequence[str]) -> None:
        """There is nothing to look for."""


class Telling:
    """Reads the book, writes to the hub. Runs under the ledger's lock, and never waits.

    Args:
        book: what is told.
        hub: who listens; a topic is a board's uuid.
        labels: where sessions run; told to look for those of which something is told.
    """

    def __init__(self, book: Book, hub: Hub, labels: Labels) -> None:
        self._book = book
        self._hub = hub
        self._labels = labels
        # A browser with many boards and tabs asks for the same ones again and again.
        self._snapshots: Dict[str, bytes] = {}
        self._snapshots_of: Tuple[int, AbstractSet[Key], LabelTable] = (0, frozenset(), {})

    def present(self, association: Association) -> Presented:
        """One association as clients get it."""
        shown: Presented = dict(association.to_json())
        label = self._label(association, self._labels.table())
        if label is not None:
            shown["herdrWorkspace"], shown["herdrTab"] = label
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
        """All associations of a board as one line of JSON, made once for each state of book and labels."""
        table = self._labels.table()
        state = (self._book.held.changes, frozenset(self._book.missing), table)
        if state != self._snapshots_of:
            self._snapshots = {}
            self._snapshots_of = state
        made = self._snapshots.get(board_uuid)
        if made is None:
            held = self._book.held.all()
            shown = [self._encoded(each, table) for each in held if each.board_uuid == board_uuid]
            made = self._snapshots[board_uuid] = b"[%b]" % b",".join(shown)
        return made

    def publish(self, association: Association) -> None:
        """Tell the listeners of its board of one change, and have its session looked for."""
        self._tell(association)
        self._labels.recorded(self._session(association))

    def publish_relabelled(self, sessions: AbstractSet[str]) -> None:
        """Tell listeners of the associations of these sessions: their labels came, changed or went."""
        topics = self._hub.topics()
        relabelled: Dict[str, List[Association]] = {topic: [] for topic in topics}
        for each in self._book.held.all() if topics else ():
            if each.board_uuid in relabelled and self._session(each) in sessions:
                relabelled[each.board_uuid].append(each)
        for topic, associations in relabelled.items():
            if len(associations) > MOST_RELABELLED:
                self.publish_snapshot(topic)
                continue
            for each in associations:
                self._tell(each)

    def publish_snapshot(self, board_uuid: str) -> None:
        """Give the listeners of one board, if there are any, the whole state."""
        if board_uuid in self._hub.topics():
            self._hub.publish(board_uuid, "snapshot", self.snapshot(board_uuid))

    def publish_snapshots(self) -> None:
        """Give every open stream the whole state of its board."""
        for topic in self._hub.topics():
            self._hub.publish(topic, "snapshot", self.snapshot(topic))

    def sessions(self) -> List[str]:
        """What the terminal would call the sessions held, oldest first; some may stand twice."""
        values = [self._session(each) for each in self._book.held.all()]
        return [each for each in values if each is not None]

    def _tell(self, association: Association) -> None:
        data = self._encoded(association, self._labels.table())
        self._hub.publish(association.board_uuid, "association", data)

    def _session(self, association: Association) -> Optional[str]:
        return self._labels.session_value(
            association.harness, association.session_id, association.session_file
        )

    def _label(self, association: Association, table: LabelTable) -> Optional[Tuple[str, str]]:
        session = self._session(association) if table else None
        return table.get(session) if session is not None else None

    def _encoded(self, association: Association, table: LabelTable) -> bytes:
        """:meth:`present` as JSON."""
        more = ""
        label = self._label(association, table)
        if label is not None:
            quote = encode_basestring
            more = f',"herdrWorkspace":{quote(label[0])},"herdrTab":{quote(label[1])}'
        if self._book.missing and association.key in self._book.missing:
            more += ',"cardMissing":true'
        return b"%b%b}" % (association.encoded[:-1], text_bytes(more)) if more else association.encoded
