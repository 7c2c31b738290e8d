"""A herdr for tests, and what runs it."""

from pathlib import Path
from typing import Dict, Iterator

import pytest

from companion.core.programs import Programs
from tests.fakes.fake_herdr import FakeHerdr


@pytest.fixture
def herdr(tmp_path: Path) -> FakeHerdr:
    """A herdr in which nothing runs yet."""
    return FakeHerdr(tmp_path / "herdr")


@pytest.fixture
def environ(herdr: FakeHerdr) -> Dict[str, str]:
    """Where programs are; may be changed."""
    return {"HERDR_PATH": str(herdr.path)}


@pytest.fixture
def programs(environ: Dict[str, str]) -> Iterator[Programs]:
    """Runs programs, and ends them after the test."""
    made = Programs(environ)
    yield made
    made.close()
