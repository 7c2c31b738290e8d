"""``assign``: one run from the command line, and the job of a running companion."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest

from companion.assignment.run import Outcome
from companion.commands.assign import as_json, as_lines, notes
from tests.companion.assignment.world import PATIENCE_S, World, item, wait_until
from tests.companion.commands.conftest import Mdello


@pytest.fixture
def world(mdello: Mdello) -> Iterator[World]:
    """A board in the command line's home, and a gh it finds."""
    made = World(mdello.home)
    mdello.environ.update(GH_PATH=made.environ["GH_PATH"], FAKE_GH=made.environ["FAKE_GH"])
    yield made
    made.programs.close()


def test_a_dry_run_lists_and_a_run_writes(mdello: Mdello, world: World) -> None:
    """Each card on a line, then the numbers."""
    world.answer(issues=[item(1)], reviews=[item(2, "pull")])
    dry = mdello("assign", "--dry-run")
    assert (dry.returncode, dry.stderr) == (0, "")
    assert dry.stdout.splitlines() == [
        "Would write Issue Assigned: Thing 1 (https://github.com/acme/rocket/issues/1)",
        "Would write Review Requested: Thing 2 (https://github.com/acme/rocket/pull/2)",
        "2 cards; 0 already on the board.",
    ]
    assert world.cards() == []
    done = mdello("assign")
    assert done.returncode == 0 and f"({world.board / 'issue-assigned-thing-1.md'})" in done.stdout
    assert len(world.cards()) == 2
    again = json.loads(mdello("assign", "--json").stdout)
    assert again == {"created": [], "skipped": 2, "unusable": 0, "more": False, "failure": None}


def test_without_a_setting_it_tells_how_to_make_one(mdello: Mdello) -> None:
    """With an example and the file's name."""
    done = mdello("assign")
    assert done.returncode == 1 and done.stdout == ""
    assert '"github-assignment"' in done.stderr and "companion.json" in done.stderr
    example = done.stderr[done.stderr.index('"extensions"') : done.stderr.index("\n\nFile")]
    assert json.loads("{" + example + "}")["extensions"]["github-assignment"]["organizations"] == []


def test_what_goes_wrong_is_exit_1_and_one_line(mdello: Mdello, world: World) -> None:
    """A wrong setting, a gh that fails or is missing."""
    world.answer(prs={"exit": 4, "stderr": "please run: gh auth login"})
    failed = mdello("assign")
    assert failed.returncode == 1 and "gh auth login" in failed.stderr
    missing = mdello("assign", GH_PATH="", PATH="/nonexistent")
    assert missing.returncode == 1 and "not on PATH" in missing.stderr
    world.configure(boardUuid="other")
    wrong = mdello("assign")
    assert wrong.returncode == 1 and "registered board" in wrong.stderr and wrong.stdout == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_run_that_is_told_to_end_leaves_no_program_behind(
    mdello: Mdello, world: World, number: signal.Signals
) -> None:
    """A gh that hangs would otherwise stay for ever: who ends us does not know it."""
    world.answer(issues={"hang": True})
    process = subprocess.Popen(
        [sys.executable, str(mdello.program), "assign"], env=mdello.environ, stderr=subprocess.PIPE
    )
    wait_until(lambda: len(world.calls()) == 1)
    assert world.alive()
    process.send_signal(number)
    assert process.communicate(timeout=PATIENCE_S)[1] == b""
    assert process.returncode == 128 + number
    assert not world.alive()


def test_what_else_should_be_known() -> None:
    """Results that were left out, on either side."""
    outcome = Outcome(created=(("T", "p"),), known=1, unusable=2, cut=True)
    assert as_lines(outcome, False) == ["Wrote T (p)", "1 card; 1 already on the board."]
    assert len(notes(outcome)) == 2 and notes(Outcome()) == []
    assert as_json(outcome)["created"] == [{"title": "T", "place": "p"}]


def drive(mdello: Mdello, world: World) -> None:
    """A companion that runs the job each second, from the first card to its end with a gh that hangs."""

    def assignment() -> Any:
        return mdello.ask("GET", "/health")["assignment"]

    world.configure(schedule="* * * * * *")
    world.answer(issues=[item(1)], reviews=[item(2, "pull")])
    server = mdello.start()
    wait_until(lambda: len(world.cards()) == 2)
    wait_until(lambda: assignment()["lastRun"] and assignment()["lastRun"]["skipped"] == 2)
    facts = assignment()
    assert facts["enabled"] is True and facts["nextRun"] and facts["lastRun"]["failure"] is None
    doctor = mdello("doctor").stdout
    assert "GitHub assignment" in doctor and "0 cards made, 2 already there" in doctor
    # More things, taken up without a restart.
    world.answer(issues=[item(1), item(3)], reviews=[item(2, "pull")])
    wait_until(lambda: len(world.cards()) == 3)
    world.answer(issues={"exit": 1, "stderr": "rate limit"})
    wait_until(lambda: any("rate limit" in each for each in mdello.ask("GET", "/health")["problems"]))
    world.answer(issues={"hang": True})
    calls = len(world.calls())
    wait_until(lambda: len(world.calls()) > calls)
    code, _, err = mdello.stop(server)
    assert code == 0 and "Traceback" not in err and "stops" not in err
    assert len(world.cards()) == 3


def test_a_running_companion_does_it_by_itself(mdello: Mdello, world: World) -> None:
    """From the checkout."""
    drive(mdello, world)


def test_the_archive_does_it_by_itself(mdello: Mdello, world: World, pyz: Path) -> None:
    """From the built file."""
    mdello.program = pyz
    drive(mdello, world)


def test_a_setting_is_taken_up_and_dropped_without_a_restart(mdello: Mdello, world: World) -> None:
    """Within seconds."""
    world.configure(schedule="* * * * * *")
    server = mdello.start()
    wait_until(lambda: len(world.calls()) >= 3)
    world.configure(schedule="never")
    wait_until(lambda: mdello.ask("GET", "/health")["assignment"]["enabled"] is False)
    assert "never" in mdello.ask("GET", "/health")["assignment"]["problem"]
    world.configure(schedule="@hourly")
    wait_until(lambda: mdello.ask("GET", "/health")["assignment"]["enabled"] is True)
    mdello.stop(server)


def test_a_wrong_setting_is_told_at_the_start(mdello: Mdello, world: World) -> None:
    """Where the companion says what a person should know; it serves all the same."""
    world.configure(organizations="acme")
    server = mdello.start()
    assert "no list of names" in str(mdello.ask("GET", "/health")["problems"])
    assert mdello("doctor").returncode == 1
    _, _, err = mdello.stop(server)
    assert "Note: The GitHub assignment job is off" in err
