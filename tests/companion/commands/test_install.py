"""``install`` and ``uninstall`` on the command line: which agents, which words, which exit codes."""

import json
import os
from pathlib import Path
from typing import Any, Dict, List

import pytest

from adapters.contract import AdapterError, InstallContext, InstallReport
from adapters.registry import ADAPTERS
from companion.commands import install
from companion.core import settings

PLUGIN = Path(".claude", "skills", "mdello-companion")


def test_without_an_argument_every_agent_is_connected_and_disconnected(mdello: Any) -> None:
    """One message per agent in the registry's order; afterwards the home is as before."""
    done = mdello("install")
    assert (done.returncode, done.stderr) == (0, "")
    headlines = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert len(headlines) == len(ADAPTERS)
    assert headlines[0] == f"Installed Claude plugin at {mdello.home / PLUGIN}"
    again = mdello("install")
    assert again.returncode == 0 and "nothing to change" in again.stdout
    done = mdello("uninstall")
    assert done.returncode == 0 and done.stdout.startswith("Removed Claude plugin")
    assert list(mdello.home.iterdir()) == []
    assert mdello("uninstall").returncode == 0


def test_the_configured_port_is_baked_in(mdello: Any) -> None:
    """Hooks report to the port that the environment named at installation."""
    mdello("install", "claude")
    hooks = (mdello.home / PLUGIN / "hooks" / "hooks.json").read_text("utf-8")
    assert f"http://127.0.0.1:{mdello.port}/hooks/claude" in hooks
    assert os.readlink(mdello.home / PLUGIN / "mdello.pyz") == str(mdello.program)


def test_the_transport_is_an_option(mdello: Any) -> None:
    """``--transport command`` for quiet, kept by a later install without the option."""
    assert mdello("install", "claude", "--transport", "command").returncode == 0
    assert "Events by http" not in mdello("install").stdout
    assert "Events by http" in mdello("install", "--transport", "http").stdout


def test_json_tells_programs_the_same(mdello: Any) -> None:
    """A list with one object per agent."""
    (told,) = json.loads(mdello("install", "claude", "--json").stdout)
    assert told["harness"] == "claude" and told["error"] is None and told["changed"] is True
    assert told["message"].startswith("Installed Claude plugin")
    assert told["details"] and told["warnings"] == []
    (told,) = json.loads(mdello("uninstall", "--json").stdout)
    assert told["message"].startswith("Removed Claude plugin")


@pytest.mark.parametrize(
    "arguments",
    [
        ["install", "emacs"],
        ["install", "claude", "surplus"],
        ["install", "--transport", "pigeon"],
        ["uninstall", "emacs"],
        ["uninstall", "claude", "surplus"],
    ],
)
def test_wrong_usage_is_a_usage_line_and_changes_nothing(arguments: List[str], mdello: Any) -> None:
    """On stderr, with a pointer to help, exit 1."""
    done = mdello(*arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"Usage: mdello.pyz {arguments[0]} [claude]")
    assert "mdello.pyz help" in done.stderr
    assert list(mdello.home.iterdir()) == []


def test_a_refusal_is_one_line_and_exit_1(mdello: Any) -> None:
    """What is not ours is named, on stderr."""
    (mdello.home / PLUGIN).mkdir(parents=True)
    for command, words in (
        ("install", "Cannot replace unmanaged"),
        ("uninstall", "Refusing to remove unmanaged"),
    ):
        done = mdello(command, "claude")
        assert (done.returncode, done.stdout) == (1, "")
        assert words in done.stderr and len(done.stderr.splitlines()) == 1
        (told,) = json.loads(mdello(command, "--json").stdout)
        assert words in told["error"]


def test_warnings_go_to_stderr(mdello: Any) -> None:
    """A proxy that would swallow hooks is told, and installing succeeds all the same."""
    done = mdello("install", HTTP_PROXY="http://127.0.0.1:9")
    assert done.returncode == 0
    assert done.stderr.startswith("Warning: ") and "NO_PROXY" in done.stderr
    assert mdello("install", HTTP_PROXY="http://127.0.0.1:9", NO_PROXY="127.0.0.1").stderr == ""


def test_a_bad_port_is_refused_before_anything_is_written(mdello: Any) -> None:
    """An environment value that cannot be used: exit 2 and a clear line."""
    done = mdello("install", MDELLO_COMPANION_PORT="abc")
    assert done.returncode == 2 and "MDELLO_COMPANION_PORT" in done.stderr
    assert list(mdello.home.iterdir()) == []


class _Agent:
    """An agent whose installation fails or not."""

    def __init__(self, name: str, fails: bool, log: List[str]) -> None:
        self._name, self._fails, self._log = name, fails, log

    def install(self, context: InstallContext) -> InstallReport:
        self._log.append(self._name)
        if self._fails:
            raise AdapterError("no")
        return InstallReport(f"Installed {self._name}", changed=True)

    uninstall = install


@pytest.mark.parametrize("removing", [False, True])
def test_one_failing_step_does_not_stop_the_others(removing: bool) -> None:
    """Each agent gets its turn; the failure is kept in its place."""
    log: List[str] = []
    agents: Dict[str, Any] = {name: _Agent(name, name == "b", log) for name in "abc"}
    context = install.context_for(settings.load({"HOME": "/nonexistent"}))
    outcomes = install.apply(agents, context, removing)
    assert log == ["a", "b", "c"]
    assert [isinstance(each, AdapterError) for each in outcomes.values()] == [False, True, False]
    assert install.outcome_json("b", outcomes["b"]) == {"harness": "b", "error": "no", "changed": False}


def test_every_agent_that_can_be_connected_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that say that they cannot are left out of everything."""
    from adapters import defaults

    class Past:
        install = staticmethod(defaults.no_install)

    monkeypatch.setitem(ADAPTERS, "past", Past)
    assert list(install.installable()) == [name for name in ADAPTERS if name != "past"]


def test_installers_get_absolute_paths(tmp_path: Path) -> None:
    """A relative PATH entry must not end up in a hook."""
    context = install.context_for(settings.load({"HOME": str(tmp_path), "PATH": "."}))
    assert context.program.is_absolute() and os.path.isabs(context.interpreter)
    assert context.which("no-such-program") is None
    assert context.transport == ""
