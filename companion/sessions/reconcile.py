"""What a look at all boards says about the places where associations were last seen.

A *place* is board, card and path as an event has them. The decision is one pure function,
:func:`judge`; taking the look, which reads disks, is :func:`look_at_boards`.
"""

import enum
from dataclasses import dataclass, field
from typing import (
    AbstractSet,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Protocol,
    Tuple,
)

from companion.boards.cards import Card, Resolution, Scan
from companion.boards.registry import Board
from companion.core.errors import CardReadError
from companion.sessions.association import Association


class Place(NamedTuple):
    """Where an event says its card is."""

    board_uuid: str
    card_uuid: str
    """Empty in legacy events, which are told by their path."""
    card_path: str


class Finder(Protocol):
    """What is asked about cards; :class:`companion.boards.cards.CardFinder` is one."""

    def resolve(self, path: str) -> Resolution:
        """Whose card a path is. CardReadError for a file that cannot be read."""

    def scan(self) -> Scan:
        """Every card of every registered board. Never raises."""


class Registry(Protocol):
    """What is asked about boards; :class:`companion.boards.registry.BoardRegistry` is one."""

    def boards(self) -> List[Board]:
        """Registered boards in order."""

    def owner_of(self, path: str) -> Optional[Tuple[Board, str]]:
        """The board that owns a path, and the path normalised."""


class Fate(enum.Enum):
    """What becomes of the events of a place."""

    STAYS = "stays"
    MOVES = "moves"
    MISSING = "missing"
    """Kept as it is, and shown as not found."""
    GONE = "gone"


@dataclass(frozen=True)
class View:
    """The boards at one moment."""

    cards: Mapping[str, Card]
    """By uuid."""
    complete: bool
    """Every registered board and every card could be read."""
    boards: FrozenSet[str]
    """Uuids of the boards that were registered for the whole look."""
    without_uuid: FrozenSet[str]
    """Paths of Markdown files in which no uuid could be found; perhaps they are being written."""
    problems: Tuple[str, ...] = ()
    """What could not be read, for people."""
    by_path: Mapping[str, Card] = field(default_factory=dict)
    """Cards at the paths of places that the scan does not settle."""
    unclear_paths: FrozenSet[str] = frozenset()
    """Paths of such places about which nothing can be said: unreadable, or on nobody's board."""


def judge(place: Place, view: View, fresh: AbstractSet[str]) -> Fate:
    """The fate of a place. ``fresh``: card uuids that were seen alive since the look began, of
    which the view may be too old to speak."""
    if place.card_uuid and place.card_uuid in fresh:
        return Fate.STAYS
    card = card_of(place, view)
    if card is not None:
        same = (place.card_path, place.card_uuid, place.board_uuid) == (card.path, card.uuid, card.board_uuid)
        return Fate.STAYS if same else Fate.MOVES
    return Fate.GONE if _surely_gone(place, view) else Fate.MISSING


def card_of(place: Place, view: View) -> Optional[Card]:
    """The card that a place means now: by uuid; by path where an event has no uuid.

    For a known card its old path counts only if it lives there still, unlisted (a symlink, say):
    another card that is there today has nothing to do with the session.
    """
    if place.card_uuid in view.cards:
        return view.cards[place.card_uuid]
    card = view.by_path.get(place.card_path)
    return card if card is not None and place.card_uuid in ("", card.uuid) else None


def place_of(event: Association) -> Place:
    """Where an event says its card is."""
    return Place(event.board_uuid, event.card_uuid, event.card_path)


def look_at_boards(finder: Finder, registry: Registry, places: Iterable[Place]) -> View:
    """Scan every board; resolve the paths of ``places`` whose card the scan did not list.

    Reads disks; must not be called with a lock held.
    """
    before = frozenset(board.uuid for board in registry.boards())
    scan = finder.scan()
    by_path: Dict[str, Card] = {}
    unclear = set()
    for path in {place.card_path for place in places if place.card_uuid not in scan.cards}:
        try:
            card = finder.resolve(path).card
        except CardReadError:
            unclear.add(path)
            continue
        if card is not None:
            by_path[path] = card
        elif registry.owner_of(path) is None:
            unclear.add(path)
    return View(
        cards=scan.cards,
        complete=scan.complete,
        boards=before & frozenset(board.uuid for board in registry.boards()),
        without_uuid=frozenset(path for path, _ in scan.without_uuid),
        problems=tuple(f"{path}: {reason}" for path, reason in scan.problems),
        by_path=by_path,
        unclear_paths=frozenset(unclear),
    )


def _surely_gone(place: Place, view: View) -> bool:
    if not view.complete or place.card_path in view.without_uuid:
        return False
    if place.board_uuid:
        return place.board_uuid in view.boards
    return place.card_path not in view.unclear_paths
