"""A home of its own, a context for installers, and a service manager that only keeps a list."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Callable, Dict, List, Optional

import pytest

from adapters.contract import InstallContext
from tests.adapters.disk import Tree, tree_of
from tests.conftest import ROOT

ODD_NAMES = (
    "plain",
    "two words",
    "o'brien",
    'double"quote',
    "50% off %h %%",
    "$HOME ${HOME} $$",
    "back\\slash\\",
    "; semicolon & more < > #",
    "\u00fc\ud55c\U0001f600",
)
"""Names of homes; each was trouble for somebody."""


class World:
    """One home, and the programs on the PATH of whoever installs."""

    def __init__(self, folder: Path, name: str = "home") -> None:
        self.folder = folder
        self.home = folder / name
        self.home.mkdir()
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.program = folder / "mdello.pyz"
        self.program.write_text("not started here\n", encoding="utf-8")
        self.log = folder / "calls"
        self.log.touch()
        self.environ: Dict[str, str] = {
            "HOME": str(self.home),
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "FAKE_MANAGER_LOG": str(self.log),
        }

    def tool(self, name: str) -> str:
        """A program on PATH; its path."""
        path = self.bin / name
        path.write_text("#!/bin/sh\n", encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def manager(self, name: str) -> None:
        """Put the fake ``systemctl`` or ``launchctl`` on PATH."""
        shutil.copy(ROOT / "tests" / "fakes" / "manager.sh", self.bin / name)

    def calls(self, name: str = "") -> List[str]:
        """What the managers were asked so far, without the program's name when it is given."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [line[len(name) + 1 :] if name else line for line in lines if line.startswith(name)]

    def which(self, name: str) -> Optional[str]:
        """Finds what :meth:`tool` and :meth:`manager` have made; nothing of this machine."""
        return shutil.which(name, path=str(self.bin))

    def context(self, answers: Optional[List[str]] = None, port: int = 51999) -> InstallContext:
        """What an installer is told. ``answers``: what a person types, in order; None: nobody is there."""
        context = InstallContext(
            home=self.home,
            environ=dict(self.environ),
            endpoint=f"http://127.0.0.1:{port}",
            program=self.program,
            interpreter=sys.executable,
            which=self.which,
        )
        if answers is None:
            return context
        left = list(answers)
        self.questions: List[str] = []

        def ask(question: str) -> str:
            self.questions.append(question)
            if not left:
                raise EOFError
            return left.pop(0)

        return replace(context, ask=ask)

    def tree(self) -> Tree:
        """Everything in the home."""
        return tree_of(self.home)

    def inhabit(self) -> Tree:
        """Put files of other programs where ours go, and beside; the tree then."""
        for name in (
            ".config/systemd/user/other.service",
            ".config/systemd/user/default.target.wants/other.service",
            "Library/LaunchAgents/com.example.other.plist",
            ".local/share/other/file",
            ".config/mdello/companion.json",
        ):
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}\n", encoding="utf-8")
        return self.tree()


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A home that is empty."""
    return World(tmp_path)


MakeWorld = Callable[[str], World]


@pytest.fixture
def make_world(tmp_path: Path) -> MakeWorld:
    """A home with this name."""
    return lambda name: World(tmp_path, name)
