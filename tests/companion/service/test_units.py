"""The units' text, against systemd's own reader where there is one."""

import shutil
import subprocess
from pathlib import Path

import pytest

from companion.service import plan as plans
from companion.service import units
from tests.companion.service.conftest import ODD_NAMES, MakeWorld, World
from tests.fakes import supervisor


def test_they_say_what_they_must(world: World) -> None:
    """Absolute paths, restart on failure, both addresses, nothing that confines."""
    gh = world.tool("gh")
    plan = plans.make(world.context())
    texts = units.texts(plan)
    service = list(supervisor.settings(texts[units.SERVICE]))
    assert ("Service", "Restart", "on-failure") in service
    assert ("Unit", "Requires", units.SOCKET) in service
    unit = supervisor.read_service(texts[units.SERVICE])
    assert unit.argv == [plan.interpreter, str(world.program), "serve", "--log-files"]
    assert unit.environment == dict(plan.environment) and unit.environment["GH_PATH"] == gh
    assert "PATH" not in unit.environment
    listens = [value for _, key, value in supervisor.settings(texts[units.SOCKET]) if key == "ListenStream"]
    assert listens == ["127.0.0.1:51999", "[::1]:51999"]
    confining = ("Protect", "Private", "ReadOnly", "Inaccessible", "TemporaryFileSystem", "NoNew")
    assert not [key for _, key, _ in service if key.startswith(confining)]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_systemd_takes_them(make_world: MakeWorld, tmp_path: Path, name: str) -> None:
    """Without a warning, whatever the home is called, the interpreter and the program in it."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd-analyze here")
    world = make_world(name)
    python = world.home / "my python"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    world.program = world.home / "mdello.pyz"
    world.program.write_text("")
    for each in plans.TOOLS:
        (world.bin / each).symlink_to(python)
    plan = plans.assembled(world.context(), str(python), [("GH_PATH", str(python))])
    folder = tmp_path / "units"
    folder.mkdir()
    for unit, text in units.texts(plan).items():
        (folder / unit).write_text(text, encoding="utf-8")
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    done = subprocess.run(
        [analyze, "verify", "--user", *(str(folder / unit) for unit in (units.SERVICE, units.SOCKET))],
        env={"HOME": str(world.home), "XDG_RUNTIME_DIR": str(run), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
