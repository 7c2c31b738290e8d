"""How fast a hook is answered and an event is told. Prints ratios measured in one run.

``python3 tests/bench/bench_http.py [--hooks N] [--seconds N]``: starts the built file (``MDELLO_PYZ``, else
``mdello.py``) in a temporary home with 1,000 associations, and beside it a bare ``http.server`` that answers
``{}``; server and client are separate processes, and the two servers are asked in turn.
"""

import argparse
import json
import os
import selectors
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List, Tuple

ROOT = Path(__file__).resolve().parents[2]

ASSOCIATIONS = 1_000
LISTENERS = 20
EVENTS_PER_S = 50
TARGET_RATIO = 2.0
TARGET_P99_MS = 20.0
BOARD = "bench-board"

_BARE = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    def log_message(self, *args):
        pass
getattr(http.server, sys.argv[2])(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def free_port() -> int:
    """A port that nobody holds now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def request(method: str, path: str, body: bytes = b"") -> bytes:
    """The bytes of one request that ends its connection."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


def exchange(port: int, data: bytes) -> bytes:
    """Everything a server says to one request on a new connection."""
    with socket.socket() as sock:
        sock.connect(("127.0.0.1", port))
        sock.sendall(data)
        pieces: List[bytes] = []
        while True:
            piece = sock.recv(65_536)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)


def timed_ms(port: int, data: bytes) -> float:
    """From the call to the last byte of the answer, which must be an empty object."""
    start = time.perf_counter()
    with socket.socket() as sock:
        sock.connect(("127.0.0.1", port))
        sock.sendall(data)
        answer = b""
        while not answer.endswith(b"\r\n\r\n{}"):
            piece = sock.recv(65_536)
            assert piece, answer
            answer += piece
        return (time.perf_counter() - start) * 1000


def hook(event: str, session: str, **more: object) -> bytes:
    """A hook request of about 2 kB, as Claude Code sends them."""
    payload = {
        "session_id": session,
        "transcript_path": f"/home/dev/.claude/projects/-home-dev/{session}.jsonl",
        "cwd": "/home/dev/project",
        "hook_event_name": event,
        "permission_mode": "default",
        **more,
    }
    return request("POST", "/hooks/claude", json.dumps(payload).encode())


class Server:
    """A companion in a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.board = folder / "board"
        self.board.mkdir()
        self.cards = [self._card(number) for number in range(ASSOCIATIONS)]
        program = os.environ.get("MDELLO_PYZ") or str(ROOT / "mdello.py")
        environ = {
            "HOME": str(folder),
            "PATH": os.environ.get("PATH", os.defpath),
            "MDELLO_COMPANION_PORT": str(self.port),
        }
        command = [sys.executable, program, "serve"]
        self.process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL)

    def _card(self, number: int) -> str:
        path = self.board / f"card-{number}.md"
        path.write_text(f"---\nuuid: card-{number}\ntitle: Card {number}\ncolumn: Doing\n---\n\nText\n")
        return str(path)

    def fill(self) -> None:
        """Register the board and hold 1,000 associations, each of a session of its own."""
        with listen(self.port, self.board):
            pass
        for number, card in enumerate(self.cards):
            body = {"cardPath": card, "harness": "claude", "sessionId": f"s{number}", "status": "idle"}
            answer = exchange(self.port, request("POST", "/associations", json.dumps(body).encode()))
            assert b" 202 " in answer, answer
            exchange(self.port, hook("SessionStart", f"s{number}", source="startup"))


def listen(port: int, board: Path) -> socket.socket:
    """An event stream whose first bytes have come."""
    sock = socket.socket()
    sock.connect(("127.0.0.1", port))
    sock.sendall(request("GET", f"/events?boardUuid={BOARD}&boardPath={board}"))
    assert sock.recv(100).startswith(b"HTTP/1.1 200")
    return sock


def wait_for(port: int) -> None:
    """Until somebody listens there."""
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nobody listens on {port}")


def percentile(values: List[float], share: float) -> float:
    """The value below which so many of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def hooks(server: Server, bare_port: int, threading_port: int, count: int) -> None:
    """Hooks that record something, hooks that say nothing new, and the bare server, in turn."""
    recorded, quiet, bare, threading = [], [], [], []
    for number in range(count):
        session = f"s{number % ASSOCIATIONS}"
        padding = "x" * 1_500
        prompt = hook("UserPromptSubmit", session, prompt=padding)
        tool = hook("PostToolUse", session, tool_name="Bash", tool_use_id="t", tool_response=padding)
        bare.append(timed_ms(bare_port, prompt))
        recorded.append(timed_ms(server.port, prompt))
        threading.append(timed_ms(threading_port, prompt))
        quiet.append(timed_ms(server.port, tool))
        timed_ms(server.port, hook("Stop", session))
    base = statistics.median(bare)
    for name, values in (("recording", recorded), ("nothing new", quiet)):
        p50 = statistics.median(values)
        print(
            f"hook POST p50: {p50:.2f} ms, bare http.server p50: {base:.2f} ms, ratio {p50 / base:.2f}"
            f" ({name}; target at most {TARGET_RATIO}; to ThreadingHTTPServer, as python3 -m http.server"
            f" runs: {p50 / statistics.median(threading):.2f}; p99 {percentile(values, 0.99):.2f} ms)",
            flush=True,
        )


def events(server: Server, seconds: int) -> None:
    """Events at a steady rate, heard by all listeners but one that never reads."""
    stalled = listen(server.port, server.board)
    count = seconds * EVENTS_PER_S
    listener = subprocess.Popen(
        [sys.executable, __file__, "--listen", str(server.port), str(server.board), str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert listener.stdout is not None
    assert listener.stdout.readline() == "ready\n"
    sent: Dict[int, float] = {}
    begun = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, begun + number / EVENTS_PER_S - time.monotonic()))
        data = hook("UserPromptSubmit", "s0", prompt="go on", transcript_path=f"/bench/{number}/")
        sent[number] = time.monotonic()
        exchange(server.port, data)
    said, _ = listener.communicate()
    stalled.close()
    delays = [(when - sent[number]) * 1000 for number, when in json.loads(said)]
    print(
        f"event to SSE p50/p99: {statistics.median(delays):.2f} / {percentile(delays, 0.99):.2f} ms at"
        f" {EVENTS_PER_S} events a second, {LISTENERS} listeners, one stalled"
        f" (target p99 below {TARGET_P99_MS:.0f} ms; {len(delays)} of {count * (LISTENERS - 1)} heard)"
    )


def listen_to_all(port: int, board: Path, count: int) -> None:
    """The listeners' process: prints when each event was heard, as (number, monotonic seconds)."""
    selector = selectors.DefaultSelector()
    buffers: Dict[socket.socket, bytearray] = {}
    for _ in range(LISTENERS - 1):
        sock = listen(port, board)
        selector.register(sock, selectors.EVENT_READ)
        buffers[sock] = bytearray()
    # Every new listener made all others get a snapshot of 1,000 associations: let that pass.
    while ready := selector.select(1.0):
        for key, _ in ready:
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.recv(1_000_000)
    print("ready", flush=True)
    heard: List[Tuple[int, float]] = []
    end = time.monotonic() + count / EVENTS_PER_S + 10
    while len(heard) < count * (LISTENERS - 1) and time.monotonic() < end:
        for key, _ in selector.select(1.0):
            stream = key.fileobj
            assert isinstance(stream, socket.socket)
            buffers[stream] += stream.recv(1_000_000)
            now = time.monotonic()
            *frames, rest = buffers[stream].split(b"\n\n")
            buffers[stream] = rest
            heard += [(_number(frame), now) for frame in frames if b"event: association" in frame]
    print(json.dumps(heard))


def _number(frame: bytearray) -> int:
    return int(bytes(frame).split(b"/bench/")[1].split(b"/")[0])


def main() -> int:
    """Run everything; the exit code says nothing about speed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hooks", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--listen", nargs=3)
    options = parser.parse_args()
    if options.listen:
        listen_to_all(int(options.listen[0]), Path(options.listen[1]), int(options.listen[2]))
        return 0
    folder = Path(tempfile.mkdtemp(prefix="mdello-bench-"))
    server = Server(folder)
    ports = (free_port(), free_port())
    processes = [server.process] + [
        subprocess.Popen([sys.executable, "-c", _BARE, str(port), kind])
        for port, kind in zip(ports, ("HTTPServer", "ThreadingHTTPServer"))
    ]
    try:
        for port in (server.port, *ports):
            wait_for(port)
        server.fill()
        hooks(server, *ports, options.hooks)
        events(server, options.seconds)
    finally:
        for process in processes:
            process.terminate()
            process.wait()
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
