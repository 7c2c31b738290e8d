"""The client of our own server, and who holds a port."""

import socket
import threading
import time
from typing import Callable, Iterator, List

import pytest

from companion.core.errors import CompanionUnreachable
from companion.web import client
from companion.web.client import Holder, probe
from companion.web.peer import OTHER_USER
from tests.companion.web.talk import PATIENCE_S
from tests.companion.web.world import World

SHORT_S = 0.3

Serve = Callable[[bytes], int]


def free_port() -> int:
    """A port that nobody holds now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture
def stranger() -> Iterator[Serve]:
    """Another program: answers every connection with the same bytes, and keeps it open."""
    held: List[socket.socket] = []

    def serve(reply: bytes) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        held.append(listener)

        def accept() -> None:
            while True:
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                held.append(sock)
                sock.recv(65_536)
                sock.sendall(reply)

        threading.Thread(target=accept, daemon=True).start()
        port: int = listener.getsockname()[1]
        return port

    yield serve
    for sock in held:
        sock.close()


def http(status: int, body: bytes) -> bytes:
    """An answer with a length."""
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


def test_a_free_port_is_told_at_once() -> None:
    """Without waiting for anybody: a day would not matter."""
    assert probe(free_port(), 86_400.0) is Holder.FREE


def test_our_own_companion_is_recognised(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as it serves, whatever proxy the environment names."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert probe(world.port, PATIENCE_S) is Holder.OURS
    port = world.port
    world.stop()
    assert probe(port, PATIENCE_S) is Holder.FREE


@pytest.mark.parametrize(
    ("reply", "holder"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", Holder.FOREIGN),
        (http(404, b'{"error":"Not found"}'), Holder.FOREIGN),
        (http(200, b'{"name":"other"}'), Holder.FOREIGN),
        (http(200, b'"mdello"'), Holder.FOREIGN),
        (http(200, b"<html>"), Holder.FOREIGN),
        (http(200, b"[" * 100_000), Holder.FOREIGN),
        (http(403, b'{"error":"Forbidden"}'), Holder.FOREIGN),
        (http(403, b'{"error":"This mdello-companion %s"}' % OTHER_USER.encode()), Holder.OTHER_USER),
        (http(200, b'{"name":"mdello"}'), Holder.OURS),
    ],
)
def test_a_holder_is_judged_by_its_answer(stranger: Serve, reply: bytes, holder: Holder) -> None:
    """A clear answer is believed at once; a silent or half one is waited for."""
    assert probe(stranger(reply), SHORT_S if holder is Holder.FOREIGN else PATIENCE_S) is holder


def test_a_silent_holder_is_foreign(stranger: Serve) -> None:
    """After the time that the caller gave."""
    assert probe(stranger(b""), SHORT_S) is Holder.FOREIGN


def test_an_endless_answer_is_foreign(stranger: Serve) -> None:
    """It is not read to its end."""
    assert probe(stranger(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 200_000), PATIENCE_S) is Holder.FOREIGN


def test_a_holder_that_only_binds_is_foreign() -> None:
    """Bound without listening looks like a refusal, but the port is not free."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        assert probe(sock.getsockname()[1], SHORT_S) is Holder.FOREIGN


def test_a_companion_that_is_about_to_listen_is_waited_for(stranger: Serve) -> None:
    """The start race: bound, then listening, then answering."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))

        def wake() -> None:
            time.sleep(0.1)
            sock.listen()
            time.sleep(0.1)
            with sock.accept()[0] as accepted:
                accepted.recv(65_536)
                accepted.sendall(http(200, b'{"name":"mdello"}'))

        thread = threading.Thread(target=wake)
        thread.start()
        assert probe(sock.getsockname()[1], PATIENCE_S) is Holder.OURS
        thread.join()


def test_a_holder_that_hangs_up_is_asked_again() -> None:
    """As a companion that is stopping does, before another one takes its place."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            listener.accept()[0].close()
            with listener.accept()[0] as accepted:
                accepted.recv(65_536)
                accepted.sendall(http(200, b'{"name":"mdello"}'))

        thread = threading.Thread(target=serve)
        thread.start()
        assert probe(listener.getsockname()[1], PATIENCE_S) is Holder.OURS
        thread.join()


def test_reading_posting_and_deleting(world: World) -> None:
    """Values in, values out."""
    report = {"cardPath": world.card_a, "harness": "pi", "sessionId": "ü", "status": "idle"}
    stored = client.post_json(world.port, "/associations", report, PATIENCE_S)
    assert client.get_json(world.port, "/associations", PATIENCE_S) == [stored]
    removed = client.delete_json(world.port, "/associations?cardUuid=card-a", PATIENCE_S)
    assert removed == {"removedEvents": 1}


def test_a_refusal_is_an_error_with_its_reason(world: World) -> None:
    """Without the query, which may hold paths."""
    with pytest.raises(CompanionUnreachable, match=r"refused GET /nowhere: Not found"):
        client.get_json(world.port, "/nowhere?secret", PATIENCE_S)


@pytest.mark.parametrize("reply", [b"", b"SSH-2.0\r\n\r\n", http(200, b"<html>"), http(200, b"[" * 100_000)])
def test_no_usable_answer_is_an_error(stranger: Serve, reply: bytes) -> None:
    """Silence, other protocols, other content."""
    with pytest.raises(CompanionUnreachable, match="No usable answer"):
        client.get_json(stranger(reply), "/health", SHORT_S)
    with pytest.raises(CompanionUnreachable, match="No usable answer"):
        client.get_json(free_port(), "/health", PATIENCE_S)


def test_half_an_answer_is_none() -> None:
    """A holder that hangs up in the middle is not believed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with listener.accept()[0] as accepted:
                accepted.recv(65_536)
                accepted.sendall(http(200, b'{"name":"mdello"}')[:-3])

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(CompanionUnreachable, match="in the middle"):
            client.get_json(listener.getsockname()[1], "/health", PATIENCE_S)
        thread.join()
