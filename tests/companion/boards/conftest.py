"""What the tests of boards share: a registry in an empty home, cards, and js-yaml itself."""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Callable, Iterator, List, NoReturn

import pytest

from companion.boards.cards import CardFinder
from companion.boards.registry import BoardRegistry
from companion.core.config import ConfigFile
from tests import another_user
from tests.companion.boards.js_yaml import JsYaml, NodeMissing

NOW_S = 1_767_323_045.25  # 2026-01-02T03:04:05.250Z


class Boards:
    """A registry and a finder over a configuration below a temporary folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.config = ConfigFile(home / "config" / "companion.json")
        self.registry = BoardRegistry(self.config, lambda: NOW_S, str(home))
        self.finder = CardFinder(self.registry)

    def board(self, name: str = "board", uuid: str = "") -> Path:
        """A registered folder; its uuid is its name unless another one is given."""
        folder = self.home / name
        folder.mkdir(parents=True, exist_ok=True)
        self.registry.register(uuid or name, str(folder))
        return folder

    def write_config(self, content: object) -> None:
        """Write the configuration behind the registry's back."""
        self.config.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.config.path.with_suffix(".new")
        beside.write_text(json.dumps(content), encoding="utf-8")
        os.replace(beside, self.config.path)

    def paths(self) -> List[str]:
        """Paths of all boards, in order."""
        return [board.path for board in self.registry.boards()]


@pytest.fixture
def boards(tmp_path: Path) -> Boards:
    """No board yet."""
    return Boards(tmp_path)


MakeCard = Callable[..., Path]


@pytest.fixture
def card() -> MakeCard:
    """Writes a file: ``card(folder / name, uuid)`` or ``card(path, content=b"...")``; its path."""

    def make(path: Path, uuid: str = "", content: bytes = b"") -> Path:
        path.write_bytes(content or f"---\nuuid: {uuid}\n---\n\nText.\n".encode())
        return path

    return make


AsNobody = Callable[[Callable[[], object]], object]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="mdello-test-"))
    folder.chmod(0o755)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(folder)


@pytest.fixture
def as_nobody() -> AsNobody:
    """Runs a function in a process without root's rights; its result, which must be JSON."""
    return another_user.as_nobody


def _missing(reason: str) -> NoReturn:
    if os.environ.get("MDELLO_REQUIRE_AGENTS") == "1":
        pytest.fail(f"MDELLO_REQUIRE_AGENTS=1, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def js_yaml() -> Iterator[JsYaml]:
    """js-yaml in a process of its own; skipped where there is no node or npm, required in CI."""
    try:
        oracle = JsYaml()
    except NodeMissing as missing:
        _missing(str(missing))
    yield oracle
    oracle.close()
