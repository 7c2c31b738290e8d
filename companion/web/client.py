"""The client of our own server, for commands: loopback only, no proxy, quick to import.

Not ``http.client`` or ``urllib``: each costs a command 25 ms, and ``urllib`` would send even
loopback requests to ``HTTP_PROXY``.
"""

import errno
import json
import socket
import time
from enum import Enum
from typing import Optional, Tuple

from companion.core.clock import Deadline
from companion.core.errors import CompanionUnreachable
from companion.web.peer import OTHER_USER

NAME = "mdello"
"""How ``/health`` names us."""

_RETRY_S = 0.05
_ANSWER_BYTES = 256 * 1024 * 1024
_STRANGER_BYTES = 64 * 1024


class Holder(Enum):
    """Who holds a port."""

    FREE = "free"
    OURS = "ours"
    OTHER_USER = "other user"
    """A companion that says it serves another user of this machine."""
    FOREIGN = "foreign"


def probe(port: int, timeout_s: float) -> Holder:
    """Who holds ``127.0.0.1:port``. FREE is told at once; a silent holder gets ``timeout_s``.

    A companion that has just started is bound before it listens and listens before it answers,
    so both states are waited for; what does not come out of them in time is FOREIGN.
    """
    deadline = Deadline(timeout_s)
    while True:
        try:
            status, body = _exchange(port, "GET", "/health", b"", deadline, _STRANGER_BYTES)
            return _judge(status, body)
        except ConnectionRefusedError:
            if not _is_bound(port):
                return Holder.FREE
        except OSError:
            pass  # Silent so far, or it hung up (a server that is stopping does): ask again.
        except ValueError:
            return Holder.FOREIGN
        if deadline.left_s() <= _RETRY_S:
            return Holder.FOREIGN
        time.sleep(_RETRY_S)


def get_json(port: int, path: str, timeout_s: float) -> object:
    """The JSON value of a GET. CompanionUnreachable for no answer and for every refusal."""
    return _request(port, "GET", path, None, timeout_s)


def post_json(port: int, path: str, value: object, timeout_s: float) -> object:
    """Post ``value`` as JSON; the answer's value. CompanionUnreachable as for :func:`get_json`."""
    return _request(port, "POST", path, value, timeout_s)


def delete_json(port: int, path: str, timeout_s: float) -> object:
    """The JSON value of a DELETE's answer. CompanionUnreachable as for :func:`get_json`."""
    return _request(port, "DELETE", path, None, timeout_s)


def _request(port: int, method: str, path: str, value: object, timeout_s: float) -> object:
    data = b"" if value is None else json.dumps(value).encode("ascii")
    try:
        status, body = _exchange(port, method, path, data, Deadline(timeout_s), _ANSWER_BYTES)
        answer: object = json.loads(body.decode("utf-8", errors="replace")) if body else None
    except (OSError, ValueError, RecursionError) as exc:
        raise CompanionUnreachable(f"No usable answer from 127.0.0.1:{port}: {exc}") from exc
    if status >= 400:
        reason = _error_text(answer) or f"status {status}"
        raise CompanionUnreachable(f"127.0.0.1:{port} refused {method} {path.partition('?')[0]}: {reason}")
    return answer


def _exchange(
    port: int, method: str, path: str, data: bytes, deadline: Deadline, most: int
) -> Tuple[int, bytes]:
    """Status and body. OSError when the connection fails or is too slow, ValueError for no HTTP."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    # Not create_connection(): it looks the name up, with imports that cost more than the call.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.settimeout(_left(deadline))
        sock.connect(("127.0.0.1", port))
        if sock.getsockname() == sock.getpeername():
            # Nobody listens, and the kernel happened to give us the very port we were calling.
            raise ConnectionRefusedError(errno.ECONNREFUSED, "called ourselves")
        sock.settimeout(_left(deadline))
        sock.sendall(head.encode("ascii") + data)
        received = bytearray()
        while not _complete(received):
            sock.settimeout(_left(deadline))
            piece = sock.recv(64 * 1024)
            if not piece:
                break
            received += piece
            if len(received) > most:
                raise ValueError("the answer is too long")
    return _status_and_body(bytes(received))


def _left(deadline: Deadline) -> float:
    """Seconds left, as a socket wants them. OSError when there are none."""
    left_s = deadline.left_s()
    if left_s <= 0.0:
        raise OSError(errno.ETIMEDOUT, "no answer in time")
    return left_s


def _complete(received: bytearray) -> bool:
    """Whether the body has the length that the head announced (a stranger may not hang up)."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return False
    length = _header(bytes(received[:end]), b"content-length")
    return length is not None and length.isdigit() and len(received) - end - 4 >= int(length)


def _status_and_body(received: bytes) -> Tuple[int, bytes]:
    if not received:
        raise OSError(errno.ECONNRESET, "hung up without an answer")
    head, end, body = received.partition(b"\r\n\r\n")
    words = head.split(b"\r\n")[0].split(b" ")
    if not end or not words[0].startswith(b"HTTP/1.") or len(words) < 2 or not words[1].isdigit():
        raise ValueError("this is not HTTP")
    length = _header(head, b"content-length")
    if length is not None and length.isdigit() and len(body) < int(length):
        raise OSError(errno.ECONNRESET, "hung up in the middle of the answer")
    return int(words[1]), body


def _header(head: bytes, name: bytes) -> Optional[bytes]:
    for line in head.split(b"\r\n")[1:]:
        found, _, value = line.partition(b":")
        if found.strip().lower() == name:
            return value.strip()
    return None


def _judge(status: int, body: bytes) -> Holder:
    try:
        value = json.loads(body.decode("utf-8", errors="replace"))
    except (ValueError, RecursionError):
        return Holder.FOREIGN
    if status == 200 and isinstance(value, dict) and value.get("name") == NAME:
        return Holder.OURS
    if status == 403 and OTHER_USER in _error_text(value):
        return Holder.OTHER_USER
    return Holder.FOREIGN


def _error_text(answer: object) -> str:
    text = answer.get("error") if isinstance(answer, dict) else None
    return text if isinstance(text, str) else ""


def _is_bound(port: int) -> bool:
    """Whether somebody holds the port without listening yet. Never listens itself."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError as exc:
            return exc.errno == errno.EADDRINUSE
    return False
