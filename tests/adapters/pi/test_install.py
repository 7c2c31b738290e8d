"""What is particular to Pi: where its folder is, the link of older versions, what keeps it from loading.

What it shares with other agents is tested in ``tests/adapters/client/test_link.py``.
"""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Callable, List

import pytest

from adapters import pi
from adapters.contract import AdapterError, InstallContext
from adapters.pi.install import agent_dir
from tests.adapters.disk import tree_of


@pytest.fixture
def context(tmp_path: Path) -> InstallContext:
    """A new machine: an empty home."""
    (tmp_path / "home").mkdir()
    return InstallContext(tmp_path / "home", {}, "http://127.0.0.1:4321", tmp_path / "mdello.pyz", "/py")


def extensions(context: InstallContext) -> Path:
    """The folder from which Pi loads."""
    return context.home / ".pi" / "agent" / "extensions"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("", "/home/dev/.pi/agent"),
        ("/elsewhere", "/elsewhere"),
        ("~", "/home/dev"),
        ("~/pi", "/home/dev/pi"),
    ],
)
def test_pis_folder_is_where_pi_looks(told: str, expected: str) -> None:
    """Pi itself reads a tilde as the home."""
    assert agent_dir(Path("/home/dev"), {"PI_CODING_AGENT_DIR": told}) == Path(expected)


def test_a_relative_folder_is_refused(context: InstallContext) -> None:
    """It would name another one in every directory."""
    relative = replace(context, environ={"PI_CODING_AGENT_DIR": "pi"})
    for act in (pi.install, pi.uninstall):
        with pytest.raises(AdapterError, match="PI_CODING_AGENT_DIR"):
            act(relative)
    assert pi.inspect(relative).state == "absent" and pi.inspect(relative).notes
    assert pi.presence(relative) is None
    assert tree_of(context.home) == {}


def test_the_link_of_an_older_version_is_replaced(context: InstallContext, tmp_path: Path) -> None:
    """It was a link to a folder. Both at once would report everything twice."""
    older = tmp_path / "older"
    older.mkdir()
    extensions(context).mkdir(parents=True)
    (extensions(context) / "mdello-companion").symlink_to(older)
    assert pi.inspect(context).state == "outdated"
    report = pi.install(context)
    assert any("older version" in line for line in report.details)
    assert [path.name for path in extensions(context).iterdir()] == ["mdello-companion.js"]
    assert older.is_dir()
    (extensions(context) / "mdello-companion").symlink_to(older)
    assert pi.inspect(context).state == "outdated"
    pi.uninstall(context)
    assert list(extensions(context).iterdir()) == []


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch], ids=["folder", "file"])
def test_something_else_in_the_older_links_place_is_spared_both_ways(
    make: Callable[[Path], None], context: InstallContext
) -> None:
    """An extension of the user's that happens to have this name."""
    extensions(context).mkdir(parents=True)
    make(extensions(context) / "mdello-companion")
    before = tree_of(context.home)
    with pytest.raises(AdapterError, match="Cannot replace unmanaged"):
        pi.install(context)
    with pytest.raises(AdapterError, match="Refusing to remove unmanaged"):
        pi.uninstall(context)
    assert pi.inspect(context).state == "foreign"
    assert tree_of(context.home) == before


def test_settings_are_byte_for_byte_the_users(context: InstallContext) -> None:
    """Neither installing nor uninstalling writes them."""
    extensions(context).mkdir(parents=True)
    settings = context.home / ".pi" / "agent" / "settings.json"
    settings.write_bytes(b'{"extensions":  []}\r\n')
    before = (tree_of(context.home), settings.stat().st_mtime_ns)
    pi.install(context)
    pi.uninstall(context)
    assert (tree_of(context.home), settings.stat().st_mtime_ns) == before


def test_what_keeps_pi_from_loading_it_is_told(context: InstallContext) -> None:
    """By the installer and by inspection, until it is gone; what counts is tested with ``loading``."""
    extensions(context).mkdir(parents=True)
    settings = context.home / ".pi" / "agent" / "settings.json"
    settings.write_text(json.dumps({"extensions": ["-~/.pi/agent/extensions/mdello-companion.js"]}))
    ignoring = extensions(context) / ".gitignore"
    ignoring.write_text("*.js\n")
    report = pi.install(context)
    found = pi.inspect(context)
    assert (found.state, found.loaded) == ("installed", False)
    assert report.warnings == found.notes and len(found.notes) == 2
    assert str(ignoring) in found.notes[0] and str(settings) in found.notes[1]
    settings.unlink()
    ignoring.unlink()
    assert (pi.inspect(context).loaded, pi.install(context).warnings) == (True, ())


def test_presence_is_the_program_or_a_folder_that_pi_has_used(context: InstallContext) -> None:
    """What we have made ourselves proves nothing."""
    asked: List[str] = []

    def which(name: str) -> str:
        asked.append(name)
        return f"/bin/{name}"

    assert pi.presence(context) is None
    pi.install(context)
    assert pi.presence(context) is None
    (extensions(context) / "own.ts").touch()
    assert pi.presence(context) == str(context.home / ".pi" / "agent")
    os.unlink(extensions(context) / "own.ts")
    (context.home / ".pi" / "agent" / "sessions").mkdir()
    assert pi.presence(context) == str(context.home / ".pi" / "agent")
    assert pi.presence(replace(context, which=which)) == "/bin/pi"
    assert asked == ["pi"]
