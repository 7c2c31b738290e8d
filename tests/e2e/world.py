"""One isolated person: a home, a project, a board, a scripted model and the built file; no agent yet."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, TypeVar

from tests.e2e.stream import EventStream

MODEL_SERVER = Path(__file__).resolve().parents[1] / "fakes" / "model_server.py"
WAIT_S = 30.0
RUN_LIMIT_S = 120.0
POLL_S = 0.05

Json = Dict[str, object]
Itself = TypeVar("Itself", bound="World")


class Run(NamedTuple):
    """What a finished program left."""

    code: int
    stdout: str
    stderr: str

    def json(self) -> Json:
        """stdout as one JSON object."""
        value = json.loads(self.stdout)
        assert isinstance(value, dict), self.stdout
        return value


class Card(NamedTuple):
    """A Markdown card on the board."""

    path: Path
    uuid: str


def say(text: str, **more: object) -> Json:
    """A scripted reply that only talks."""
    return {"blocks": [{"text": text}], **more}


def use(tool: str, more: Optional[Json] = None, **arguments: object) -> Json:
    """A scripted reply that calls one tool."""
    return {"blocks": [{"text": f"I use {tool}."}, {"tool": tool, "input": arguments}], **(more or {})}


def card_text(card_uuid: str, title: str) -> str:
    """A card as the board program writes it; without a uuid when that is empty."""
    head = f"uuid: {card_uuid}\n" if card_uuid else ""
    return f"---\n{head}title: {title}\ncolumn: todo\n---\n\n{title}\n"


def wait_until(holds: Callable[[], bool], what: str, timeout_s: float = WAIT_S) -> None:
    """Poll until ``holds``. AssertionError after ``timeout_s``."""
    until = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < until, f"no {what} within {timeout_s:g} s"
        time.sleep(POLL_S)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody holds right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class World:
    """Everything one test needs but the agent, which subclasses bring.

    Use as a context manager: all that was started is ended by pid.
    """

    def __init__(self, root: Path, pyz: Path, home_name: str = "home") -> None:
        self.root = root.resolve()
        self.home = self._folder(home_name)
        self.project = self._folder("project")
        self.board = self.root / "board"
        self.pyz = pyz
        self.port = free_port()
        self.board_uuid = ""
        self.extra_environ: Dict[str, str] = {}
        """What a test adds to the clean environment of every program started here."""
        self._scripts_file = self.root / "scripts.json"
        self._scripts: Dict[str, List[Json]] = {}
        self._processes: List[subprocess.Popen[str]] = []
        self._companion: Optional[subprocess.Popen[str]] = None
        self.model_port = 0
        """Of the scripted model, on 127.0.0.1."""

    def __enter__(self: "Itself") -> "Itself":
        self._scripts_file.write_text("{}", "utf-8")
        self._start_model()
        self.settle_in()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.communicate()

    # The environment ---------------------------------------------------------------------------

    def environ(self) -> Dict[str, str]:
        """A clean environment: nothing of the person who runs the tests but PATH."""
        return {
            "HOME": str(self.home),
            "PATH": os.environ.get("PATH", os.defpath),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "USER": "dev",
            "SHELL": "/bin/bash",
            "MDELLO_COMPANION_PORT": str(self.port),
            **self.agent_environ(),
            **self.extra_environ,
        }

    def agent_environ(self) -> Dict[str, str]:
        """What the agent needs in its environment to talk to our model and to nobody else."""
        return {}

    def settle_in(self) -> None:
        """Put into the home what the agent keeps of earlier starts; called again for each board."""

    def script(self, name: str, *steps: Json) -> str:
        """Write what the model answers to ``[[script:name]]``; returns that marker."""
        self._scripts[name] = list(steps)
        beside = self._scripts_file.with_suffix(".new")
        beside.write_text(json.dumps(self._scripts), "utf-8")
        beside.replace(self._scripts_file)
        return f"[[script:{name}]]"

    def card(self, name: str) -> Card:
        """A new card with a uuid, written by "the board"."""
        card = Card(self.board / name, str(uuid.uuid4()))
        card.path.write_text(card_text(card.uuid, card.path.stem), "utf-8")
        return card

    # The product -------------------------------------------------------------------------------

    def mdello(self, *arguments: str, code: Optional[int] = 0) -> Run:
        """Run one command of the built file; its exit code is checked unless ``code`` is None."""
        done = self.run(sys.executable, str(self.pyz), *arguments)
        if code is not None:
            assert done.code == code, (arguments, done)
        return done

    def run(self, *command: str) -> Run:
        """Run any program in the clean environment."""
        return self.run_in(list(command), self.root)

    def make_board(self, folder: Optional[Path] = None) -> None:
        """``board init``, and note its uuid."""
        self.board = folder or self.board
        self.settle_in()
        self.mdello("board", "init", str(self.board))
        found = re.search(r"uuid: *[\"']?([0-9a-f-]{36})", (self.board / "mdello.yml").read_text("utf-8"))
        assert found is not None, (self.board / "mdello.yml").read_text("utf-8")
        self.board_uuid = found.group(1)

    def start_companion(self) -> None:
        """``serve``, and wait until it answers."""
        log = (self.root / "companion.out").open("a", encoding="utf-8")
        with log:
            self._companion = subprocess.Popen(
                [sys.executable, str(self.pyz), "serve"],
                env=self.environ(),
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self._processes.append(self._companion)
        wait_until(self._answers, "companion: " + (self.root / "companion.out").read_text("utf-8"))

    def stop_companion(self, kind: signal.Signals = signal.SIGTERM) -> None:
        """End the companion, politely or not, and wait for its end."""
        assert self._companion is not None
        self._companion.send_signal(kind)
        self._companion.wait(WAIT_S)
        self._companion = None

    def pause_companion(self) -> None:
        """Let it hang: the system still accepts connections for it, and nobody answers."""
        assert self._companion is not None
        self._companion.send_signal(signal.SIGSTOP)

    def resume_companion(self) -> None:
        """End its pause; whatever came meanwhile it takes now."""
        assert self._companion is not None
        self._companion.send_signal(signal.SIGCONT)

    def stream(self) -> EventStream:
        """An open ``/events`` of the board."""
        return EventStream(self.port, self.board_uuid, str(self.board))

    def get(self, path: str) -> object:
        """The JSON answer of the companion to a GET."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
            assert response.status == 200, body
            return json.loads(body)
        finally:
            connection.close()

    def associations(self) -> List[Json]:
        """All associations that the companion holds."""
        value = self.get("/associations")
        assert isinstance(value, list)
        return value

    def linked(self) -> Dict[str, str]:
        """Card uuid to status, as the companion holds them."""
        return {str(one["cardUuid"]): str(one["status"]) for one in self.associations()}

    def wait_for_event(self, name: str) -> None:
        """Wait until the newest hook event that arrived is ``name``; of use for a last one only."""

        def arrived() -> bool:
            harness = self.health()["harnesses"].get("claude", {})
            return bool(harness.get("lastEvent") == name)

        wait_until(arrived, f"hook event {name}")

    def without_uuid(self) -> List[str]:
        """Cards without a uuid that a session worked on, as ``/health`` names them."""
        return [str(one["path"]) for one in self.health()["withoutUuid"]]

    def health(self) -> Dict[str, Any]:
        """The answer of ``/health``."""
        health = self.get("/health")
        assert isinstance(health, dict)
        return health

    def _answers(self) -> bool:
        assert self._companion is not None
        assert self._companion.poll() is None, (self.root / "companion.out").read_text("utf-8")
        try:
            self.get("/health")
        except OSError:
            return False
        return True

    def start(self, command: List[str], **more: Any) -> "subprocess.Popen[str]":
        """A program in the project that goes on while the test acts; it is ended with the test."""
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        process: subprocess.Popen[str] = subprocess.Popen(
            command, env=self.environ(), cwd=self.project, text=True, encoding="utf-8", **options
        )
        self._processes.append(process)
        return process

    def finish(self, process: "subprocess.Popen[str]") -> Run:
        """Wait for a program in the background."""
        stdout, stderr = process.communicate(timeout=RUN_LIMIT_S)
        return Run(process.returncode, stdout, stderr)

    def run_in(self, command: List[str], folder: Path) -> Run:
        """Run a program in a folder, in the clean environment, and wait for it."""
        done = subprocess.run(
            command,
            env=self.environ(),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=RUN_LIMIT_S,
        )
        return Run(done.returncode, done.stdout, done.stderr)

    def _start_model(self) -> None:
        log = self.root / "model.jsonl"
        command = [sys.executable, str(MODEL_SERVER), "--scripts", str(self._scripts_file), "--log", str(log)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self._processes.append(process)
        assert process.stdout is not None
        self.model_port = int(process.stdout.readline())

    def _folder(self, name: str) -> Path:
        folder = self.root / name
        folder.mkdir(parents=True)
        return folder
