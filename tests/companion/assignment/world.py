"""A board, a configuration and a scripted ``gh`` for the job's tests."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Dict, List

from companion.assignment.run import Outcome, Runner
from companion.assignment.setting import Setting
from companion.boards.boardfile import new_board_file
from companion.commands.assign import add_card, read_job
from companion.commands.wiring import Boards, open_boards
from companion.core.programs import Programs
from companion.core.settings import load
from tests.conftest import ROOT

PATIENCE_S = 30.0
BOARD = "b0a4d000-0000-4000-8000-0000000000aa"
Json = Dict[str, object]


def item(number: int = 1, kind: str = "issues", repository: str = "acme/rocket", **changes: object) -> Json:
    """A result as gh prints it."""
    return {
        "author": {
            "id": "U_1",
            "is_bot": False,
            "login": "wile",
            "type": "User",
            "url": "https://github.com/wile",
        },
        "body": f"What number {number} is about.",
        "labels": [{"color": "d73a4a", "description": "", "id": "L_1", "name": "bug"}],
        "number": number,
        "repository": {"name": repository.split("/")[1], "nameWithOwner": repository},
        "state": "open",
        "title": f"Thing {number}",
        "updatedAt": "2026-05-14T10:00:00Z",
        "url": f"https://github.com/{repository}/{kind}/{number}",
        **changes,
    }


class World:
    """A home with one board, its configuration, and a fake ``gh``."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.board = home / "board"
        self.board.mkdir()
        (self.board / "mdello.yml").write_bytes(new_board_file(BOARD, str(self.board), ["Todo", "Triage"]))
        self.gh_folder = home / "gh-data"
        self.gh_folder.mkdir()
        gh = home / "gh"
        fake = ROOT / "tests" / "fakes" / "fake_gh_search.py"
        gh.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{fake}" "$@"\n')
        gh.chmod(0o755)
        self.environ = {"HOME": str(home), "GH_PATH": str(gh), "FAKE_GH": str(self.gh_folder)}
        self.config = home / ".config" / "mdello" / "companion.json"
        self.config.parent.mkdir(parents=True)
        self.configure()
        self.answer()
        self.programs = Programs(self.environ)

    @property
    def boards(self) -> Boards:
        """As a command opens them."""
        return open_boards(load(self.environ))

    def configure(self, entry: object = None, **changes: object) -> None:
        """Write the configuration; without ``entry`` a job that is right but for ``changes``."""
        job = {"schedule": "* * * * *", "organizations": [], "boardUuid": BOARD, **changes}
        content = {
            "boards": [{"uuid": BOARD, "path": str(self.board), "updatedAt": "2026-05-14T10:00:00.000Z"}],
            "extensions": {"github-assignment": job if entry is None else entry, "other": 1},
        }
        beside = self.config.with_suffix(".new")
        beside.write_text(json.dumps(content), encoding="utf-8")
        beside.replace(self.config)

    def answer(self, **answers: object) -> None:
        """What gh finds: ``issues``, ``prs``, ``reviews``."""
        beside = self.gh_folder / "new"
        beside.write_text(json.dumps(answers), encoding="utf-8")
        beside.replace(self.gh_folder / "answers.json")

    def calls(self) -> List[List[str]]:
        """Command lines of gh until now."""
        path = self.gh_folder / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def alive(self) -> bool:
        """Whether the latest call of gh runs still."""
        pid = (self.gh_folder / "pid").read_text()
        state = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True).stdout
        return bool(state.strip()) and not state.startswith("Z")

    def setting(self) -> Setting:
        """The job as it is set up."""
        setting = read_job(self.boards)
        assert setting is not None
        return setting

    def run(self, dry_run: bool = False, timeout_s: float = PATIENCE_S) -> Outcome:
        """One run."""
        return Runner(self.programs, add_card, timeout_s=timeout_s).run(self.setting(), dry_run)

    def cards(self) -> List[str]:
        """Names of all files but the board's own."""
        return sorted(path.name for path in self.board.iterdir() if path.name != "mdello.yml")


def wait_until(what: Callable[[], bool]) -> None:
    """Ask until it is true."""
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.02)
