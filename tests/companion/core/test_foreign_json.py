"""JSON of strangers."""

import math
import sys
from typing import Iterator

import pytest

from companion.core.foreign_json import LONGEST_INT, loads


@pytest.fixture
def patient_python() -> Iterator[None]:
    """A Python that turns any number of digits into an int, however long that takes."""
    if not hasattr(sys, "set_int_max_str_digits"):
        yield
        return
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    yield
    sys.set_int_max_str_digits(before)


def test_values_are_those_of_the_standard_reader() -> None:
    """An int stays one."""
    assert loads('[{"a":[1,-2,2.5,"\\ud83d"]},null,true]') == [{"a": [1, -2, 2.5, "\ud83d"]}, None, True]
    assert isinstance(loads("7"), int) and loads("-" + "9" * 30) == -(10**30 - 1)


@pytest.mark.parametrize("text", ["", "oops", "{", "{}{}", "[1,]", "[" * 100_000, '{"a":' * 100_000])
def test_what_is_none_is_a_value_error(text: str) -> None:
    """Depth too."""
    with pytest.raises(ValueError, match=r"."):
        loads(text)


def test_very_many_digits_are_no_work(patient_python: None) -> None:
    """They become infinite at once; as ints they would take quadratic time."""
    value = loads(f"[{'9' * 100_000}, -{'9' * LONGEST_INT}9, {'9' * LONGEST_INT}]")
    assert isinstance(value, list)
    assert (value[0], value[1]) == (math.inf, -math.inf) and isinstance(value[2], int)
