"""``hook-post`` delivers what it can within its time and never shows that it was there."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Iterator, List, Optional, Tuple

import pytest

import mdello
from companion.commands import hook_post

PROGRAM = Path(mdello.__file__)
PAYLOAD = b'{"hook_event_name": "SessionStart", "session_id": "s-1"}'
# Generous: the machine may be busy. What is tested is that it ends at all.
PATIENCE_S = 30


class Listener:
    """A loopback port that records one request, and answers it or keeps silent."""

    def __init__(self, answers: bool) -> None:
        self.received = b""
        self._answers = answers
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while not self._stop.is_set():
                connection, _ = self._socket.accept()
                with connection:
                    self._read(connection)
                    if self._answers:
                        connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}")
                    else:
                        self._stop.wait(PATIENCE_S)

    def _read(self, connection: socket.socket) -> None:
        data = b""
        while b"\r\n\r\n" not in data or len(data.split(b"\r\n\r\n", 1)[1]) < _length(data):
            chunk = connection.recv(65536)
            if not chunk:
                break
            data += chunk
        self.received = data

    def close(self) -> None:
        """Stop answering and end the thread."""
        self._stop.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(PATIENCE_S)


def _length(request: bytes) -> int:
    for line in request.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            return int(line.split(b":")[1])
    return 0


@pytest.fixture
def live() -> Iterator[Listener]:
    """A companion that answers."""
    listener = Listener(answers=True)
    yield listener
    listener.close()


@pytest.fixture
def hanging() -> Iterator[Listener]:
    """A companion that takes the request and never answers."""
    listener = Listener(answers=False)
    yield listener
    listener.close()


@pytest.fixture
def dead_port() -> int:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def post(arguments: List[str], data: Optional[bytes] = PAYLOAD) -> Tuple[int, bytes, bytes]:
    """Run it as the hook does: exit code, stdout, stderr."""
    done = subprocess.run(
        [sys.executable, "-E", "-S", str(PROGRAM), "hook-post", *arguments],
        input=data,
        capture_output=True,
        timeout=PATIENCE_S,
        env={"http_proxy": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"},
    )
    return done.returncode, done.stdout, done.stderr


SILENT_SUCCESS = (0, b"", b"")


def test_it_posts_its_input_as_json_to_the_harness(live: Listener) -> None:
    """The request is complete, goes to 127.0.0.1 in spite of a proxy, and carries the bytes unchanged."""
    assert post(["claude", str(live.port)]) == SILENT_SUCCESS
    head, _, body = live.received.partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0] == b"POST /hooks/claude HTTP/1.1"
    assert b"Content-Type: application/json" in head
    assert b"Host: 127.0.0.1:%d" % live.port in head
    assert b"Origin" not in head
    assert body == PAYLOAD


@pytest.mark.parametrize(
    ("word", "named"), [("1234", True), ("", False), ("$PPID", False), ("1\r\nX: y", False), ("٣", False)]
)
def test_it_says_in_which_process_the_agent_runs(word: str, named: bool, live: Listener) -> None:
    """A number; whatever else a shell makes of its variable is left out."""
    assert post(["claude", str(live.port), word]) == SILENT_SUCCESS
    head = live.received.partition(b"\r\n\r\n")[0]
    assert (b"\r\nMdello-Process: %b" % word.encode() in head) == named
    assert (b"Mdello-Process" in head) == named


def test_a_large_payload_arrives_whole(live: Listener) -> None:
    """A payload of several megabytes is more than one read and one write."""
    data = b'{"x": "' + b"a" * 3_000_000 + b'"}'
    assert post(["claude", str(live.port)], data) == SILENT_SUCCESS
    assert live.received.partition(b"\r\n\r\n")[2] == data


def test_a_dead_companion_goes_unnoticed(dead_port: int) -> None:
    """Nobody listens: success, and not a word."""
    assert post(["claude", str(dead_port)]) == SILENT_SUCCESS


def test_a_hanging_companion_goes_unnoticed(hanging: Listener) -> None:
    """An answer that never comes ends in success when the time is up."""
    assert post(["claude", str(hanging.port)]) == SILENT_SUCCESS


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["claude"],
        ["claude", ""],
        ["claude", "port"],
        ["claude", "99999999999999999999"],
        ["claude", "-1"],
        ["../x HTTP/1.1\r\nEvil: 1", "{port}"],
        ["", "{port}"],
        ["--help"],
        ["-x", "\udcff"],
        ["claude", "0", "and", "more"],
    ],
)
def test_garbage_arguments_go_unnoticed(arguments: List[str], live: Listener) -> None:
    """Whatever it is called with, it succeeds in silence and sends no forged request."""
    assert post([word.replace("{port}", str(live.port)) for word in arguments]) == SILENT_SUCCESS
    assert live.received == b""


def test_nothing_is_sent_for_an_empty_or_a_huge_input(live: Listener) -> None:
    """An empty body means nothing; one that the companion would refuse is not sent."""
    assert post(["claude", str(live.port)], b"") == SILENT_SUCCESS
    huge = b" " * (hook_post.MAX_BODY_BYTES + 1)
    assert post(["claude", str(live.port)], huge) == SILENT_SUCCESS
    assert live.received == b""


def test_an_input_that_never_ends_goes_unnoticed(live: Listener) -> None:
    """A stdin that stays open ends in success when the time is up."""
    reading, writing = os.pipe()
    try:
        command = [sys.executable, str(PROGRAM), "hook-post", "claude", str(live.port)]
        done = subprocess.run(command, stdin=reading, capture_output=True, timeout=PATIENCE_S)
    finally:
        os.close(reading)
        os.close(writing)
    assert (done.returncode, done.stdout, done.stderr) == SILENT_SUCCESS


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_go_unnoticed(closed: str, live: Listener) -> None:
    """It succeeds without stdin, stdout or stderr, and never mistakes another file for its input."""
    line = f'"$0" -E -S "$1" hook-post claude {live.port} {closed}'
    command = ["sh", "-c", line, sys.executable, str(PROGRAM)]
    done = subprocess.run(command, input=PAYLOAD, capture_output=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout, done.stderr) == SILENT_SUCCESS
    assert (live.received == b"") == ("<&-" in closed)


def test_it_imports_neither_the_parser_nor_json_nor_http() -> None:
    """An agent waits for it at every session's start and end."""
    code = (
        f"import sys; sys.path.insert(0, {str(PROGRAM.parent)!r}); import mdello;"
        "assert mdello.main(['hook-post']) == 0;"
        "print(sorted({'argparse', 'json', 'http', 'typing', 're', 'urllib', 'adapters'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, timeout=PATIENCE_S)
    assert done.stdout.strip() == b"[]", done.stderr
