"""Each agent: installation, loading and events, with three answers each."""

from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest

from adapters.contract import Inspection, InstallContext
from companion.commands.checks import agents
from companion.commands.checks.finding import State
from companion.core.clock import iso_utc

NOW = 1_800_000_000.0
CONTEXT = InstallContext(Path("/home"), {}, "http://127.0.0.1:1", Path("/p"), "/py")


class Agent:
    """An agent that stands as it is told."""

    TITLE = "Some Agent"

    def __init__(self, inspection: Inspection) -> None:
        self._inspection = inspection

    def inspect(self, context: InstallContext) -> Inspection:
        return self._inspection


def check(
    inspection: Inspection, health: Optional[Dict[str, object]] = None, last: str = ""
) -> List[Tuple[State, str, str]]:
    """(state, text, hint) of every finding."""
    adapters: Dict[str, Any] = {"some": Agent(inspection)}
    records = {"some": last} if last else {}
    found = agents.check(adapters, CONTEXT, health, records, lambda: NOW)
    return [(each.state, each.text, each.hint) for each in found]


def health(**tally: object) -> Dict[str, object]:
    """A running companion that saw these events."""
    return {"harnesses": {"some": tally} if tally else {}}


INSTALLED = Inspection("installed", "/place", True)


@pytest.mark.parametrize(
    ("inspection", "expected"),
    [
        (Inspection("absent", "/place", None), [State.UNKNOWN]),
        (Inspection("foreign", "/place", None, ("a file",)), [State.WRONG]),
        (Inspection("outdated", "/place", True, ("x differs",)), [State.WRONG, State.OK, State.UNKNOWN]),
        (INSTALLED, [State.OK, State.OK]),
        (Inspection("installed", "/place", False, ("f: disabled",)), [State.OK, State.WRONG, State.WRONG]),
        (Inspection("installed", "/place", None, ("f: odd",)), [State.OK, State.UNKNOWN, State.UNKNOWN]),
    ],
)
def test_installation_and_loading(inspection: Inspection, expected: List[State]) -> None:
    """Every note is told, and each state leads to a command where there is one."""
    found = [each for each in check(inspection) if "events not checked" not in each[1]]
    assert [state for state, _, _ in found] == expected
    text = " ".join(text for _, text, _ in found)
    assert all(note in text for note in inspection.notes)
    if inspection.state in ("absent", "foreign", "outdated"):
        assert "mdello.pyz install some" in found[0][2]


def test_events_are_not_checked_without_a_companion() -> None:
    """Unknown is not good; what the log knows is added."""
    state, text, _ = check(INSTALLED, None, "2026-01-01T00:00:00.000Z")[-1]
    assert state is State.UNKNOWN
    assert "not checked" in text and "2026-01-01" in text


def test_no_event_ever_and_none_since_the_start_are_told_apart() -> None:
    """The log knows of earlier ones."""
    assert "no event ever received" in check(INSTALLED, health())[-1][1]
    assert (
        "no event since the companion started"
        in check(INSTALLED, health(), "2026-01-01T00:00:00.000Z")[-1][1]
    )


def test_the_last_event_is_told_with_its_age_and_name() -> None:
    """That is the proof that hooks arrive."""
    state, text, _ = check(INSTALLED, health(lastEvent="Stop", lastEventAt=iso_utc(NOW - 3), events=12))[-1]
    assert state is State.OK
    assert "last event 3 s ago: Stop (12 since the companion started)" in text


def test_unknown_events_and_failures_are_worth_a_look() -> None:
    """Counted, named, not wrong."""
    tally = {"lastEvent": "X", "lastEventAt": iso_utc(NOW), "events": 4, "unknownEvents": {"X": 3, "Y": 1}}
    found = check(INSTALLED, health(**tally, failed=2, unusable=0))
    assert [state for state, _, _ in found] == [State.OK, State.OK, State.OK, State.UNKNOWN, State.UNKNOWN]
    assert "X (3), Y (1)" in found[3][1]
    assert "2 times" in found[4][1]


def test_an_agent_that_is_not_installed_is_asked_for_events_only_if_there_were_some() -> None:
    """Otherwise one line is enough."""
    absent = Inspection("absent", "", None)
    assert len(check(absent, health())) == 1
    assert len(check(absent, health(lastEvent="Stop", lastEventAt=iso_utc(NOW), events=1))) == 2


@pytest.mark.parametrize("odd", [{"harnesses": None}, {"harnesses": {"some": 3}}, {}, {"harnesses": []}])
def test_an_account_of_odd_types_is_no_crash(odd: Dict[str, object]) -> None:
    """Whatever answers on the port."""
    assert "no event ever received" in check(INSTALLED, odd)[-1][1]
