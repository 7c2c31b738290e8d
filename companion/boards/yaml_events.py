"""What the YAML reader has found so far: a list of events, from which values are built later.

Events and values are two steps because the reader sometimes reads on trial: what is taken back
must not leave an anchor or a duplicate key behind.
"""

from typing import Dict, List, NamedTuple, Optional, Tuple

from companion.boards.yaml_cursor import Cursor, Place

DOCUMENT, SEQUENCE, MAPPING, SCALAR, ALIAS, CLOSE = range(6)

Trial = Tuple[Place, int]
"""Where the text and the events stood."""


class Event(NamedTuple):
    """One step of the structure; ``CLOSE`` ends the collection or document opened last."""

    kind: int
    line: int
    """Line of the text, from 0."""
    text: str = ""
    """The scalar's text, or the alias's name."""
    plain: bool = False
    """Whether the text may stand for something else than a string."""
    anchor: str = ""
    tag: str = ""
    """As written; empty when there is none."""
    handles: Optional[Dict[str, str]] = None
    """Of a document: its ``%TAG`` handles and what they stand for."""


class Properties:
    """Anchor and tag in front of a node; false when there is neither."""

    def __init__(self) -> None:
        self.anchor = ""
        self.tag = ""

    def __bool__(self) -> bool:
        return bool(self.anchor or self.tag)


class Draft:
    """The text being read and the events read from it."""

    def __init__(self, text: str) -> None:
        self.at = Cursor(text)
        self.events: List[Event] = []
        self.depth = 0
        """How many nodes are being read, one inside the other."""
        self.handles: Dict[str, str] = {}
        """``%TAG`` handles of the present document."""

    def add(self, kind: int, text: str = "") -> None:
        """A document, alias or close event."""
        handles = self.handles if kind == DOCUMENT else None
        self.events.append(Event(kind, self.at.line, text, handles=handles))

    def add_scalar(self, text: str, plain: bool, props: Optional[Properties] = None) -> None:
        """A scalar with what stood in front of it."""
        anchor, tag = (props.anchor, props.tag) if props else ("", "")
        self.events.append(Event(SCALAR, self.at.line, text, plain, anchor, tag))

    def add_empty(self, props: Optional[Properties] = None) -> None:
        """A node of which nothing is written: null, unless a tag says otherwise."""
        self.add_scalar("", True, props)

    def open(self, kind: int, props: Optional[Properties] = None, before: Optional[Trial] = None) -> None:
        """Begin a collection here, or in front of all that was read since ``before``."""
        anchor, tag = (props.anchor, props.tag) if props else ("", "")
        line = before[0].line if before else self.at.line
        index = before[1] if before else len(self.events)
        self.events.insert(index, Event(kind, line, anchor=anchor, tag=tag))

    def trial(self) -> Trial:
        """The present state, for :meth:`take_back`."""
        return self.at.place(), len(self.events)

    def take_back(self, trial: Trial) -> None:
        """Forget all that was read since ``trial``."""
        self.at.back_to(trial[0])
        del self.events[trial[1] :]

    def is_mapping(self, trial: Trial) -> bool:
        """Whether what was read since ``trial`` is a mapping."""
        return len(self.events) > trial[1] and self.events[trial[1]].kind == MAPPING
