"""The plugin's content: what is recognised as ours, and hook commands that really run in shells."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Dict, Iterator, List, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mdello
from adapters import hookcommand
from adapters.claude import plugin
from adapters.contract import AdapterError
from adapters.hookcommand import Poster

PROGRAM = Path(mdello.__file__).resolve()
PAYLOAD = b'{"hook_event_name": "SessionEnd", "text": "caf\xc3\xa9 $HOME `x` \\n"}'
# The machine may be busy; what is tested is that it ends, quietly and well.
PATIENCE_S = 30
SHELLS = [name for name in ("sh", "bash", "dash", "zsh", "ash") if shutil.which(name)]
ODD_NAMES = [
    "plain",
    "a b",
    "it's",
    'say "hi"',
    "$HOME",
    "`id`",
    "a;b&c|d",
    "日本 é é",
    "back\\slash",
    "*?[x]",
    "-n",
]


class Port:
    """A port on loopback in one of three conditions: live, hanging, dead."""

    def __init__(self, condition: str) -> None:
        self.received: List[bytes] = []
        self._stop = threading.Event()
        self._condition = condition
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]
        if condition == "dead":
            self._socket.close()
            return
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while not self._stop.is_set():
                connection, _ = self._socket.accept()
                with connection:
                    request = b""
                    while not request.endswith(PAYLOAD):
                        request += connection.recv(65536) or PAYLOAD
                    self.received.append(request)
                    if self._condition == "hanging":
                        self._stop.wait(PATIENCE_S)
                    else:
                        connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}")

    def close(self) -> None:
        """End the server."""
        self._stop.set()
        if self._condition != "dead":
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
            self._thread.join(PATIENCE_S)


@pytest.fixture(params=["live", "hanging", "dead"])
def port(request: pytest.FixtureRequest) -> Iterator[Port]:
    """Each condition in turn."""
    found = Port(request.param)
    yield found
    found.close()


def hooks_with(endpoint: str, poster: Poster, transport: str = "command") -> Dict[str, Dict[str, object]]:
    """Event to hook, as a hooks file would say it."""
    items = plugin.items("1", endpoint, transport, poster, "/x/mdello.pyz")
    content = json.loads(next(item.data for item in items if item.path == plugin.HOOKS))
    return {event: groups[0]["hooks"][0] for event, groups in content["hooks"].items()}


def run_hook(shell: str, command: str, home: Path) -> "subprocess.CompletedProcess[bytes]":
    """Run a hook's command as the agent does, with a proxy in the environment that nobody answers."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "http_proxy": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "ALL_PROXY": "http://127.0.0.1:9",
    }
    return subprocess.run(
        [shell, "-c", command], input=PAYLOAD, capture_output=True, timeout=PATIENCE_S, env=environ, cwd=home
    )


def own_poster(folder: Path) -> Poster:
    """A machine without curl: our file behind a link in ``folder``, and a Python of that name too."""
    link = folder / "mdello.pyz"
    link.symlink_to(PROGRAM)
    return Poster(None, sys.executable, str(link))


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("own", [False, True], ids=["curl", "own file"])
def test_every_hook_command_is_silent_and_succeeds(shell: str, own: bool, port: Port, tmp_path: Path) -> None:
    """Whatever the companion does: exit 0, no output; and when it lives, the payload arrives unchanged."""
    curl = shutil.which("curl")
    if not own and curl is None:
        pytest.skip("no curl here")
    poster = own_poster(tmp_path) if own else Poster(curl, "unused", "unused")
    (tmp_path / ".curlrc").write_text('header = "Origin: http://evil"\nfail\nverbose\n')
    commands = {
        str(hook["command"]) for hook in hooks_with(f"http://127.0.0.1:{port.number}", poster).values()
    }
    for command in commands:
        done = run_hook(shell, command, tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    for request in port.received:
        head, _, body = request.partition(b"\r\n\r\n")
        assert head.startswith(b"POST /hooks/claude HTTP/1.1")
        assert body == PAYLOAD
        assert b"origin" not in head.lower() and b"application/json" in head
        # The shell that runs the command was started by the agent; here, by this test.
        assert f"\r\n{hookcommand.PROCESS_HEADER}: {os.getpid()}".encode() in head
    assert bool(port.received) == (port._condition != "dead")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", ODD_NAMES)
def test_homes_of_any_name_are_quoted(shell: str, name: str, tmp_path: Path) -> None:
    """Spaces, quotes, dollars, backticks, both Unicode forms: the shell must take the path literally."""
    home = tmp_path / name
    home.mkdir()
    interpreter = home / "python"
    interpreter.symlink_to(sys.executable)
    live = Port("live")
    try:
        poster = own_poster(home)
        # A Python through a link of an odd name may not find its library; a script in its place does.
        interpreter.unlink()
        interpreter.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        interpreter.chmod(0o755)
        poster = Poster(None, str(interpreter), poster.program)
        command = str(hooks_with(f"http://127.0.0.1:{live.number}", poster)["SessionStart"]["command"])
        done = run_hook(shell, command, tmp_path)
    finally:
        live.close()
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert [request.endswith(PAYLOAD) for request in live.received] == [True]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_program_that_is_gone_goes_unnoticed(shell: str, tmp_path: Path) -> None:
    """People move or delete the file, the interpreter or curl; the session must not notice."""
    for poster in (
        Poster("/nonexistent/curl", "", ""),
        Poster(None, sys.executable, "/nonexistent/mdello.pyz"),
        Poster(None, "/nonexistent/python", "/nonexistent/mdello.pyz"),
    ):
        command = str(hooks_with("http://127.0.0.1:1", poster)["SessionEnd"]["command"])
        done = run_hook(shell, command, tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_path_that_json_cannot_hold_is_refused() -> None:
    """A home whose name is no UTF-8 cannot stand in a hooks file."""
    with pytest.raises(AdapterError, match="not UTF-8"):
        plugin.items("1", "http://127.0.0.1:1", "http", Poster(None, "/py", "/h\udcff/x"), "/x")


@given(manifest=st.binary(max_size=60))
def test_random_bytes_are_never_ours(manifest: bytes) -> None:
    """And reading them never raises."""
    assert plugin.marker(manifest) is None
    assert plugin.summarise(manifest).targets == ()


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        ({"metadata": {"managedBy": "mdello-companion"}}, 0),
        ({"metadata": {"managedBy": "mdello-companion", "createdFolders": 2}}, 2),
        ({"metadata": {"managedBy": "mdello-companion", "createdFolders": -1}}, 0),
        ({"metadata": {"managedBy": "mdello-companion", "createdFolders": True}}, 0),
        ({"metadata": {"managedBy": "mdello-companion", "createdFolders": 10**9}}, 0),
        ({"metadata": {"managedBy": "mdello"}}, None),
        ({"metadata": {"managedBy": ["mdello-companion"]}}, None),
        ({"metadata": "mdello-companion"}, None),
        ({"name": "mdello-companion"}, None),
        ([], None),
        ("mdello-companion", None),
        (None, None),
    ],
)
def test_the_marker_decides_whose_a_manifest_is(manifest: object, expected: Optional[int]) -> None:
    """The name alone is not enough; an odd number of folders counts as none."""
    assert plugin.marker(json.dumps(manifest).encode()) == expected


def test_a_manifest_is_recognised_by_the_program_that_wrote_it() -> None:
    """Written and read back."""
    poster = Poster("/usr/bin/curl", "", "")
    (manifest, link, hooks) = plugin.items("1", "http://127.0.0.1:1", "http", poster, "/x")
    assert plugin.marker(manifest.data) == 0
    assert link.link == "/x"
    assert set(plugin.summarise(hooks.data).transports.values()) == {"http", "command"}


@pytest.mark.parametrize(
    "content",
    [
        {"hooks": None},
        {"hooks": {"Stop": None}},
        {"hooks": {"Stop": [None]}},
        {"hooks": {"Stop": [{"hooks": [None, 3]}]}},
        {"hooks": []},
        [],
    ],
)
def test_a_foreign_hooks_file_is_summarised_without_a_complaint(content: object) -> None:
    """Somebody edited it; what cannot be understood is left out."""
    assert plugin.summarise(json.dumps(content).encode()).transports == {}
