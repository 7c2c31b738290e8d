"""Fixtures of the end-to-end tests: the real CLI, a terminal, and a person with everything in place."""

import os
import shutil
from pathlib import Path
from typing import Callable, Iterator, List, NoReturn

import pytest

from tests.e2e import agent_cli
from tests.e2e.claude_world import ClaudeWorld
from tests.e2e.codex_world import CodexWorld
from tests.e2e.opencode_world import OpenCodeWorld
from tests.e2e.pi_world import PiWorld

REQUIRE_VARIABLE = "MDELLO_REQUIRE_AGENTS"
"""Set to 1 where these tests must run: what is missing then fails instead of being skipped."""

MakeWorld = Callable[..., ClaudeWorld]


def _missing(reason: str) -> NoReturn:
    if os.environ.get(REQUIRE_VARIABLE) == "1":
        pytest.fail(f"{REQUIRE_VARIABLE}=1, but {reason}")
    pytest.skip(reason)


def fetched(fetch: Callable[[], Path]) -> Path:
    """What one function of ``agent_cli`` fetches; the test is skipped (or fails) when it cannot."""
    try:
        return fetch()
    except agent_cli.CliMissing as missing:
        _missing(str(missing))


@pytest.fixture(scope="session")
def claude_cli() -> Path:
    """The pinned current CLI."""
    return fetched(agent_cli.claude)


@pytest.fixture(scope="session")
def oldest_cli() -> Path:
    """The oldest CLI whose plugin loader must take our hooks."""
    return fetched(lambda: agent_cli.claude(agent_cli.OLDEST))


@pytest.fixture(scope="session")
def node() -> Path:
    """The Node that Pi runs on."""
    return fetched(agent_cli.node)


@pytest.fixture(scope="session")
def pi_script() -> Path:
    """The pinned Pi."""
    return fetched(agent_cli.pi)


@pytest.fixture(scope="session")
def opencode_program() -> Path:
    """The pinned OpenCode."""
    return fetched(agent_cli.opencode)


@pytest.fixture(scope="session")
def codex_program() -> Path:
    """The pinned Codex."""
    return fetched(agent_cli.codex)


@pytest.fixture(scope="session")
def tmux() -> str:
    """tmux, for the tests that look at the terminal UI."""
    return shutil.which("tmux") or _missing("tmux is not installed (the terminal UI is driven in it)")


@pytest.fixture
def make_world(tmp_path: Path, pyz: Path, claude_cli: Path) -> Iterator[MakeWorld]:
    """Makes isolated persons with a board; everything they start is ended with the test."""
    made: List[ClaudeWorld] = []

    def make(home_name: str = "home", cli: Path = claude_cli) -> ClaudeWorld:
        world = ClaudeWorld(tmp_path / f"world{len(made)}", pyz, cli, home_name)
        world.__enter__()
        made.append(world)
        world.make_board()
        return world

    yield make
    for world in made:
        world.__exit__()


@pytest.fixture
def world(make_world: MakeWorld) -> ClaudeWorld:
    """A person with a board, our hooks installed and the companion running."""
    world = make_world()
    world.mdello("install", "claude")
    world.start_companion()
    return world


@pytest.fixture
def pi_world(tmp_path: Path, pyz: Path, node: Path, pi_script: Path) -> Iterator[PiWorld]:
    """A person with a board who works with Pi, our client installed and the companion running."""
    with PiWorld(tmp_path / "world", pyz, node, pi_script) as world:
        world.make_board()
        world.mdello("install", "pi")
        world.start_companion()
        yield world


@pytest.fixture
def codex_world(tmp_path: Path, pyz: Path, codex_program: Path) -> Iterator[CodexWorld]:
    """A person with a board who works with Codex, our hooks installed and the companion running."""
    with CodexWorld(tmp_path / "world", pyz, codex_program) as world:
        world.make_board()
        world.mdello("install", "codex")
        world.start_companion()
        yield world


@pytest.fixture
def opencode_world(tmp_path: Path, pyz: Path, opencode_program: Path) -> Iterator[OpenCodeWorld]:
    """A person with a board who works with OpenCode, our client installed and the companion running."""
    with OpenCodeWorld(tmp_path / "world", pyz, opencode_program) as world:
        world.make_board()
        world.mdello("install", "opencode")
        world.start_companion()
        yield world
