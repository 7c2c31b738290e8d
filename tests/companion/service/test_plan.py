"""What is started at login, and the questions before it."""

from dataclasses import replace
from pathlib import Path

import pytest

from adapters.contract import AdapterError
from companion.service import plan as plans
from tests.companion.service.conftest import World


def values(world: World, **environ: str) -> "dict[str, str]":
    """The environment that a service gets."""
    world.environ.update(environ)
    return dict(plans.make(world.context()).environment)


def test_the_environment_is_what_the_contract_names(world: World) -> None:
    """Base folders, not ours; neither PATH nor credentials, whatever the shell holds."""
    told = values(world, JIRA_API_TOKEN="dummy", GH_TOKEN="dummy", DEBUG="1", PYTHONPATH="/x")
    assert told == {
        "HOME": str(world.home),
        "MDELLO_COMPANION_PORT": "51999",
        "XDG_CONFIG_HOME": str(world.home / ".config"),
        "XDG_STATE_HOME": str(world.home / ".local" / "state"),
    }


def test_what_was_set_at_install_time_is_kept(world: World) -> None:
    """Folders and files; a relative base folder is ignored as everywhere."""
    told = values(
        world,
        XDG_CONFIG_HOME="/c",
        XDG_STATE_HOME="relative",
        MDELLO_COMPANION_CONFIG="/f/c.json",
        MDELLO_COMPANION_DATA="/f/d.jsonl",
    )
    assert told["XDG_CONFIG_HOME"] == "/c"
    assert told["XDG_STATE_HOME"] == str(world.home / ".local" / "state")
    assert (told["MDELLO_COMPANION_CONFIG"], told["MDELLO_COMPANION_DATA"]) == ("/f/c.json", "/f/d.jsonl")
    plan = plans.make(world.context())
    assert plan.settings.state_dir == Path("/f") and plan.port == 51999


def test_tools_are_named_by_absolute_path(world: World) -> None:
    """Those on PATH, or where their variable points; what is not there is not named."""
    gh, tmux = world.tool("gh"), world.tool("tmux")
    elsewhere = world.folder / "my jira"
    elsewhere.write_text("#!/bin/sh\n")
    elsewhere.chmod(0o755)
    told = values(world, JIRA_PATH=str(elsewhere))
    assert (told["GH_PATH"], told["JIRA_PATH"], told["TMUX_PATH"]) == (gh, str(elsewhere), tmux)
    assert "HERDR_PATH" not in told
    with pytest.raises(AdapterError, match=r"JIRA_PATH is '/gone/jira': it must be"):
        values(world, JIRA_PATH="/gone/jira")


def test_four_questions_when_all_tools_are_found(world: World) -> None:
    """In the contract's order; tmux is not asked about. An empty answer accepts."""
    paths = {name: world.tool(name) for name in plans.TOOLS}
    context = world.context(["", "y", "YES", " Yes "])
    plan = plans.make(context)
    assert world.questions == [
        f"PYTHON_PATH={context.interpreter} Y/n? ",
        f"HERDR_PATH={paths['herdr']} Y/n? ",
        f"GH_PATH={paths['gh']} Y/n? ",
        f"JIRA_PATH={paths['jira']} Y/n? ",
    ]
    assert {name: path for name, path in plan.environment if name.endswith("_PATH")} == {
        "HERDR_PATH": paths["herdr"],
        "GH_PATH": paths["gh"],
        "JIRA_PATH": paths["jira"],
        "TMUX_PATH": paths["tmux"],
    }


def test_a_replacement_is_checked_and_asked_about_again(world: World) -> None:
    """Until it is accepted."""
    world.tool("gh")
    mine, other = world.tool("mine"), world.tool("other")
    plan = plans.make(world.context(["", "n", mine, "no", f" {other} ", ""]))
    assert dict(plan.environment)["GH_PATH"] == other
    assert world.questions[2:] == ["GH_PATH=", f"GH_PATH={mine} Y/n? ", "GH_PATH=", f"GH_PATH={other} Y/n? "]
    for wrong in ("gh", "/gone", str(world.home)):
        with pytest.raises(AdapterError, match=r"GH_PATH is .* it must be the absolute path"):
            plans.make(world.context(["", "n", wrong]))


def test_a_blank_replacement_leaves_a_tool_out_but_not_the_interpreter(world: World) -> None:
    """The one is optional, the other is not."""
    world.tool("gh")
    assert "GH_PATH" not in dict(plans.make(world.context(["", "n", ""])).environment)
    with pytest.raises(AdapterError, match="No interpreter"):
        plans.make(world.context(["n", ""]))
    mine = world.tool("python")
    assert plans.make(world.context(["n", mine, "y", ""])).interpreter == mine


def test_an_end_of_input_is_no_consent(world: World) -> None:
    """Ctrl-D at a question."""
    with pytest.raises(AdapterError, match="No answer"):
        plans.make(world.context([]))


def test_what_cannot_be_started_is_refused(world: World) -> None:
    """No interpreter, a relative one, no program, an unusable setting."""
    context = world.context()
    for wrong in ("python3", "/gone/python3", str(world.program)):
        with pytest.raises(AdapterError, match="PYTHON_PATH"):
            plans.make(replace(context, interpreter=wrong))
    for gone in (world.folder / "gone.pyz", Path("mdello.pyz")):
        with pytest.raises(AdapterError, match="our own program"):
            plans.make(replace(context, program=gone))
    world.environ["MDELLO_COMPANION_DATA"] = "/"
    with pytest.raises(AdapterError, match="MDELLO_COMPANION_DATA"):
        plans.make(world.context())
