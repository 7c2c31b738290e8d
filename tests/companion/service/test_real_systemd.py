"""The service under systemd itself, where a user manager can be had."""

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Iterator, Tuple

import pytest

from adapters.contract import InstallContext
from companion.service import systemd
from companion.service.units import SERVICE, SOCKET
from tests.companion.service.conftest import World
from tests.companion.service.real_systemd import UserManager
from tests.companion.service.running import Waiting, health
from tests.companion.web.talk import Talk, eventually
from tests.conftest import free_port

Installed = Tuple[World, UserManager, InstallContext, int]


@pytest.fixture
def machine(tmp_path: Path, pyz: Path) -> Iterator[Installed]:
    """A home with an odd name, a manager that runs for it, and what an installer is told there."""
    world = World(tmp_path, "my \u00fc home's 100% $HOME \\ \"; ")
    world.program = world.home / "my mdello.pyz"
    shutil.copy(pyz, world.program)
    with UserManager(world.home, tmp_path) as manager:
        (world.bin / "systemctl").symlink_to(str(shutil.which("systemctl")))
        world.environ.update(manager.environ)
        port = free_port()
        yield world, manager, world.context(port=port), port


def refuses(port: int) -> bool:
    """Whether nobody listens."""
    try:
        with Talk(port):
            return False
    except ConnectionResetError:  # The socket was closed at this very moment.
        return False
    except ConnectionRefusedError:
        return True


def test_systemd_starts_it_and_brings_it_back(machine: Installed) -> None:
    """Installed, killed, stopped, its folder deleted, renewed, removed: the port answers until then."""
    world, manager, context, port = machine
    before = world.tree()
    report = systemd.install(context)
    assert report.warnings == () and f"{SERVICE} is active" in report.details
    last = health(port)["pid"]
    pids = [last]
    assert health(port)["socketsHandedIn"][0] == "127.0.0.1"
    assert manager.ask("is-enabled", SERVICE, SOCKET) == "enabled\nenabled"
    assert systemd.inspect(context).loaded is True

    for number in (signal.SIGKILL, signal.SIGTERM):
        os.kill(last, number)
        answered = Waiting(10, lambda: health(port)).pids()
        while last == pids[-1]:  # Who calls at this moment may still be answered by the one that ends.
            last = health(port)["pid"]
        assert set(answered) <= {pids[-1], last} and last not in pids
        pids.append(last)

    shutil.rmtree(world.home / ".local" / "state")
    os.kill(last, signal.SIGKILL)
    assert health(port)["pid"] not in pids
    output = world.home / ".local" / "state" / "mdello" / "companion.log"
    assert output.read_text() == f"Mdello companion listening at http://127.0.0.1:{port}\n"

    running = health(port)["pid"]
    assert not systemd.install(context).changed
    assert health(port)["pid"] != running

    report = systemd.uninstall(context)
    assert report.warnings == () and refuses(port)
    assert manager.ask("list-units", "--all", "--plain", "--no-legend", "mdello*") == ""
    shutil.rmtree(world.home / ".local" / "state")
    shutil.rmtree(world.home / ".local", ignore_errors=True)
    assert world.tree() == before


def test_it_gives_up_on_a_program_that_is_gone(machine: Installed) -> None:
    """Then the port refuses at once: no hook waits for nothing. Installing again repairs it."""
    world, _, context, port = machine
    systemd.install(context)
    pid = health(port)["pid"]
    away = world.program.with_name("away")
    world.program.rename(away)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: refuses(port))
    inspection = systemd.inspect(context)
    assert (inspection.state, inspection.loaded) == ("outdated", False)
    assert f"{SERVICE} is failed" in inspection.notes
    away.rename(world.program)
    assert systemd.install(context).warnings == ()
    assert health(port)["pid"] != pid


def test_a_companion_that_was_started_by_hand_is_named(machine: Installed) -> None:
    """It holds the port; the files stay, and the remedy works."""
    world, manager, context, port = machine
    by_hand = subprocess.Popen(
        [context.interpreter, str(world.program), "serve"],
        env={**world.environ, "MDELLO_COMPANION_PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    eventually(lambda: not refuses(port))
    try:
        (warning,) = systemd.install(context).warnings
        assert "started by hand" in warning and health(port)["pid"] == by_hand.pid
    finally:
        by_hand.terminate()
        by_hand.wait()
    remedy = warning.rpartition("systemctl --user ")[2]
    manager.ask(*remedy.split())
    assert health(port)["pid"] != by_hand.pid and systemd.inspect(context).loaded is True


def test_a_variable_that_only_the_shell_has_is_named(machine: Installed) -> None:
    """systemd looks elsewhere."""
    world, _, _, _ = machine
    world.environ["XDG_CONFIG_HOME"] = str(world.home / "elsewhere")
    (warning,) = systemd.install(world.context()).warnings
    assert "Is XDG_CONFIG_HOME set in this shell, but not for systemd?" in warning
    assert "whether it runs" not in " ".join(systemd.inspect(world.context()).notes)
