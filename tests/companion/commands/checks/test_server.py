"""The port: free, ours in this version or another, another user's, or a stranger's."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Tuple

import pytest

from companion.commands.checks import server
from companion.commands.checks.finding import State
from companion.web.peer import OTHER_USER

Serve = Callable[[int, object], int]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server that answers every GET with a status and a value: ``serve(status, value)``."""
    running = []

    def start(status: int, value: object) -> int:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        found = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=found.serve_forever, daemon=True)
        thread.start()
        running.append((found, thread))
        return found.server_address[1]

    yield start
    for found, thread in running:
        found.shutdown()
        found.server_close()
        thread.join()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """This program's file."""
    path = tmp_path / "mdello.pyz"
    path.write_bytes(b"this one")
    return path


def health(program: Path, **changes: object) -> Dict[str, object]:
    """A good companion's account of itself."""
    return {
        "name": "mdello",
        "version": "1.0",
        "pid": 77,
        "python": "3.13.0",
        "uptimeSeconds": 7300.5,
        "problems": [],
        "archive": {"path": str(program), "replaced": False},
        **changes,
    }


def test_a_free_port_is_not_wrong(program: Path) -> None:
    """The companion is optional; how to start it is said."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    served = server.check(port, program, "1.0")
    (found,) = served.findings
    assert (found.state, served.health) == (State.UNKNOWN, None)
    assert "serve" in found.hint


def test_our_companion_is_named_with_pid_and_age(serve: Serve, program: Path) -> None:
    """Version, pid, Python, uptime."""
    served = server.check(serve(200, health(program)), program, "1.0")
    (found,) = served.findings
    assert found.state is State.OK
    assert "version 1.0" in found.text and "pid 77" in found.text and "up 2 h" in found.text
    assert served.health is not None and served.health["pid"] == 77


def test_another_version_or_file_has_to_be_restarted(serve: Serve, program: Path, tmp_path: Path) -> None:
    """An older version, a replaced file, a different file; a copy of the same release is fine."""
    other = tmp_path / "other.pyz"
    other.write_bytes(b"another one")
    copy = tmp_path / "copy.pyz"
    copy.write_bytes(program.read_bytes())
    cases: List[Tuple[Dict[str, object], State]] = [
        ({"version": "0.9"}, State.WRONG),
        ({"archive": {"path": str(program), "replaced": True}}, State.WRONG),
        ({"archive": {"path": str(other), "replaced": False}}, State.WRONG),
        ({"archive": {"path": str(copy), "replaced": False}}, State.OK),
        ({"archive": {"path": "/nonexistent", "replaced": False}}, State.OK),
        ({"archive": None}, State.OK),
    ]
    for changes, expected in cases:
        (found,) = server.check(serve(200, health(program, **changes)), program, "1.0").findings
        assert found.state is expected, changes
        assert ("Restart" in found.hint) == (expected is State.WRONG)


def test_its_notes_are_worth_a_look_and_not_wrong(serve: Serve, program: Path) -> None:
    """An older companion has none; strange ones are shown as they are."""
    for notes, texts in ((["herdr does not run", 5], ["herdr does not run", "5"]), (None, []), ({}, [])):
        found = server.check(serve(200, health(program, notes=notes)), program, "1.0").findings[1:]
        assert [(each.state, each.text) for each in found] == [(State.UNKNOWN, text) for text in texts]


def test_its_problems_are_passed_on_once(serve: Serve, program: Path) -> None:
    """Each is a line; the replaced file has been told already."""
    account = health(
        program,
        problems=["x.jsonl cannot be written", f"{program} was replaced since the start"],
        archive={"path": str(program), "replaced": True},
    )
    found = server.check(serve(200, account), program, "1.0").findings
    assert [each.state for each in found] == [State.WRONG, State.WRONG]
    assert found[1].text == "x.jsonl cannot be written"


def test_another_users_companion_and_a_stranger_are_told_apart(serve: Serve, program: Path) -> None:
    """Both are wrong, and both hints lead to another port."""
    for status, value, words in (
        (403, {"error": OTHER_USER}, "another user"),
        (404, {"error": "Not found"}, "another program"),
        (200, {"name": "grafana"}, "another program"),
        (200, [], "another program"),
    ):
        (found,) = server.check(serve(status, value), program, "1.0").findings
        assert found.state is State.WRONG and words in found.text
        assert "MDELLO_COMPANION_PORT" in found.hint


def test_an_account_of_odd_types_is_no_crash(serve: Serve, program: Path) -> None:
    """Whatever answers by our name."""
    account = health(program, uptimeSeconds="long", problems="none", pid=None, archive=[3])
    (found,) = server.check(serve(200, account), program, "1.0").findings
    assert found.state is State.OK and "unknown time" in found.text


def test_ages() -> None:
    """In the unit that a person would use."""
    told = [server.ago(seconds) for seconds in (-5, 0.2, 3, 119, 121, 7199, 7201, 200_000)]
    assert told == [
        "just now",
        "just now",
        "3 s ago",
        "119 s ago",
        "2 min ago",
        "119 min ago",
        "2 h ago",
        "2 days ago",
    ]
