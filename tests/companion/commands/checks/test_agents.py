"""Each integration: presence, installation, loading, and events or reports, with three answers each."""

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

    def __init__(self, inspection: Inspection, found: bool = True) -> None:
        self._inspection = inspection
        self._found = found

    def inspect(self, context: InstallContext) -> Inspection:
        return self._inspection

    def presence(self, context: InstallContext) -> Optional[str]:
        return "/bin/some" if self._found else None


HOOKED = {"some": True}
CLIENT = {"some": False}
SERVICE: Dict[str, bool] = {}


def check(
    inspection: Inspection,
    health: Optional[Dict[str, object]] = None,
    last: str = "",
    hooked: Dict[str, bool] = HOOKED,
    found: bool = True,
) -> List[Tuple[State, str, str]]:
    """(state, text, hint) of every finding."""
    integrations: Dict[str, Any] = {"some": Agent(inspection, found)}
    records = {"some": last} if last else {}
    told = agents.check(integrations, hooked, CONTEXT, health, records, lambda: NOW)
    return [(each.state, each.text, each.hint) for each in told]


def health(**tally: object) -> Dict[str, object]:
    """A running companion that saw these events of an agent with hooks."""
    return {"harnesses": {"some": tally} if tally else {}, "clients": {}}


def client_health(**tally: object) -> Dict[str, object]:
    """A running companion that got these reports of a client."""
    return {"harnesses": {}, "clients": {"some": tally} if tally else {}}


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


def test_what_is_not_here_is_said_whether_installed_or_not() -> None:
    """Then there is nothing to do; an installation that waits for its agent is no fault."""
    ((state, text, hint),) = check(Inspection("absent", "/place", None), found=False)
    assert (state, hint) == (State.UNKNOWN, "") and "not found on this machine" in text
    told = check(INSTALLED, found=False)
    assert told[1][0] is State.UNKNOWN and "not found on this machine" in told[1][1]


def test_what_is_no_agent_is_not_asked_for_events() -> None:
    """The service reports nothing, and can be installed wherever we run."""
    ((_, text, hint),) = check(Inspection("absent", "/place", None), hooked=SERVICE, found=False)
    assert "not found" not in text and "mdello.pyz install some" in hint
    told = " ".join(text for _, text, _ in check(INSTALLED, health(), "2026-01-01T00:00:00.000Z", SERVICE))
    assert "event" not in told.replace("its events", "") and "report" not in told


def test_a_clients_reports_are_told_with_their_age() -> None:
    """That is the proof that it is at work; what concerned no card is told too."""
    seen = client_health(reports=12, unknownCards=2, lastReportAt=iso_utc(NOW - 3))
    told = check(INSTALLED, seen, hooked=CLIENT)
    assert told[-2][0] is State.OK
    assert "last report 3 s ago (12 since the companion started)" in told[-2][1]
    assert told[-1][0] is State.UNKNOWN and "2 reports were about no card" in told[-1][1]
    seen = client_health(reports=1, unknownCards=0, lastReportAt=iso_utc(NOW))
    assert "last report just now" in check(INSTALLED, seen, hooked=CLIENT)[-1][1]


def test_a_silent_client_is_told_in_three_ways() -> None:
    """Never, not since the start, not checked."""
    newest = "2026-01-01T00:00:00.000Z"
    assert "no report ever received" in check(INSTALLED, client_health(), hooked=CLIENT)[-1][1]
    assert (
        "no report since the companion started"
        in check(INSTALLED, client_health(), newest, hooked=CLIENT)[-1][1]
    )
    state, text, _ = check(INSTALLED, None, newest, hooked=CLIENT)[-1]
    assert state is State.UNKNOWN and "not checked" in text and "2026-01-01" in text


def test_hook_events_are_no_proof_for_a_client_nor_the_reverse() -> None:
    """Each is asked for what it sends."""
    seen = health(lastEvent="Stop", lastEventAt=iso_utc(NOW), events=1)
    assert "no report ever received" in check(INSTALLED, seen, hooked=CLIENT)[-1][1]
    seen = client_health(reports=1, lastReportAt=iso_utc(NOW))
    assert "no event ever received" in check(INSTALLED, seen)[-1][1]


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


@pytest.mark.parametrize(
    "odd",
    [
        {"harnesses": None},
        {"harnesses": {"some": 3}},
        {},
        {"harnesses": []},
        {"clients": {"some": {"lastReportAt": 3, "reports": [], "unknownCards": "x"}}},
    ],
)
def test_an_account_of_odd_types_is_no_crash(odd: Dict[str, object]) -> None:
    """Whatever answers on the port."""
    assert "no report ever received" in check(INSTALLED, odd, hooked=CLIENT)[-1][1]
    assert "no event ever received" in check(INSTALLED, odd)[-1][1]


def test_what_its_own_records_tell() -> None:
    """Running sessions, and whether their events arrive; what cannot be read is named."""

    def told(**facts: object) -> List[Tuple[State, str]]:
        installed = Inspection("installed", "/place", True)
        seen = {**health(lastEvent="Stop", lastEventAt=iso_utc(NOW - 3), events=2)}
        seen["watcher"] = {"records": {"some": {"state": "read", "records": 1, "problems": {}, **facts}}}
        return [(state, text) for state, text, _ in check(installed, seen) if "last event" not in text][2:]

    assert told(running=0, silent=0) == []
    assert told(running=1, silent=0) == [
        (State.OK, "Some Agent: 1 running session is seen by its own records")
    ]
    ((state, text),) = told(running=3, silent=2)
    assert state is State.UNKNOWN and text.startswith("Some Agent: 2 of 3 running sessions do things that no")
    assert told(running=2, silent=0, problems={"/r/7.json": "not JSON"}) == [
        (State.UNKNOWN, "  /r/7.json: not JSON"),
        (State.OK, "Some Agent: 2 running sessions are seen by its own records"),
    ]
    for facts in (
        {"state": "unreadable", "problems": {"/r": "Permission denied"}},
        {"records": 0, "problems": {"/r": "Permission denied"}},
    ):
        assert told(**facts) == [
            (State.WRONG, "Some Agent: none of its own records of running sessions could be read"),
            (State.WRONG, "  /r: Permission denied"),
        ]
    assert told(problems=[], running="x", silent=None) == []
