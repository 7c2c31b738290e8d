"""The hidden ``hook-post``: sends one hook payload to the companion where there is no curl.

It runs inside an agent's session, so it is inert: it says nothing, gives up after a fraction of a
second, never asks a proxy, and always succeeds. It imports next to nothing, because the agent
waits for it at every session's start and end.
"""

from __future__ import annotations  # The typing module alone would cost more than the rest.

import os
import signal
import socket
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

# All in all. An agent gives its session-end hooks about 1.5 s, and starting Python takes its part.
LIMIT_S = 0.8
# What the companion takes; more is not worth sending.
MAX_BODY_BYTES = 32 * 1024 * 1024
_CHUNK_BYTES = 256 * 1024


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """``hook-post HARNESS PORT [PROCESS]``; not listed in the help text."""
    import argparse

    parser = subparsers.add_parser("hook-post", add_help=False)
    parser.add_argument("words", nargs=argparse.REMAINDER)


def run(args: argparse.Namespace) -> int:
    """Post standard input; always 0."""
    return main(args.words)


def main(words: Sequence[str]) -> int:
    """Post standard input to ``/hooks/<words[0]>`` on loopback port ``words[1]``; always 0.

    ``words[2]`` is the number of the agent's process, where its caller knows it.
    """
    try:
        _give_up_after(LIMIT_S)
        try:
            _post_input(*words)
        finally:
            _give_up_after(0)  # Zero: not any more.
    except BaseException:  # Whatever it is, the agent's session must not notice.
        pass
    return 0


def _post_input(harness: str, port: str, process: str = "", *_: str) -> None:
    body = _read_input()
    # The name becomes part of the request line.
    if body and harness.isascii() and harness.replace("-", "").isalnum():
        post(harness, int(port), body, LIMIT_S, process if process.isdigit() and process.isascii() else "")


def post(harness: str, port: int, body: bytes, limit_s: float, process: str = "") -> None:
    """One POST on a connection of its own, straight to 127.0.0.1. OSError when it fails.

    Waits for the answer, so that the next event cannot overtake this one.
    """
    head = (
        f"POST /hooks/{harness} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n"
        + (f"Mdello-Process: {process}\r\n" if process else "")
        + "\r\n"
    )
    end = time.monotonic() + limit_s
    with socket.create_connection(("127.0.0.1", port), timeout=limit_s) as connection:
        connection.settimeout(max(0.01, end - time.monotonic()))  # For all of sendall together.
        connection.sendall(head.encode("ascii") + body)
        connection.settimeout(max(0.01, end - time.monotonic()))
        connection.recv(_CHUNK_BYTES)


def _read_input() -> bytes:
    """All of standard input; empty when it is closed or more than the companion takes."""
    if sys.stdin is None:  # Closed: then descriptor 0 is any file that Python has opened since.
        return b""
    chunks: list[bytes] = []
    size = 0
    while size <= MAX_BODY_BYTES:
        chunk = os.read(0, _CHUNK_BYTES)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
        size += len(chunk)
    return b""


def _give_up_after(limit_s: float) -> None:
    """Leave the process, successfully, when time is up: also out of a read that never ends.

    Without interval timers (Windows) only the connection is limited.
    """
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda number, frame: os._exit(0))
        signal.setitimer(signal.ITIMER_REAL, limit_s)
