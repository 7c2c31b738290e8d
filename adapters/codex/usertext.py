"""What of a text in the user's name the user has written: the rest was put in by a program."""

_TAGS = ("<", "# AGENTS.md instructions")
_EDITOR = "# Context from my IDE setup:"
_REQUEST = "## My request for Codex:"


def typed(text: object) -> str:
    """The part behind what an editor tells of its open files; empty for what is no text."""
    if not isinstance(text, str):
        return ""
    if text.lstrip().startswith(_EDITOR):
        return text.partition(_REQUEST)[2]
    return text


def is_injected(text: str) -> bool:
    """Whether a message of the model's input that stands under the user's role is Codex's own."""
    return text.lstrip().startswith(_TAGS)
