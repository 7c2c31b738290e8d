"""The shared part of the clients, running in node."""

from pathlib import Path
from typing import Callable, Iterator

import pytest

from tests.adapters.client.node import Talk, node_program, patient, script
from tests.conftest import ROOT
from tests.fakes.companion_server import FakeCompanion

SHARED = ROOT / "adapters" / "client" / "companion.js"

Publishing = Callable[..., Talk]


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``companion.js`` under a name by which every node takes it for a module."""
    copy = tmp_path_factory.mktemp("shared") / "companion.mjs"
    copy.write_bytes(SHARED.read_bytes())
    return copy


@pytest.fixture(scope="session")
def paths_in_js(shared: Path) -> Iterator[Talk]:
    """Answers for many texts at once."""
    with Talk([node_program(), script("paths.mjs"), str(shared)]) as talk:
        yield talk


@pytest.fixture(scope="session")
def patient_shared(shared: Path) -> Path:
    """The same, but patient."""
    copy = shared.with_name("patient.mjs")
    copy.write_bytes(patient(SHARED.read_bytes()))
    return copy


@pytest.fixture
def publishing(shared: Path, patient_shared: Path, companion: FakeCompanion) -> Iterator[Publishing]:
    """Starts a publisher to the fake companion, or to the endpoint given.

    ``hasty``: it waits for an answer as long as it really does.
    """
    talks = []

    def start(endpoint: str = "", hasty: bool = False, **environ: str) -> Talk:
        module = str(shared if hasty else patient_shared)
        talk = Talk([node_program(), script("publisher.mjs"), module, endpoint or companion.url], environ)
        talks.append(talk)
        return talk

    yield start
    for talk in talks:
        talk.__exit__()
