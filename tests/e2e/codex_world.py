"""A person who works with Codex, at the command line and through its server."""

import json
import queue
import subprocess
import threading
from pathlib import Path
from typing import Any, Dict, List

from tests.e2e.world import WAIT_S, Json, Run, World

MODEL = "gpt-6.2-sol"
"""A name that Codex knows: its models edit by scripts that call ``apply_patch``."""

_CONFIG = """\
model = "{model}"
model_provider = "loopback"
[model_providers.loopback]
name = "Loopback"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
env_key = "LOOPBACK_KEY"
request_max_retries = 0
stream_max_retries = 0
"""


def patch_of(*lines: str) -> Json:
    """A scripted reply that applies one patch, by a script as the model writes it."""
    patch = json.dumps("\n".join(("*** Begin Patch", *lines, "*** End Patch", "")))
    script = f"try {{ text(String(await tools.apply_patch({patch}))); }} catch (e) {{ text(String(e)); }}"
    return {"blocks": [{"tool": "exec", "input": script}]}


class CodexWorld(World):
    """A world with the real Codex."""

    def __init__(self, root: Path, pyz: Path, program: Path) -> None:
        super().__init__(root, pyz)
        self.program = program

    @property
    def folder(self) -> Path:
        """Codex's own."""
        return self.home / ".codex"

    def agent_environ(self) -> Dict[str, str]:
        """The key that its provider asks for; a proxy that nobody serves, which no hook may use."""
        return {"LOOPBACK_KEY": "dummy", "HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}

    def settle_in(self) -> None:
        """Our model is the only one."""
        self.folder.mkdir(exist_ok=True)
        config = _CONFIG.format(model=MODEL, port=self.model_port)
        (self.folder / "config.toml").write_text(config, "utf-8")

    def codex(self, *arguments: str) -> Run:
        """``codex exec`` with these arguments, to its end; hooks run without having been trusted."""
        return self.run_in(self.command("--dangerously-bypass-hook-trust", *arguments), self.project)

    def command(self, *arguments: str) -> List[str]:
        """The argv of one ``codex exec`` that may write into the board."""
        options = ["--json", "--skip-git-repo-check", "--sandbox", "danger-full-access"]
        return [str(self.program), "exec", *options, *arguments]

    def trust(self) -> List[str]:
        """Trust our hooks, as the person would by ``/hooks``; the keys under which Codex knows them."""
        with CodexServer(self) as server:
            (found,) = server.ask("hooks/list", cwds=[str(self.project)])["data"]
        lines = [
            f'[hooks.state.{json.dumps(each["key"])}]\ntrusted_hash = "{each["currentHash"]}"\n'
            for each in found["hooks"]
        ]
        with (self.folder / "config.toml").open("a", encoding="utf-8") as config:
            config.write("\n".join(["", *lines]))
        return [str(each["key"]) for each in found["hooks"]]


class CodexServer:
    """``codex app-server``: JSON lines on its pipes. Use as a context manager; it ends with its input."""

    def __init__(self, world: CodexWorld) -> None:
        command = [str(world.program), "app-server"]
        options: Dict[str, Any] = {"stdin": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = world.start(command, **options)
        self._number = 0
        self._lines: queue.Queue[Dict[str, Any]] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> "CodexServer":
        self._reader.start()
        self.ask("initialize", clientInfo={"name": "person", "title": "Person", "version": "1"})
        self.send({"method": "initialized"})
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None  # Nothing is left to be flushed by who ends it.
        self.process.wait(WAIT_S)
        self._reader.join(WAIT_S)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(json.loads(line))

    def send(self, message: Json) -> None:
        """Write one message."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: object) -> Dict[str, Any]:
        """Ask, and wait for the answer; what comes before it is dropped."""
        self._number += 1
        number = self._number
        self.send({"id": number, "method": method, "params": params})
        while True:
            message = self._lines.get(timeout=WAIT_S)
            if message.get("id") == number and "method" not in message:
                assert "result" in message, message
                return dict(message["result"])

    def wait_for(self, method: str) -> Dict[str, Any]:
        """The next message of that method; what comes before it is dropped."""
        while True:
            message = self._lines.get(timeout=WAIT_S)
            if message.get("method") == method:
                return message
