"""What keeping statuses true costs, and how soon it is noticed that something happened.

A home with 5,000 transcripts in 200 folders, and 20 live sessions that report nothing: they are known by
the agent's own records. Measured: the idle companion's share of a core and its memory; the time from a
transcript's change, and from the death of a process, to the event on the stream; memory with a session
file of 1 GB.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from pathlib import Path
from typing import Callable, Dict, List

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.bench_start import _memory_mb, _spent_s, report  # noqa: E402 - found by the line above
from tests.e2e.stream import EventStream  # noqa: E402 - likewise
from tests.e2e.world import free_port  # noqa: E402 - likewise

FOLDERS, FILES_EACH = 200, 25
LIVE = 20
IDLE_S = 20.0
HUGE_BYTES = 1_000_000_000

CPU_LIMIT_PERCENT = 0.5
MEMORY_LIMIT_MB = 45.0
CHANGE_LIMIT_S = 1.5
DEATH_LIMIT_S = 2.0
ROUNDS = 5
PATIENCE_S = 60.0


class Home:
    """A person with many sessions of Claude Code."""

    def __init__(self, folder: Path, pyz: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.environ = {
            "HOME": str(folder),
            "PATH": os.environ.get("PATH", os.defpath),
            "MDELLO_COMPANION_PORT": str(self.port),
        }
        self.board = folder / "board"
        self._run(pyz, "board", "init", str(self.board))
        listed = self._run(pyz, "board", "list", "--json")
        self.board_uuid = str(json.loads(listed)[0]["uuid"])
        self.projects = folder / ".claude" / "projects"
        self.records = folder / ".claude" / "sessions"
        self.records.mkdir(parents=True)
        for number in range(FOLDERS):
            (self.projects / f"-project-{number}").mkdir(parents=True)
        for number in range(FOLDERS * FILES_EACH):
            self.transcript(str(uuid.uuid4()), number % FOLDERS, "look around")
        self.agents = [
            subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
            for _ in range(LIVE + ROUNDS)
        ]
        self.cards = [self._card(number) for number in range(LIVE + ROUNDS)]
        self.sessions = [str(uuid.uuid4()) for _ in range(LIVE + ROUNDS)]

    def _run(self, pyz: str, *arguments: str) -> str:
        command = [sys.executable, pyz, *arguments]
        return subprocess.run(command, env=self.environ, check=True, capture_output=True, text=True).stdout

    def _card(self, number: int) -> Dict[str, str]:
        path, card_uuid = self.board / f"card-{number}.md", str(uuid.uuid4())
        path.write_text(f"---\nuuid: {card_uuid}\ntitle: Card {number}\n---\n", encoding="utf-8")
        return {"uuid": card_uuid, "path": str(path)}

    def transcript(self, session: str, folder: int, text: str) -> Path:
        """Append a prompt to a session's file."""
        path = self.projects / f"-project-{folder}" / f"{session}.jsonl"
        entry = {
            "type": "user",
            "sessionId": session,
            "cwd": "/home/dev/project",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "origin": {"kind": "human"},
            "message": {"role": "user", "content": text},
        }
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        return path

    def start_session(self, number: int) -> None:
        """Its record, and a prompt that names no card yet."""
        agent = self.agents[number]
        begun = Path(f"/proc/{agent.pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode("ascii")
        now_ms = int(time.time() * 1000)
        record = {
            "pid": agent.pid,
            "sessionId": self.sessions[number],
            "cwd": "/home/dev/project",
            "procStart": begun,
            "kind": "interactive",
            "entrypoint": "cli",
            "status": "busy",
            "updatedAt": now_ms,
            "statusUpdatedAt": now_ms,
        }
        (self.records / f"{agent.pid}.json").write_text(json.dumps(record))
        self.transcript(self.sessions[number], number % FOLDERS, "look around")

    def close(self) -> None:
        """End all agents."""
        for agent in self.agents:
            agent.kill()
            agent.wait()
            assert agent.stdin is not None
            agent.stdin.close()


def wait_for(what: str, holds: Callable[[], bool]) -> float:
    """Seconds until it holds."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > PATIENCE_S:
            raise SystemExit(f"no {what} within {PATIENCE_S:g} s")
        time.sleep(0.01)
    return time.monotonic() - began


def is_at(stream: EventStream, card_uuid: str, status: str) -> Callable[[], bool]:
    """Whether a card's newest event on the stream has this status."""
    return lambda: stream.statuses(card_uuid)[-1:] == [status]


def measure(home: Home, pyz: str) -> bool:
    """All figures; True when a bar is missed."""
    process = subprocess.Popen(
        [sys.executable, pyz, "serve"],
        env=home.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for("companion", lambda: answers(home.port))
        with EventStream(home.port, home.board_uuid, str(home.board)) as stream:
            for number in range(LIVE + ROUNDS):
                home.start_session(number)
            name_cards(home, stream, range(LIVE))
            missed = idle(process.pid)
            missed |= changes(home, stream)
            missed |= deaths(home, stream)
            return huge(home, stream, process.pid) or missed
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)


def answers(port: int) -> bool:
    """Whether the companion is there."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=PATIENCE_S) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def name_cards(home: Home, stream: EventStream, numbers: "range") -> List[float]:
    """Name each session's card in its file; seconds until each is on the stream."""
    took = []
    for number in numbers:
        card = home.cards[number]
        home.transcript(home.sessions[number], number % FOLDERS, f"work on {card['path']}")
        took.append(wait_for("card", is_at(stream, card["uuid"], "running")))
    return took


def idle(pid: int) -> bool:
    """Nothing happens."""
    time.sleep(2)
    before_s, began = _spent_s(pid), time.monotonic()
    time.sleep(IDLE_S)
    percent = 100 * (_spent_s(pid) - before_s) / (time.monotonic() - began)
    what = f"watching {LIVE} live sessions beside {FOLDERS * FILES_EACH} transcripts"
    missed = report(f"{what}, share of a core", percent, CPU_LIMIT_PERCENT, "%")
    return report(f"{what}, resident memory", _memory_mb(pid), MEMORY_LIMIT_MB, "MB") or missed


def changes(home: Home, stream: EventStream) -> bool:
    """A session that reports nothing names a card in its file."""
    took = name_cards(home, stream, range(LIVE, LIVE + ROUNDS))
    what = f"a changed file is noticed (median {statistics.median(took):.2f} s), longest of {ROUNDS}"
    return report(what, max(took), CHANGE_LIMIT_S, "s")


def deaths(home: Home, stream: EventStream) -> bool:
    """``kill -9``."""
    took = []
    for number in range(LIVE, LIVE + ROUNDS):
        os.kill(home.agents[number].pid, signal.SIGKILL)
        card = home.cards[number]
        took.append(wait_for("end", is_at(stream, card["uuid"], "closed")))
    what = f"a dead process is noticed (median {statistics.median(took):.2f} s), longest of {ROUNDS}"
    return report(what, max(took), DEATH_LIMIT_S, "s")


def huge(home: Home, stream: EventStream, pid: int) -> bool:
    """One session's file is as large as they come."""
    path = home.transcript(home.sessions[0], 0, "x" * 100)
    line = json.dumps({"type": "progress", "data": "y" * 50_000}).encode() + b"\n"
    with path.open("ab") as file:
        for _ in range(HUGE_BYTES // len(line)):
            file.write(line)
    home.transcript(home.sessions[0], 0, f"and on {home.cards[LIVE]['path']}")
    card, session = home.cards[LIVE]["uuid"], home.sessions[0]
    took = wait_for("card in the huge file", lambda: "running" in stream.statuses(card, session))
    print(f"a card named at the end of a file of 1 GB is found after {took:.1f} s")
    return report("with that file, resident memory", _memory_mb(pid), MEMORY_LIMIT_MB, "MB")


def main() -> int:
    """Print all figures; 1 when a bar is missed."""
    pyz = os.environ.get("MDELLO_PYZ") or str(ROOT / "dist" / "mdello.pyz")
    if not Path("/proc/self/schedstat").exists():
        print("watching sessions: not measured, this system has no /proc")
        return 0
    with tempfile.TemporaryDirectory(prefix="mdello-bench-") as folder:
        home = Home(Path(folder), pyz)
        try:
            return int(measure(home, pyz))
        finally:
            home.close()


if __name__ == "__main__":
    raise SystemExit(main())
