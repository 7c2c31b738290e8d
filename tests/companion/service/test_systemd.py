"""Units in place, enabled, started; and gone again."""

import os
from dataclasses import replace
from pathlib import Path
from typing import List

import pytest

from adapters.contract import AdapterError
from companion.service import systemd, usermanager
from companion.service.units import SERVICE, SOCKET
from tests.adapters.disk import die_at, times_of
from tests.companion.service.conftest import ODD_NAMES, MakeWorld, World

START = [
    "--user show --property=Version",
    "--user daemon-reload",
    f"--user reset-failed {SERVICE} {SOCKET}",
    f"--user start {SOCKET}",
    f"--user restart {SERVICE}",
    f"--user show --property=Id --property=ActiveState {SERVICE} {SOCKET}",
]
STOP = ["--user daemon-reload", f"--user stop {SOCKET} {SERVICE}"]


@pytest.fixture
def world(world: World) -> World:
    """With a systemctl that keeps a list."""
    world.manager("systemctl")
    return world


def unit_dir(world: World) -> Path:
    """Where units are."""
    return world.home / ".config" / "systemd" / "user"


def places(world: World) -> List[Path]:
    """All that is written."""
    folder = unit_dir(world)
    return [
        folder / SERVICE,
        folder / SOCKET,
        folder / "default.target.wants" / SERVICE,
        folder / "sockets.target.wants" / SOCKET,
    ]


def test_installing_writes_enables_and_starts(world: World) -> None:
    """In this order, and tells what it did."""
    report = systemd.install(world.context())
    assert world.calls("systemctl") == START
    assert report.changed and report.warnings == ()
    assert report.headline == f"Installed the companion's service at {unit_dir(world) / SERVICE}"
    assert [line for line in report.details if line.startswith("Wrote")] == [
        f"Wrote {path}" for path in places(world)
    ]
    assert f"{SERVICE} is active" in report.details and f"{SOCKET} is active" in report.details
    for link, name in zip(places(world)[2:], (SERVICE, SOCKET)):
        assert os.readlink(link) == str(unit_dir(world) / name)
    assert systemd.inspect(world.context()).state == "installed"


def test_a_second_install_writes_nothing_and_restarts(world: World) -> None:
    """A newer program in the same place is what runs then."""
    systemd.install(world.context())
    times = times_of(world.home)
    report = systemd.install(world.context())
    assert not report.changed and report.headline.endswith("(nothing to change)")
    assert times_of(world.home) == times
    assert world.calls("systemctl") == START * 2


@pytest.mark.parametrize("inhabited", [False, True])
@pytest.mark.parametrize("name", ODD_NAMES)
def test_uninstalling_is_the_inverse(make_world: MakeWorld, name: str, inhabited: bool) -> None:
    """Twice, in any home."""
    world = make_world(name)
    world.manager("systemctl")
    before = world.inhabit() if inhabited else world.tree()
    for _ in range(2):
        systemd.install(world.context())
        systemd.install(world.context())
        assert systemd.inspect(world.context()).state == "installed"
        report = systemd.uninstall(world.context())
        assert report.changed and report.warnings == () and len(report.details) == 4
        assert world.tree() == before
    calls = len(world.calls())
    report = systemd.uninstall(world.context())
    assert not report.changed and world.tree() == before
    assert len(world.calls()) == calls


def test_uninstalling_stops_it_first(world: World) -> None:
    """And systemd forgets it."""
    systemd.install(world.context())
    world.log.write_text("")
    systemd.uninstall(world.context())
    assert world.calls("systemctl") == [*STOP, STOP[0], f"--user reset-failed {SERVICE} {SOCKET}"]


def test_another_port_needs_another_socket(world: World) -> None:
    """The old one is let go of before the new one is opened."""
    systemd.install(world.context())
    world.log.write_text("")
    report = systemd.install(world.context(port=52000))
    assert report.changed and world.calls("systemctl") == [START[0], *STOP, *START[1:]]
    assert "[::1]:52000" in (unit_dir(world) / SOCKET).read_text()
    assert f"Kept {places(world)[2]}" in report.details


def test_old_files_are_moved_while_nothing_runs(world: World) -> None:
    """A companion that runs would not see them come."""
    systemd.install(world.context())
    world.log.write_text("")
    (world.home / ".mdello").mkdir()
    (world.home / ".mdello" / "companion.json").write_text("{}")
    report = systemd.install(world.context())
    assert world.calls("systemctl") == [START[0], *STOP, *START[1:]]
    assert report.changed and any(line.startswith("Moved ") for line in report.details)
    assert (world.home / ".config" / "mdello" / "companion.json").read_text() == "{}"
    (world.home / ".mdello").mkdir()
    (world.home / ".mdello" / "companion.json").write_text("old")
    report = systemd.install(world.context())
    assert not report.changed and "stays where it is" in report.warnings[0]


def test_without_a_user_manager_the_files_are_written_all_the_same(world: World) -> None:
    """Over some ssh, in a container: told with what can be done."""
    world.environ["FAKE_MANAGER_FAIL"] = "show"
    report = systemd.install(world.context())
    assert report.changed and all(os.path.lexists(path) for path in places(world))
    (warning,) = report.warnings
    assert "No systemd user manager answers (systemctl failed (exit code 5): show is refused)" in warning
    assert f"nohup {world.context().interpreter}" in warning
    assert world.calls("systemctl") == START[:1]
    inspection = systemd.inspect(world.context())
    assert (inspection.state, inspection.loaded) == ("installed", None)
    assert "cannot be told" in inspection.notes[0]
    report = systemd.uninstall(world.context())
    assert world.tree() == {} and not report.warnings  # daemon-reload and stop do work here.


@pytest.mark.parametrize("verb", ["daemon-reload", "start", "restart"])
def test_a_refusal_is_told_and_undoes_nothing(world: World, verb: str) -> None:
    """With the usual reason."""
    world.environ["FAKE_MANAGER_FAIL"] = verb
    report = systemd.install(world.context())
    (warning,) = report.warnings
    assert f"{verb} is refused" in warning and "holds port 51999" in warning
    assert all(os.path.lexists(path) for path in places(world))


def test_a_hanging_manager_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, not at every step."""
    monkeypatch.setattr(usermanager.UserManager.__init__, "__defaults__", (0.1,))
    world.environ["FAKE_MANAGER_HANG"] = "start stop"
    report = systemd.install(world.context())
    assert "did not end within 0.1 s" in report.warnings[0]
    report = systemd.uninstall(world.context())
    assert "did not end within 0.1 s" in report.warnings[0] and "until you log out" in report.warnings[0]
    assert world.tree() == {}


def test_units_that_systemd_does_not_find_are_told(world: World) -> None:
    """A variable that only this shell has."""
    fake = world.bin / "systemctl"
    fake.write_text(fake.read_text().replace("is refused", "failed: Unit x not found."))
    world.environ.update(FAKE_MANAGER_FAIL="start", XDG_CONFIG_HOME=str(world.home / "elsewhere"))
    assert "XDG_CONFIG_HOME" in systemd.install(world.context()).warnings[0]
    assert (world.home / "elsewhere" / "systemd" / "user" / SERVICE).exists()


def foreign(world: World, index: int, how: str) -> Path:
    """Something that is not ours in one of our places."""
    path = places(world)[index]
    path.parent.mkdir(parents=True, exist_ok=True)
    if how == "folder":
        path.mkdir()
    elif how == "link":
        path.symlink_to("/dev/null")
    else:
        path.write_text("[Service]\nExecStart=/bin/true\n")
    return path


@pytest.mark.parametrize("how", ["file", "folder", "link"])
@pytest.mark.parametrize("index", range(4))
def test_what_is_not_ours_is_refused_both_ways(world: World, index: int, how: str) -> None:
    """Nothing is asked of the manager, nothing changes."""
    path = foreign(world, index, how)
    before = world.tree()
    for act in (systemd.install, systemd.uninstall):
        with pytest.raises(AdapterError, match="unmanaged") as caught:
            act(world.context())
        assert caught.value.path == path
    assert [call for call in world.calls() if "Version" not in call] == [] and world.tree() == before
    inspection = systemd.inspect(world.context())
    assert (inspection.state, inspection.place) == ("foreign", str(path)) and inspection.notes


def test_links_to_our_units_are_ours_however_they_are_spelled(world: World) -> None:
    """``systemctl enable`` of some versions, or a hand, makes a relative one; it is renewed."""
    systemd.install(world.context())
    link = places(world)[2]
    link.unlink()
    link.symlink_to(f"../{SERVICE}")
    assert systemd.inspect(world.context()).state == "installed"
    assert systemd.install(world.context()).changed
    assert systemd.uninstall(world.context()).changed and world.tree() == {}


def test_what_is_out_of_date_is_named(world: World) -> None:
    """Each with what differs."""
    systemd.install(world.context())
    context = world.context()
    other = world.tool("other")
    assert [
        note.partition(": ")[2] for note in systemd.inspect(replace(context, interpreter=other)).notes
    ] == [f"its interpreter is {context.interpreter}, this is {other}"]
    moved = world.folder / "moved.pyz"
    world.program.rename(moved)
    inspection = systemd.inspect(replace(context, program=moved))
    assert inspection.state == "outdated" and f"its program {world.program} is gone" in inspection.notes[0]
    moved.rename(world.program)
    assert systemd.inspect(world.context(port=52000)).notes == tuple(
        f"{path} is not what this version writes" for path in places(world)[:2]
    )
    places(world)[3].unlink()
    assert systemd.inspect(context).notes == (f"it is not enabled: {places(world)[3]} is missing",)
    systemd.install(context)
    for index in (0, 1):
        text = places(world)[index].read_text()
        places(world)[index].unlink()
        assert systemd.inspect(context).notes == (f"{places(world)[index]} is missing",)
        places(world)[index].write_text(text)
    assert systemd.inspect(context) == replace(systemd.inspect(context), state="installed", notes=())


def test_a_choice_of_that_time_is_not_out_of_date(world: World) -> None:
    """Tools that were left out or replaced stay so until the next install."""
    world.tool("gh")
    systemd.install(world.context(["", "n", ""]))
    assert systemd.inspect(world.context()).state == "installed"


@pytest.mark.parametrize(("state", "loaded"), [("active", True), ("inactive", True), ("failed", False)])
def test_whether_it_runs_is_told(world: World, state: str, loaded: bool) -> None:
    """One that is at rest is started by whoever calls; one that has failed is not."""
    systemd.install(world.context())
    world.environ["FAKE_MANAGER_STATE"] = state
    inspection = systemd.inspect(world.context())
    assert (inspection.state, inspection.loaded) == ("installed", loaded)
    assert inspection.notes == (() if state == "active" else (f"{SERVICE} is {state}",))


def test_nothing_is_absent(world: World) -> None:
    """And not asked about."""
    inspection = systemd.inspect(world.context())
    assert (inspection.state, inspection.loaded, inspection.notes) == ("absent", None, ())
    assert world.calls() == [] and not systemd.stands(world.context())
    systemd.install(world.context())
    assert systemd.stands(world.context())


def test_foreign_bytes_do_no_harm(world: World) -> None:
    """Our mark, and garbage behind it."""
    systemd.install(world.context())
    path = places(world)[0]
    path.write_bytes(path.read_bytes()[:200] + b"\xff\0ExecStart=\n" * 1000)
    inspection = systemd.inspect(world.context())
    assert inspection.state == "outdated" and "it names no interpreter" in inspection.notes[0]
    assert systemd.install(world.context()).changed


def test_a_home_behind_a_link(world: World) -> None:
    """A dotfiles folder: the link stays, what it leads to is written and emptied."""
    (world.folder / "dotfiles").mkdir()
    (world.home / ".config").symlink_to(world.folder / "dotfiles")
    systemd.install(world.context())
    assert systemd.inspect(world.context()).state == "installed"
    assert (world.folder / "dotfiles" / "systemd" / "user" / SERVICE).exists()
    systemd.uninstall(world.context())
    assert list(world.tree()) == [".config"] and list((world.folder / "dotfiles").iterdir()) == []


def test_a_death_at_any_point_is_repaired_by_either(world: World) -> None:
    """Installing again completes it, removing takes everything away."""
    before = world.inhabit()
    for count in range(200):
        through = die_at(count, lambda: systemd.install(world.context()))
        if count % 2:
            systemd.install(world.context())
            assert systemd.inspect(world.context()).state == "installed"
        systemd.uninstall(world.context())
        assert world.tree() == before, count
        if through:
            return
    pytest.fail("it never got through")


def test_a_path_that_no_unit_can_hold_changes_nothing(make_world: MakeWorld) -> None:
    """Refused before anything is asked or written."""
    world = make_world("line\nbreak")
    world.manager("systemctl")
    with pytest.raises(AdapterError, match="control character"):
        systemd.install(world.context())
    assert world.calls() == [] and world.tree() == {}
