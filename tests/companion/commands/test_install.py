"""``install`` and ``uninstall`` on the command line: which integrations, which words, which exit codes."""

import io
import json
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from adapters.contract import AdapterError, InstallContext, InstallReport
from adapters.registry import ADAPTERS
from companion.commands import install, integrations
from companion.core import settings
from companion.core.errors import StorageError

PLUGIN = Path(".claude", "skills", "mdello-companion")


@pytest.fixture
def machine(mdello: Any, tmp_path: Path) -> Any:
    """A machine that has all three agents, and nothing else on PATH."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ADAPTERS:
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    mdello.environ["PATH"] = str(programs)
    return mdello


def headlines(text: str) -> List[str]:
    """The lines that are not indented."""
    return [line for line in text.splitlines() if not line.startswith(" ")]


def test_without_an_argument_every_agent_is_connected_and_disconnected(machine: Any) -> None:
    """One message per agent in the registry's order; afterwards the home is as before."""
    if integrations.on_macos():
        pytest.skip("the service would be installed, too")
    done = machine("install")
    assert (done.returncode, done.stderr) == (0, "")
    titles = ["Pi extension", "OpenCode extension", "Claude plugin", "Codex hooks"]
    starts = [f"Installed {title}" for title in titles]
    told = headlines(done.stdout)
    assert [line[: len(start)] for line, start in zip(told, starts)] == starts
    assert told[4:] in ([], ["To start the companion at login: mdello.pyz install service"])
    assert "/reload" in done.stdout and "Restart OpenCode" in done.stdout
    again = machine("install")
    assert again.returncode == 0 and again.stdout.count("nothing to change") == 4
    done = machine("uninstall")
    starts = [f"Removed {title}" for title in titles]
    assert (done.returncode, done.stderr) == (0, "")
    assert [line[: len(start)] for line, start in zip(headlines(done.stdout), starts)] == starts
    assert len(headlines(done.stdout)) == 4
    assert list(machine.home.iterdir()) == []
    again = machine("uninstall")
    assert again.returncode == 0 and again.stdout.count("there was none") == 3
    assert again.stdout.count("there were none") == 1


def test_agents_that_are_not_here_are_left_out_and_named(machine: Any) -> None:
    """With the way to connect them all the same; what is connected already is kept up to date."""
    Path(machine.environ["PATH"], "opencode").unlink()
    Path(machine.environ["PATH"], "pi").unlink()
    assert machine("install", "pi").stdout.count("Pi was not found on this machine") == 1
    done = machine("install")
    assert done.returncode == 0
    assert headlines(done.stdout)[0].startswith("Installed Pi extension")
    assert headlines(done.stdout)[1] == "OpenCode: not found on this machine, so not connected"
    assert "mdello.pyz install opencode" in done.stdout
    assert not (machine.home / ".config").exists()
    foreign = machine.home / ".config" / "opencode" / "plugins" / "mdello-companion.js"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("// mine")  # Nothing that keeps the others: it is nobody's business.
    told = json.loads(machine("install", "--json").stdout)
    assert [each["harness"] for each in told] == ["pi", "opencode", "claude", "codex"]
    assert "not found" in told[1]["message"] and told[1]["changed"] is False


def test_one_refusal_does_not_stop_the_others(machine: Any) -> None:
    """Neither way; the exit code tells of it, and stderr names the place."""
    foreign = machine.home / ".pi" / "agent" / "extensions" / "mdello-companion.js"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("// mine")
    done = machine("install")
    assert done.returncode == 1
    assert str(foreign) in done.stderr and "Cannot replace unmanaged Pi extension" in done.stderr
    assert "Installed OpenCode extension" in done.stdout and "Installed Claude plugin" in done.stdout
    done = machine("uninstall")
    assert done.returncode == 1 and "Refusing to remove unmanaged Pi extension" in done.stderr
    assert "Removed OpenCode extension" in done.stdout and "Removed Claude plugin" in done.stdout
    assert foreign.read_text() == "// mine"


def test_the_port_reaches_the_installed_clients(machine: Any) -> None:
    """As the environment named it at installation."""
    machine("install")
    for name in ("pi", "opencode"):
        client = machine.home / ".local" / "share" / "mdello" / "clients" / f"{name}.js"
        assert f'"http://127.0.0.1:{machine.port}"' in client.read_text()


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_macos_is_refused_elsewhere(command: str, mdello: Any) -> None:
    """With the word that works here."""
    if integrations.on_macos() or integrations.SERVICE not in integrations.integrations():
        pytest.skip("it is not refused here")
    done = mdello(command, "macos")
    assert (done.returncode, done.stdout) == (1, "")
    assert "requires macOS" in done.stderr and "service" in done.stderr
    assert list(mdello.home.iterdir()) == []


def test_the_configured_port_is_baked_in(mdello: Any) -> None:
    """Hooks report to the port that the environment named at installation."""
    mdello("install", "claude")
    hooks = (mdello.home / PLUGIN / "hooks" / "hooks.json").read_text("utf-8")
    assert f"http://127.0.0.1:{mdello.port}/hooks/claude" in hooks
    assert os.readlink(mdello.home / PLUGIN / "mdello.pyz") == str(mdello.program)


def test_the_transport_is_an_option(mdello: Any) -> None:
    """``--transport command`` for quiet, kept by a later install without the option."""
    assert mdello("install", "claude", "--transport", "command").returncode == 0
    assert "Events by http" not in mdello("install", "claude").stdout
    assert "Events by http" in mdello("install", "claude", "--transport", "http").stdout


def test_json_tells_programs_the_same(mdello: Any) -> None:
    """A list with one object per agent."""
    (told,) = json.loads(mdello("install", "claude", "--json").stdout)
    assert told["harness"] == "claude" and told["error"] is None and told["changed"] is True
    assert told["message"].startswith("Installed Claude plugin")
    assert told["details"] and told["warnings"] == []
    told = json.loads(mdello("uninstall", "--json").stdout)
    assert told[-2]["message"].startswith("Removed Claude plugin")


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
    assert done.stderr.startswith(f"Usage: mdello.pyz {arguments[0]} [")
    assert "|pi|opencode|claude|codex]" in done.stderr or "[pi|opencode|claude|codex]" in done.stderr
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
        told = json.loads(mdello(command, "claude", "--json").stdout)
        assert words in told[0]["error"]


def test_warnings_go_to_stderr(mdello: Any) -> None:
    """A proxy that would swallow hooks is told, and installing succeeds all the same."""
    done = mdello("install", "claude", HTTP_PROXY="http://127.0.0.1:9")
    assert done.returncode == 0
    assert done.stderr.startswith("Warning: ") and "NO_PROXY" in done.stderr
    assert mdello("install", "claude", HTTP_PROXY="http://127.0.0.1:9", NO_PROXY="127.0.0.1").stderr == ""


def test_a_bad_port_is_refused_before_anything_is_written(mdello: Any) -> None:
    """An environment value that cannot be used: exit 2 and a clear line."""
    done = mdello("install", MDELLO_COMPANION_PORT="abc")
    assert done.returncode == 2 and "MDELLO_COMPANION_PORT" in done.stderr
    assert list(mdello.home.iterdir()) == []


class _Agent:
    """An agent whose installation fails or not."""

    TITLE = "An Agent"

    def __init__(self, name: str, fails: "Exception | None", log: List[str]) -> None:
        self._name, self._fails, self._log = name, fails, log

    def presence(self, context: InstallContext) -> str:
        return "/bin/agent"

    def install(self, context: InstallContext) -> InstallReport:
        self._log.append(self._name)
        if self._fails:
            raise self._fails
        return InstallReport(f"Installed {self._name}", changed=True)

    uninstall = install


@pytest.mark.parametrize("failure", [AdapterError("no"), StorageError("no"), OSError("no")])
@pytest.mark.parametrize("removing", [False, True])
def test_any_failing_step_does_not_stop_the_others(removing: bool, failure: Exception) -> None:
    """Each agent gets its turn; the failure is kept in its place."""
    log: List[str] = []
    agents: Dict[str, Any] = {name: _Agent(name, failure if name == "b" else None, log) for name in "abc"}
    context = install.context_for(settings.load({"HOME": "/nonexistent"}))
    outcomes = install.apply(agents, context, removing)
    assert log == ["a", "b", "c"]
    assert [isinstance(each, Exception) for each in outcomes.values()] == [False, True, False]
    assert install.outcome_json("b", outcomes["b"]) == {"harness": "b", "error": "no", "changed": False}


def test_nobody_is_asked_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor when a program reads the answer; at a terminal the question goes to stderr."""
    known = settings.load({"HOME": "/nonexistent"})
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    assert install.context_for(known, asking=True).ask is None

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    assert install.context_for(known).ask is None
    ask = install.context_for(known, asking=True).ask
    assert ask is not None and ask("Really? ") == "yes"
    with pytest.raises(AdapterError, match="No answer"):
        ask("Really? ")


def on_a_terminal(machine: Any, answers: bytes, *arguments: str) -> Tuple[int, str]:
    """Exit code and screen of the program, to which a person types these answers in advance."""
    screen, terminal = pty.openpty()
    attributes = termios.tcgetattr(terminal)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, attributes)
    os.write(screen, answers)
    process = subprocess.Popen(
        [sys.executable, str(machine.program), *arguments],
        env=machine.environ,
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        told, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(screen)
        os.close(terminal)
    return process.returncode, told.decode()


@pytest.fixture
def questioned(machine: Any) -> Any:
    """A machine with the programs that installing the service asks about."""
    for name in ("gh", "jira", "herdr", "other", "systemctl"):
        path = Path(machine.environ["PATH"], name)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    return machine


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="with the fake of systemd's manager")
def test_at_a_terminal_the_service_asks(questioned: Any) -> None:
    """In the contract's order; a replacement is confirmed, a blank one leaves the program out."""
    programs = questioned.environ["PATH"]
    answers = f"\nn\n{programs}/other\nyes\nY\nno\n\n"
    code, told = on_a_terminal(questioned, answers.encode(), "install", "service")
    herdr = f"HERDR_PATH={programs}/herdr Y/n? HERDR_PATH=HERDR_PATH={programs}/other Y/n? "
    tools = f"GH_PATH={programs}/gh Y/n? JIRA_PATH={programs}/jira Y/n? JIRA_PATH="
    assert code == 0 and told.startswith(f"PYTHON_PATH={sys.executable} Y/n? {herdr}{tools}Installed ")
    unit = questioned.home / ".config/systemd/user/mdello-companion.service"
    text = unit.read_text()
    assert f'"HERDR_PATH={programs}/other"' in text and f'"GH_PATH={programs}/gh"' in text
    assert "JIRA_PATH" not in text
    assert on_a_terminal(questioned, b"", "uninstall", "service")[0] == 0
    assert list(questioned.home.iterdir()) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="with the fake of systemd's manager")
@pytest.mark.parametrize(
    ("answers", "words"),
    [("\n\x04", "No answer"), ("n\n\n", "No interpreter"), ("n\nsh\n", "must be the absolute")],
)
def test_no_answer_installs_nothing(answers: str, words: str, questioned: Any) -> None:
    """An end of input, an interpreter that is left out, and one that is none."""
    code, told = on_a_terminal(questioned, answers.encode(), "install", "service")
    assert code == 1 and words in told
    assert list(questioned.home.iterdir()) == []


def test_installers_get_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative PATH entry must not end up in a hook."""
    (tmp_path / "curl").touch(0o755)
    monkeypatch.chdir(tmp_path)
    context = install.context_for(settings.load({"HOME": str(tmp_path), "PATH": "."}))
    assert context.which("curl") == str(tmp_path / "curl")
    assert context.program.is_absolute() and os.path.isabs(context.interpreter)
    assert context.which("no-such-program") is None
    assert context.transport == ""
