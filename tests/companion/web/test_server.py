"""Listening, threads, and an orderly end."""

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import List

import pytest

from companion.core.config import ConfigFile
from companion.web import door
from companion.web import server as server_module
from companion.web.limits import Limits
from tests.companion.web.conftest import MakeWorld
from tests.companion.web.talk import PATIENCE_S, Talk, eventually
from tests.companion.web.world import BOARD, World

ROOT = Path(__file__).resolve().parents[3]


def has_ipv6() -> bool:
    """Whether ``[::1]`` exists here."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def test_both_loopback_addresses_are_served(world: World) -> None:
    """On the same port, where the second one exists."""
    with world.talk() as talk:
        assert talk.ask("GET", "/settings").status == 200
    if not has_ipv6():
        assert world.server.ipv6_problem
        pytest.skip("there is no [::1] here")
    assert world.server.ipv6_problem is None
    with Talk(world.port, "::1") as talk:
        assert talk.ask("GET", "/settings", host=f"[::1]:{world.port}").status == 200


def test_a_missing_second_address_is_only_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the system says about it."""
    listen = door.listen

    def only_ipv4(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
        return listen(family, address, port)

    monkeypatch.setattr(door, "listen", only_ipv4)
    world = World(tmp_path).start()
    assert world.server.ipv6_problem == "Cannot assign requested address"
    with world.talk() as talk:
        assert talk.ask("GET", "/settings").status == 200
    world.stop()


def test_only_loopback_is_served(world: World) -> None:
    """The listening sockets are bound to nothing else."""
    addresses = [each.socket.getsockname()[0] for each in world.server._doors]
    assert set(addresses) <= {"127.0.0.1", "::1"}


def test_a_taken_port_is_the_callers_business(world: World, tmp_path: Path) -> None:
    """EADDRINUSE as it comes, whether the holder is we or another program."""
    (tmp_path / "second").mkdir()
    second = World(tmp_path / "second", port=world.port)
    with pytest.raises(OSError) as caught:
        second.server.bind()
    assert caught.value.errno == errno.EADDRINUSE
    second.stop()


def test_a_port_can_be_taken_again_at_once(tmp_path: Path) -> None:
    """Connections of the last life do not block it."""
    first = World(tmp_path).start()
    with first.talk() as talk:
        talk.ask("GET", "/settings")
        first.stop()
    second = World(tmp_path, port=first.port).start()
    with second.talk() as talk:
        assert talk.ask("GET", "/settings").status == 200
    second.stop()


def test_clients_may_call_before_we_serve(tmp_path: Path) -> None:
    """They wait in the backlog from the moment we are bound."""
    world = World(tmp_path)
    world.server.bind()
    with Talk(world.server.port) as talk:
        talk.send(b"GET /settings HTTP/1.1\r\nHost: localhost\r\n\r\n")
        thread = threading.Thread(target=world.server.serve_until_stopped)
        thread.start()
        assert talk.answer().status == 200
    world.stop()
    thread.join()


def serve_handed_in(world: World, *socks: socket.socket) -> threading.Thread:
    """Serve from copies of these sockets, as a service manager hands them in."""
    world.server.bind([sock.dup() for sock in socks])
    thread = threading.Thread(target=world.server.serve_until_stopped)
    thread.start()
    return thread


def test_sockets_that_were_handed_in_are_served(tmp_path: Path) -> None:
    """Both of them, with the same checks; nothing is bound beside them."""
    families = [(socket.AF_INET, "127.0.0.1")] + ([(socket.AF_INET6, "::1")] if has_ipv6() else [])
    keepers = [door.listen(families[0][0], families[0][1], 0)]
    port = keepers[0].getsockname()[1]
    keepers += [door.listen(family, address, port) for family, address in families[1:]]
    world = World(tmp_path, port=port)
    thread = serve_handed_in(world, *keepers)
    assert world.server.handed_in == [address for _, address in families]
    for _, address in families:
        with Talk(port, address) as talk:
            assert talk.ask("GET", "/settings").status == 200
            assert talk.ask("GET", "/settings", host="evil.example").status == 403
    world.stop()
    thread.join()
    for keeper in keepers:
        assert keeper.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
        keeper.close()


def test_what_was_not_handed_in_is_bound(tmp_path: Path) -> None:
    """A manager that knows nothing of the second address."""
    with door.listen(socket.AF_INET, "127.0.0.1", 0) as keeper:
        world = World(tmp_path, port=keeper.getsockname()[1])
        thread = serve_handed_in(world, keeper)
        assert world.server.handed_in == ["127.0.0.1"]
        assert len(world.server._doors) == (2 if has_ipv6() else 1)
        world.stop()
        thread.join()


def test_who_calls_between_two_lives_is_answered_by_the_second(tmp_path: Path) -> None:
    """Stopping leaves a socket that was handed in as it is, for whoever gets it next."""
    with door.listen(socket.AF_INET, "127.0.0.1", 0) as keeper:
        port = keeper.getsockname()[1]
        for number in range(3):
            (tmp_path / str(number)).mkdir()
            world = World(tmp_path / str(number), port=port)
            waiting = [Talk(port) for _ in range(5)] if number else []
            for each in waiting:
                each.send(b"GET /settings HTTP/1.1\r\nHost: localhost\r\n\r\n")
            thread = serve_handed_in(world, keeper)
            for each in waiting:
                assert each.answer().status == 200
                each.close()
            with world.talk() as talk:
                assert talk.ask("GET", "/settings").status == 200
            world.stop()
            thread.join()
        keeper.setblocking(False)
        with pytest.raises(BlockingIOError):  # Nothing of ours was left in there either.
            keeper.accept()


def test_a_request_that_is_on_its_way_is_answered_although_we_stop(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that was just made is no idle one yet."""
    monkeypatch.setattr(server_module, "_FRESH_S", PATIENCE_S)
    with world.talk() as talk:
        eventually(lambda: len(world.server.connections()) == 1)
        stopper = threading.Thread(target=world.stop)
        stopper.start()
        eventually(world.server._shared.stopping.is_set)
        answer = talk.send(b"GET /settings HTTP/1.1\r\nHost: localhost\r\n\r\n").answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        stopper.join()


def test_stopping_before_serving(tmp_path: Path) -> None:
    """Frees the port; serving then returns at once. Both may be done twice."""
    world = World(tmp_path)
    world.server.bind()
    world.server.stop()
    world.server.serve_until_stopped()
    world.server.stop()
    with socket.create_server(("127.0.0.1", world.server.port)):
        pass
    world.stop()


def test_stopping_ends_streams_and_idle_connections(make_world: MakeWorld) -> None:
    """Without cutting any of them off: nothing waits for a time to run out."""
    world = make_world(Limits(stop_s=3600.0))
    streams = [world.listen() for _ in range(20)]
    idle = [world.talk() for _ in range(10)]
    for talk in idle[:5]:
        assert talk.ask("GET", "/settings").status == 200
    eventually(lambda: len(world.server.connections()) == 30)
    world.stop()
    for talk in idle:
        assert talk.ended()
    for talk in streams:
        assert b"event: snapshot" in talk.rest()
        talk.close()
    assert world.hub.listeners() == 0


def test_a_request_under_way_gets_its_answer(make_world: MakeWorld) -> None:
    """And is told that the connection ends."""
    world = make_world(Limits(stop_s=PATIENCE_S))
    with world.talk() as talk:
        talk.send(b"POST /associations HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{")
        eventually(lambda: any(each.idle_since() is None for each in world.server.connections()))
        stopper = threading.Thread(target=world.stop)
        stopper.start()
        eventually(world.server._shared.stopping.is_set)
        answer = talk.send(b"}").answer()
        assert (answer.status, answer.headers["connection"]) == (202, "close")
        stopper.join()


def test_what_does_not_end_is_cut_off(make_world: MakeWorld) -> None:
    """A body that never comes, a reader that never reads."""
    world = make_world(Limits(stop_s=0.05, body_s=3600.0, send_s=3600.0))
    slow = world.talk().send(b"POST /associations HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{")
    stalled = world.listen()
    for _ in range(100):
        world.hub.publish(BOARD, "association", b'"' + b"x" * 200_000 + b'"')
    world.stop()
    assert slow.ended()
    slow.close()
    stalled.close()


def test_a_signal_handler_may_stop_it(tmp_path: Path) -> None:
    """On the very thread that serves."""
    world = World(tmp_path)
    world.server.bind()
    before = signal.signal(signal.SIGUSR1, lambda *_: world.server.stop())
    try:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        world.server.serve_until_stopped()
    finally:
        signal.signal(signal.SIGUSR1, before)
    world.stop()


def test_a_flood_of_connections_does_not_keep_hooks_out(make_world: MakeWorld) -> None:
    """Whoever has been idle for the longest has to make room."""
    world = make_world(Limits(connections=16, idle_s=3600.0))
    flood: List[Talk] = [world.talk() for _ in range(40)]
    with world.talk() as talk:
        answer = talk.ask("POST", "/hooks/toy", b"{}", (("Content-Type", "application/json"),))
        assert answer.status == 202
    assert len(world.server.connections()) <= 16
    assert flood[0].ended()
    for talk in flood:
        talk.close()


def test_busy_connections_are_waited_for(make_world: MakeWorld) -> None:
    """They are not pushed out; the next client is served when one of them is done."""
    world = make_world(Limits(connections=1, idle_s=3600.0))
    post = b"POST /associations HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{"
    with world.talk() as busy, world.talk() as waiting:
        busy.send(post)
        eventually(lambda: [each for each in world.server.connections() if each.idle_since() is None])
        waiting.send(b"GET /settings HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert busy.send(b"}").answer().status == 202
        assert waiting.answer().status == 200


def test_running_out_of_files_is_survived(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client waits, and is served when there are files again."""
    failures = [errno.EMFILE, errno.ENOMEM, errno.ECONNABORTED]
    accept = socket.socket.accept

    def sometimes(listener: socket.socket) -> object:
        if failures:
            raise OSError(failures.pop(), "not now")
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", sometimes)
    with world.talk() as talk:
        assert talk.ask("GET", "/settings").status == 200
    eventually(lambda: not failures)
    with world.talk() as talk:
        assert talk.ask("GET", "/settings").status == 200


def test_running_out_of_threads_is_survived(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One client is turned away, the next is served, and no place is lost."""
    server = world.server
    eventually(lambda: [each._waiting for each in server._receptions] == [1] * len(server._doors))
    start = threading.Thread.start

    def no_more(thread: threading.Thread) -> None:
        monkeypatch.setattr(threading.Thread, "start", start)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_more)
    with world.talk() as talk:
        assert talk.ended()
    eventually(lambda: not world.server.connections())
    with world.talk() as talk:
        assert talk.ask("GET", "/settings").status == 200


def test_the_web_origin_is_read_once(world: World) -> None:
    """A page must not be able to add itself while we run; other settings are read again."""
    ConfigFile(world.settings.config_path).change(lambda config: config.update(webOrigin="https://a.example"))
    with world.talk() as talk:
        assert talk.ask("GET", "/settings", headers=(("Origin", "https://a.example"),)).status == 403
        assert talk.ask("GET", "/settings", headers=(("Origin", "https://subdavis.github.io"),)).status == 200


def test_the_limit_of_open_files_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most half of them are for connections."""
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda what: (100, 100))
    assert server_module._affordable(256) == 50
    monkeypatch.setattr(resource, "getrlimit", lambda what: (resource.RLIM_INFINITY, 0))
    assert server_module._affordable(256) == 256


def test_nothing_is_imported_while_serving(tmp_path: Path) -> None:
    """All of ours is there before the first request: the archive may be replaced under us."""
    program = """
import sys
from pathlib import Path
from tests.companion.web.world import World
world = World(Path(sys.argv[1])).start()
before = set(sys.modules)
events = f"/events?boardUuid=x&boardPath={world.board}"
json = (("Content-Type", "application/json"),)
body = b'{"session": "s", "status": "idle", "paths": ["%b"]}' % world.card_a.encode()
asked = [
    ("GET", "/associations", None, ()), ("POST", "/associations", b"{", ()),
    ("DELETE", "/associations", None, ()), ("POST", "/associations", b"[" * 60000, ()),
    ("GET", "/settings", None, (("Origin", "https://x.example"),)),
    ("POST", "/settings", b'{"autofocus": true}', ()), ("GET", "/health", None, ()),
    ("GET", "/events", None, ()),
    ("POST", "/hooks/toy", body, json), ("POST", "/hooks/toy", b"{}", ()), ("OPTIONS", "/x", None, ()),
    ("PUT", "/settings", b"x" * 70000, ()), ("DELETE", "/associations?cardUuid=card-a", None, ()),
]
with world.talk() as talk:
    statuses = [talk.ask(*each).status for each in asked]
with world.listen() as stream:
    stream.event()
    world.record(world.card_a)
    stream.event()
with world.talk() as talk:
    talk.send(b"nonsense\\r\\n\\r\\n").answer()
world.stop()
print(statuses)
print([name for name in sorted(set(sys.modules) - before) if not name.startswith("encodings.")])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "[200, 400, 400, 400, 403, 200, 200, 400, 202, 415, 204, 405, 200]",
        "[]",
    ], done.stderr
