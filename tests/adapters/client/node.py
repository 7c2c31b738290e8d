"""Programs in JavaScript that tests talk to: one JSON line in, one JSON line out."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

import pytest

from tests.conftest import REAL_ENVIRON

OLDEST_NODE = 18
WAIT_S = 60.0


class Ended(NamedTuple):
    """What a program left."""

    code: int
    stdout: str
    """What it printed besides its answers."""
    stderr: str


def node_program() -> str:
    """node on PATH; the test is skipped (or fails where agents are required) without one."""
    node = shutil.which("node", path=REAL_ENVIRON.get("PATH"))
    reason = "node is not installed (it runs the clients)"
    if node is not None:
        version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
        if int(version.lstrip("v").partition(".")[0]) >= OLDEST_NODE:
            return node
        reason = f"node {version.strip()} is too old for the clients"
    if REAL_ENVIRON.get("MDELLO_REQUIRE_AGENTS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


class Talk:
    """A running program. Use as a context manager."""

    def __init__(self, command: List[str], environ: Optional[Dict[str, str]] = None) -> None:
        self._process = subprocess.Popen(
            command,
            env={"PATH": os.environ.get("PATH", os.defpath), **(environ or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self.ended: Optional[Ended] = None
        self.pid = self._process.pid

    def __enter__(self) -> "Talk":
        return self

    def __exit__(self, *_: object) -> None:
        if self.ended is None:
            self._process.kill()
            self._process.communicate()

    def ask(self, **question: object) -> Any:
        """One question, one answer."""
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None and pipe_out is not None
        pipe_in.write(json.dumps(question) + "\n")
        pipe_in.flush()
        line = pipe_out.readline()
        assert line, self._process.communicate(timeout=WAIT_S)
        return json.loads(line)

    def end(self) -> Ended:
        """Close its input, which is all that keeps it alive, and wait."""
        stdout, stderr = self._process.communicate(timeout=WAIT_S)
        self.ended = Ended(self._process.returncode, stdout, stderr)
        return self.ended


def patient(source: bytes) -> bytes:
    """A client that waits so long for the companion that a busy machine makes no difference.

    Less than 5 s: longer waits have another clock in the small OpenCode.
    """
    limit = b"const REQUEST_MS = 1000;"
    assert source.count(limit) == 1
    return source.replace(limit, b"const REQUEST_MS = 4900;")


def script(name: str) -> str:
    """The path of a program beside this file."""
    return str(Path(__file__).resolve().parent / name)
