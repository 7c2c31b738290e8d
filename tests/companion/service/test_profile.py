"""Lines for a shell profile, in the shells that will read them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from companion.service import plan as plans
from companion.service import profile
from tests.companion.service.conftest import ODD_NAMES, MakeWorld
from tests.companion.web.talk import eventually

STARTED = """#!/bin/sh
printf '%s\\n' "$@" "$MDELLO_COMPANION_PORT" "$XDG_STATE_HOME" >"$XDG_STATE_HOME.new"
mv "$XDG_STATE_HOME.new" "$XDG_STATE_HOME.told"
trap '' TERM
kill -HUP $$
echo survived >"$XDG_STATE_HOME.alive"
"""


SHELLS = [name for name in ("sh", "dash", "bash", "zsh", "ksh", "busybox") if shutil.which(name)]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", ODD_NAMES)
def test_any_shell_starts_the_program_in_the_background(make_world: MakeWorld, name: str, shell: str) -> None:
    """With its arguments whole, without a word, and deaf to a terminal that closes."""
    world = make_world(name)
    python = world.home / "python"
    python.write_text(STARTED)
    python.chmod(0o755)
    state = world.home / "state"
    world.environ["XDG_STATE_HOME"] = str(state)
    world.program = world.home / "mdello.pyz"
    world.program.write_text("")
    context = world.context()
    plan = plans.assembled(context, str(python), [])
    command = [shell, *(["sh"] if shell == "busybox" else [])]
    done = subprocess.run(
        [*command, "-c", "\n".join(profile.lines(plan))],
        env={"HOME": str(world.home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        timeout=60,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    assert (done.stdout, done.stderr) == (b"", b"")
    told = Path(f"{state}.told")
    eventually(told.exists)
    words = [str(world.program), "serve", "--log-files", "51999", str(state), ""]
    assert told.read_text().split("\n") == words
    eventually(Path(f"{state}.alive").exists)
