"""Links to files without a uuid: remembered, bounded, read by commands."""

from dataclasses import replace
from pathlib import Path
from typing import List

import pytest

from adapters.contract import Status
from companion.core.errors import StorageError
from companion.sessions import pending as pending_module
from companion.sessions.association import Association
from companion.sessions.journal import association_journal
from companion.sessions.pending import PendingLinks, busy_on, read_links


def _event(
    number: int, path: str = "/b/new.md", session: str = "s", status: Status = Status.RUNNING
) -> Association:
    return Association(path, "claude", session, status, f"2026-01-01T00:00:{number:02d}.000Z")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where the links are kept."""
    return tmp_path / "pending.jsonl"


def test_a_link_keeps_its_history_across_restarts(log: Path) -> None:
    """Changes only; a session file once known stays."""
    links = PendingLinks(log)
    assert links.remember(replace(_event(1), session_file="/t"))
    assert not links.remember(_event(2))
    assert links.remember(_event(3, status=Status.READY_FOR_REVIEW))
    links.close()
    again = PendingLinks(log)
    again.load()
    [history] = again.of_path("/b/new.md")
    assert [(each.status, each.updated_at[-7:-1]) for each in history] == [
        (Status.RUNNING, "01.000"),
        (Status.READY_FOR_REVIEW, "03.000"),
    ]
    assert history[-1].session_file == "/t"
    assert again.paths() == ["/b/new.md"] and len(again) == 1


def test_links_are_found_by_path_and_by_session(log: Path) -> None:
    """Two sessions on one file, one session on two files."""
    links = PendingLinks(log)
    links.remember(_event(1))
    links.remember(_event(2, session="t"))
    links.remember(_event(3, path="/b/other.md"))
    assert len(links.of_path("/b/new.md")) == 2
    assert [each.card_path for each in links.of_session("claude", "s")] == ["/b/new.md", "/b/other.md"]
    links.drop_path("/b/new.md")
    assert links.paths() == ["/b/other.md"]
    links.drop_session("claude", "s")
    assert len(links) == 0 and log.read_bytes() == b""
    links.drop_session("claude", "s")


def test_links_and_their_histories_are_bounded(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest events of a link go, then the links that changed longest ago; all are counted."""
    monkeypatch.setattr(pending_module, "MAX_EVENTS_PER_LINK", 3)
    monkeypatch.setattr(pending_module, "MAX_LINKS", 2)
    links = PendingLinks(log)
    for number in range(8):
        links.remember(_event(number, status=Status.IDLE if number % 2 else Status.RUNNING))
    assert [each.updated_at[-7:-5] for each in links.of_path("/b/new.md")[0]] == ["05", "06", "07"]
    assert links.dropped == 5
    links.remember(_event(10, path="/b/two.md"))
    links.remember(_event(11, status=Status.CLOSED))
    links.remember(_event(12, path="/b/three.md"))
    assert sorted(links.paths()) == ["/b/new.md", "/b/three.md"]
    assert links.dropped == 7
    assert len(association_journal(log).read()) <= 2 * (4 + 2)


def test_an_overgrown_log_is_shortened_when_it_is_convenient(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a call that needs no lock; what is remembered between the order and the deed is kept."""
    monkeypatch.setattr(pending_module, "MAX_EVENTS_PER_LINK", 3)
    monkeypatch.setattr(pending_module, "MAX_LINKS", 2)
    links = PendingLinks(log)
    assert links.shortening() is None
    for number in range(20):
        links.remember(_event(number, status=Status.IDLE if number % 2 else Status.RUNNING))
    assert links.overgrown and len(association_journal(log).read()) == 20
    shorten = links.shortening()
    assert shorten is not None
    links.remember(_event(20, status=Status.CLOSED))
    assert shorten()
    assert [each.updated_at[-7:-5] for each in association_journal(log).read()] == ["17", "18", "19", "20"]
    assert not links.overgrown


def test_a_shortening_that_fails_is_tried_again(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the log was replaced between the order and the deed."""
    monkeypatch.setattr(PendingLinks, "overgrown", True)
    links = PendingLinks(log)
    links.remember(_event(1))
    shorten = links.shortening()
    assert shorten is not None
    log.unlink()
    assert not shorten()
    again = links.shortening()
    assert again is not None and again()


def test_all_histories_together_are_bounded(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However they are spread over links."""
    monkeypatch.setattr(pending_module, "MAX_EVENTS", 10)
    links = PendingLinks(log)
    for number in range(50):
        links.remember(_event(number, path=f"/b/{number % 7}.md", status=list(Status)[number % 5]))
    assert sum(len(history) for path in links.paths() for history in links.of_path(path)) <= 10


def test_an_unreadable_log_is_told_not_raised(log: Path) -> None:
    """The companion starts without the links."""
    log.mkdir()
    links = PendingLinks(log)
    links.load()
    assert len(links) == 0 and links.problem is not None
    assert links.remember(_event(1)) and links.unsaved == 1
    links.drop_path("/b/new.md")
    log.rmdir()
    links.flush()
    assert links.problem is None or links.unsaved == 0
    links.close()


def test_commands_read_links_without_a_server(log: Path) -> None:
    """Path, session, since when and in which status."""
    links = PendingLinks(log)
    links.remember(_event(1))
    links.remember(_event(2, status=Status.READY_FOR_REVIEW))
    links.remember(_event(3, session="t"))
    links.close()
    found = read_links(log)
    assert found == links.links()
    assert [(each.session_id, each.status, each.since[-7:-5], each.updated_at[-7:-5]) for each in found] == [
        ("s", Status.READY_FOR_REVIEW, "01", "02"),
        ("t", Status.RUNNING, "03", "03"),
    ]


@pytest.mark.parametrize(
    ("status", "busy"),
    [
        (Status.IDLE, False),
        (Status.RUNNING, True),
        (Status.WAITING_FOR_INPUT, True),
        (Status.READY_FOR_REVIEW, False),
        (Status.CLOSED, False),
    ],
)
def test_a_file_is_busy_while_a_session_is_in_the_middle_of_a_turn(
    log: Path, status: Status, busy: bool
) -> None:
    """Such a file is left alone by a repair."""
    links = PendingLinks(log)
    links.remember(_event(1, status=status))
    links.remember(_event(1, path="/b/other.md"))
    found = busy_on(read_links(log), "/b/new.md")
    assert [each.session_id for each in found] == (["s"] if busy else [])


def test_reading_a_missing_log_finds_nothing_and_a_broken_one_raises(log: Path) -> None:
    """A command can say so."""
    empty: List[object] = list(read_links(log))
    assert empty == [] and not log.exists()
    log.mkdir()
    with pytest.raises(StorageError):
        read_links(log)


def test_links_move_with_their_file(log: Path) -> None:
    """History, bounds and log agree; other files' links stay."""
    links = PendingLinks(log)
    links.remember(_event(1))
    links.remember(_event(2, status=Status.IDLE))
    links.remember(_event(3, path="/b/other.md"))
    links.move("/b/new.md", "/c/moved.md")
    links.move("/b/nothing.md", "/c/nowhere.md")
    assert sorted(links.paths()) == ["/b/other.md", "/c/moved.md"]
    [history] = links.of_path("/c/moved.md")
    assert [each.status for each in history] == [Status.RUNNING, Status.IDLE]
    assert sorted(each.path for each in read_links(log)) == ["/b/other.md", "/c/moved.md"]
