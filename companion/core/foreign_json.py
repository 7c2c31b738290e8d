"""JSON of strangers: what other programs print, and numbers that are longer than any number need be."""

import json
from typing import Union

# Newer Pythons refuse to turn more than 4,300 digits into an int. Older ones (the first releases of
# 3.9 to 3.11) take quadratic time, two minutes for four million, and all other threads stand still.
LONGEST_INT = 4_000


def integer(digits: str) -> Union[int, float]:
    """A number without a fraction; one of very many digits becomes infinite, as in JavaScript."""
    return int(digits) if len(digits) <= LONGEST_INT else float(digits)


_DECODER = json.JSONDecoder(parse_int=integer)


def loads(text: str) -> object:
    """The value of a text. ValueError when it is none, or nested more deeply than anybody means it."""
    try:
        value: object = _DECODER.decode(text)
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc
    return value
