"""Agents' own records: read when they change, told when they cannot be."""

import os
import shutil
from pathlib import Path

import pytest

from adapters.contract import Status
from companion.sessions import records
from companion.sessions.evidence import Records
from companion.sessions.records import RecordReader
from tests.companion.sessions.recording_agent import RecordingAgent

AT = 1_770_000_000.0


@pytest.fixture
def agent(tmp_path: Path) -> RecordingAgent:
    """It keeps no record yet."""
    return RecordingAgent(tmp_path / "agent")


@pytest.fixture
def reader(agent: RecordingAgent, tmp_path: Path) -> RecordReader:
    """Reads the agent's folder."""
    return RecordReader({"fake": agent.as_adapter()}, tmp_path, {})


def test_records_are_found_with_their_process(agent: RecordingAgent, reader: RecordReader) -> None:
    """Number, start time and namespace; what is missing is empty."""
    agent.keep(100, "one", Status.IDLE, AT, begun="7", domain="pid:[1]")
    agent.keep(200, "two", None, AT, begun=None)
    found = {each.session: each for each in reader.read()}
    assert found["fake", "one"].process == (100, "7", "pid:[1]")
    assert found["fake", "two"].process == (200, "", "")
    assert found["fake", "one"].record.status is Status.IDLE
    assert reader.state("fake") is Records.READ and reader.state("other") is Records.NONE


def test_a_record_is_read_again_when_it_has_changed(agent: RecordingAgent, reader: RecordReader) -> None:
    """And is forgotten with its file; a torn one counts again when it is whole."""
    path = agent.keep(100, "one", Status.IDLE, AT)
    reader.read()
    reader.read()
    assert agent.read == ["100.json"]
    path.write_text("{")
    assert reader.read() == []
    facts = reader.facts()["fake"]
    assert facts == {"state": "read", "records": 0, "problems": {str(path): "not JSON"}}
    agent.keep(100, "one", Status.RUNNING, AT)
    assert [each.record.status for each in reader.read()] == [Status.RUNNING]
    assert reader.facts()["fake"] == {"state": "read", "records": 1, "problems": {}}
    path.unlink()
    assert reader.read() == []


def test_a_folder_that_is_not_there_is_no_problem(agent: RecordingAgent, reader: RecordReader) -> None:
    """An older version keeps none; one that is no folder is a problem."""
    folder = agent.home / "records"
    shutil.rmtree(folder)
    assert reader.read() == [] and reader.state("fake") is Records.NONE
    folder.write_text("")
    assert reader.read() == [] and reader.state("fake") is Records.UNREADABLE
    assert reader.facts()["fake"] == {
        "state": "unreadable",
        "records": 0,
        "problems": {str(folder): "Not a directory"},
    }


def test_a_huge_folder_is_read_in_part_and_that_is_told(
    agent: RecordingAgent, reader: RecordReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest, whatever the order in which the system lists them."""
    monkeypatch.setattr(records, "MAX_RECORDS", 3)
    for number in range(2, 7):
        os.utime(agent.keep(number, "s", Status.IDLE, AT), (AT, AT + (number * 3) % 5))
    assert sorted(each.process.pid for each in reader.read()) == [3, 4, 6]
    reason = "5 files, of which the newest 3 are read"
    assert reader.facts()["fake"]["problems"] == {str(agent.home / "records"): reason}


def test_a_dangling_link_is_no_record(agent: RecordingAgent, reader: RecordReader) -> None:
    """Nor is it a problem: a file may vanish between two looks."""
    os.symlink("nowhere", agent.home / "records" / "9.json")
    assert reader.read() == [] and reader.facts()["fake"]["problems"] == {}
