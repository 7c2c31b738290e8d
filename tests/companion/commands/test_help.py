"""The help text: made from the command table, complete, and stable where scripts rely on it."""

import importlib

import pytest

from adapters.registry import ADAPTERS
from companion.commands.help import COMMANDS, help_text


def test_every_command_is_listed() -> None:
    """A command that the dispatcher knows stands in the help, but for the hidden ones."""
    text = help_text({"HOME": "/home/dev"})
    for command in set(COMMANDS) - {"hook-post"}:
        assert command in text


@pytest.mark.parametrize("module", sorted(set(COMMANDS.values())))
def test_every_command_has_its_module(module: str) -> None:
    """Each named module offers the two functions of a command."""
    command = importlib.import_module(f"companion.commands.{module}")
    assert callable(command.add_parser) and callable(command.run)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("  serve ", "Start the sidecar"),
        ("  backfill [claude|codex|opencode|pi] ", "Rebuild associations"),
        ("  uninstall [macos|pi|opencode|claude|codex] ", "Remove"),
        ("  MDELLO_COMPANION_PORT ", "Listen port (51618)"),
        ("  PI_SESSIONS_DIR ", "pi sessions read by backfill"),
        ("  OPENCODE_SESSIONS_DB ", "opencode sessions read by backfill"),
    ],
)
def test_lines_that_scripts_rely_on(start: str, end: str) -> None:
    """The contract pins how these lines begin and what their right column says first."""
    lines = [line for line in help_text({"HOME": "/home/dev"}).splitlines() if line.startswith(start)]
    assert len(lines) == 1
    assert end in lines[0]


def test_the_home_is_shown_as_a_tilde() -> None:
    """Defaults are shown without the user's name, and without what the environment overrides."""
    text = help_text({"HOME": "/home/dev", "MDELLO_COMPANION_DATA": "/elsewhere/log.jsonl"})
    assert "(~/.local/state/mdello/companion.jsonl)" in text
    assert "/home/dev" not in text


def test_columns_are_aligned_and_every_variable_is_listed() -> None:
    """Two columns per section: a name of our own that the program reads is documented, with its default."""
    text = help_text({"HOME": "/home/dev"})
    for section in text.split("\n\n")[2:]:
        rows = section.splitlines()[1:]
        starts = {len(row) - len(row[2:].partition("  ")[2].lstrip()) for row in rows}
        assert len(starts) == 1, section
    for line in (
        "MDELLO_COMPANION_PORT (51618)",
        "MDELLO_COMPANION_CONFIG (~/.config/mdello/companion.json)",
        "MDELLO_COMPANION_DATA (~/.local/state/mdello/companion.jsonl)",
        "XDG_CONFIG_HOME (~/.config)",
        "XDG_STATE_HOME (~/.local/state)",
        "CLAUDE_SESSIONS_DIR projects)",
        "XDG_DATA_HOME (~/.local/share)",
        "MDELLO_COMPANION_URL report to",
        "GH_PATH, JIRA_PATH, HERDR_PATH Programs",
        "PATH Where",
        "DEBUG 1:",
    ):
        name, _, default = line.replace(", ", ",").partition(" ")
        name = name.replace(",", ", ")
        (row,) = [row for row in text.splitlines() if row.startswith(f"  {name} ")]
        assert default in row


def test_variables_of_every_agent_are_listed() -> None:
    """What an adapter reads from the environment is documented by the adapter itself."""
    text = help_text({"HOME": "/home/dev"})
    for adapter in ADAPTERS.values():
        for name, _ in adapter.ENVIRONMENT:
            assert f"  {name} " in text
