"""What is particular to OpenCode: files of its own beside our link, and how it is found.

What it shares with other agents is tested in ``tests/adapters/client/test_link.py``.
"""

from dataclasses import replace
from pathlib import Path
from typing import Dict

import pytest

from adapters import opencode
from adapters.client import bundle
from adapters.contract import InstallContext
from tests.adapters.disk import times_of, tree_of


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InstallContext:
    """A new machine: an empty home."""
    monkeypatch.setattr(bundle, "client_source", lambda agent: b"export const Mdello = 0;\n")
    (tmp_path / "home").mkdir()
    return InstallContext(
        tmp_path / "home", {}, "http://127.0.0.1:51618", tmp_path / "mdello.pyz", "/usr/bin/python3"
    )


def test_opencodes_own_files_are_left_alone(context: InstallContext) -> None:
    """Its configuration, and the packages that it installs where plugins are."""
    config = context.home / ".config" / "opencode"
    (config / "plugins").mkdir(parents=True)
    (config / "node_modules" / "@opencode-ai" / "plugin").mkdir(parents=True)
    for name in ("opencode.json", "opencode.jsonc", "package.json", "package-lock.json", ".gitignore"):
        (config / name).write_text('{"plugin":  []}\r\n')
    (config / "plugins" / "own.js").write_text("export const Own = 0;")
    before = (tree_of(context.home), times_of(config / "node_modules"))
    opencode.install(context)
    assert opencode.inspect(context).state == "installed"
    opencode.uninstall(context)
    assert (tree_of(context.home), times_of(config / "node_modules")) == before


def test_presence_is_the_program_or_a_folder_that_opencode_has_used(context: InstallContext) -> None:
    """What we have made ourselves proves nothing; its own installer puts it below the home."""
    assert opencode.presence(context) is None
    opencode.install(context)
    assert opencode.presence(context) is None
    own = str(context.home / ".opencode" / "bin" / "opencode")
    assert opencode.presence(replace(context, which=lambda name: name if name == own else None)) == own
    assert opencode.presence(replace(context, which=lambda name: f"/bin/{name}")) == "/bin/opencode"
    (context.home / ".local" / "share" / "opencode").mkdir()
    assert opencode.presence(context) == str(context.home / ".local" / "share" / "opencode")
    (context.home / ".config" / "opencode" / "opencode.json").touch()
    assert opencode.presence(context) == str(context.home / ".config" / "opencode")


def test_presence_follows_xdg(context: InstallContext, tmp_path: Path) -> None:
    """Relative values are ignored there as well."""
    (tmp_path / "data" / "opencode").mkdir(parents=True)
    moved = replace(context, environ={"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CONFIG_HOME": "config"})
    assert opencode.presence(moved) == str(tmp_path / "data" / "opencode")


@pytest.mark.parametrize(
    ("environ", "word"),
    [
        ({}, ""),
        *(({"OPENCODE_PURE": told}, "OPENCODE_PURE") for told in ("1", "true", "yes", "on", "y")),
        *(({"OPENCODE_PURE": told}, "") for told in ("0", "false", "no", "off", "n")),
        ({"OPENCODE_CONFIG_DIR": "/elsewhere"}, ""),  # Looked into as well, not instead.
        ({"XDG_CONFIG_HOME": "config"}, "XDG_CONFIG_HOME"),  # OpenCode does not ignore it.
        ({"XDG_CONFIG_HOME": ""}, ""),
    ],
)
def test_what_keeps_opencode_from_loading_it_is_told(
    environ: Dict[str, str], word: str, context: InstallContext
) -> None:
    """As far as the environment at hand says it; by the installer and by inspection."""
    told = replace(context, environ=environ)
    report = opencode.install(told)
    found = opencode.inspect(told)
    assert (found.state, found.loaded) == ("installed", not word)
    assert report.warnings == found.notes and len(found.notes) == bool(word)
    assert all(word in note for note in found.notes)
