"""The job as doctor sees it."""

from pathlib import Path
from typing import List, Mapping, Optional, Tuple

import pytest

from companion.commands.checks import assignment
from companion.commands.checks.finding import State
from companion.core.clock import parse_iso
from tests.companion.assignment.world import World

AT = "2026-05-14T10:00:00.000Z"
NOW_S = parse_iso(AT) or 0.0
LAST = {"at": AT, "created": 1, "skipped": 2, "unusable": 0, "more": False, "failure": None}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A board with a job set up."""
    return World(tmp_path)


def found(
    world: World, gh: Optional[str] = "/bin/gh", facts: Optional[Mapping[str, object]] = None
) -> List[Tuple[State, str]]:
    """What the check says of a running companion with these facts, or of none."""
    health = None if facts is None else {"assignment": {"enabled": True, "nextRun": AT, **facts}}
    told = assignment.check(world.boards, gh, health, lambda: NOW_S + 60)
    return [(each.state, each.text) for each in told]


def test_without_a_setting_there_is_no_section(world: World) -> None:
    """Nobody is bothered with what is off."""
    world.config.write_text("{}")
    assert found(world) == []


def test_a_wrong_setting_is_wrong(world: World) -> None:
    """And nothing else is said."""
    world.configure(schedule="never")
    ((state, text),) = found(world)
    assert state is State.WRONG and "never" in text


def test_when_all_is_well(world: World) -> None:
    """What is set up, gh, and both runs."""
    world.configure(organizations=["acme"])
    said = found(world, facts={"lastRun": LAST})
    assert [state for state, _ in said] == [State.OK] * 4
    assert "acme" in said[0][1] and str(world.board) in said[0][1] and said[1][1] == "gh: /bin/gh"
    assert "1 cards made, 2 already there" in said[2][1] and AT in said[3][1]


def test_what_is_missing_or_failed_is_wrong(world: World) -> None:
    """Each for itself."""
    assert (State.WRONG, "gh, GitHub's command line, is not on PATH") in found(world, gh=None)
    said = found(world, facts={"lastRun": {**LAST, "failure": "rate limit"}})
    assert any(state is State.WRONG and "rate limit" in text for state, text in said)
    assert any("may have more" in text for _, text in found(world, facts={"lastRun": {**LAST, "more": True}}))


@pytest.mark.parametrize("facts", [None, {"enabled": False}, {"lastRun": None}, {"lastRun": 3}])
def test_what_is_not_known_is_said(world: World, facts: Optional[Mapping[str, object]]) -> None:
    """No companion, an older one, no run yet."""
    assert any(state is State.UNKNOWN for state, _ in found(world, facts=facts))
