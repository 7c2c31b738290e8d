"""Event streams on real connections: frames, heartbeats, and readers that misbehave."""

import socket
from typing import List

import pytest

from companion.core import hub as hub_module
from companion.core.hub import Frame, Hub
from companion.web import sse
from companion.web.limits import Limits
from tests.companion.web.conftest import MakeWorld
from tests.companion.web.talk import Talk, eventually
from tests.companion.web.world import BOARD, OTHER_BOARD, World


def test_a_frame() -> None:
    """Id, name, data on a line of its own, an empty line."""
    frame = Frame(7, "board", "association", b'{"a":"\xc3\xbc"}')
    expected = 'id: life-7\nevent: association\ndata: {"a":"ü"}\n\n'
    assert sse.encode(frame, Hub("life").event_id) == expected.encode()
    assert sse.encode(frame, None) == expected.partition("\n")[2].encode()


def test_silence_is_filled_with_comments(make_world: MakeWorld) -> None:
    """Which browsers skip."""
    world = make_world(Limits(heartbeat_s=0.05))
    with world.listen() as talk:
        assert talk.block().startswith("id: ")
        assert talk.block() == ": still here"
        assert talk.block() == ": still here"
        world.record(world.card_a)
        assert talk.event().name == "association"


def test_a_silent_client_that_left_is_noticed(make_world: MakeWorld) -> None:
    """By the next heartbeat, although nothing happens on its board."""
    world = make_world(Limits(heartbeat_s=0.05))
    talk = world.listen()
    eventually(lambda: world.hub.listeners() == 1)
    talk.close()
    eventually(lambda: world.hub.listeners() == 0)


def test_a_client_that_vanishes_is_noticed(make_world: MakeWorld) -> None:
    """With a reset instead of a goodbye."""
    world = make_world(Limits(heartbeat_s=0.05))
    talk = world.listen()
    talk.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    talk.close()
    eventually(lambda: world.hub.listeners() == 0)


def stalled(world: World) -> Talk:
    """A listener that takes nothing, with as little room in the kernel as possible."""
    talk = world.listen()
    talk.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    return talk


def flood(world: World, count: int, size: int) -> None:
    """Publish so many frames of such a size to the first board."""
    for number in range(count):
        world.hub.publish(BOARD, "association", b'"%d%s"' % (number, b"x" * size))


def test_a_stalled_reader_costs_nobody_anything(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is cut off when its queue is full, long before a write of it times out; others get all."""
    monkeypatch.setattr(hub_module, "QUEUE_FRAMES", 20)
    world = make_world(Limits(send_s=3600.0))
    slow = stalled(world)
    with world.listen() as quick:
        quick.event()
        received: List[str] = []
        for _ in range(200):
            flood(world, 1, 200_000)
            received.append(quick.event().name)
        eventually(lambda: world.hub.listeners() == 1)
        assert received == ["association"] * 200
    slow.close()


def test_a_reader_that_takes_nothing_runs_out_of_time(make_world: MakeWorld) -> None:
    """Also when nothing more is published for it."""
    world = make_world(Limits(send_s=0.1))
    slow = stalled(world)
    flood(world, 100, 200_000)
    eventually(lambda: world.hub.listeners() == 0)
    slow.close()


def test_streams_have_a_limit_of_their_own(make_world: MakeWorld) -> None:
    """So that hooks always find a place; a page is told, and may read it."""
    world = make_world(Limits(streams=1))
    with world.listen() as first:
        with world.talk() as talk:
            answer = talk.ask(
                "GET",
                f"/events?boardUuid={OTHER_BOARD}&boardPath={world.other_board}",
                headers=(("Origin", "http://localhost"),),
            )
            assert (answer.status, answer.error()) == (503, "Too many open event streams")
            assert answer.headers["access-control-allow-origin"] == "http://localhost"
        assert world.hub.listeners() == 1
        first.close()

    def free_again() -> bool:
        world.record(world.card_a, status="idle")
        world.record(world.card_a)
        return world.hub.listeners() == 0

    eventually(free_again)
    eventually(lambda: not world.server.connections())
    world.listen().close()
