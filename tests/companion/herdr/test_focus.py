"""Focus: which agent, which commands, which failures."""

import json
import time
from typing import Dict, List, Optional, Sequence

import pytest

from adapters.registry import ADAPTERS
from companion.core.errors import Conflict, NotFound, ProgramFailed
from companion.core.programs import Programs
from companion.herdr.focus import FOCUS_S, focus
from tests.fakes.fake_herdr import FakeHerdr


def claude(programs: Programs, session: str = "s1") -> None:
    """Focus a session of Claude Code."""
    focus(programs, ADAPTERS, "claude", session, "/s/1.jsonl")


def test_three_commands_in_order(herdr: FakeHerdr, programs: Programs) -> None:
    """List, pane, tab; and not one more."""
    herdr.run_session("another")
    herdr.run_session("s1")
    claude(programs)
    assert herdr.calls() == ["agent list", "agent focus w2:p1", "tab focus w2:t1"]


@pytest.mark.parametrize("session_file", ["/s/1.jsonl", None, ""])
def test_an_agent_known_by_file_is_found_by_it(
    herdr: FakeHerdr, programs: Programs, session_file: Optional[str]
) -> None:
    """And by nothing else: an agent without a session is no match for a session without a file."""
    herdr.agents.append({"agent_session": {"value": ""}, "pane_id": "w0:p1"})
    herdr.run_session("s1")
    herdr.run_session("/s/1.jsonl")
    if not session_file:
        with pytest.raises(NotFound):
            focus(programs, ADAPTERS, "pi", "s1", session_file)
        return
    focus(programs, ADAPTERS, "pi", "s1", session_file)
    assert herdr.calls()[1] == "agent focus w3:p1"


def test_an_agent_without_a_pane_is_passed_over(herdr: FakeHerdr, programs: Programs) -> None:
    """The next one with this session may have one."""
    herdr.run_session("s1")
    herdr.agents[0]["pane_id"] = None
    herdr.run_session("s1")
    claude(programs)
    assert herdr.calls() == ["agent list", "agent focus w2:p1", "tab focus w2:t1"]


@pytest.mark.parametrize("tab", [None, ""])
def test_without_a_tab_the_pane_is_all(herdr: FakeHerdr, programs: Programs, tab: object) -> None:
    """Two commands then."""
    herdr.run_session("s1")
    herdr.agents[0]["tab_id"] = tab
    herdr.save()
    claude(programs)
    assert herdr.calls() == ["agent list", "agent focus w1:p1"]


def test_a_session_that_is_not_there(herdr: FakeHerdr, programs: Programs) -> None:
    """Nothing is focused."""
    herdr.run_session("another")
    with pytest.raises(NotFound, match=r"^session_not_found$"):
        claude(programs)
    assert herdr.calls() == ["agent list"]


def test_without_herdr_nothing_runs(herdr: FakeHerdr, programs: Programs, environ: Dict[str, str]) -> None:
    """It is no failure of herdr either."""
    environ.clear()
    with pytest.raises(Conflict, match=r"^herdr_not_configured$"):
        claude(programs)
    assert herdr.calls() == []


@pytest.mark.parametrize("name", ["pane_id", "tab_id"])
@pytest.mark.parametrize("value", ["-h", "--socket=/x", 5, ["w1:p1"], {"id": "w1:p1"}, True])
def test_an_id_that_is_no_id_is_refused(
    herdr: FakeHerdr, programs: Programs, name: str, value: object
) -> None:
    """It could be taken for an option. Nothing is focused by half."""
    herdr.run_session("s1")
    herdr.agents[0][name] = value
    herdr.save()
    with pytest.raises(ProgramFailed, match=name):
        claude(programs)
    assert herdr.calls() == ["agent list"]


@pytest.mark.parametrize(
    ("command", "mode", "calls"),
    [
        ("agent list", "fail", 1),
        ("agent list", "garbage", 1),
        ("agent focus", "fail", 2),
        ("tab focus", "fail", 3),
    ],
)
def test_each_command_may_fail(
    herdr: FakeHerdr, programs: Programs, command: str, mode: str, calls: int
) -> None:
    """None of those that follow is run then."""
    herdr.run_session("s1")
    herdr.misbehave(**{command: mode})
    with pytest.raises(ProgramFailed):
        claude(programs)
    assert len(herdr.calls()) == calls


@pytest.mark.parametrize("command", ["agent list", "agent focus", "tab focus"])
def test_a_hanging_herdr_is_given_up(herdr: FakeHerdr, programs: Programs, command: str) -> None:
    """One budget for all three."""
    herdr.run_session("s1")
    herdr.misbehave(**{command: "hang"})
    with pytest.raises(ProgramFailed, match="did not end"):
        focus(programs, ADAPTERS, "claude", "s1", None, timeout_s=1.0)


class Clockwork(Programs):
    """A herdr that always takes its time; notes how much it was given."""

    def __init__(self) -> None:
        super().__init__({"HERDR_PATH": "/bin/herdr"})
        self.given: List[float] = []

    def run(self, argv: Sequence[str], timeout_s: float, most_bytes: int = 0) -> str:
        """One session in one pane."""
        self.given.append(timeout_s)
        time.sleep(0.01)
        agent = {"agent_session": {"value": "s1"}, "pane_id": "p", "tab_id": "t"}
        return json.dumps({"result": {"agents": [agent]}})


def test_all_three_commands_share_one_budget() -> None:
    """What one has used is gone for the next."""
    programs = Clockwork()
    focus(programs, ADAPTERS, "claude", "s1", None)
    first, second, third = programs.given
    assert FOCUS_S >= first > second > third


def test_a_program_that_is_not_there_has_failed(programs: Programs, environ: Dict[str, str]) -> None:
    """A configured path is taken unchecked, so the failure is one of the command."""
    environ["HERDR_PATH"] = "/nowhere/herdr"
    with pytest.raises(ProgramFailed, match="cannot be started"):
        claude(programs)


def test_numbers_that_look_like_nothing(herdr: FakeHerdr, programs: Programs) -> None:
    """A pane of zero is no pane."""
    herdr.run_session("s1")
    herdr.agents[0]["pane_id"] = 0
    herdr.save()
    with pytest.raises(NotFound):
        claude(programs)
