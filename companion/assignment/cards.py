"""What an issue or pull request looks like as a card. Pure; writing it is another's work."""

import unicodedata

from companion.assignment.search import Assignment

DESCRIPTION_CHARACTERS = 2_000
# Letters are seldom made of more than a handful of characters; a text may hold thousands on purpose.
_MOST_JOINED = 30
_JOINER = "\u200d"


def title_of(assignment: Assignment) -> str:
    """The card's title; tells why it is on the board."""
    kind = "Review Requested" if assignment.review else "Issue Assigned"
    return f"{kind}: {assignment.title}"


def body_of(assignment: Assignment) -> str:
    """The card's text: the link, what is known of it, the beginning of its description."""
    facts = [
        ("Repository", assignment.repository),
        ("Number", f"#{assignment.number}"),
        ("Author", assignment.author),
        ("State", assignment.state),
        ("Updated", assignment.updated),
        ("Labels", ", ".join(assignment.labels) or "none"),
    ]
    rows = "\n".join(f"- {name}: {value}" for name, value in facts)
    return "\n\n".join(part for part in (assignment.url, rows, shortened(assignment.description)) if part)


def shortened(text: str, most: int = DESCRIPTION_CHARACTERS) -> str:
    """At most ``most`` characters and an ellipsis; what looks like one letter is not cut in two."""
    text = text.strip()
    if len(text) <= most:
        return text
    end = most
    while most - end < _MOST_JOINED and _joined(text[end - 1], text[end]):
        end -= 1
    return text[:end].rstrip() + "…"


def _joined(left: str, right: str) -> bool:
    """Whether two neighbours belong to one letter or picture."""
    return (
        unicodedata.category(right) in ("Mn", "Mc", "Me")
        or _JOINER in (left, right)
        or "\U0001f3fb" <= right <= "\U0001f3ff"  # colours of skin
        or ("\U0001f1e6" <= left <= "\U0001f1ff" and "\U0001f1e6" <= right <= "\U0001f1ff")  # flags
        or left + right == "\r\n"
    )
