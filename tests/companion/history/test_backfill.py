"""Replacement semantics: what stays, what is added, what is purged, and how it is counted."""

import errno
from dataclasses import replace
from pathlib import Path
from typing import Dict, Iterable, List, Optional, Tuple

import pytest

from adapters import claude
from adapters.contract import PastSession, Status
from companion.boards.cards import Card, Resolution, Scan
from companion.core.errors import CardReadError, StorageError
from companion.history.backfill import Cards, Counts, backfill, other_roots
from companion.sessions.association import Association
from companion.sessions.journal import association_journal

NOW = "2026-02-01T00:00:00.000Z"
ROOT = Path("/sessions")
THEN = "2026-01-15T12:00:00.000Z"
CARDS = {f"/{board}/{name}.md": Card(f"u-{name}", f"/{board}/{name}.md", f"b-{board}")
         for board, name in (("one", "a"), ("one", "b"), ("two", "c"), ("two", "d"))}  # fmt: skip


class Log:
    """A log in memory."""

    def __init__(self, *events: Association) -> None:
        self.events = list(events)

    def read(self) -> List[Association]:
        return list(self.events)

    def rewrite(self, records: Iterable[Association]) -> None:
        self.events = list(records)


class Finder:
    """Two boards; what cannot be read is told."""

    def __init__(
        self, cards: Optional[Dict[str, Card]] = None, problems: Tuple[Tuple[str, str], ...] = ()
    ) -> None:
        self.cards = CARDS if cards is None else cards
        self.problems = problems
        self.asked: List[str] = []

    def resolve(self, path: str) -> Resolution:
        self.asked.append(path)
        if path in dict(self.problems):
            raise CardReadError(dict(self.problems)[path])
        if path.endswith("/plain.md"):
            return Resolution(None, path)
        return Resolution(self.cards.get(path))

    def scan(self) -> Scan:
        by_uuid = {card.uuid: card for card in self.cards.values()}
        return Scan(by_uuid, not self.problems, self.problems)


def event(name: str, session: str = "s1", harness: str = "pi", status: Status = Status.CLOSED) -> Association:
    card = next(card for card in CARDS.values() if card.uuid == f"u-{name}")
    return Association(card.path, harness, session, status, THEN, card.board_uuid, card.uuid)


def past(session: str, *paths: str, at: Optional[str] = THEN, file: str = "/log") -> PastSession:
    return PastSession(session, file, at, paths)


def run(log: Log, *sessions: PastSession, finder: Optional[Finder] = None, any_boards: bool = True) -> Counts:
    return backfill("pi", sessions, log, Cards(finder or Finder()), NOW, [ROOT], any_boards)


def test_base_scenario() -> None:
    """Two boards, a live record, a stale one, one of another agent: exactly the contract's numbers."""
    other = event("a", "s9", harness="claude", status=Status.RUNNING)
    live = event("a", "s1", status=Status.RUNNING)
    stale = event("b", "s7")
    log = Log(live, stale, other)
    sessions = [past("s1", "/one/a.md", "/two/c.md"), past("s2", "/one/b.md", "/two/d.md", "/none.md")]
    assert run(log, *sessions) == Counts(2, 2, 4, added=3, existing=1, purged=1, kept=0)
    assert log.events[0] == other
    assert [(each.key, each.status) for each in log.events[1:]] == [
        (("u-a", "pi", "s1"), Status.RUNNING),
        (("u-c", "pi", "s1"), Status.CLOSED),
        (("u-b", "pi", "s2"), Status.CLOSED),
        (("u-d", "pi", "s2"), Status.CLOSED),
    ]
    before = list(log.events)
    assert run(log, *sessions) == Counts(2, 2, 4, added=0, existing=4, purged=0, kept=0)
    assert log.events == before


def test_history_of_other_agents_is_kept_in_full_and_in_order() -> None:
    """Several events of one key of another agent all stay, in front."""
    others = [event("a", "s9", "claude", status) for status in (Status.IDLE, Status.RUNNING, Status.CLOSED)]
    log = Log(others[0], event("a"), others[1], others[2])
    run(log, past("s1", "/one/a.md"))
    assert log.events[:3] == others
    assert len(log.events) == 4


def test_own_history_becomes_one_record() -> None:
    """The last event decides what the log knew."""
    log = Log(event("a", status=Status.RUNNING), event("a", status=Status.CLOSED))
    assert run(log, past("s1", "/one/a.md", at="2026-01-20T00:00:00.000Z")).existing == 1
    assert [(each.status, each.updated_at) for each in log.events] == [
        (Status.CLOSED, "2026-01-20T00:00:00.000Z")
    ]


@pytest.mark.parametrize(
    "status", [Status.IDLE, Status.RUNNING, Status.WAITING_FOR_INPUT, Status.READY_FOR_REVIEW]
)
def test_open_status_and_its_time_are_kept_with_the_new_file(status: Status) -> None:
    """A session that the log knows as open stays so."""
    log = Log(replace(event("a", status=status), session_file="/old"))
    run(log, past("s1", "/one/a.md", at="2026-01-20T00:00:00.000Z", file="/new"))
    assert log.events == [replace(event("a", status=status), session_file="/new")]


@pytest.mark.parametrize("at", [None, "", "zz", "2026"])
def test_session_without_usable_time_is_dated_now(at: Optional[str]) -> None:
    """What is no time does not get into the log."""
    log = Log()
    run(log, past("s1", "/one/a.md", at=at))
    assert log.events[0].updated_at == NOW


def test_sessions_without_id_or_cards_are_scanned_only() -> None:
    """Neither matched nor found."""
    log = Log()
    counts = run(log, past("", "/one/a.md"), past("s1"), past("s2", "/none.md"))
    assert counts == Counts(3, 0, 0, added=0, existing=0, purged=0, kept=0)
    assert log.events == []


def test_occurrences_are_found_each_and_added_once() -> None:
    """One session in two files: found twice, one record, dated and named by the newer file."""
    log = Log()
    old = past("s1", "/one/a.md", at="2026-01-10T00:00:00.000Z", file="/old")
    new = past("s1", "/one/a.md", at="2026-01-11T00:00:00.000Z", file="/new")
    assert run(log, new, old) == Counts(2, 2, 2, added=1, existing=0, purged=0, kept=0)
    assert (log.events[0].session_file, log.events[0].updated_at) == ("/new", new.updated_at)
    finder = Finder({**CARDS, "/one/../one/a.md": CARDS["/one/a.md"]})  # Two spellings in one session.
    twice = past("s1", "/one/a.md", "/one/../one/a.md")
    assert run(log, twice, finder=finder) == Counts(1, 1, 2, added=0, existing=1, purged=0, kept=0)


def test_moved_card_keeps_its_record() -> None:
    """The key is the card, not the path."""
    moved = replace(event("a", status=Status.IDLE), card_path="/elsewhere/x.md", board_uuid="b-old")
    log = Log(moved)
    assert run(log, past("s1", "/one/a.md")).existing == 1
    assert (log.events[0].card_path, log.events[0].board_uuid) == ("/one/a.md", "b-one")


def test_association_of_an_unavailable_board_is_kept() -> None:
    """A board that is gone for the moment costs no link; on cards that are seen they go as ever."""
    only_one = {path: card for path, card in CARDS.items() if path.startswith("/one/")}
    finder = Finder(only_one, (("/two", "No such file or directory"),))
    hidden = [event("c", "s8", status=Status.RUNNING), event("c", "s8", status=Status.IDLE)]
    other = event("c", "s9", harness="claude")
    log = Log(event("b", "s7"), *hidden, other)
    counts = run(log, past("s1", "/one/a.md", "/two/c.md"), finder=finder)
    assert counts == Counts(1, 1, 1, added=1, existing=0, purged=1, kept=1)
    assert log.events[:3] == [other, *hidden]
    assert log.events[3].card_uuid == "u-a"


def test_legacy_record_on_an_unavailable_board_is_kept_by_its_path() -> None:
    """Old lines have no uuids."""
    legacy = replace(event("c"), card_uuid="", board_uuid="")
    seen = replace(event("a", "s7"), card_uuid="", board_uuid="")
    only_one = {path: card for path, card in CARDS.items() if path.startswith("/one/")}
    log = Log(legacy, seen)
    counts = run(log, finder=Finder(only_one, (("/two", "Permission denied"),)))
    assert (counts.kept, counts.purged, log.events) == (1, 1, [legacy])


def test_without_boards_nothing_is_purged() -> None:
    """Nothing can be judged then."""
    log = Log(event("a", "s7"))
    counts = run(log, past("s1"), finder=Finder({}), any_boards=False)
    assert (counts.kept, counts.purged, log.events) == (1, 0, [event("a", "s7")])


def test_what_stood_in_the_way_is_remembered_and_asked_once() -> None:
    """Unreadable cards and files without a uuid are told; a path is looked up once."""
    finder = Finder(problems=(("/one/locked.md", "Permission denied"),))
    cards = Cards(finder)
    sessions = [past(name, "/one/locked.md", "/one/plain.md", "/one/a.md") for name in ("s1", "s2")]
    backfill("pi", sessions, Log(), cards, NOW, [ROOT], True)
    assert cards.unreadable == {"/one/locked.md": "Permission denied"}
    assert list(cards.without_uuid) == ["/one/plain.md"]
    assert finder.asked == ["/one/locked.md", "/one/plain.md", "/one/a.md"]


def test_a_session_that_is_still_there_loses_no_card() -> None:
    """Its file names the card by the place where it was then. Renamed, archived, reached through a link:
    all of it, and its whole history, stays; deleted cards are for the companion to drop."""
    moved = [event("a", "s1", status=status) for status in (Status.RUNNING, Status.READY_FOR_REVIEW)]
    unnamed, other, gone = event("b", "s2"), event("a", "s9", "claude"), event("a", "s3")
    log = Log(*moved, gone, other, unnamed)
    counts = run(log, past("s1", "/one/old name.md", "/two/c.md"), past("s2"))
    assert counts == Counts(scanned=2, matched=1, found=1, added=1, existing=2, purged=1, kept=0)
    assert log.events[:4] == [other, *moved, unnamed]
    assert [each.key for each in log.events[4:]] == [("u-c", "pi", "s1")]


def test_log_that_cannot_be_written_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk in the middle of the rewrite loses nothing."""
    path = tmp_path / "companion.jsonl"
    journal = association_journal(path)
    journal.append(event("b", "s7"))
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("companion.sessions.journal.write_atomically", full)
    with pytest.raises(StorageError):
        backfill("pi", [past("s1", "/one/a.md")], journal, Cards(Finder()), NOW, [ROOT], True)
    assert path.read_bytes() == before


def test_nothing_is_purged_while_there_may_be_more_sessions() -> None:
    """A store that could not be read: what is known of this agent stays; what was found is added."""
    log = Log(event("a", "gone"), event("b", "other", harness="claude"))
    session = PastSession("s1", "/s.jsonl", THEN, ("/two/c.md",))
    counts = backfill("pi", [session], log, Cards(Finder()), NOW, [ROOT], any_boards=True, all_read=False)
    assert (counts.added, counts.purged, counts.kept) == (1, 0, 1)
    assert [record.session_id for record in log.events] == ["other", "gone", "s1"]


def test_a_session_whose_file_is_in_another_folder_is_not_gone(tmp_path: Path) -> None:
    """The agent was told of that folder when it ran; this command was not."""
    root, other = tmp_path / "sessions", tmp_path / "sessions of work"
    for folder in (root, other):
        folder.mkdir()
        (folder / "here.jsonl").touch()
    (tmp_path / "link").symlink_to(root)
    files = {
        "gone": str(other / "gone.jsonl"),
        "kept": str(other / "here.jsonl"),
        "old": str(root / "here.jsonl"),  # There, but too old to have been read.
        "linked": str(tmp_path / "link" / "here.jsonl"),
        "relative": "here.jsonl",
        "odd": "/\0",
        "none": None,
    }
    log = Log(*(replace(event("a", name), session_file=file) for name, file in files.items()))
    counts = backfill("pi", [], log, Cards(Finder()), NOW, [root], any_boards=True)
    assert [each.session_id for each in log.events] == ["kept"]
    assert (counts.kept, counts.purged) == (1, 6)


def test_folders_in_which_known_sessions_lie(tmp_path: Path) -> None:
    """Of this agent, each once, and only while they are there."""
    for name in ("one", "two"):
        (tmp_path / name / "projects").mkdir(parents=True)
    files = [tmp_path / name / "projects" / "p" / "s.jsonl" for name in ("two", "one", "two", "gone")]
    known = [replace(event("a", "s", "claude"), session_file=str(file)) for file in files]
    strange = replace(event("a"), session_file=str(tmp_path / "two" / "projects" / "p" / "x.jsonl"))
    unnamed = event("a", "n", "claude")
    root = tmp_path / "one" / "projects"
    found = other_roots(claude.folders_of, "claude", [*known, strange, unnamed], root)
    assert found == [tmp_path / "two" / "projects"]
    assert other_roots(claude.folders_of, "claude", [strange], root) == []
