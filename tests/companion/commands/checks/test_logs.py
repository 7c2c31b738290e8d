"""Our own files: read without being written, damage counted, rights checked."""

import json
import os
from pathlib import Path
from typing import Dict, List, Optional

import pytest

from companion.commands.checks import logs
from companion.commands.checks.finding import Finding, State
from companion.core.settings import Settings, load


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Files below a home of the test's own."""
    return load({"HOME": str(tmp_path)})


def record(**changes: object) -> Dict[str, object]:
    """One valid line."""
    return {
        "boardUuid": "b",
        "cardUuid": "c",
        "cardPath": "/b/c.md",
        "harness": "pi",
        "sessionId": "s",
        "status": "idle",
        "updatedAt": "2026-03-01T10:00:00.000Z",
        **changes,
    }


def write(path: Path, *lines: object) -> None:
    """Lines as JSON; a text is taken as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts), encoding="utf-8")


def states(found: List[Finding], word: str) -> List[State]:
    """States of the lines that hold a word."""
    return [each.state for each in found if word in each.text]


def test_missing_files_are_fine_and_stay_missing(settings: Settings, tmp_path: Path) -> None:
    """Looking makes nothing."""
    found, newest = logs.check(settings)
    assert {each.state for each in found} == {State.OK}
    assert newest == {}
    assert list(tmp_path.iterdir()) == []


def test_records_are_counted_and_damage_is_worth_a_look(settings: Settings) -> None:
    """A torn line harms nobody; the newest time of each agent is found; nothing is repaired."""
    write(
        settings.data_path,
        record(),
        record(updatedAt="2026-03-02T10:00:00.000Z"),
        "junk",
        record(harness="claude", updatedAt="2026-02-01T10:00:00.000Z"),
        '{"boardUuid": "b", "card',
    )
    before = settings.data_path.read_bytes()
    found, newest = logs.check(settings)
    assert states(found, "3 records") == [State.OK]
    assert states(found, "2 damaged lines") == [State.UNKNOWN]
    assert newest == {"pi": "2026-03-02T10:00:00.000Z", "claude": "2026-02-01T10:00:00.000Z"}
    assert settings.data_path.read_bytes() == before


def test_links_that_wait_for_a_uuid_are_named(settings: Settings) -> None:
    """With the file and the session; a session in the middle of a turn is left to settle."""
    waiting = record(status="running", cardPath="/b/new.md")
    del waiting["cardUuid"], waiting["boardUuid"]
    write(settings.pending_path, waiting)
    found, _ = logs.check(settings)
    (link,) = [each for each in found if "/b/new.md" in each.text]
    assert link.state is State.UNKNOWN and "pi session s" in link.text
    assert "settled" in link.hint and "board repair" in link.hint


def test_files_that_cannot_be_read_are_wrong(settings: Settings) -> None:
    """A folder in a file's place, and a pipe, which must not make us wait."""
    settings.data_path.mkdir(parents=True)
    os.mkfifo(settings.pending_path)
    settings.hook_state_path.mkdir()
    found, _ = logs.check(settings)
    for path in (settings.data_path, settings.pending_path, settings.hook_state_path):
        assert states(found, str(path)) == [State.WRONG]


def test_a_state_folder_that_cannot_be_written_is_wrong(tmp_path: Path) -> None:
    """Here because a file stands where a folder should be."""
    (tmp_path / "file").touch()
    found, _ = logs.check(load({"HOME": str(tmp_path / "file")}))
    assert states(found, "memory only") == [State.WRONG]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(None, []), (BlockingIOError(), []), (OSError(37, "No locks available"), [State.UNKNOWN])],
)
def test_a_disk_without_locks_is_told(
    answer: Optional[OSError], expected: List[State], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A held lock is a lock; the folder need not be there yet."""

    def flock(fd: int, how: int) -> None:
        if answer is not None:
            raise answer

    monkeypatch.setattr("fcntl.flock", flock)
    found, _ = logs.check(settings)
    assert states(found, "locks do not work") == expected
