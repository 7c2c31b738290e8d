"""One connection from its first byte to its last, against a real companion."""

import json
import logging
import threading
from typing import Any, List, Tuple

import pytest

from companion.web import router
from companion.web.limits import HEAD_BYTES, REQUEST_LINE_BYTES, Limits
from companion.web.messages import Request, Response
from companion.web.services import Services
from companion.web.wire import Wire
from tests.companion.web.conftest import MakeWorld
from tests.companion.web.talk import eventually, request
from tests.companion.web.world import SITE, World

ORIGIN = (("Origin", SITE),)
EVERY_PATH = (
    "/actions",
    "/associations",
    "/enrichments",
    "/events",
    "/sessions",
    "/sessions/toy/s1",
    "/settings",
    "/health",
    "/nowhere",
    "/hooks/toy",
    "/hooks/toy/x",
)


def test_no_route_is_missing_from_the_paths_above() -> None:
    """What holds for every path is asked of every route of the table."""
    with_parts = {router._ANY_HARNESS, router._ANY_SESSION}
    assert {route.path for route in router.ROUTES} - with_parts <= set(EVERY_PATH)


@pytest.mark.parametrize("path", EVERY_PATH)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS", "HEAD"])
def test_a_foreign_host_is_refused_everywhere(world: World, path: str, method: str) -> None:
    """Before anything else is looked at, by name, without CORS headers."""
    with world.talk() as talk:
        answer = talk.ask(method, path, headers=ORIGIN, host="evil.example:1")
    assert answer.status == 403
    assert method == "HEAD" or '"evil.example:1"' in answer.error()
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("path", [path for path in EVERY_PATH if path != "/hooks/toy"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
def test_a_foreign_page_is_refused_everywhere(world: World, path: str, method: str) -> None:
    """Before 404 and 405 too; the text tells what to do."""
    with world.talk() as talk:
        answer = talk.ask(method, path, headers=(("Origin", "https://evil.example"),))
    assert answer.status == 403 and str(world.settings.config_path) in answer.error()
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/settings", None, 200),
        ("GET", "/nowhere", None, 404),
        ("PUT", "/settings", b"{}", 405),
        ("POST", "/settings", b"{", 400),
        ("POST", "/settings", b" " * 70_000, 400),
        ("OPTIONS", "/settings", None, 204),
        ("OPTIONS", "/nowhere", None, 204),
    ],
)
def test_pages_can_read_every_answer(world: World, method: str, path: str, body: Any, status: int) -> None:
    """Errors included; without an Origin there are no such headers."""
    with world.talk() as talk:
        answer = talk.ask(method, path, body, (("Origin", "https://SUBDAVIS.github.io:443/"),))
        plain = talk.ask(method, path, body, (("Referer", SITE),))
    assert (answer.status, plain.status) == (status, status)
    assert answer.headers["access-control-allow-origin"] == SITE
    assert answer.headers["access-control-allow-headers"] == "Content-Type"
    assert answer.headers["access-control-allow-methods"] == "DELETE, GET, POST, OPTIONS"
    assert answer.headers["vary"] == "Origin"
    for name in ("access-control-allow-credentials", "access-control-max-age"):
        assert name not in answer.headers
    assert not [name for name in plain.headers if name.startswith("access-control") or name == "vary"]


def test_a_preflight(world: World) -> None:
    """Empty, and with leave to reach a private address when that is asked for."""
    with world.talk() as talk:
        asks = (*ORIGIN, ("Access-Control-Request-Private-Network", "true"))
        answer = talk.ask("OPTIONS", "/associations", headers=asks)
        assert (answer.status, answer.body) == (204, b"")
        assert answer.headers["access-control-allow-private-network"] == "true"
        assert "content-type" not in answer.headers and "content-length" not in answer.headers
        hook = talk.ask("OPTIONS", "/hooks/toy")
        assert (hook.status, hook.body) == (404, b"")
        assert "access-control-allow-origin" not in hook.headers


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/boards"), ("POST", "/backfill"), ("GET", "/settings/"), ("GET", "/SETTINGS"), ("HEAD", "/x")],
)
def test_what_is_not_there(world: World, method: str, path: str) -> None:
    """The contract's words, exactly."""
    with world.talk() as talk:
        answer = talk.ask(method, path)
    assert answer.status == 404
    assert answer.headers["content-type"] == "application/json"
    assert answer.body == (b"" if method == "HEAD" else b'{"error":"Not found"}')


def test_a_wrong_method_is_told_the_right_ones(world: World) -> None:
    """In the header and in the usual shape."""
    with world.talk() as talk:
        answer = talk.ask("GET", "/hooks/toy")
        assert (answer.status, answer.headers["allow"]) == (405, "POST")
        assert answer.error() == "Method not allowed"
        assert talk.ask("HEAD", "/settings").headers["allow"] == "GET, POST, OPTIONS"


@pytest.mark.parametrize("path", ["/x/../settings", "/%2E%2e/settings", "http://localhost/settings?a#b"])
def test_paths_are_normalised(world: World, path: str) -> None:
    """As a browser would."""
    with world.talk() as talk:
        assert talk.ask("GET", path).status == 200


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"GET /" + b"a" * (REQUEST_LINE_BYTES + 2), 414),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 101 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"b" * HEAD_BYTES + b"\r\n\r\n", 431),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: more\r\nContent-Length: 1\r\n\r\n", 417),
    ],
)
def test_what_is_no_request_gets_a_proper_answer(world: World, data: bytes, status: int) -> None:
    """In our error shape, and the connection ends."""
    with world.talk() as talk:
        answer = talk.send(data).answer()
        assert answer.status == status and answer.error()
        assert answer.headers["connection"] == "close"
        assert "access-control-allow-origin" not in answer.headers
        assert talk.ended()


@pytest.mark.parametrize(("method", "target"), [("GET", "settings"), ("CONNECT", "localhost:1")])
def test_a_target_that_is_no_path(world: World, method: str, target: str) -> None:
    """A request all the same, so that the next one is found."""
    with world.talk() as talk:
        answer = talk.ask(method, target)
        assert (answer.status, answer.error()) == (400, "Bad request target")
        assert talk.ask("GET", "/settings").status == 200


def test_http_1_0(world: World) -> None:
    """Served with the same rules; the connection ends with the answer."""
    with world.talk() as talk:
        talk.send(b"GET /settings HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")
        answer = talk.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert talk.ended()
    with world.talk() as talk:
        answer = talk.send(b"GET /settings HTTP/1.0\r\n\r\n").answer()
        assert answer.status == 403 and '""' in answer.error()


def test_requests_may_be_sent_ahead(world: World) -> None:
    """They are answered in order, on one connection."""
    with world.talk() as talk:
        talk.send(
            request("GET", "/settings")
            + request("POST", "/associations", b"{}")
            + request("GET", "/nowhere")
            + request("GET", "/associations", None, (("Connection", "close"),))
        )
        assert [talk.answer().status for _ in range(4)] == [200, 202, 404, 200]
        assert talk.ended()


def test_an_answer_leaves_in_one_write(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """In two, a kept-alive connection would wait 40 ms for each."""
    writes: List[bytes] = []
    send = Wire.send

    def noted(wire: Wire, data: bytes, timeout_s: float) -> None:
        writes.append(data)
        send(wire, data, timeout_s)

    monkeypatch.setattr(Wire, "send", noted)
    with world.talk() as talk:
        for count in range(1, 6):
            talk.ask("POST", "/hooks/toy", b"{}", (("Content-Type", "application/json"),))
            assert len(writes) == count and writes[-1].endswith(b"\r\n\r\n{}")
        talk.ask("GET", "/nowhere")
        assert len(writes) == 6


def test_a_post_without_a_length_has_an_empty_body(world: World) -> None:
    """Which is no JSON; the connection goes on."""
    with world.talk() as talk:
        assert talk.ask("POST", "/associations").error().startswith("Invalid JSON")
        assert talk.ask("GET", "/settings").status == 200


def chunked(body: bytes, size: int) -> bytes:
    """A body in chunks of so many bytes."""
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


CHUNKED = (("Transfer-Encoding", "chunked"),)


def test_chunked_bodies(world: World) -> None:
    """Of exactly the limit, with characters torn apart, and one byte above it."""
    report = {"cardPath": world.card_a, "harness": "pi", "sessionId": "ü€", "status": "idle"}
    body = json.dumps(report, ensure_ascii=False).encode()
    body += b" " * (65_536 - len(body))
    with world.talk() as talk:
        talk.send(request("POST", "/associations", None, CHUNKED) + chunked(body, 1))
        record: Any = talk.answer().json()
        assert record["sessionId"] == "ü€"
        talk.send(request("POST", "/associations", None, CHUNKED) + chunked(body + b" ", 5_000))
        assert talk.answer().error() == "Request body too large"
        talk.send(request("POST", "/associations", None, CHUNKED) + b"zz\r\n")
        answer = talk.answer()
        assert (answer.error(), answer.headers["connection"]) == ("Bad chunked body", "close")


def test_a_client_that_waits_to_continue(world: World) -> None:
    """It is told to when its body is wanted, and gets the refusal instead when it is not."""
    waits = (("Expect", "100-continue"), ("Content-Length", "2"))
    with world.talk() as talk:
        talk.send(request("POST", "/associations", None, waits))
        assert talk.head()[0] == 100
        assert talk.send(b"{}").answer().status == 202
        refused = talk.ask("POST", "/nowhere", None, waits)
        assert (refused.status, refused.headers["connection"]) == (404, "close")
    with world.talk() as talk:
        waits = (("Expect", "100-continue"), ("Content-Length", "65537"))
        assert talk.ask("POST", "/associations", None, waits).error() == "Request body too large"


@pytest.mark.parametrize("path", ["/associations", "/nowhere", "/settings/x/..", "/health"])
def test_an_oversized_body_is_read_before_the_answer(world: World, path: str) -> None:
    """Whatever the answer is, so that a client that only writes gets it; the connection goes on."""
    with world.talk() as talk:
        answer = talk.ask("POST", path, b"x" * 20_000_000)
        assert answer.status in (400, 404, 405) and answer.error()
        assert talk.ask("GET", "/settings").status == 200


def test_an_endless_body_is_cut_off_after_the_answer(make_world: MakeWorld) -> None:
    """There is an end to reading; the answer still arrives."""
    world = make_world(Limits(drain_bytes=100_000, linger_s=20.0))
    with world.talk() as talk:
        answer = talk.ask("POST", "/associations", b"x" * 300_000)
        assert (answer.error(), answer.headers["connection"]) == ("Request body too large", "close")
        assert talk.ended()


def test_a_client_byte_by_byte_is_served(world: World) -> None:
    """Within its time."""
    body = b'{"cardPath": "/x.md"}'
    with world.talk() as talk:
        for letter in request("POST", "/associations", body):
            talk.send(bytes([letter]))
        assert talk.answer().status == 202


@pytest.mark.parametrize("data", [b"GET /settings HTT", b"POST /settings HTTP/1.1\r\nHost: localhost\r\nA"])
def test_a_head_that_comes_too_slowly(make_world: MakeWorld, data: bytes) -> None:
    """408, then the end."""
    world = make_world(Limits(head_s=0.1))
    with world.talk() as talk:
        answer = talk.send(data).answer()
        assert (answer.status, answer.headers["connection"]) == (408, "close")
        assert answer.error() and talk.ended()


def test_a_body_that_comes_too_slowly(make_world: MakeWorld) -> None:
    """408, readable for the page that sent it; a body nobody asked for only ends the connection."""
    world = make_world(Limits(body_s=0.1))
    slow = (*ORIGIN, ("Content-Length", "9"))
    with world.talk() as talk:
        answer = talk.ask("POST", "/associations", None, slow)
        assert answer.status == 408 and answer.headers["access-control-allow-origin"] == SITE
        assert answer.headers["connection"] == "close" and answer.error()
    with world.talk() as talk:
        answer = talk.ask("POST", "/nowhere", None, slow)
        assert (answer.status, answer.headers["connection"]) == (404, "close")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GET /sett",
        request("POST", "/associations", None, (("Content-Length", "10"),)) + b"{",
        request("POST", "/hooks/toy", None, (("Content-Length", "9"), ("Content-Type", "application/json"))),
        request("POST", "/settings", None, CHUNKED) + b"5\r\nab",
        request("GET", "/associations") * 50,
    ],
    ids=["at once", "in the head", "in the body", "in a hook", "in a chunk", "before the answers"],
)
def test_a_client_that_leaves_harms_nothing(
    world: World, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """No traceback, no warning, nothing recorded, and others are served."""
    caplog.set_level(logging.INFO)
    talk = world.talk()
    talk.send(data)
    talk.close()
    eventually(lambda: not world.server.connections())
    assert not caplog.records
    assert world.ledger.associations() == []
    with world.talk() as other:
        assert other.ask("GET", "/settings").status == 200


def test_an_idle_connection_ends_quietly(make_world: MakeWorld) -> None:
    """Before its first request and after it."""
    world = make_world(Limits(idle_s=0.1))
    with world.talk() as talk:
        assert talk.ended()
    with world.talk() as talk:
        assert talk.ask("GET", "/settings").status == 200
        assert talk.ended()


def test_our_own_bug_is_a_500_and_a_traceback_in_the_log(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The client learns nothing of it, and the connection goes on."""

    def broken(request: Request, services: Services) -> Response:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(router, "ROUTES", (router.Route("POST", "/settings", broken),))
    with world.talk() as talk:
        answer = talk.ask("POST", "/settings?token=x", b"{}")
        assert (answer.status, answer.error()) == (500, "Internal error")
        assert talk.ask("GET", "/nowhere").status == 404
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1 and errors[0].exc_info and "token" not in errors[0].getMessage()


def test_many_clients_at_once(world: World) -> None:
    """Each gets its own answer."""
    statuses: List[Tuple[int, int]] = []

    def client(number: int) -> None:
        with world.talk() as talk:
            for _ in range(10):
                path = "/settings" if number % 2 else "/nowhere"
                statuses.append((number % 2, talk.ask("GET", path).status))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [(0, 404)] * 100 + [(1, 200)] * 100
