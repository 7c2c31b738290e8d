"""The world of the job's tests as a fixture."""

from pathlib import Path
from typing import Iterator

import pytest

from tests.companion.assignment.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A board with a job set up, and nothing to be found."""
    made = World(tmp_path)
    yield made
    made.programs.close()
