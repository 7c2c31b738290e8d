"""Values that a stranger wrote."""

from adapters import foreign


def test_texts_are_bounded_and_can_be_written() -> None:
    """A string that could not be kept counts as missing."""
    assert foreign.text_or_empty("abc", 3) == "abc"
    assert foreign.text_or_empty("abcd", 3) == ""
    assert foreign.text_or_empty("é", 3) == "é"
    assert foreign.text_or_empty("\ud800", 3) == ""
    assert foreign.text_or_empty(None, 3) == ""
