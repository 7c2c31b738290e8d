"""A person who works with OpenCode, at the command line and through its server."""

import http.client
import json
import re
import signal
import subprocess
import threading
from pathlib import Path
from typing import Dict, List, Optional
from urllib.parse import quote, urlencode

from tests.e2e import agent_cli
from tests.e2e.screen import Screen
from tests.e2e.world import WAIT_S, Json, Run, World, wait_until

API_KEY = "dummy-key-for-loopback"
PLUGIN_PACKAGE = {"@opencode-ai/plugin": agent_cli.OPENCODE}
MODEL = {"name": "Scripted", "limit": {"context": 128000, "output": 8192}}


class OpenCodeWorld(World):
    """A world with the real OpenCode."""

    def __init__(self, root: Path, pyz: Path, program: Path) -> None:
        super().__init__(root, pyz)
        self.program = program

    @property
    def config_folder(self) -> Path:
        """Where OpenCode looks for its configuration and plugins."""
        return self.home / ".config" / "opencode"

    def agent_environ(self) -> Dict[str, str]:
        """No look at the network."""
        return {
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        }

    def settle_in(self) -> None:
        """Our models are the only ones that OpenCode knows; files outside of the project are allowed."""
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Scripted",
            "options": {"baseURL": f"http://127.0.0.1:{self.model_port}/v1", "apiKey": API_KEY},
            # The second is of a kind that gets one tool in the place of edit and write.
            "models": {"scripted": MODEL, "gpt-5-scripted": MODEL},
        }
        config = {
            "$schema": "https://opencode.ai/config.json",
            "model": "loopback/scripted",
            "small_model": "loopback/scripted",
            "autoupdate": False,
            "share": "disabled",
            "permission": {"external_directory": "allow", "bash": "ask"},
            "provider": {"loopback": provider},
        }
        self._write("opencode.json", config)
        # With plugins in place the first start would run npm, unless it looks as if that was done.
        self._write("package.json", {"dependencies": PLUGIN_PACKAGE})
        self._write("package-lock.json", {"packages": {"": {"dependencies": PLUGIN_PACKAGE}}})
        (self.config_folder / "node_modules").mkdir(exist_ok=True)

    def command(self, *arguments: str) -> List[str]:
        """The argv of one OpenCode."""
        return [str(self.program), *arguments]

    def opencode(self, *arguments: str) -> Run:
        """One ``opencode run --format json``, waited for."""
        return self.run_in(self.command("run", "--format", "json", *arguments), self.project)

    def serve(self) -> "OpenCodeServer":
        """``opencode serve``, listening; a context manager."""
        return OpenCodeServer(self.start(self.command("serve", "--port", "0")))

    def terminal(self, *arguments: str) -> Screen:
        """OpenCode in its terminal UI."""
        return Screen(self.command(*arguments), self.environ(), self.project)

    def _write(self, name: str, value: Json) -> None:
        self.config_folder.mkdir(parents=True, exist_ok=True)
        (self.config_folder / name).write_text(json.dumps(value), "utf-8")


class OpenCodeServer:
    """A running server, spoken to over HTTP."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self._lines: List[str] = []
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            threading.Thread(target=self._lines.extend, args=(pipe,), daemon=True).start()
        wait_until(lambda: self._port() != 0, "port of the server")
        self.port = self._port()

    def __enter__(self) -> "OpenCodeServer":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGKILL)

    def end(self, kind: signal.Signals) -> None:
        """Send a signal and wait for the end."""
        self.process.send_signal(kind)
        self.process.wait(WAIT_S)

    def said(self) -> str:
        """Everything it printed so far."""
        return "".join(self._lines)

    def ask(self, method: str, path: str, body: Optional[Json] = None, folder: str = "") -> object:
        """One request, JSON both ways; None for an empty answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        target = path + (f"?{urlencode({'directory': folder})}" if folder else "")
        try:
            head = {"Content-Type": "application/json"}
            connection.request(method, target, json.dumps({} if body is None else body), head)
            response = connection.getresponse()
            data = response.read()
            assert response.status < 300, (path, response.status, data)
            return json.loads(data) if data else None
        finally:
            connection.close()

    def session(self, folder: str = "", **more: object) -> str:
        """A new session's id."""
        made = self.ask("POST", "/session", more, folder)
        assert isinstance(made, dict)
        return str(made["id"])

    def children(self, session_id: str) -> List[str]:
        """Ids of the sessions of its sub-agents."""
        listed = self.ask("GET", f"/session/{session_id}/children")
        assert isinstance(listed, list)
        return [str(one["id"]) for one in listed]

    def prompt(self, session_id: str, *texts: str, **more: object) -> None:
        """A prompt that nobody waits for."""
        parts = [{"type": "text", "text": text} for text in texts]
        self.ask("POST", f"/session/{session_id}/prompt_async", {"parts": parts, **more})

    def work(self, session_id: str, *texts: str, **more: object) -> None:
        """A prompt, and wait for the end of the turn."""
        parts = [{"type": "text", "text": text} for text in texts]
        self.ask("POST", f"/session/{session_id}/message", {"parts": parts, **more})

    def abort(self, session_id: str) -> None:
        """Stop what a session does."""
        self.ask("POST", f"/session/{session_id}/abort")

    def open_requests(self, kind: str, session_id: str = "", folder: str = "") -> List[str]:
        """Ids of what the user is asked now; ``kind`` is permission or question."""
        listed = self.ask("GET", f"/{kind}", folder=folder)
        assert isinstance(listed, list)
        return [str(one["id"]) for one in listed if session_id in ("", one["sessionID"])]

    def wait_for_request(self, kind: str, session_id: str = "", count: int = 1) -> List[str]:
        """Wait until so many requests are open; their ids."""
        wait_until(lambda: len(self.open_requests(kind, session_id)) >= count, f"{count} open {kind}s")
        return self.open_requests(kind, session_id)

    def reply(self, request_id: str, answer: str) -> None:
        """Answer a permission: once, always or reject."""
        self.ask("POST", f"/permission/{quote(request_id)}/reply", {"reply": answer})

    def _port(self) -> int:
        found = re.search(r"listening on http://127\.0\.0\.1:(\d+)", self.said())
        assert self.process.poll() is None, self.said()
        return int(found.group(1)) if found else 0
