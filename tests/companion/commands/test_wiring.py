"""The parts put together: what a running companion tells of itself, and when it notices things."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterator, List

import pytest

import mdello as program
from companion.commands.wiring import Companion, open_boards
from companion.core.settings import load
from tests.companion.commands.conftest import ROOT, MakeCard


@pytest.fixture
def companion(clean_environ: Dict[str, str]) -> Iterator[Companion]:
    """A companion that is started but not bound to a port."""
    made = Companion(load(clean_environ))
    made.start()
    yield made
    made.stop()


def test_health_tells_who_it_is_and_how_it_fares(companion: Companion) -> None:
    """Version, process, boards, counts, agents and problems: the documented fields and no other."""
    health = companion.health()
    assert set(health) == {
        "name",
        "version",
        "pid",
        "python",
        "startedAt",
        "uptimeSeconds",
        "boards",
        "counts",
        "withoutUuid",
        "harnesses",
        "lookups",
        "assignment",
        "clients",
        "watcher",
        "problems",
        "socketsHandedIn",
        "notes",
        "archive",
    }
    assert (health["name"], health["version"], health["pid"]) == ("mdello", program.__version__, os.getpid())
    assert health["boards"] == [] and health["harnesses"] == {} and health["problems"] == []


def test_health_names_a_board_that_is_away(clean_environ: Dict[str, str], tmp_path: Path) -> None:
    """A folder that is not there is told, not left out."""
    settings = load(clean_environ)
    open_boards(settings).registry.register("board-1", str(tmp_path / "away"))
    boards = Companion(settings).health()["boards"]
    assert boards == [{"uuid": "board-1", "path": str(tmp_path / "away"), "available": False}]


def test_a_state_folder_that_cannot_be_made_is_a_problem_not_an_end(
    clean_environ: Dict[str, str], tmp_path: Path, make_card: MakeCard
) -> None:
    """Below a plain file not even root can make a folder: state stays in memory, and health says so."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    environ = {
        **clean_environ,
        "XDG_STATE_HOME": str(tmp_path / "file"),
        "XDG_CONFIG_HOME": str(tmp_path / "file"),
    }
    board = tmp_path / "board"
    board.mkdir()
    made = Companion(load(environ))
    made.start()
    try:
        made._boards.registry.register("board-1", str(board))
        path = make_card(board, "a.md", "uuid-a")
        stored = made.ledger.ingest(
            {"cardPath": str(path), "harness": "pi", "sessionId": "s", "status": "idle"}
        )
        assert stored is not None and len(made.ledger.associations()) == 1
        problems = made.health()["problems"]
        assert isinstance(problems, list)
        assert any("companion.jsonl" in text for text in problems)
        assert any("companion.json" in text and "companion.jsonl" not in text for text in problems)
    finally:
        made.stop()


def test_a_replaced_archive_is_a_problem(clean_environ: Dict[str, str], tmp_path: Path) -> None:
    """Whoever looks at health or doctor is told to restart the companion."""
    made = Companion(load(clean_environ))
    archive = tmp_path / "mdello.pyz"
    archive.write_bytes(b"old")
    made._archive = type(made._archive)(archive)
    assert made.health()["archive"] == {"path": str(archive), "replaced": False}
    archive.write_bytes(b"newer")
    assert made.health()["archive"] == {"path": str(archive), "replaced": True}
    assert any("restart the companion" in str(text) for text in [made.health()["problems"]])


def test_a_replaced_archive_is_noticed_while_serving(
    companion: Companion, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever reads the log is told, once."""
    looks: List[bool] = []

    def replaced() -> bool:
        looks.append(True)
        return len(looks) > 1

    waits: List[float] = []

    def stopped(wait_s: float) -> bool:
        waits.append(wait_s)
        return len(waits) > 100

    monkeypatch.setattr(companion._archive, "replaced", replaced)
    monkeypatch.setattr(companion.server, "serve_until_stopped", lambda: None)
    companion.serve_until(stopped)
    said = [record for record in caplog.records if "was replaced: restart" in record.getMessage()]
    assert len(said) == 1


def test_everything_of_ours_is_imported_before_it_serves(clean_environ: Dict[str, str]) -> None:
    """A module that is read later, from a file that was replaced meanwhile, would run wrong bytes."""
    code = (
        "import os, sys\n"
        "from companion.commands.wiring import Companion\n"
        "from companion.core.settings import load\n"
        "made = Companion(load(os.environ)); made.start(); made.stop()\n"
        "print(*sys.modules)\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=ROOT, env=clean_environ, capture_output=True, text=True, check=True, timeout=60
    )
    paths = [path for folder in ("adapters", "companion") for path in (ROOT / folder).rglob("*.py")]
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths}
    ours = {name[: -len(".__init__")] if name.endswith(".__init__") else name for name in names}
    start_up = {name for name in ours if name.startswith("companion.archive")}
    assert ours - start_up - set(done.stdout.split()) == set()
