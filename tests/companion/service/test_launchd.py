"""A launch agent in place and started; and gone again."""

import os
import plistlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List

import pytest

from adapters.contract import AdapterError, InstallContext, InstallReport
from companion.service import launchd, migration, owned
from companion.service import plan as plans
from companion.service.sockets import LABEL
from tests.adapters.disk import die_at, times_of
from tests.companion.service.conftest import ODD_NAMES, MakeWorld, World

UID = 501
AGENT = f"gui/{UID}/{LABEL}"


@pytest.fixture
def world(world: World) -> World:
    """With a launchctl that keeps a list."""
    world.manager("launchctl")
    return world


def install(context: InstallContext) -> InstallReport:
    """Without waiting between two tries."""
    return launchd.install(context, UID, pauses_s=(0.0, 0.0))


def plist(world: World) -> Path:
    """Where it is."""
    return world.home / "Library" / "LaunchAgents" / "com.mdello.companion.plist"


def told(world: World) -> Dict[str, Any]:
    """What it says."""
    value: Dict[str, Any] = plistlib.loads(plist(world).read_bytes())
    return value


def start(world: World) -> List[str]:
    """The calls of one install, in the contract's order."""
    return [f"bootout gui/{UID} {plist(world)}", f"bootstrap gui/{UID} {plist(world)}"]


@pytest.mark.parametrize("name", [name for name in ODD_NAMES if "\\" not in name])
def test_the_plist_says_what_the_contract_names(make_world: MakeWorld, name: str) -> None:
    """Label, program without a command, folder, environment, logs; and its sockets."""
    world = make_world(name)
    world.manager("launchctl")
    gh = world.tool("gh")
    install(world.context())
    state = world.home / ".local" / "state"
    listener = {"SockServiceName": "51999", "SockType": "stream", "SockPassive": True}
    assert told(world) == {
        "Label": LABEL,
        "ProgramArguments": [sys.executable, str(world.program)],
        "WorkingDirectory": str(world.home),
        "EnvironmentVariables": {
            "HOME": str(world.home),
            "MDELLO_COMPANION_PORT": "51999",
            "XDG_CONFIG_HOME": str(world.home / ".config"),
            "XDG_STATE_HOME": str(state),
            "GH_PATH": gh,
        },
        "RunAtLoad": True,
        "KeepAlive": True,
        "StandardOutPath": str(state / "mdello" / "companion.log"),
        "StandardErrorPath": str(state / "mdello" / "companion-error.log"),
        "Sockets": {
            "Listeners": [
                {**listener, "SockFamily": "IPv4", "SockNodeName": "127.0.0.1"},
                {**listener, "SockFamily": "IPv6", "SockNodeName": "::1"},
            ]
        },
    }
    assert b"JIRA_API_TOKEN" not in plist(world).read_bytes()
    assert (state / "mdello").is_dir()


def test_the_order_of_the_steps(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop, move old files, write, start."""
    migrate, put = migration.migrate, owned.put

    def spy(word: str, act: Any) -> Any:
        def acting(*arguments: Any, **keywords: Any) -> Any:
            with world.log.open("a") as log:
                log.write(f"{word}\n")
            return act(*arguments, **keywords)

        return acting

    monkeypatch.setattr(migration, "migrate", spy("migrate", migrate))
    monkeypatch.setattr(owned, "put", spy("write", put))
    report = install(world.context())
    assert [line.split()[1] if " " in line else line for line in world.calls()] == [
        "bootout",
        "migrate",
        "write",
        "bootstrap",
    ]
    assert report.changed and report.warnings == ()
    assert report.headline == f"Installed the companion's service at {plist(world)}"
    assert report.details[0] == f"Wrote {plist(world)}"


def test_two_installs_call_each_verb_twice(world: World) -> None:
    """The second one writes nothing."""
    install(world.context())
    times = times_of(world.home)
    report = install(world.context())
    assert world.calls("launchctl") == start(world) * 2
    assert times_of(world.home) == times
    assert not report.changed and report.headline.endswith("(nothing to change)")


@pytest.mark.parametrize("inhabited", [False, True])
@pytest.mark.parametrize("name", ODD_NAMES)
def test_uninstalling_is_the_inverse(make_world: MakeWorld, name: str, inhabited: bool) -> None:
    """Twice; what was not there is no failure."""
    world = make_world(name)
    world.manager("launchctl")
    before = world.inhabit() if inhabited else world.tree()
    for _ in range(2):
        install(world.context())
        install(world.context())
        assert launchd.inspect(world.context(), UID).state == "installed"
        report = launchd.uninstall(world.context(), UID)
        assert report.changed and report.details == (f"Deleted {plist(world)}",)
        assert world.tree() == before
    world.environ["FAKE_MANAGER_FAIL"] = "bootout"
    report = launchd.uninstall(world.context(), UID)
    assert not report.changed and report.warnings == () and world.tree() == before


def test_the_logs_of_a_companion_that_ran_stay(world: World) -> None:
    """They are no work of the installer's."""
    install(world.context())
    log = world.home / ".local" / "state" / "mdello" / "companion.log"
    log.write_text("x")
    launchd.uninstall(world.context(), UID)
    assert log.read_text() == "x" and not (world.home / "Library").exists()


def test_a_bootstrap_that_comes_too_early_is_repeated(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """launchd is still busy with the old job."""
    slept: List[float] = []
    monkeypatch.setattr("companion.service.launchd.time.sleep", slept.append)
    world.environ["FAKE_MANAGER_ONCE"] = "bootstrap"
    report = launchd.install(world.context(), UID)
    assert 0.5 in slept
    assert world.calls("launchctl") == [start(world)[0], start(world)[1], start(world)[1]]
    assert report.warnings == ()


def test_a_refusal_is_told_and_undoes_nothing(world: World) -> None:
    """Over ssh there is no desktop to start it in."""
    world.environ["FAKE_MANAGER_FAIL"] = "bootstrap bootout"
    report = install(world.context())
    (warning,) = report.warnings
    assert "bootstrap is refused" in warning and f"launchctl enable {AGENT}" in warning
    assert plist(world).exists() and len(world.calls()) == 4


def test_a_hanging_launchctl_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, and told."""
    monkeypatch.setattr(launchd.Launchctl.__init__, "__defaults__", (0.1,))
    world.environ["FAKE_MANAGER_HANG"] = "bootout bootstrap"
    report = install(world.context())
    assert "launchctl did not end within 0.1 s" in report.warnings[0]
    assert len(world.calls()) == 2 and plist(world).exists()
    assert launchd.uninstall(world.context(), UID).changed


def test_a_missing_launchctl_is_told(world: World) -> None:
    """The plist is written all the same."""
    if os.path.exists("/bin/launchctl"):
        pytest.skip("launchctl is here")
    (world.bin / "launchctl").unlink()
    assert "launchctl cannot be started" in install(world.context()).warnings[0]
    assert plist(world).exists()
    inspection = launchd.inspect(world.context(), UID)
    assert (inspection.state, inspection.loaded) == ("installed", False)


def test_old_files_are_moved(world: World) -> None:
    """The contract's case: a configuration that exists already keeps the old one."""
    old = world.home / ".mdello"
    old.mkdir()
    for name in ("companion.json", "companion.jsonl", "companion.log", "companion-error.log"):
        (old / name).write_text(name)
    new = world.home / ".config" / "mdello" / "companion.json"
    new.parent.mkdir(parents=True)
    new.write_text("new")
    report = install(world.context())
    state = world.home / ".local" / "state" / "mdello"
    assert sorted(path.name for path in state.iterdir()) == [
        "companion-error.log",
        "companion.jsonl",
        "companion.log",
    ]
    assert new.read_text() == "new" and [path.name for path in old.iterdir()] == ["companion.json"]
    assert len([line for line in report.details if line.startswith("Moved")]) == 3
    assert "stays where it is" in report.warnings[0]


def foreign(path: Path, how: str) -> None:
    """Something that is not ours in our place."""
    path.parent.mkdir(parents=True)
    if how == "folder":
        path.mkdir()
    elif how == "link":
        path.symlink_to("/dev/null")
    elif how == "label":
        path.write_bytes(plistlib.dumps({"Label": "com.example", "ProgramArguments": ["/bin/true"]}))
    elif how == "list":
        path.write_bytes(plistlib.dumps([LABEL]))
    else:
        path.write_bytes({"text": b"hello", "empty": b"", "binary": b"bplist00\xff\xff\xff"}[how])


@pytest.mark.parametrize("how", ["folder", "link", "label", "list", "text", "empty", "binary"])
def test_what_is_not_ours_is_refused_both_ways(world: World, how: str) -> None:
    """Nothing is stopped, nothing changes."""
    foreign(plist(world), how)
    before = world.tree()
    with pytest.raises(AdapterError, match="Cannot replace unmanaged"):
        install(world.context())
    with pytest.raises(AdapterError, match="Refusing to remove unmanaged"):
        launchd.uninstall(world.context(), UID)
    assert world.calls() == [] and world.tree() == before
    inspection = launchd.inspect(world.context(), UID)
    assert inspection.state == "foreign" and inspection.notes


def test_the_service_of_the_first_companion_is_replaced(world: World) -> None:
    """It has our label, and another program; both would fight for the port."""
    plist(world).parent.mkdir(parents=True)
    plist(world).write_bytes(
        plistlib.dumps({"Label": LABEL, "ProgramArguments": ["/usr/bin/node", "/x/companion.js"]})
    )
    inspection = launchd.inspect(world.context(), UID)
    assert inspection.state == "outdated" and "/x/companion.js is gone" in inspection.notes[1]
    assert install(world.context()).changed
    assert launchd.inspect(world.context(), UID).state == "installed"


def test_what_is_out_of_date_is_named(world: World) -> None:
    """Interpreter, program, port; odd values are no error."""
    assert launchd.inspect(world.context(), UID).state == "absent"
    install(world.context())
    context = world.context()
    other = world.tool("other")
    inspection = launchd.inspect(replace(context, interpreter=other), UID)
    assert inspection.notes == (f"{plist(world)}: its interpreter is {context.interpreter}, this is {other}",)
    assert launchd.inspect(world.context(port=52000), UID).notes == (
        f"{plist(world)} is not what this version writes",
    )
    for odd in ({"ProgramArguments": 5}, {"EnvironmentVariables": [1]}, {"ProgramArguments": [1, {}]}):
        plist(world).write_bytes(plistlib.dumps({**launchd_properties(world), **odd}))
        assert launchd.inspect(context, UID).state == "outdated"


def launchd_properties(world: World) -> Dict[str, Any]:
    """What an install would write."""
    return launchd.properties(plans.make(world.context()))


def test_whether_launchd_knows_it_is_told(world: World) -> None:
    """``print`` knows what is loaded."""
    install(world.context())
    assert launchd.inspect(world.context(), UID).loaded is True
    assert world.calls("launchctl")[-1] == f"print {AGENT}"
    world.environ["FAKE_MANAGER_FAIL"] = "print"
    inspection = launchd.inspect(world.context(), UID)
    assert inspection.loaded is False and "print is refused" in inspection.notes[0]


@pytest.mark.parametrize("name", ["line\nbreak\x01", "\udcff"])
def test_a_path_that_xml_cannot_hold_changes_nothing(make_world: MakeWorld, name: str) -> None:
    """Refused before anything is asked or written."""
    world = make_world(name)
    world.manager("launchctl")
    with pytest.raises(AdapterError, match="launchd can start nothing"):
        install(world.context())
    assert world.calls() == [] and world.tree() == {}


def test_a_death_at_any_point_is_repaired_by_either(world: World) -> None:
    """Installing again completes it, removing takes everything away."""
    before = world.inhabit()
    for count in range(200):
        through = die_at(count, lambda: install(world.context()))
        if count % 2:
            install(world.context())
            assert launchd.inspect(world.context(), UID).state == "installed"
        launchd.uninstall(world.context(), UID)
        assert world.tree() == before, count
        if through:
            return
    pytest.fail("it never got through")
