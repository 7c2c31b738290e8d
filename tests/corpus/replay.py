"""Replays one case of the corpus: the real adapters, a home of its own, and a clock that nobody waits for."""

import json
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Tuple

from adapters.registry import ADAPTERS
from companion.boards.cards import Card, Resolution, Scan
from companion.boards.registry import Board
from companion.core.hub import Hub
from companion.core.processes import ProcessTable
from companion.history.scanner import needles_for
from companion.sessions.intake import HookIntake
from companion.sessions.ledger import Ledger
from companion.sessions.watcher import Watcher

CORPUS = Path(__file__).resolve().parent
HOME = "/home/dev"
BOARD = f"{HOME}/board"
PID_NAMESPACE = "pid:[4026531836]"
"""That of a Linux machine outside of all containers."""
NEVER_S = 1e9

Step = Dict[str, object]


def cases() -> List[Path]:
    """Every case's folder, by name."""
    return sorted(path.parent for path in CORPUS.glob("*/*/timeline.jsonl"))


class Boards:
    """One board on which every Markdown file is a card, named after itself. Finder and registry."""

    def boards(self) -> List[Board]:
        """The one."""
        return [Board("board", BOARD, "")]

    def owner_of(self, path: str) -> Optional[Tuple[Board, str]]:
        """The board, for its direct children."""
        return (self.boards()[0], path) if path.rpartition("/")[0] == BOARD else None

    def resolve(self, path: str) -> Resolution:
        """A card, wherever it may be one."""
        is_card = self.owner_of(path) is not None and path.endswith(".md")
        return Resolution(Card(path.rpartition("/")[2], path, "board") if is_card else None)

    def scan(self) -> Scan:
        """Not needed: nothing is dropped here."""
        return Scan(complete=False)


class Table(ProcessTable):
    """The processes of the case: start times by number."""

    def __init__(self, begun: Dict[int, str]) -> None:
        super().__init__()
        self._domain = PID_NAMESPACE
        self.begun = begun

    def _begun(self, pid: int) -> Optional[str]:
        return self.begun.get(pid)


class Replay:
    """One case, from its first line to its last. AssertionError names the line that does not hold.

    Args:
        case: its folder, below that of its agent.
        folder: an empty one, for everything that is written.
    """

    def __init__(self, case: Path, folder: Path) -> None:
        # Hidden folders in the home are the agents' own; everything else is nowhere.
        text = (case / "timeline.jsonl").read_text("utf-8").replace(f"{HOME}/.", f"{folder}/home/.")
        lines = text.splitlines()
        self.agent = case.parent.name
        self.steps: List[Step] = [json.loads(line) for line in lines if line]
        self.head = self.steps.pop(0)
        self.now_s = float(str(self.head["epoch"]))
        self._epoch_s = self.now_s
        self._looked_s = self.now_s
        self._folder = folder
        self._home = folder / "home"
        self._home.mkdir()
        self._table = Table({})
        self._started = False

    def run(self) -> None:
        """Take every step; look once a second in between."""
        self._start()
        for number, step in enumerate(self.steps, 2):
            self._pass_until(self._epoch_s + float(str(step["at"])))
            for act in (self._process, self._say, self._write, self._machine):
                act(step)
            if "expect" in step:
                self._check(number, step)
        self._stop()

    # Time

    def _pass_until(self, moment_s: float) -> None:
        while self._looked_s + 1.0 <= moment_s:
            self._looked_s += 1.0
            self.now_s = self._looked_s
            if self._started:
                self._watcher.look()
        self.now_s = max(self.now_s, moment_s)

    def _machine(self, step: Step) -> None:
        if "sleep" in step:
            slept_s = float(str(step["sleep"]))
            self._epoch_s += slept_s
            self._looked_s += slept_s
            self.now_s += slept_s
        if step.get("stop"):
            self._stop()
        if step.get("start"):
            self._start()

    def _start(self) -> None:
        boards = Boards()
        clock = self._clock
        state = self._folder / "companion.jsonl"
        self._ledger = Ledger(
            state, self._folder / "pending.jsonl", boards, boards, Hub("life"), clock, NEVER_S, 0.0
        )
        self._ledger.load()
        self._watcher = Watcher(
            self._ledger,
            ADAPTERS,
            self._home,
            {},
            self._folder / "processes.jsonl",
            lambda: needles_for([BOARD]),
            clock,
            clock,
            NEVER_S,
            self._table,
        )
        self._intake = HookIntake(
            self._ledger, self._folder / "hooks.jsonl", clock, heard=self._watcher.heard
        )
        self._intake.load()
        self._watcher.load()
        self._started = True

    def _stop(self) -> None:
        if self._started:
            self._intake.close()
            self._watcher.close()
            self._ledger.close()
        self._started = False

    def _clock(self) -> float:
        return self.now_s

    # What happens

    def _process(self, step: Step) -> None:
        if "process" in step:
            self._table.begun[int(str(step["process"]))] = str(step["begun"])
        if "killed" in step:
            self._table.begun.pop(int(str(step["killed"])), None)

    def _say(self, step: Step) -> None:
        if not self._started:
            return
        header = str(step["from"]) if "from" in step else None
        if "hook" in step:
            self._intake.handle(ADAPTERS[self.agent], step["hook"], header)
        if "report" in step:
            self._watcher.reported(step["report"], header or "")
            self._ledger.ingest(step["report"])

    def _write(self, step: Step) -> None:
        if "record" in step or "unrecord" in step:
            root = ADAPTERS[self.agent].records_root(self._home, {})
            assert root is not None
            root.mkdir(parents=True, exist_ok=True)
            path = root / f"{step.get('of', step.get('unrecord'))}.json"
            if "unrecord" in step:
                path.unlink()
            else:
                path.write_text(_text(step["record"]), "utf-8")
        if "file" in step:
            lines = step["file"]
            assert isinstance(lines, list)
            path = self._session_file(str(step.get("of", self.head["session"])))
            with path.open("a", encoding="utf-8") as file:
                file.writelines(f"{_text(line)}\n" for line in lines)

    def _session_file(self, session: str) -> Path:
        names: Mapping[str, str] = {
            "claude": f"-home-dev-project/{session}.jsonl",
            "pi": f"--home-dev-project--/2026-01-01T00-00-00-000Z_{session}.jsonl",
            "codex": f"2026/01/01/rollout-2026-01-01T00-00-00-{session}.jsonl",
        }
        path = ADAPTERS[self.agent].sessions_root(self._home, {}) / names[self.agent]
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    # What must be shown

    def _check(self, number: int, step: Step) -> None:
        session = str(step.get("of", self.head["session"]))
        found = self._watcher.session(self.agent, session)
        where = f"line {number}: {json.dumps(step)}"
        if step["expect"] is None:
            assert found is None, where
            return
        assert found is not None and found.verdict is not None, f"{where}: unknown"
        verdict = found.verdict
        assert verdict.status.value == step["expect"], f"{where}: {verdict}"
        for name, value in (("rule", verdict.rule), ("sure", verdict.sure.value)):
            assert step.get(name, value) == value, f"{where}: {verdict}"
        shown = {status.value for status in self._ledger.statuses(self.agent, session)}
        assert shown <= {step["expect"]}, f"{where}: the board shows {shown}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
