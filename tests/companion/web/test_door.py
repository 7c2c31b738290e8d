"""A listening socket that several threads wait at, and that others may own as well."""

import os
import select
import socket
import threading
from typing import Callable, Iterator, List, Optional

import pytest

from companion.web import door as door_module
from companion.web.door import Door, listen
from tests.companion.web.talk import PATIENCE_S, eventually


class Threads:
    """Threads that accept until they are told to stop; what came is in ``accepted``."""

    def __init__(self, door: Door, count: int) -> None:
        self.door = door
        self.accepted: List[Optional[socket.socket]] = []
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        while not self._stopping.is_set():
            sock = self.door.accept()
            if sock is not None:
                self.accepted.append(sock)

    def stop(self, giver: socket.socket) -> None:
        """Give the word; whoever does not look up is a failure."""
        self._stopping.set()
        giver.send(b"\0")
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


@pytest.fixture
def word() -> Iterator[List[socket.socket]]:
    """The two ends of a word: to listen to, and to give it."""
    ends = list(socket.socketpair())
    yield ends
    for end in ends:
        end.close()


@pytest.fixture(params=["exclusive", "plain"])
def waiter(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of waiting, whatever this system has."""
    if request.param == "plain":
        monkeypatch.delattr(select, "epoll", raising=False)
    elif not hasattr(select, "EPOLLEXCLUSIVE"):
        pytest.skip("this system has no epoll")
    return str(request.param)


Call = Callable[[], socket.socket]


def caller(sock: socket.socket) -> Call:
    """Makes connections to a listening socket."""
    return lambda: socket.create_connection(sock.getsockname()[:2], PATIENCE_S)


def test_every_client_gets_one_thread(waiter: str, word: List[socket.socket]) -> None:
    """However many wait, and however many come at once."""
    sock = listen(socket.AF_INET, "127.0.0.1", 0)
    threads = Threads(Door(sock, word[0]), 4)
    clients = [caller(sock)() for _ in range(60)]
    eventually(lambda: len(threads.accepted) == 60)
    came = {each.getpeername() for each in threads.accepted if each is not None}
    assert came == {each.getsockname() for each in clients}
    threads.stop(word[1])
    for each in [*clients, *threads.accepted]:
        assert each is not None
        each.close()
    threads.door.close()
    threads.door.close()


def test_after_the_word_clients_stay_in_a_socket_that_was_handed_in(
    waiter: str, word: List[socket.socket]
) -> None:
    """Its next holder serves them; nothing of ours is left in there."""
    keeper = listen(socket.AF_INET, "127.0.0.1", 0)
    threads = Threads(Door(keeper.dup(), word[0]), 4)
    threads.stop(word[1])
    assert threads.door.accept() is None
    with caller(keeper)() as client:
        assert threads.door.accept() is None
        threads.door.close()
        silence, other_end = socket.socketpair()
        with silence, other_end:
            sock = Door(keeper, silence).accept()
        assert sock is not None and sock.getpeername() == client.getsockname()
        sock.close()
    with pytest.raises(BlockingIOError):
        keeper.accept()
    keeper.close()


def test_a_client_that_another_process_took_is_no_client(
    word: List[socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two companions at one socket: the slower one goes on waiting, it does not get stuck."""
    sock = listen(socket.AF_INET, "127.0.0.1", 0)
    door = Door(sock, word[0])
    monkeypatch.setattr(door_module, "_waiter", lambda *_: type("Hasty", (), {"wait": lambda self: True})())
    assert door.accept() is None
    door.close()


def test_a_kernel_without_exclusive_waiting_will_do(
    word: List[socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It refuses the flag."""
    if not hasattr(select, "EPOLLEXCLUSIVE"):
        pytest.skip("this system has no epoll")
    monkeypatch.setattr(select, "EPOLLEXCLUSIVE", 1 << 25)
    sock = listen(socket.AF_INET, "127.0.0.1", 0)
    door = Door(sock, word[0])
    with caller(sock)():
        accepted = door.accept()
        assert accepted is not None
        accepted.close()
    door.close()


def test_a_taken_address_is_told_and_leaves_nothing_open() -> None:
    """EADDRINUSE as it comes."""
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    with listen(socket.AF_INET, "127.0.0.1", 0) as sock, pytest.raises(OSError):
        listen(socket.AF_INET, "127.0.0.1", sock.getsockname()[1])
    assert before == (len(os.listdir("/proc/self/fd")) if before else 0)
