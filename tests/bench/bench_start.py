"""What the built file costs: its size, the start of ``--version``, and a server that has nothing to do.

Each Python that the build found is measured. The server holds a board and 1,000 associations, and
has one listener on its event stream.
"""

import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Dict, List, Sequence, Tuple
from urllib.parse import urlencode

ROOT = Path(__file__).resolve().parents[2]

SIZE_LIMIT_BYTES = 400_000
START_RATIO_LIMIT = 2.5
IDLE_CPU_LIMIT_PERCENT = 0.5
IDLE_MEMORY_LIMIT_MB = 40

RUNS = 40
IDLE_S = 20.0
CARDS = 100
SESSIONS_PER_CARD = 10
START_LIMIT_S = 30.0


def main() -> int:
    """Print all figures; 1 when a bar is missed."""
    pyz = os.environ.get("MDELLO_PYZ") or str(ROOT / "dist" / "mdello.pyz")
    pythons = [path for path in os.environ.get("MDELLO_BENCH_PYTHONS", "").split(os.pathsep) if path]
    size = os.stat(pyz).st_size
    missed = report("size of mdello.pyz", size / 1000, SIZE_LIMIT_BYTES / 1000, "kB")
    for python in pythons or [sys.executable]:
        name = _name(python)
        ratio, bare_s = start_ratio(python, pyz)
        text = f"{name}, --version as a multiple of python3 -c pass ({bare_s * 1000:.0f} ms)"
        missed |= report(text, ratio, START_RATIO_LIMIT, "x")
    for python in pythons or [sys.executable]:
        missed |= report_idle(python, pyz)
    return int(missed)


def report(what: str, figure: float, limit: float, unit: str) -> bool:
    """One line; True when the figure misses its bar."""
    missed = figure > limit
    print(f"{what}: {figure:.2f} {unit} (at most {limit:g}){' MISSED' if missed else ''}", flush=True)
    return missed


def start_ratio(python: str, pyz: str) -> Tuple[float, float]:
    """Median of CPU time as a multiple of ``python3 -c pass``, run in turns; and that one's seconds.

    CPU time of the finished process, since other work on the machine lengthens any other clock.
    """
    pairs = []
    for _ in range(RUNS):
        pairs.append((_cpu_s([python, pyz, "--version"]), _cpu_s([python, "-c", "pass"])))
    bare = statistics.median(second for _, second in pairs)
    return statistics.median(first for first, _ in pairs) / bare, bare


def _cpu_s(command: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def report_idle(python: str, pyz: str) -> bool:
    """Processor and memory of a server that nobody asks anything."""
    if not Path("/proc/self/schedstat").exists():
        print(f"{_name(python)}, idle server: not measured, this system has no /proc")
        return False
    with tempfile.TemporaryDirectory(prefix="mdello-bench-") as folder:
        environ = _world(Path(folder), python, pyz)
        process = subprocess.Popen(
            [python, pyz, "serve"], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            with _listen(int(environ["MDELLO_COMPANION_PORT"]), environ["BOARD_QUERY"], process):
                time.sleep(1)  # The start is not idleness.
                before_s, began = _spent_s(process.pid), time.monotonic()
                time.sleep(IDLE_S)
                percent = 100 * (_spent_s(process.pid) - before_s) / (time.monotonic() - began)
                memory = _memory_mb(process.pid)
        finally:
            process.terminate()
            process.wait(timeout=START_LIMIT_S)
    name = _name(python)
    missed = report(f"{name}, idle server, share of a core", percent, IDLE_CPU_LIMIT_PERCENT, "%")
    return report(f"{name}, idle server, resident memory", memory, IDLE_MEMORY_LIMIT_MB, "MB") or missed


def _world(folder: Path, python: str, pyz: str) -> Dict[str, str]:
    """A home with a registered board and a log of associations; the environment that leads there."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environ = {
        "HOME": str(folder),
        "PATH": os.environ.get("PATH", os.defpath),
        "MDELLO_COMPANION_PORT": str(port),
        "MDELLO_COMPANION_DATA": str(folder / "companion.jsonl"),
    }
    board = folder / "board"
    subprocess.run([python, pyz, "board", "init", str(board)], env=environ, check=True, capture_output=True)
    listed = subprocess.run(
        [python, pyz, "board", "list", "--json"], env=environ, check=True, capture_output=True, text=True
    )
    board_uuid = _find_uuid(json.loads(listed.stdout))
    lines: List[str] = []
    for card in range(CARDS):
        path, card_uuid = board / f"card-{card}.md", str(uuid.uuid4())
        path.write_text(f"---\nuuid: {card_uuid}\ntitle: Card {card}\n---\n", encoding="utf-8")
        for session in range(SESSIONS_PER_CARD):
            record = {
                "boardUuid": board_uuid,
                "cardUuid": card_uuid,
                "cardPath": str(path),
                "harness": "claude",
                "sessionId": f"session-{session}",
                "status": "ready_for_review",
                "updatedAt": "2026-01-01T00:00:00.000Z",
            }
            lines.append(json.dumps(record) + "\n")
    (folder / "companion.jsonl").write_text("".join(lines), encoding="utf-8")
    return {**environ, "BOARD_QUERY": urlencode({"boardUuid": board_uuid, "boardPath": str(board)})}


def _find_uuid(listed: object) -> str:
    """The first value under ``uuid``, wherever it is."""
    if isinstance(listed, dict):
        if isinstance(listed.get("uuid"), str):
            return str(listed["uuid"])
        listed = list(listed.values())
    found = [_find_uuid(part) for part in listed] if isinstance(listed, list) else []
    return next((part for part in found if part), "")


def _listen(port: int, query: str, process: "subprocess.Popen[bytes]") -> socket.socket:
    """A connection to the event stream that has got the state of all associations."""
    end = time.monotonic() + START_LIMIT_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise SystemExit(f"the server ended with {process.returncode}")
        try:
            listener = socket.create_connection(("127.0.0.1", port), timeout=START_LIMIT_S)
        except OSError:
            time.sleep(0.05)
            continue
        listener.sendall(f"GET /events?{query} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        received = b""
        while received.count(b'"sessionId"') < CARDS * SESSIONS_PER_CARD:
            part = listener.recv(65536)
            if not part:
                raise SystemExit(f"the event stream ended early: {received[:500]!r}")
            received += part
        return listener
    raise SystemExit("the server does not answer")


def _spent_s(pid: int) -> float:
    """Processor time of all threads so far, in seconds."""
    spent = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        spent += int((thread / "schedstat").read_text().split()[0])
    return spent / 1e9


def _memory_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    return 0.0


def _name(python: str) -> str:
    answer = subprocess.run([python, "-V"], capture_output=True, text=True, check=True)
    return answer.stdout.strip()


if __name__ == "__main__":
    raise SystemExit(main())
