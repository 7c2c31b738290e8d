"""A person who works with Pi, at the command line and over its RPC mode."""

import itertools
import json
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Callable, Dict, List

from tests.e2e.screen import Screen
from tests.e2e.world import WAIT_S, Json, Run, World

API_KEY = "dummy-key-for-loopback"


class PiWorld(World):
    """A world with the real Pi, run by a Node that it accepts."""

    def __init__(self, root: Path, pyz: Path, node: Path, script: Path) -> None:
        super().__init__(root, pyz)
        self.node = node
        self.script_file = script

    @property
    def agent_folder(self) -> Path:
        """Where Pi keeps its settings, extensions and sessions."""
        return self.home / ".pi" / "agent"

    def agent_environ(self) -> Dict[str, str]:
        """The right Node in front, and no look at the network."""
        path = os.environ.get("PATH", os.defpath)
        return {"PI_OFFLINE": "1", "PATH": f"{self.node.parent}{os.pathsep}{path}"}

    def settle_in(self) -> None:
        """Our model is the only one that Pi knows, hence its choice."""
        provider = {
            "baseUrl": f"http://127.0.0.1:{self.model_port}",
            "api": "anthropic-messages",
            "apiKey": API_KEY,
            "models": [{"id": "scripted"}],
        }
        self.agent_folder.mkdir(parents=True, exist_ok=True)
        models = {"providers": {"scripted": provider}}
        (self.agent_folder / "models.json").write_text(json.dumps(models), "utf-8")

    def extension(self, name: str, text: str) -> None:
        """An extension of the person's own, beside ours."""
        folder = self.agent_folder / "extensions"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")

    def command(self, *arguments: str) -> List[str]:
        """The argv of one Pi."""
        return [str(self.node), str(self.script_file), *arguments]

    def pi(self, *arguments: str) -> Run:
        """One ``pi -p`` run, waited for."""
        return self.run_in(self.command("-p", *arguments), self.project)

    def pi_json(self, *arguments: str) -> Run:
        """One ``pi --mode json`` run, waited for."""
        return self.run_in(self.command("--mode", "json", *arguments), self.project)

    def terminal(self, *arguments: str) -> Screen:
        """Pi in its terminal UI."""
        return Screen(self.command(*arguments), self.environ(), self.project)

    def rpc(self, *arguments: str) -> "PiRpc":
        """A Pi that is spoken to; a context manager."""
        command = self.command("--mode", "rpc", *arguments)
        return PiRpc(self.start(command, stdin=subprocess.PIPE))


class PiRpc:
    """The JSONL dialogue with one Pi."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()  # Guards _seen and _ended.
        self._seen: List[Json] = []
        self._ended = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def __enter__(self) -> "PiRpc":
        return self

    def __exit__(self, *_: object) -> None:
        self.quit()

    def quit(self) -> Run:
        """Close its input, upon which it ends, and wait."""
        pipe_in, errors = self.process.stdin, self.process.stderr
        assert errors is not None
        if pipe_in is not None:
            pipe_in.close()
            self.process.stdin = None
        code = self.process.wait(WAIT_S)
        self._thread.join(WAIT_S)
        return Run(code, "", errors.read())

    def send(self, kind: str, **more: object) -> str:
        """One command, whose answer nobody waits for yet; returns its id."""
        number = str(next(self._numbers))
        pipe_in = self.process.stdin
        assert pipe_in is not None
        pipe_in.write(json.dumps({"id": number, "type": kind, **more}) + "\n")
        pipe_in.flush()
        return number

    def ask(self, kind: str, **more: object) -> Json:
        """One command and its answer."""
        number = self.send(kind, **more)
        return self.wait_for(lambda one: one.get("type") == "response" and one.get("id") == number, kind)

    def prompt(self, text: str, **more: object) -> None:
        """A prompt, and wait until the agent has settled."""
        before = self.count("agent_settled")
        answer = self.ask("prompt", message=text, **more)
        assert answer["success"], answer
        self.wait_for_count("agent_settled", before + 1)

    def state(self) -> Json:
        """What Pi says of itself."""
        data = self.ask("get_state")["data"]
        assert isinstance(data, dict)
        return data

    def count(self, kind: str) -> int:
        """How many messages of a type came so far."""
        with self._changed:
            return sum(one.get("type") == kind for one in self._seen)

    def wait_for_count(self, kind: str, number: int) -> None:
        """Wait until so many messages of a type came."""
        found = itertools.count(1)
        self.wait_for(lambda one: one.get("type") == kind and next(found) == number, f"{number} {kind}")

    def wait_for(self, holds: Callable[[Json], bool], what: str) -> Json:
        """The first message, old ones included, of which something holds."""
        until = time.monotonic() + WAIT_S
        looked = 0
        with self._changed:
            while True:
                for one in self._seen[looked:]:
                    if holds(one):
                        return one
                looked = len(self._seen)
                left = until - time.monotonic()
                assert left > 0 and not self._ended, f"no {what}; had {self._seen[-20:]}"
                self._changed.wait(left)

    def _read(self) -> None:
        output = self.process.stdout
        assert output is not None
        for line in output:
            with self._changed:
                self._seen.append(json.loads(line))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
