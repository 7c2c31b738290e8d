"""What a route may touch."""

import dataclasses

import pytest

from tests.companion.web.world import World


def test_nobody_exchanges_a_part(world: World) -> None:
    """Routes run on many threads: what they are handed does not change."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        world.services.hub = world.hub  # type: ignore[misc]
