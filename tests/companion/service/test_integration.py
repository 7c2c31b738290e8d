"""Start at login, whatever starts things here."""

import sys
from pathlib import Path
from typing import get_type_hints

import pytest

from adapters.contract import AdapterError, Integration
from adapters.made_folders import MadeFolders
from companion.service import integration, owned
from tests.companion.service.conftest import World

LINUX, MACOS, OTHER = "linux", "darwin", "freebsd14"


def test_it_is_an_integration() -> None:
    """By name, as installers are."""
    module: Integration = integration
    assert (module.NAME, module.TITLE) == ("service", "Start at login")
    assert get_type_hints(integration.install)["return"].__name__ == "InstallReport"


def test_macos_has_launchd(world: World) -> None:
    """Whatever else is on PATH."""
    world.manager("launchctl")
    world.manager("systemctl")
    assert integration.presence(world.context(), MACOS) == str(world.bin / "launchctl")
    assert "LaunchAgents" in integration.install(world.context(), MACOS).headline
    assert integration.inspect(world.context(), MACOS).state == "installed"
    assert integration.uninstall(world.context(), MACOS).changed
    assert world.tree() == {} and world.calls("systemctl") == []
    (world.bin / "launchctl").unlink()
    assert integration.presence(world.context(), MACOS) == "/bin/launchctl"


def test_linux_has_systemd_where_systemctl_is(world: World) -> None:
    """And nowhere else."""
    assert integration.presence(world.context(), LINUX) is None
    world.manager("systemctl")
    assert integration.presence(world.context(), LINUX) == str(world.bin / "systemctl")
    assert integration.presence(world.context(), OTHER) is None
    assert "systemd" in integration.install(world.context(), LINUX).headline
    assert integration.inspect(world.context(), LINUX).state == "installed"
    assert integration.uninstall(world.context(), LINUX).changed and world.tree() == {}


@pytest.mark.parametrize("platform", [LINUX, OTHER])
def test_elsewhere_the_lines_are_told_and_nothing_is_written(world: World, platform: str) -> None:
    """Old files stay where they are too."""
    (world.home / ".mdello").mkdir()
    (world.home / ".mdello" / "companion.json").write_text("{}")
    before = world.tree()
    report = integration.install(world.context(), platform)
    assert not report.changed and "~/.profile" in report.headline
    assert str(world.program) in report.details[1] and "serve" in report.details[1]
    inspection = integration.inspect(world.context(), platform)
    assert (inspection.state, inspection.notes) == ("absent", ("neither launchd nor systemd is here",))
    assert not integration.uninstall(world.context(), platform).changed
    assert world.tree() == before and world.calls() == []


def test_units_can_be_removed_where_systemd_is_gone(world: World) -> None:
    """What was installed is not forgotten with the program that started it."""
    world.manager("systemctl")
    integration.install(world.context(), LINUX)
    (world.bin / "systemctl").unlink()
    assert integration.inspect(world.context(), LINUX).state == "installed"
    report = integration.uninstall(world.context(), LINUX)
    assert report.changed and "systemctl is not on PATH" in report.warnings[0]
    assert world.tree() == {}


def test_folders_of_a_killed_install_are_removed_where_systemd_is_gone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed when the folders were there and nothing in them."""
    world.manager("systemctl")

    def killed(place: Path, wanted: object, replacing: bool) -> None:
        raise SystemExit

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(owned, "_put", killed)
        patch.setattr(MadeFolders, "release", lambda *_: None)
        integration.install(world.context(), LINUX)
    assert world.tree() != {}
    (world.bin / "systemctl").unlink()
    assert not integration.uninstall(world.context(), LINUX).changed
    assert world.tree() == {}


@pytest.mark.parametrize(("platform", "manager"), [(LINUX, "systemctl"), (MACOS, "launchctl")])
def test_a_disk_that_refuses_is_told(world: World, platform: str, manager: str) -> None:
    """As an installer's error, and nothing is left."""
    world.manager(manager)
    (world.home / ".config").write_text("")
    (world.home / "Library").write_text("")
    before = world.tree()
    with pytest.raises(AdapterError, match="Cannot install the companion's service") as refusal:
        integration.install(world.context(), platform)
    told = str(refusal.value)
    assert str(world.home) in told and "Errno" not in told and ".tmp" not in told
    assert world.tree() == before
    assert integration.inspect(world.context(), platform).state == "absent"
    assert not integration.uninstall(world.context(), platform).changed


def test_this_platform_is_the_default(world: World) -> None:
    """As the command line calls it."""
    context = world.context()
    assert integration.presence(context) == integration.presence(context, sys.platform)
    assert integration.inspect(context).state == "absent"
