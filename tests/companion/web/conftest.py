"""Fixtures of the web floor: a companion that runs, with usual or with shortened times."""

from pathlib import Path
from typing import Callable, Iterator, List

import pytest

from companion.web.limits import Limits
from tests.companion.web.world import World

MakeWorld = Callable[[Limits], World]


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[MakeWorld]:
    """Makes and starts a companion with limits of the test's choice."""
    worlds: List[World] = []

    def make(limits: Limits) -> World:
        world = World(tmp_path, limits)
        worlds.append(world)
        return world.start()

    yield make
    for world in worlds:
        world.stop()


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    """A companion that runs with the usual limits."""
    return make_world(Limits())
