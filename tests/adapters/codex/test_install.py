"""Our hooks file in Codex's folder: put there, kept up to date, and taken away."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Optional

import pytest

from adapters import placing
from adapters.codex import hooksfile
from adapters.codex.install import inspect, install, presence, uninstall
from adapters.contract import AdapterError, InstallContext
from tests.adapters.codex.test_policy import trust
from tests.adapters.disk import tree_of

FOREIGN = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}}\n'


@pytest.fixture
def machine(tmp_path: Path) -> InstallContext:
    """An empty home; curl is in the usual place."""
    (tmp_path / "home").mkdir()
    (tmp_path / "mdello.pyz").touch()
    return InstallContext(
        home=tmp_path / "home",
        environ={"HOME": str(tmp_path / "home")},
        endpoint="http://127.0.0.1:59999",
        program=tmp_path / "mdello.pyz",
        interpreter="/usr/bin/python3",
        which=lambda name: name if name == "/usr/bin/curl" else None,
        version="1.2.3",
    )


def place(machine: InstallContext) -> Path:
    return machine.home / ".codex" / "hooks.json"


def test_in_and_out(machine: InstallContext) -> None:
    """The report says what is on disk, and how the hooks are trusted; the home is as before in the end."""
    report = install(machine)
    assert report.changed and report.headline == f"Installed Codex hooks at {place(machine)}"
    assert f"Wrote {place(machine)}" in report.details and report.warnings == ()
    assert any("Say /hooks in Codex" in line for line in report.details)
    assert place(machine).stat().st_mode & 0o777 == placing.PRIVATE_FILE_MODE
    again = install(machine)
    assert not again.changed and again.headline.endswith("(nothing to change)")
    found = inspect(machine)
    assert (found.state, found.place, found.loaded) == ("installed", str(place(machine)), False)
    assert uninstall(machine).changed
    assert list(machine.home.iterdir()) == []
    assert not uninstall(machine).changed
    assert inspect(machine).state == "absent"


def test_the_users_trust_is_left_alone(machine: InstallContext) -> None:
    """Before, meanwhile and afterwards; with it inspection has nothing to say."""
    config = machine.home / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(trust(place(machine)))
    before = tree_of(machine.home)
    install(machine)
    found = inspect(machine)
    assert (found.loaded, found.notes) == (None, ())
    uninstall(machine)
    assert tree_of(machine.home) == before


def test_what_changed_is_outdated_until_installed_again(machine: InstallContext) -> None:
    """Another port changes the file, another version of ours does not: it would have to be trusted anew."""
    install(machine)
    assert not install(replace(machine, version="9.9")).changed
    moved = replace(machine, endpoint="http://127.0.0.1:50001")
    found = inspect(moved)
    assert found.state == "outdated" and "is not what this version writes" in found.notes[0]
    assert install(moved).changed
    assert b":50001/hooks/codex" in place(machine).read_bytes()


@pytest.mark.parametrize("kind", ["file", "link", "dangling", "folder", "shared"])
def test_what_is_not_ours_is_never_touched(kind: str, machine: InstallContext) -> None:
    """The refusal says what could be done by hand; nothing has changed."""
    at = place(machine)
    at.parent.mkdir()
    if kind == "file":
        at.write_text(FOREIGN)
    elif kind == "folder":
        at.mkdir()
    elif kind == "shared":
        install(machine)
        content = json.loads(at.read_text())
        content["hooks"]["Stop"] += json.loads(FOREIGN)["hooks"]["Stop"]
        at.write_text(json.dumps(content))
    else:
        at.symlink_to("elsewhere.json")
        if kind == "link":
            (at.parent / "elsewhere.json").write_bytes(b"{}")
    before = tree_of(machine.home)
    with pytest.raises(AdapterError, match="by hand for each of SessionStart, ") as refused:
        install(machine)
    assert "/hooks/codex" in str(refused.value) and str(at) in str(refused.value)
    with pytest.raises(AdapterError, match="Refusing to remove"):
        uninstall(machine)
    found = inspect(machine)
    assert found.state == "foreign" and str(at) in found.notes[0]
    assert tree_of(machine.home) == before


def test_a_file_that_comes_in_between_stays(machine: InstallContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between our look and our writing."""
    real = placing.write_new

    def write(path: Path, data: bytes) -> None:
        real(path, data)
        if path.parent.name == ".codex":
            place(machine).write_text(FOREIGN)

    monkeypatch.setattr(placing, "write_new", write)
    with pytest.raises(AdapterError, match="Cannot install"):
        install(machine)
    assert place(machine).read_text() == FOREIGN
    assert [path.name for path in place(machine).parent.iterdir()] == ["hooks.json"]


def test_a_disk_without_hard_links(machine: InstallContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is renamed into place."""

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert install(machine).changed
    assert inspect(machine).state == "installed"


@pytest.mark.parametrize(
    ("told", "folder"),
    [("", "home/.codex"), ("{base}/other", "other"), ("relative", None)],
)
def test_codex_home(told: str, folder: Optional[str], machine: InstallContext) -> None:
    """As Codex reads it, but a relative one is refused; it is said that it counts."""
    base = machine.home.parent
    machine = replace(machine, environ={"CODEX_HOME": told.format(base=base)})
    if folder is None:
        for act in (install, uninstall):
            with pytest.raises(AdapterError, match="must be an absolute path"):
                act(machine)
        assert inspect(machine).state == "absent" and presence(machine) is None
        return
    report = install(machine)
    assert (base / folder / "hooks.json").exists()
    assert any("CODEX_HOME is" in line for line in report.details) == bool(told)
    assert uninstall(machine).changed


def test_trust_in_a_linked_folder(machine: InstallContext) -> None:
    """Codex names a folder of ``CODEX_HOME`` by its real path, and its own as it is spelled."""
    real, link = machine.home / "real", machine.home / ".codex"
    real.mkdir()
    link.symlink_to("real")
    install(machine)
    (real / "config.toml").write_text(trust(link / "hooks.json"))
    told = replace(machine, environ={"CODEX_HOME": str(link)})
    assert (inspect(machine).loaded, inspect(told).loaded) == (None, False)
    (real / "config.toml").write_text(trust(real / "hooks.json"))
    assert (inspect(machine).loaded, inspect(told).loaded) == (False, None)


def test_an_administrators_policy_is_a_warning(machine: InstallContext, tmp_path: Path) -> None:
    """At the installation, and whenever one looks."""
    policy = tmp_path / "requirements.toml"
    policy.write_text("allow_managed_hooks_only = true\n")
    assert "allow_managed_hooks_only" in install(machine, policy).warnings[0]
    found = inspect(machine, policy)
    assert found.loaded is False and "allow_managed_hooks_only" in found.notes[-1]


def test_without_curl_our_own_program_posts(machine: InstallContext, tmp_path: Path) -> None:
    """It must be there then."""
    bare = replace(machine, which=lambda name: None)
    install(bare)
    assert f"{tmp_path}/mdello.pyz hook-post codex 59999".encode() in place(machine).read_bytes()
    gone = replace(bare, program=tmp_path / "gone.pyz")
    with pytest.raises(AdapterError, match="cannot be found"):
        install(gone)
    assert inspect(gone).state == "foreign"


def test_presence(machine: InstallContext) -> None:
    """The program, else a folder with more in it than ours."""
    assert presence(machine) is None
    install(machine)
    assert presence(machine) is None
    (machine.home / ".codex" / "config.toml").touch()
    assert presence(machine) == str(machine.home / ".codex")
    found = replace(machine, which=lambda name: f"/bin/{name}")
    assert presence(found) == "/bin/codex"
    assert hooksfile.NAME == "hooks.json"
