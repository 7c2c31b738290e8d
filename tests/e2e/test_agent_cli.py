"""The cache of the real agents, without fetching anything."""

from pathlib import Path

import pytest

from tests.e2e import agent_cli


def test_a_cached_cli_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No npm is needed when the program is there."""
    monkeypatch.setattr(agent_cli, "_ENVIRON_AT_IMPORT", {"MDELLO_TEST_CACHE": str(tmp_path), "PATH": ""})
    program = tmp_path / "claude-9.9.9/node_modules" / agent_cli.claude_package() / "claude"
    program.parent.mkdir(parents=True)
    program.touch()
    assert agent_cli.claude("9.9.9") == program


def test_without_npm_the_reason_is_said_and_nothing_half_done_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the skipped tests show as their reason."""
    monkeypatch.setattr(agent_cli, "_ENVIRON_AT_IMPORT", {"MDELLO_TEST_CACHE": str(tmp_path), "PATH": ""})
    with pytest.raises(agent_cli.CliMissing, match="npm is not installed"):
        agent_cli.claude("9.9.9")
    assert [entry.name for entry in tmp_path.iterdir()] == ["claude-9.9.9.lock"]


def test_the_cache_is_outside_of_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG_CACHE_HOME when it is absolute, else the account's own cache folder."""
    monkeypatch.setattr(agent_cli, "_ENVIRON_AT_IMPORT", {"XDG_CACHE_HOME": "/var/cache/me"})
    assert agent_cli.cache_folder() == Path("/var/cache/me/mdello-tests")
    monkeypatch.setattr(agent_cli, "_ENVIRON_AT_IMPORT", {"XDG_CACHE_HOME": "relative"})
    assert agent_cli.cache_folder() == agent_cli.real_home() / ".cache/mdello-tests"
