"""The command line's front door: which command runs, and what each failure looks like."""

from typing import Callable, List

import pytest

from companion.commands import dispatch
from companion.core.errors import SettingsError
from tests.companion.commands.conftest import Mdello

Run = Callable[[object], int]
ReplaceRun = Callable[[Run], None]


@pytest.fixture
def status_command(monkeypatch: pytest.MonkeyPatch) -> ReplaceRun:
    """Puts a function in the place of ``status``'s run."""

    def replace(run: Run) -> None:
        from companion.commands import status

        monkeypatch.setattr(status, "run", run)

    return replace


def test_unknown_command_prints_the_help_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """A typing error is answered with what there is, on stderr, exit code 1."""
    assert dispatch.run(["stauts"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith('Unknown command "stauts".\n')
    assert "  serve " in err


@pytest.mark.parametrize("spelling", ["help", "-h", "--help"])
def test_help_has_three_spellings(spelling: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All three print the same text on stdout and succeed."""
    assert dispatch.run([spelling]) == 0
    out, err = capsys.readouterr()
    assert "Commands:" in out and err == ""


@pytest.mark.parametrize(
    "arguments",
    [["purge", "--help"], ["board", "init", "-h"], ["status", "--json", "--help"], ["--demo", "-h"]],
)
def test_help_may_stand_behind_any_command(arguments: List[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever asks first what a command does gets the help, and nothing is done."""
    assert dispatch.run(arguments) == 0
    out, err = capsys.readouterr()
    assert "Commands:" in out and err == ""


@pytest.mark.parametrize(
    ("arguments", "usage"),
    [
        (["board", "init", "a", "b"], "Usage: mdello.pyz board init DIR\n"),
        (["board", "list", "--long"], "Usage: mdello.pyz board list [--json]\n"),
        (["serve", "--port", "1"], "Usage: mdello.pyz serve [--demo]"),
        (["board", "init", "--", "-h", "-h"], "Usage: mdello.pyz board init DIR\n"),
    ],
)
def test_a_surplus_argument_shows_the_usage_of_that_command(
    arguments: List[str], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not that of the whole program, which would help nobody."""
    assert dispatch.run(arguments) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(usage) and "Unrecognized arguments" in err


@pytest.mark.parametrize(
    "arguments", [["install", "nobody"], ["uninstall", "nobody"], ["backfill", "nobody"], ["board", "fly"]]
)
def test_wrong_argument_is_a_usage_line(arguments: List[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What a command cannot understand is a usage line on stderr, exit code 1."""
    assert dispatch.run(arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"Usage: mdello.pyz {arguments[0]}")
    assert "mdello.pyz help" in err


def test_an_unusable_environment_value_is_exit_2(
    status_command: ReplaceRun, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line names what is wrong; no traceback."""

    def refuse(args: object) -> int:
        raise SettingsError("MDELLO_COMPANION_PORT is 'x': it must be a number.")

    status_command(refuse)
    assert dispatch.run(["status"]) == 2
    assert capsys.readouterr().err == "MDELLO_COMPANION_PORT is 'x': it must be a number.\n"


def test_a_fault_of_ours_is_one_line_and_exit_3(
    status_command: ReplaceRun, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person sees one line; DEBUG=1 shows where it happened."""

    def break_down(args: object) -> int:
        raise RuntimeError("boom")

    status_command(break_down)
    monkeypatch.delenv("DEBUG", raising=False)
    assert dispatch.run(["status"]) == 3
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setenv("DEBUG", "1")
    assert dispatch.run(["status"]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_ctrl_c_is_exit_130(status_command: ReplaceRun) -> None:
    """As a shell expects it."""

    def interrupt(args: object) -> int:
        raise KeyboardInterrupt

    status_command(interrupt)
    assert dispatch.run(["status"]) == 130


def test_text_that_the_terminal_cannot_show_is_escaped(mdello: Mdello) -> None:
    """Paths of users have any letters; an ASCII terminal must not make a command fail."""
    assert mdello("board", "init", "Zettel-\u00e9\ud55c").returncode == 0
    for command in (["status"], ["board", "list"], ["doctor"]):
        done = mdello(*command, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
        assert done.returncode in (0, 1), done.stderr
        assert "Zettel-\\xe9\\ud55c" in done.stdout
