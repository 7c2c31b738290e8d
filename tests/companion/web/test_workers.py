"""Threads that are used again."""

import threading
from typing import Iterator, List

import pytest

from companion.web import workers as workers_module
from companion.web.workers import Workers
from tests.companion.web.talk import PATIENCE_S, eventually


@pytest.fixture
def workers() -> Iterator[Workers]:
    """Workers that end with the test."""
    made = Workers()
    yield made
    made.close()


class Task:
    """Notes the thread it runs on; waits for as many others as it is told to."""

    def __init__(self, together: int = 1) -> None:
        self.threads: List[threading.Thread] = []
        self._barrier = threading.Barrier(together)

    def __call__(self) -> None:
        self._barrier.wait(PATIENCE_S)
        self.threads.append(threading.current_thread())

    def alive(self) -> int:
        """How many of the threads have not ended."""
        return sum(thread.is_alive() for thread in self.threads)


def test_a_thread_is_used_again(workers: Workers) -> None:
    """As soon as it waits for something to do."""
    task = Task()
    workers.run(task)
    eventually(lambda: workers._waiting == 1)
    workers.run(task)
    eventually(lambda: len(task.threads) == 2)
    assert task.threads[0] is task.threads[1]


def test_tasks_never_wait_for_each_other(workers: Workers) -> None:
    """Each has a thread at once, however many there are, and few of the threads are kept."""
    task = Task(together=30)
    for _ in range(30):
        workers.run(task)
    eventually(lambda: len(task.threads) == 30 and task.alive() == workers_module._SPARE)


def test_closing_ends_all_threads(workers: Workers) -> None:
    """Those that wait, at once; a task that comes later runs all the same."""
    task = Task()
    workers.run(task)
    eventually(lambda: workers._waiting == 1)
    workers.close()
    workers.close()
    eventually(lambda: task.alive() == 0)
    workers.run(task)
    eventually(lambda: len(task.threads) == 2 and task.alive() == 0)
