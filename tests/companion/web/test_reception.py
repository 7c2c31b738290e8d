"""Threads that wait at the door."""

import queue
import threading
from typing import List, Optional, Tuple

import pytest

from companion.web import reception as reception_module
from companion.web.reception import Reception
from tests.companion.web.talk import PATIENCE_S, eventually


class House:
    """Clients come as numbers through a queue; each is served until as many are there together."""

    def __init__(self, together: int = 1) -> None:
        self.knocking: queue.Queue[Optional[int]] = queue.Queue()
        self.served: List[Tuple[int, threading.Thread]] = []
        self.turned_away: List[int] = []
        self._barrier = threading.Barrier(together)
        self._inside = 0
        self.reception = Reception(self.wait, self.serve, self.turned_away.append)

    def wait(self) -> Optional[int]:
        """The next number; None for ever once it has come."""
        self._inside += 1
        client = self.knocking.get()
        if client is None:
            self.knocking.put(None)
        self._inside -= 1
        return client

    def serve(self, client: int) -> None:
        """Wait for the others."""
        self._barrier.wait(PATIENCE_S)
        self.served.append((client, threading.current_thread()))

    def alive(self) -> int:
        """How many threads that have served somebody have not ended."""
        return sum(thread.is_alive() for thread in {thread for _, thread in self.served})

    def close(self) -> None:
        """All threads end."""
        self.knocking.put(None)
        assert self.reception.wait_closed(PATIENCE_S)
        eventually(lambda: self.alive() == 0)


def test_one_after_the_other() -> None:
    """Everybody is served, in order, by few threads."""
    house = House()
    house.reception.open()
    for number in range(50):
        house.knocking.put(number)
        eventually(lambda number=number: len(house.served) == number + 1)
    assert [number for number, _ in house.served] == list(range(50))
    assert len({thread for _, thread in house.served}) <= reception_module._SPARE + 1
    house.close()


def test_nobody_waits_for_another_client_to_be_done() -> None:
    """However many there are; most of the threads end afterwards."""
    house = House(together=40)
    house.reception.open()
    for number in range(40):
        house.knocking.put(number)
    eventually(lambda: sorted(number for number, _ in house.served) == list(range(40)))
    eventually(lambda: house.alive() <= reception_module._SPARE + 1)
    house.close()


def test_without_threads_clients_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The door is kept all the same, and the next one is served when there are threads again."""
    house = House()
    house.reception.open()
    eventually(lambda: house._inside == 1)
    start = threading.Thread.start

    def no_more(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_more)
    house.knocking.put(1)
    eventually(lambda: house.turned_away == [1])
    with pytest.raises(RuntimeError):
        House().reception.open()
    monkeypatch.setattr(threading.Thread, "start", start)
    house.knocking.put(2)
    eventually(lambda: [number for number, _ in house.served] == [2])
    house.close()


def test_waiting_for_the_end_has_an_end() -> None:
    """Somebody is at the door for as long as nobody says that it is closed."""
    house = House()
    house.reception.open()
    eventually(lambda: house._inside == 1)
    assert not house.reception.wait_closed(0.05)
    house.close()
