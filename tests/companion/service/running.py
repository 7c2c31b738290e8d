"""What tests of a running service need: requests that wait, and the tale of who answered them."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Type

from tests.companion.web.talk import PATIENCE_S, Talk
from tests.conftest import ROOT

SUPERVISOR = ROOT / "tests" / "fakes" / "supervisor.py"


def health(port: int, host: str = "127.0.0.1") -> Dict[str, Any]:
    """The account of whoever serves the port; waits for it in the socket."""
    with Talk(port, host) as talk:
        value = talk.ask("GET", "/health").json()
    assert isinstance(value, dict)
    return value


class Waiting:
    """Requests on their way, each in a thread of its own. OSErrors are failures of the service."""

    def __init__(self, count: int, ask: Callable[[], Dict[str, Any]]) -> None:
        self.answers: List[Dict[str, Any]] = []
        self.failures: List[OSError] = []
        self._threads = [threading.Thread(target=self._work, args=(ask,)) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _work(self, ask: Callable[[], Dict[str, Any]]) -> None:
        try:
            self.answers.append(ask())
        except OSError as exc:
            self.failures.append(exc)

    def pids(self) -> List[int]:
        """Who answered, when all are answered; nobody was turned away."""
        for thread in self._threads:
            thread.join(PATIENCE_S)
        assert not self.failures
        assert len(self.answers) == len(self._threads)
        return sorted({answer["pid"] for answer in self.answers})


class Supervised:
    """The supervisor as a process, and what it tells. A context: both are ended with it."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(SUPERVISOR), *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": os.defpath},
            stdin=subprocess.DEVNULL,
        )
        self.pids: List[int] = []

    def next_pid(self) -> int:
        """Wait until the service is started (again); its process number."""
        while True:
            word, _, number = self.line().partition(" ")
            if word == "started":
                self.pids.append(int(number))
                return int(number)

    def line(self) -> str:
        """The next thing that it tells."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the supervisor has died"
        return line.strip()

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send the service that runs now a signal."""
        os.kill(self.pids[-1], number)

    def __enter__(self) -> "Supervised":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            assert self._process.wait(PATIENCE_S) == 0
        finally:
            self._process.kill()
            assert self._process.stdout is not None
            self._process.stdout.close()


def boards_in(home: Path) -> "subprocess.CompletedProcess[bytes]":
    """A registered board in a home, made by the program itself."""
    return subprocess.run(
        [sys.executable, str(ROOT / "mdello.py"), "board", "init", str(home / "board")],
        env={"HOME": str(home), "PATH": os.defpath},
        check=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


def recorded(home: Path) -> List[Dict[str, Any]]:
    """What the log of that home holds."""
    log = home / ".local" / "state" / "mdello" / "companion.jsonl"
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
