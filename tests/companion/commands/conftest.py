"""A companion run as a process from the checkout, with a home and a port of its own."""

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import pytest

ROOT = Path(__file__).resolve().parents[3]

# Loopback must never go through a proxy of the machine that runs the tests.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Mdello:
    """The command line in one isolated environment; also starts and stops ``serve``."""

    def __init__(self, environ: Dict[str, str], program: Path) -> None:
        self.environ = environ
        self.program = program
        self.port = int(environ["MDELLO_COMPANION_PORT"])
        self.home = Path(environ["HOME"])
        self.servers: List[subprocess.Popen[str]] = []

    def __call__(self, *arguments: str, **changes: str) -> "subprocess.CompletedProcess[str]":
        """Run one command to its end."""
        return subprocess.run(
            [sys.executable, str(self.program), *arguments],
            env={**self.environ, **changes},
            cwd=self.home,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            stdin=subprocess.DEVNULL,
        )

    def start(self, *arguments: str, **changes: str) -> "subprocess.Popen[str]":
        """Start ``serve`` and wait until it says where it listens."""
        server = subprocess.Popen(
            [sys.executable, str(self.program), "serve", *arguments],
            env={**self.environ, **changes},
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            stdin=subprocess.DEVNULL,
        )
        self.servers.append(server)
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line.startswith("Mdello companion"), (line, server.stderr and server.stderr.read())
        return server

    def stop(self, server: "subprocess.Popen[str]", number: int = signal.SIGTERM) -> Tuple[int, str, str]:
        """End a server that we started; its exit code, and the rest of its output."""
        server.send_signal(number)
        out, err = server.communicate(timeout=20)
        return server.returncode, out, err

    def ask(self, method: str, path: str, body: Optional[object] = None) -> Any:
        """The JSON answer of the running companion."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with _OPENER.open(request, timeout=20) as answer:
            return json.loads(answer.read())

    def report(self, path: Path, status: str, session: str = "s-1") -> Any:
        """Post an association as a client does."""
        body = {"markdownPath": str(path), "harness": "pi", "sessionId": session, "status": status}
        return self.ask("POST", "/associations", body)


@pytest.fixture
def mdello(clean_environ: Dict[str, str]) -> Iterator[Mdello]:
    """The command line from the checkout; servers that are still up are ended afterwards."""
    yield from _run(clean_environ, ROOT / "mdello.py")


def _run(environ: Dict[str, str], program: Path) -> Iterator[Mdello]:
    made = Mdello(environ, program)
    yield made
    for server in made.servers:
        if server.poll() is None:
            server.kill()
        server.wait(timeout=20)
        for stream in (server.stdout, server.stderr):
            assert stream is not None
            stream.close()


MakeCard = Callable[[Path, str, str], Path]


@pytest.fixture
def make_card() -> MakeCard:
    """Writes a card: ``make_card(folder, name, uuid)``; its path."""

    def make(folder: Path, name: str, uuid: str) -> Path:
        path = folder / name
        path.write_text(f"---\nuuid: {uuid}\ntitle: {name}\n---\n\nText.\n", encoding="utf-8")
        return path

    return make
