"""A small world for the sessions floor: boards in memory or on disk, a clock, a ledger."""

import json
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence, Set, Tuple

from adapters.contract import Status
from companion.boards.cards import Card, CardFinder, Resolution, Scan
from companion.boards.registry import Board, BoardRegistry
from companion.core.config import ConfigFile
from companion.core.errors import CardReadError
from companion.core.hub import Hub, Subscription
from companion.sessions.association import Association
from companion.sessions.journal import association_journal
from companion.sessions.ledger import Ledger
from companion.sessions.reconcile import Finder, Registry
from companion.sessions.telling import LabelTable

# Long enough that no background work disturbs a test that does not ask for it.
NEVER_S = 3600.0


class Clock:
    """A wall clock that moves one millisecond at each look."""

    def __init__(self) -> None:
        self.now_s = 1_770_000_000.0

    def __call__(self) -> float:
        self.now_s += 0.001
        return self.now_s


class FakeBoards:
    """Boards and cards in memory, both as finder and as registry."""

    def __init__(self, *uuids: str) -> None:
        self.registered: Dict[str, str] = {uuid: f"/{uuid}" for uuid in uuids}
        self.cards: Dict[str, Optional[str]] = {}
        """Path to uuid; None for a file without one."""
        self.unreadable: Set[str] = set()
        """Paths of cards, or of boards."""
        self.unlisted: Set[str] = set()
        """Cards that resolve but are not scanned, as symlinks are."""
        self.scans = 0
        self.during_scan: Callable[[], None] = lambda: None

    def boards(self) -> List[Board]:
        return [Board(uuid, path, "") for uuid, path in self.registered.items()]

    def owner_of(self, path: str) -> Optional[Tuple[Board, str]]:
        folder = path.rpartition("/")[0]
        for board in self.boards():
            if board.path == folder:
                return board, path
        return None

    def resolve(self, path: str) -> Resolution:
        owned = self.owner_of(path)
        if owned is None or path not in self.cards or owned[0].path in self.unreadable:
            return Resolution(None)
        if path in self.unreadable:
            raise CardReadError(f"Permission denied: {path}")
        uuid = self.cards[path]
        return Resolution(Card(uuid, path, owned[0].uuid)) if uuid else Resolution(None, path)

    def scan(self) -> Scan:
        self.scans += 1
        cards: Dict[str, Card] = {}
        problems = [(path, "not there") for path in self.registered.values() if path in self.unreadable]
        without = []
        for path in [each for each in self.cards if each not in self.unlisted]:
            try:
                found = self.resolve(path)
            except CardReadError as exc:
                problems.append((path, str(exc)))
                continue
            if found.card is not None:
                cards[found.card.uuid] = found.card
            elif found.without_uuid is not None:
                without.append((path, "no uuid"))
        self.during_scan()
        return Scan(cards, not problems, tuple(problems), tuple(without))


def make_ledger(
    folder: Path, boards: FakeBoards, hub: Optional[Hub] = None, now: Optional[Clock] = None
) -> Ledger:
    """A loaded ledger over boards in memory; its background work never runs."""
    return load_ledger(folder, boards, boards, hub or Hub("life"), now or Clock())


def load_ledger(
    folder: Path, finder: Finder, registry: Registry, hub: Hub, now: Clock, poll_s: float = NEVER_S
) -> Ledger:
    """A loaded ledger over any finder."""
    ledger = Ledger(log_of(folder), pending_of(folder), finder, registry, hub, now, poll_s, 0.0)
    ledger.load()
    return ledger


class FakeLabels:
    """A terminal that knows sessions by their ids; what is known stands in ``known``."""

    def __init__(self) -> None:
        self.known: LabelTable = {}
        self.looked_for: List[Optional[str]] = []
        self.refreshed: List[List[str]] = []
        self.during_refresh: Callable[[], None] = lambda: None

    def table(self) -> LabelTable:
        return self.known

    def session_value(self, harness: str, session_id: str, session_file: Optional[str]) -> Optional[str]:
        return session_id if harness != "nameless" else None

    def recorded(self, session: Optional[str]) -> None:
        self.looked_for.append(session)

    def refresh(self, sessions: Sequence[str]) -> None:
        self.refreshed.append(list(sessions))
        self.during_refresh()


class RealBoards:
    """Boards on disk below a folder, with the real finder."""

    def __init__(self, folder: Path, *uuids: str) -> None:
        self.folder = folder
        self.config = ConfigFile(folder / "companion.json")
        self.registry = BoardRegistry(self.config, Clock(), str(folder))
        self.finder = CardFinder(self.registry)
        for uuid in uuids:
            (folder / uuid).mkdir()
            self.registry.register(uuid, str(folder / uuid))

    def card(self, name: str, uuid: Optional[str]) -> str:
        """Write a card (``board/name.md``), with or without a uuid; its path."""
        path = self.folder / name
        head = f"---\nuuid: {uuid}\n---\n" if uuid else ""
        path.write_text(f"{head}Text\n")
        return str(path)


def log_of(folder: Path) -> Path:
    """Where the tests keep the log of associations."""
    return folder / "state" / "companion.jsonl"


def pending_of(folder: Path) -> Path:
    """Where the tests keep the log of links."""
    return folder / "state" / "companion-pending.jsonl"


def logged(folder: Path) -> List[Association]:
    """Every event of the log, read anew."""
    return association_journal(log_of(folder)).read()


def body(path: str, session: str = "s1", status: str = "running", **more: object) -> Dict[str, object]:
    """What the Pi client posts."""
    return {"markdownPath": path, "harness": "pi", "sessionId": session, "status": status, **more}


def short(records: List[Dict[str, object]]) -> List[Tuple[object, object, object]]:
    """(card path, session, status) of presented associations."""
    return [(each["cardPath"], each["sessionId"], each["status"]) for each in records]


def frames(subscription: Subscription) -> List[Tuple[str, object]]:
    """(name, decoded data) of all frames that wait."""
    return [(frame.name, json.loads(frame.data)) for frame in subscription.take(0)]


def event(
    ledger: Ledger, status: Status, *paths: str, session: str = "s1", file: Optional[str] = None
) -> None:
    """One hook event of Claude Code."""
    ledger.ingest_event("claude", session, status, paths, file)
