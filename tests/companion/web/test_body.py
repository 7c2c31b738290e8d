"""Bodies in every framing, within bounds of size and time."""

import socket
import threading
from typing import Iterator, Optional

import pytest

from companion.core.clock import Deadline
from companion.core.errors import BadRequest, BodyTooLarge, RequestTimeout
from companion.web.body import Body
from companion.web.http1 import Head
from companion.web.limits import LARGE_BODY_BYTES, Limits
from companion.web.wire import ClientGone, Wire

LONG_S = 20.0


class Client:
    """The sending side."""

    def __init__(self, sock: socket.socket, wire: Wire) -> None:
        self.sock = sock
        self.wire = wire
        self.large = threading.BoundedSemaphore(1)

    def sends(
        self,
        data: bytes,
        length: Optional[int] = None,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        expects_continue: bool = False,
    ) -> Body:
        """The body whose bytes are on their way; ``length`` None means chunked."""
        threading.Thread(target=self._send, args=(data,), daemon=True).start()
        head = Head("POST", "/", {}, length, True, expects_continue)
        return Body(self.wire, head, limits, self.large)

    def _send(self, data: bytes) -> None:
        try:
            self.sock.sendall(data)
        except OSError:
            return


@pytest.fixture
def client() -> Iterator[Client]:
    """A client on a real connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sock = socket.create_connection(listener.getsockname(), timeout=LONG_S)
        wire = Wire(listener.accept()[0])
    yield Client(sock, wire)
    wire.close()
    sock.close()


def test_a_body_of_known_length(client: Client) -> None:
    """Exactly its bytes; what follows is not touched."""
    body = client.sends(b"12345next", 5)
    assert body.read(5) == b"12345"
    assert body.discard()
    assert client.wire.read_some(9, Deadline(LONG_S)) == b"next"


def test_no_body(client: Client) -> None:
    """Nothing is read, nothing is waited for."""
    body = client.sends(b"", 0)
    assert body.read(10) == b"" and body.discard()


def test_chunks_are_joined(client: Client) -> None:
    """Extensions and trailers are read over; characters torn between chunks are whole again."""
    data = "ü".encode()
    body = client.sends(b'1;x="y"\r\n' + data[:1] + b"\r\n1 \r\n" + data[1:] + b"\r\n0\r\nA: b\r\n\r\nnext")
    assert body.read(10).decode() == "ü"
    assert body.discard() and client.wire.pending()


@pytest.mark.parametrize(
    "data",
    [
        b"x\r\n",
        b"\r\n",
        b"-1\r\n",
        b"1\r\nab\r\n",
        b"1" * 16 + b"\r\n",
        b"1" * 5000,
        b"+1\r\na\r\n",
        b"0x1\r\na\r\n",
        b"0\r\n" + b"A: b\r\n" * 200,
    ],
    ids=repr,
)
def test_broken_chunks(client: Client, data: bytes) -> None:
    """They are refused, and nothing may follow on that connection."""
    body = client.sends(data)
    with pytest.raises(BadRequest, match="chunked"):
        body.read(100)
    assert not body.discard()


@pytest.mark.parametrize("chunked", [False, True])
def test_one_byte_too_many(client: Client, chunked: bool) -> None:
    """The limit is inclusive; what is beyond it is read to its end and refused."""
    framed = b"5\r\n12345\r\n1\r\n6\r\n0\r\n\r\n" if chunked else b"123456"
    body = client.sends(framed + b"next", None if chunked else 6)
    with pytest.raises(BodyTooLarge, match="Request body too large"):
        body.read(5)
    assert body.discard()
    assert client.wire.read_some(9, Deadline(LONG_S)) == b"next"


def test_many_mebibytes_too_many(client: Client) -> None:
    """They are read without being kept."""
    size = 20 * 1024 * 1024
    body = client.sends(b"x" * size, size)
    with pytest.raises(BodyTooLarge):
        body.read(65_536)
    assert body.discard()


@pytest.mark.parametrize("chunked", [False, True])
def test_more_than_anybody_would_drain(client: Client, chunked: bool) -> None:
    """There is an end to patience, known from the length or found out on the way."""
    framed = b"a\r\n0123456789\r\n" * 10 if chunked else b"0123456789" * 10
    body = client.sends(framed, None if chunked else 100, Limits(drain_bytes=50))
    with pytest.raises(BodyTooLarge):
        body.read(5)
    assert not body.discard()


def test_a_slow_body_runs_out_of_time(client: Client) -> None:
    """Read or discarded: the budget is one for both, and nothing may follow."""
    body = client.sends(b"12", 5, Limits(body_s=0.05))
    with pytest.raises(RequestTimeout):
        body.read(5)
    assert not body.discard()
    assert not client.sends(b"12", 5, Limits(body_s=0.05)).discard()


def test_a_client_that_leaves_in_the_middle(client: Client) -> None:
    """Half a body is no body."""
    client.sock.sendall(b"12")
    client.sock.close()
    with pytest.raises(ClientGone):
        client.sends(b"", 5).read(5)


def test_a_client_that_waits_is_told_to_continue(client: Client) -> None:
    """Once, before the first byte is waited for."""
    body = client.sends(b"", 2, expects_continue=True)
    threading.Timer(0.05, client.sock.sendall, (b"ok",)).start()
    assert body.read(2) == b"ok"
    assert client.sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"


def test_a_client_that_waits_in_vain(client: Client) -> None:
    """It is not told to continue when its body is not wanted; nothing can follow on the connection."""
    body = client.sends(b"", 99, expects_continue=True)
    with pytest.raises(BodyTooLarge):
        body.read(10)
    assert not body.discard()
    assert not client.sends(b"", 5, expects_continue=True).discard()


def test_large_bodies_take_turns(client: Client) -> None:
    """A second one waits until the first is done with, and runs out of time if that takes too long."""
    size = LARGE_BODY_BYTES + 1
    first = client.sends(b"x" * size, size)
    assert len(first.read(size)) == size
    second = client.sends(b"x" * size, size, Limits(body_s=0.2))
    with pytest.raises(RequestTimeout):
        second.read(size)
    second.release()
    first.release()
    first.release()
    assert client.large.acquire(blocking=False)
