"""What stands in our hooks file, and which file is ours."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List

import pytest

from adapters.codex import hooksfile
from adapters.codex.events import SUBSCRIBED
from adapters.contract import AdapterError
from adapters.hookcommand import Poster
from tests.fakes.companion_server import FakeCompanion

URL = "http://127.0.0.1:59999"
CURL = Poster("/usr/bin/curl", "/usr/bin/python3", "/opt/a b/mdello.pyz")
PYTHON = replace(CURL, curl=None)


def parsed(poster: Poster = CURL) -> Dict[str, Any]:
    content: Dict[str, Any] = json.loads(hooksfile.content(URL, poster))
    return content


def test_one_hook_per_event_and_nothing_else() -> None:
    """The members that Codex allows, none that changes with our version; each hook has a short limit."""
    content = parsed()
    assert set(content) == {"description", "hooks"} and list(content["hooks"]) == list(SUBSCRIBED)
    for groups in content["hooks"].values():
        ((hook,),) = [group["hooks"] for group in groups]
        assert hook["type"] == "command" and hook["timeout"] == 2
        assert "--max-time 1 " in hook["command"] and "--noproxy '*'" in hook["command"]
        assert hook["command"].endswith("|| true")


@pytest.mark.parametrize("poster", [CURL, PYTHON])
def test_our_own_file_is_known_as_ours(poster: Poster) -> None:
    """With other ports and paths too; and it is told what is in it."""
    data = hooksfile.content(URL, poster)
    assert hooksfile.why_foreign(data) is None
    events, commands = hooksfile.summary(data)
    assert (events, len(commands)) == (list(SUBSCRIBED), 1)


def test_other_files_are_foreign() -> None:
    """Also one to which somebody has added hooks, and whatever is no hooks file."""
    other = {"hooks": [{"type": "command", "command": "echo hi"}]}
    hooks = parsed()["hooks"]
    with_other = {**parsed(), "hooks": {**hooks, "Stop": [*hooks["Stop"], other]}}
    assert hooksfile.why_foreign(json.dumps(with_other).encode()) == "it holds hooks of others too"
    more = {**parsed(), "more": 1}
    assert hooksfile.why_foreign(json.dumps(more).encode()) is not None
    nobodys: Dict[str, Any] = {"hooks": {"Stop": [other]}}
    odd: List[Any] = [
        None,
        5,
        {"Stop": 5},
        {"Stop": [5]},
        {"Stop": [{"hooks": 5}]},
        {"Stop": [{"hooks": [{}]}]},
    ]
    for content in (nobodys, {"description": 5}, [], 5, *({**parsed(), "hooks": each} for each in odd)):
        assert hooksfile.why_foreign(json.dumps(content).encode()) is not None
        hooksfile.summary(json.dumps(content).encode())
    for data in (b"", b"{", b"[" * 100_000, b"\xff"):
        assert hooksfile.why_foreign(data) == "it is not JSON"
        assert hooksfile.summary(data) == ([], [])


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_a_hook_posts_in_silence(shell: str, companion: FakeCompanion, tmp_path: Path) -> None:
    """Its input, with the number of the process that ran the shell; a proxy is not asked."""
    environ = {"PATH": "/nowhere", "http_proxy": "http://127.0.0.1:9", "HOME": str(tmp_path)}
    line = hooksfile.command(companion.url, CURL)
    done = subprocess.run([shell, "-c", line], input=b'{"a":1}', env=environ, capture_output=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (post,) = companion.posts
    assert post.head.startswith("POST /hooks/codex ") and post.body == {"a": 1}
    assert f"mdello-process: {os.getpid()}\r\n" in post.head.lower()


def test_our_own_program_is_told_the_same(tmp_path: Path) -> None:
    """Its noise and its failure are kept from Codex."""
    program, told = tmp_path / "it's our program.py", tmp_path / "told"
    program.write_text(f"import sys; open({str(told)!r}, 'w').write(repr(sys.argv[1:])); print('x'); exit(5)")
    line = hooksfile.command(URL, Poster(None, sys.executable, str(program)))
    done = subprocess.run(["/bin/sh", "-c", line], input=b"{}", capture_output=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert told.read_text() == repr(["hook-post", "codex", "59999", str(os.getpid())])


@pytest.mark.parametrize("poster", [CURL, PYTHON])
def test_a_hook_succeeds_when_nobody_listens(poster: Poster) -> None:
    """Whatever is missing, it exits 0 and prints nothing."""
    line = hooksfile.command("http://127.0.0.1:9", poster)
    done = subprocess.run(["/bin/sh", "-c", line], input=b"{}", capture_output=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_paths_that_json_cannot_hold_are_refused() -> None:
    """With what to do about it."""
    with pytest.raises(AdapterError, match="install curl"):
        hooksfile.content(URL, replace(PYTHON, program="/x\udcff/mdello.pyz"))
