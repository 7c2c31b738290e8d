"""Reads what a foreign program prints as JSON; whatever is not as expected is a failed lookup."""

from typing import Dict

from companion.core import foreign_json
from companion.core.errors import ProgramFailed

Fields = Dict[str, object]
"""What is known of a link, by the names that pages know."""

# GitHub admits titles of 256 characters, Jira 255; names of states are shorter.
_TEXT_CHARACTERS = 1_000
# What a page cannot hold; infinity too, and "not a number" is not less either.
_TOO_LARGE = 2**53


def json_object(program: str, text: str) -> Fields:
    """The object that was printed. ProgramFailed when it is something else."""
    try:
        value = foreign_json.loads(text)
    except ValueError as exc:
        raise ProgramFailed(f"{program}'s answer is not JSON") from exc
    if not isinstance(value, dict):
        raise ProgramFailed(f"{program}'s answer is no JSON object")
    return value


def text_of(program: str, value: object, name: str) -> str:
    """A text that is neither empty nor endless. ProgramFailed, naming the field."""
    if isinstance(value, str) and 0 < len(value) <= _TEXT_CHARACTERS:
        return value
    raise ProgramFailed(f"{program}'s answer has no usable {name}")


def number_of(program: str, value: object, name: str) -> float:
    """A number; an int stays one. ProgramFailed, naming the field."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _TOO_LARGE:
        return value
    raise ProgramFailed(f"{program}'s answer has no usable {name}")
