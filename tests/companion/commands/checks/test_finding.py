"""Findings: three answers, of which only one is bad."""

from companion.commands.checks.finding import State, all_well, ok, unknown, wrong


def test_unknown_is_not_wrong_and_not_ok() -> None:
    """Only what is wrong spoils the verdict."""
    assert all_well([ok("A", "x"), unknown("A", "y")])
    assert not all_well([ok("A", "x"), wrong("A", "y")])
    assert all_well([])


def test_a_finding_for_programs() -> None:
    """Four texts."""
    assert wrong("A", "x", "y").to_json() == {"section": "A", "state": "wrong", "text": "x", "hint": "y"}
    assert [each.state for each in (ok("A", ""), unknown("A", ""))] == [State.OK, State.UNKNOWN]
