"""A connected socket, read through a buffer, with a deadline for every wait."""

import socket
import threading
from typing import Iterator, Tuple

import pytest

from companion.core.clock import Deadline
from companion.web.http1 import BadHead
from companion.web.limits import HEAD_BYTES, REQUEST_LINE_BYTES
from companion.web.wire import ClientGone, OutOfTime, Wire

LONG_S = 20.0
SHORT_S = 0.05


@pytest.fixture
def pair() -> Iterator[Tuple[Wire, socket.socket]]:
    """Our end of a TCP connection, and the client's socket."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname(), timeout=LONG_S)
        wire = Wire(listener.accept()[0])
    yield wire, client
    wire.close()
    client.close()


Pair = Tuple[Wire, socket.socket]


def soon() -> Deadline:
    """More time than a test needs."""
    return Deadline(LONG_S)


def test_a_head_ends_at_the_empty_line(pair: Pair) -> None:
    """What follows stays for the body; empty lines before a request are skipped."""
    wire, client = pair
    client.sendall(b"\r\n\nGET / HTTP/1.1\r\nA: b\r\n\r\nbody")
    assert wire.wait_for_request(soon())
    assert wire.read_head(soon()) == b"GET / HTTP/1.1\r\nA: b"
    assert wire.pending()
    assert wire.read_some(2, soon()) == b"bo"
    assert wire.read_some(10, soon()) == b"dy"
    assert not wire.pending()


def test_a_head_may_come_byte_by_byte(pair: Pair) -> None:
    """Also when the empty line itself is torn."""
    wire, client = pair

    def drip() -> None:
        for letter in b"GET / HTTP/1.1\r\n\r\n":
            client.sendall(bytes([letter]))

    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    thread = threading.Thread(target=drip)
    thread.start()
    assert wire.wait_for_request(soon())
    assert wire.read_head(soon()) == b"GET / HTTP/1.1"
    thread.join()


def test_lines_end_with_or_without_a_carriage_return(pair: Pair) -> None:
    """And must not be longer than allowed."""
    wire, client = pair
    client.sendall(b"one\r\ntwo\nthree\r\n")
    assert wire.read_line(3, soon()) == b"one"
    assert wire.read_line(3, soon()) == b"two"
    with pytest.raises(ValueError, match="too long"):
        wire.read_line(3, soon())


def test_silence_ends_with_the_deadline(pair: Pair) -> None:
    """Before a request that is no error; within one it is."""
    wire, client = pair
    assert wire.wait_for_request(Deadline(SHORT_S)) is False
    client.sendall(b"GET")
    assert wire.wait_for_request(soon())
    with pytest.raises(OutOfTime):
        wire.read_head(Deadline(SHORT_S))


def test_a_client_that_leaves_is_noticed(pair: Pair) -> None:
    """Before a request that is no error; within one it is."""
    wire, client = pair
    client.sendall(b"GET")
    assert not wire.client_left()
    client.close()
    assert wire.wait_for_request(soon())
    with pytest.raises(ClientGone):
        wire.read_head(soon())
    assert wire.client_left()
    assert wire.read_some(3, soon()) == b"GET"
    assert wire.wait_for_request(soon()) is False


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01", 400),
        (b"GET /" + b"a" * REQUEST_LINE_BYTES, 414),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * (HEAD_BYTES // 6), 431),
    ],
    ids=["tls", "request line", "head"],
)
def test_floods_are_refused_before_they_end(pair: Pair, data: bytes, status: int) -> None:
    """As soon as it is clear that they cannot be served."""
    wire, client = pair
    threading.Thread(target=client.sendall, args=(data,), daemon=True).start()
    assert wire.wait_for_request(soon())
    with pytest.raises(BadHead) as caught:
        wire.read_head(soon())
    assert caught.value.status == status


def test_a_reader_that_takes_nothing_is_gone(pair: Pair) -> None:
    """After the time that one write may take."""
    wire, _ = pair
    with pytest.raises(ClientGone):
        wire.send(b"x" * 64 * 1024 * 1024, SHORT_S)


def test_cut_wakes_a_writer(pair: Pair) -> None:
    """From another thread, and twice."""
    wire, client = pair
    threading.Timer(SHORT_S, wire.cut).start()
    with pytest.raises(ClientGone):
        wire.send(b"x" * 64 * 1024 * 1024, LONG_S)
    client.close()
    wire.cut()


def test_lingering_lets_the_answer_through(pair: Pair) -> None:
    """A client that writes on and on, and reads only then, still gets its answer."""
    wire, client = pair
    client.sendall(b"x" * 100_000)
    wire.send(b"answer", LONG_S)
    thread = threading.Thread(target=wire.linger, args=(LONG_S,))
    thread.start()
    client.sendall(b"y" * 100_000)
    assert client.recv(100) == b"answer"
    assert client.recv(100) == b""
    client.close()
    thread.join()
    wire.close()


def test_lingering_ends_by_itself(pair: Pair) -> None:
    """The client need not do anything for that."""
    wire, _ = pair
    wire.linger(SHORT_S)
    wire.close()
    wire.close()
