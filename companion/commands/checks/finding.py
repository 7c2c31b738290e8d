"""What ``doctor`` finds: one line each, and what to do about it."""

from dataclasses import dataclass
from enum import Enum
from typing import Dict, Iterable


class State(Enum):
    """How one thing stands. Unknown is an answer of its own, never shown as good."""

    OK = "ok"
    WRONG = "wrong"
    UNKNOWN = "unknown"
    """Not checked, not decidable, or worth a look without being wrong."""


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    section: str
    """Heading under which it stands, e.g. ``Boards``."""
    state: State
    text: str
    """One line for people; no secrets, no content of cards or prompts."""
    hint: str = ""
    """What to do about it; empty when there is nothing to do."""

    def to_json(self) -> Dict[str, str]:
        """``section``, ``state`` (ok, wrong, unknown), ``text``, ``hint``."""
        return {
            "section": self.section,
            "state": self.state.value,
            "text": self.text,
            "hint": self.hint,
        }


def ok(section: str, text: str) -> Finding:
    """A thing that is as it should be."""
    return Finding(section, State.OK, text)


def wrong(section: str, text: str, hint: str = "") -> Finding:
    """A thing that somebody has to put right."""
    return Finding(section, State.WRONG, text, hint)


def unknown(section: str, text: str, hint: str = "") -> Finding:
    """A thing that could not be checked, or that is only worth a look."""
    return Finding(section, State.UNKNOWN, text, hint)


def all_well(findings: Iterable[Finding]) -> bool:
    """Whether nothing is wrong; what is unknown does not count as wrong."""
    return all(each.state is not State.WRONG for each in findings)
