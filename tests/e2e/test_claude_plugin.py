"""What the real CLI says of the plugin that we write."""

import json
import uuid
from pathlib import Path
from typing import List

import pytest

from tests.e2e.claude_world import ClaudeWorld
from tests.e2e.conftest import MakeWorld
from tests.e2e.world import Json, say, use

pytestmark = pytest.mark.e2e

PLUGIN = "mdello-companion@skills-dir"


def claude(world: ClaudeWorld, *arguments: str) -> str:
    """stdout of one subcommand of the CLI, which must succeed."""
    done = world.run_cli(*arguments)
    assert done.code == 0, done
    return done.stdout


def our_plugin(world: ClaudeWorld) -> List[Json]:
    """Our entry in the CLI's list of plugins; empty when it is not there."""
    plugins: List[Json] = json.loads(claude(world, "plugin", "list", "--json"))
    return [plugin for plugin in plugins if plugin["id"] == PLUGIN]


@pytest.mark.parametrize("transport", ["http", "command"])
def test_the_plugin_validates_and_loads(make_world: MakeWorld, transport: str) -> None:
    """No error from the CLI's own validator, and the plugin is listed as loaded."""
    world = make_world()
    world.mdello("install", "claude", "--transport", transport)
    folder = world.home / ".claude/skills/mdello-companion"
    report: Json = json.loads(claude(world, "plugin", "validate", str(folder), "--json"))
    assert report["success"] is True
    manifest = report["manifest"]
    assert isinstance(manifest, dict) and manifest["errors"] == []
    (listed,) = our_plugin(world)
    assert (listed["enabled"], listed["scope"]) == (True, "user")
    assert "✔ loaded" in claude(world, "plugin", "list").partition(PLUGIN)[2]


def test_a_plugin_switched_off_is_told(world: ClaudeWorld) -> None:
    """After ``claude plugin disable`` no event comes, and install and doctor both say so."""
    named = world.card("named.md")
    claude(world, "plugin", "disable", PLUGIN)
    world.headless(f"Work on {named.path}")
    assert world.health()["harnesses"] == {}
    installed = world.mdello("install", "claude")
    assert "claude plugin enable" in installed.stdout + installed.stderr
    assert "claude plugin enable" in world.mdello("doctor", code=None).stdout

    claude(world, "plugin", "enable", PLUGIN)
    installed = world.mdello("install", "claude")
    assert "claude plugin enable" not in installed.stdout + installed.stderr
    world.headless(f"Work on {named.path}")
    assert world.linked() == {named.uuid: "closed"}


def test_after_uninstall_the_cli_knows_nothing_of_us(world: ClaudeWorld) -> None:
    """The plugin is gone from the CLI's list, and a session sends the companion nothing."""
    world.mdello("uninstall", "claude")
    assert our_plugin(world) == []
    world.headless(f"Work on {world.card('named.md').path}")
    assert world.health()["harnesses"] == {}


@pytest.mark.parametrize("transport", ["http", "command"])
def test_the_oldest_supported_cli_loads_our_hooks(
    make_world: MakeWorld, oldest_cli: Path, transport: str
) -> None:
    """One event name that it does not know would silence the whole file; none does."""
    world = make_world(cli=oldest_cli)
    world.mdello("install", "claude", "--transport", transport)
    world.start_companion()
    named = world.card("named.md")
    marker = world.script("look", use("Bash", command="echo hello"), say("Looked."))
    session = str(uuid.uuid4())
    one_run = ["running", "ready_for_review", "closed"]
    with world.stream() as stream:
        flags = ("--session-id", session, "--allowedTools", "Bash")
        run = world.headless(f"{marker} Work on {named.path}", *flags)
        assert run.json()["result"] == "Looked."
        stream.wait_for(named.uuid, one_run)
        world.headless("And again", "--resume", session)
        stream.wait_for(named.uuid, [*one_run, "idle", *one_run])
