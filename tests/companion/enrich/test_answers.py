"""What foreign programs print."""

from typing import Tuple

import pytest

from companion.core.errors import ProgramFailed
from companion.enrich.answers import json_object, number_of, text_of


@pytest.mark.parametrize(
    "text", ["", "oops", "{", "{}{}", "[1]", "null", "7", '"{}"', "[" * 100_000, "\ufffd"]
)
def test_what_is_no_object_is_a_failure(text: str) -> None:
    """Whatever it is."""
    with pytest.raises(ProgramFailed, match=r"^gh's answer is no"):
        json_object("gh", text)


def test_a_number_of_very_many_digits_is_no_fault_of_ours() -> None:
    """No page can hold it; where nobody asks for it, it does no harm."""
    answer = json_object("gh", '{"n": %s, "title": "A"}' % ("9" * 10_000))
    with pytest.raises(ProgramFailed):
        number_of("gh", answer["n"], "n")
    assert text_of("gh", answer["title"], "title") == "A"


def test_texts() -> None:
    """Neither empty nor endless; the field is named."""
    assert text_of("gh", "ü \ud83d", "title") == "ü \ud83d"
    values: Tuple[object, ...] = ("", None, 7, ["a"], {}, True, "x" * 1_001)
    for value in values:
        with pytest.raises(ProgramFailed, match="gh's answer has no usable title"):
            text_of("gh", value, "title")


def test_numbers() -> None:
    """As they are; a boolean is none."""
    assert (number_of("gh", 7, "number"), number_of("gh", 7.5, "number")) == (7, 7.5)
    values: Tuple[object, ...] = (True, None, "7", [], float("nan"), float("inf"), 10**400, -(2**53))
    for value in values:
        with pytest.raises(ProgramFailed, match="gh's answer has no usable number"):
            number_of("gh", value, "number")
