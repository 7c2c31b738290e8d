"""``systemctl --user``, asked with a limit."""

import pytest

from companion.service.usermanager import UserManager
from tests.companion.service.conftest import World


def test_it_is_asked_for_this_user(world: World) -> None:
    """And answers."""
    world.manager("systemctl")
    manager = UserManager(world.context())
    assert manager.answers() and manager.problem is None
    manager.ask("start", "a unit")
    assert world.calls("systemctl") == ["--user show --property=Version", "--user start a unit"]


def test_states_are_read(world: World) -> None:
    """Of the units that were asked about, nothing else."""
    world.manager("systemctl")
    world.environ["FAKE_MANAGER_STATE"] = "failed"
    service, socket = "mdello-companion.service", "mdello-companion.socket"
    manager = UserManager(world.context())
    assert manager.states(service, socket) == {service: "failed", socket: "active"}
    assert manager.states(service) == {service: "failed"}


def test_after_a_failure_nothing_more_is_asked(world: World) -> None:
    """The first one is what counts."""
    world.manager("systemctl")
    world.environ["FAKE_MANAGER_FAIL"] = "start"
    manager = UserManager(world.context())
    assert manager.ask("start", "x") == "" and manager.ask("show") == ""
    assert manager.problem == "systemctl failed (exit code 5): start is refused"
    assert not manager.answers() and manager.states("x") == {}
    assert world.calls("systemctl") == ["--user start x"]


def test_nothing_to_forget_is_no_failure(world: World) -> None:
    """systemctl refuses for a unit that it does not know."""
    world.manager("systemctl")
    world.environ["FAKE_MANAGER_FAIL"] = "reset-failed"
    manager = UserManager(world.context())
    manager.reset("x")
    assert manager.problem is None and manager.answers()


def test_a_hanging_one_is_given_up(world: World) -> None:
    """Its limit is told."""
    world.manager("systemctl")
    world.environ["FAKE_MANAGER_HANG"] = "show"
    manager = UserManager(world.context(), timeout_s=0.1)
    assert not manager.answers()
    assert manager.problem == "systemctl did not end within 0.1 s"


@pytest.mark.parametrize("verb", ["start", "reset-failed"])
def test_without_systemctl_that_is_the_problem(world: World, verb: str) -> None:
    """Nothing is run."""
    manager = UserManager(world.context())
    assert manager.ask(verb) == "" and manager.problem == "systemctl is not on PATH"
