"""What the tests of clients share: a companion to report to."""

from typing import Iterator

import pytest

from tests.fakes.companion_server import FakeCompanion


@pytest.fixture
def companion() -> Iterator[FakeCompanion]:
    """A companion that takes everything, until told otherwise."""
    fake = FakeCompanion()
    yield fake
    fake.stop()
