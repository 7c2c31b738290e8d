"""Cards of sessions of which nobody reports: read when the file changes, a large one seldom."""

import os
from pathlib import Path
from typing import Iterator, List, Tuple

import pytest

from adapters.contract import Mark, ProcessRecord, Status
from companion.core.processes import Process
from companion.sessions.evidence import Evidence, Said
from companion.sessions.unreported import READ_SHARE, CardReader
from companion.sessions.verdict import LAG_S
from companion.sessions.watched import Watched
from tests.companion.sessions.recording_agent import RecordingAgent
from tests.companion.web.talk import eventually

NOW = 1_770_000_000.0


class Times:
    """A clock, and how long each reading seems to take."""

    def __init__(self) -> None:
        self.now_s = NOW
        self.takes_s = 0.0
        self._asked = 0.0

    def wall(self) -> float:
        """Unix seconds."""
        return self.now_s

    def monotonic(self) -> float:
        """Moves on at each look."""
        self._asked += self.takes_s
        return self._asked


@pytest.fixture
def found() -> List[Tuple[str, ...]]:
    """What was told, in order."""
    return []


@pytest.fixture
def times() -> Times:
    """Reading takes no time."""
    return Times()


@pytest.fixture
def agent(tmp_path: Path) -> RecordingAgent:
    """It has no session yet."""
    return RecordingAgent(tmp_path / "agent")


@pytest.fixture
def reader(agent: RecordingAgent, times: Times, found: List[Tuple[str, ...]]) -> Iterator[CardReader]:
    """Reads the agent's files."""
    made = CardReader(
        {"fake": agent.as_adapter()},
        tuple,
        lambda watched, paths: found.append(paths),
        times.wall,
        times.monotonic,
    )
    yield made
    made.close()


def session(path: Path, is_reported: bool = False) -> Watched:
    """One that runs now and has just acted, by the agent's record."""
    records = {Process(os.getpid(), "1"): ProcessRecord("s", os.getpid(), said_at_s=NOW)}
    event = Said(Status.RUNNING, NOW) if is_reported else None
    return Watched("fake", "s", file=str(path), is_reported=is_reported, event=event, records=records)


def test_a_file_is_read_once_for_each_change(
    agent: RecordingAgent, reader: CardReader, found: List[Tuple[str, ...]]
) -> None:
    """However often it is offered."""
    watched = session(agent.write("s", Mark.WORKING, NOW, "/b/a.md"))
    for _ in range(3):
        reader.offer([watched])
    eventually(lambda: found == [("/b/a.md",)])
    agent.write("s", Mark.WORKING, NOW, "/b/a.md", "/b/b.md")
    reader.offer([watched])
    eventually(lambda: found == [("/b/a.md",), ("/b/a.md", "/b/b.md")])


def test_a_file_that_takes_long_is_read_seldom(
    agent: RecordingAgent, reader: CardReader, times: Times, found: List[Tuple[str, ...]]
) -> None:
    """So that it never takes more than its share of a core."""
    times.takes_s = 2.0
    watched = session(agent.write("s", Mark.WORKING, NOW, "/b/a.md"))
    reader.offer([watched])
    eventually(lambda: len(found) == 1)
    assert watched.next_read_s == NOW + 2.0 / READ_SHARE
    agent.write("s", Mark.ENDED, NOW, "/b/a.md", "/b/b.md")
    times.now_s = watched.next_read_s - 1
    reader.offer([watched])
    times.now_s = watched.next_read_s
    other = session(agent.write("t", Mark.WORKING, NOW, "/b/c.md"))
    reader.offer([other, watched])
    eventually(lambda: found[1:] == [("/b/c.md",), ("/b/a.md", "/b/b.md")])


def test_nobody_is_read_without_need(
    agent: RecordingAgent, reader: CardReader, found: List[Tuple[str, ...]]
) -> None:
    """One that reports, that does not run, or that has no file."""
    path = agent.write("s", Mark.WORKING, NOW, "/b/a.md")
    ended = session(path)
    ended.records = {}
    reader.offer([session(path, is_reported=True), ended, session(path.with_name("none"))])
    reader.offer([session(agent.write("t", Mark.WORKING, NOW, "/b/c.md"))])
    eventually(lambda: found == [("/b/c.md",)])


def test_one_that_reports_its_start_only_is_read(
    agent: RecordingAgent, reader: CardReader, found: List[Tuple[str, ...]]
) -> None:
    """A policy that lets some hooks through: it acts, and no event says so."""
    watched = session(agent.write("s", Mark.WORKING, NOW, "/b/a.md"), is_reported=True)
    watched.event = Said(Status.IDLE, NOW - LAG_S - 1, "SessionStart")
    reader.offer([watched])
    eventually(lambda: found == [("/b/a.md",)])


def test_one_that_does_something_else_than_it_reported_is_read(
    agent: RecordingAgent, reader: CardReader, found: List[Tuple[str, ...]]
) -> None:
    """However soon after its start it began."""
    watched = session(agent.write("s", Mark.WORKING, NOW, "/b/a.md"), is_reported=True)
    watched.event = Said(Status.IDLE, NOW, "SessionStart")
    watched.judge(Evidence(NOW, Said(Status.WAITING_FOR_INPUT, NOW)))
    reader.offer([watched])
    eventually(lambda: found == [("/b/a.md",)])
