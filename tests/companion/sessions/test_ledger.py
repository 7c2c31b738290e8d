"""Recording, asking, forgetting: the contract's rules for associations."""

import json
import os
from pathlib import Path
from typing import Dict, List

import pytest

from adapters.contract import Status
from companion.core.errors import BadRequest, CardReadError, StorageError
from companion.core.hub import Hub
from companion.sessions.association import InvalidAssociation
from companion.sessions.ledger import Ledger
from tests.companion.sessions.world import (
    Clock,
    FakeBoards,
    body,
    event,
    frames,
    log_of,
    logged,
    make_ledger,
    short,
)


@pytest.fixture
def boards() -> FakeBoards:
    """Two boards; three cards, and a file without a uuid."""
    made = FakeBoards("b1", "b2")
    made.cards = {"/b1/a.md": "ca", "/b1/b.md": "cb", "/b2/c.md": "cc", "/b1/new.md": None}
    return made


@pytest.fixture
def hub() -> Hub:
    """The hub that the ledger tells."""
    return Hub("life")


@pytest.fixture
def ledger(tmp_path: Path, boards: FakeBoards, hub: Hub) -> Ledger:
    """An empty ledger over the boards."""
    return make_ledger(tmp_path, boards, hub)


# -- one report


def test_a_report_becomes_a_record_of_ours(ledger: Ledger, tmp_path: Path) -> None:
    """Place and time are the companion's, whatever the caller says; the log has the same record."""
    stored = ledger.ingest(
        body(
            "/b1/a.md",
            boardUuid="lie",
            cardUuid=7,
            cardPath=None,
            updatedAt=None,
            herdrTab="x",
            sessionFile="/f.jsonl",
        )
    )
    assert stored is not None
    assert stored.to_json() == {
        "boardUuid": "b1",
        "cardUuid": "ca",
        "cardPath": "/b1/a.md",
        "harness": "pi",
        "sessionId": "s1",
        "sessionFile": "/f.jsonl",
        "status": "running",
        "updatedAt": stored.updated_at,
    }
    assert stored.updated_at.startswith("2026-") and stored.updated_at.endswith("Z")
    assert logged(tmp_path) == [stored]
    assert ledger.associations() == [stored.to_json()]


@pytest.mark.parametrize(
    "odd",
    [
        [],
        ["/b1/a.md"],
        "text",
        7,
        True,
        {},
        {"markdownPath": "/elsewhere/x.md"},
        {"markdownPath": "/b1/none.md"},
        {"markdownPath": "", "cardPath": "/b1/a.md"},
        {"markdownPath": 7, "cardPath": "/b1/a.md"},
        {"markdownPath": False, "cardPath": "/b1/a.md"},
        {"cardPath": None},
        {"markdownPath": "/b1/new.md", "status": "nonsense"},
    ],
)
def test_what_names_no_card_is_an_unknown_card(ledger: Ledger, odd: object, tmp_path: Path) -> None:
    """Whatever the other fields hold, and whatever JSON it is but null."""
    assert ledger.ingest(odd) is None
    assert ledger.associations() == [] and logged(tmp_path) == []


def test_null_is_invalid(ledger: Ledger) -> None:
    """The one JSON value that is neither a report nor an unknown card."""
    with pytest.raises(InvalidAssociation):
        ledger.ingest(None)


@pytest.mark.parametrize("path", [{"markdownPath": None, "cardPath": "/b1/a.md"}, {"cardPath": "/b1/a.md"}])
def test_card_path_counts_when_markdown_path_is_null_or_absent(
    ledger: Ledger, path: Dict[str, object]
) -> None:
    """The web client posts whole associations."""
    assert ledger.ingest({**path, "sessionId": "s", "status": "idle"}) is not None


@pytest.mark.parametrize(
    "wrong",
    [
        {"sessionId": ""},
        {"sessionId": 5},
        {"sessionId": None},
        {"harness": ""},
        {"harness": 5},
        {"status": "busy"},
        {"status": None},
        {"sessionFile": None},
        {"sessionFile": 5},
    ],
)
def test_a_known_card_with_a_bad_field_is_invalid(
    ledger: Ledger, wrong: Dict[str, object], tmp_path: Path
) -> None:
    """Nothing is stored then."""
    with pytest.raises(InvalidAssociation):
        ledger.ingest({**body("/b1/a.md"), **wrong})
    assert logged(tmp_path) == []


@pytest.mark.parametrize(
    ("sent", "stored"), [("active", "idle"), ("inactive", "closed"), ("ready_for_review", "ready_for_review")]
)
def test_legacy_statuses_are_translated(ledger: Ledger, sent: str, stored: str) -> None:
    """Older clients speak of active and inactive."""
    record = ledger.ingest(body("/b1/a.md", status=sent))
    assert record is not None and record.status.value == stored


@pytest.mark.parametrize("harness", [{}, {"harness": None}])
def test_a_missing_harness_is_unknown(ledger: Ledger, harness: Dict[str, object]) -> None:
    """Absent and null alike."""
    record = ledger.ingest({"markdownPath": "/b1/a.md", "sessionId": "s", "status": "idle", **harness})
    assert record is not None and record.harness == "unknown"


def test_an_equal_report_gives_the_old_record_and_is_not_told(
    ledger: Ledger, hub: Hub, tmp_path: Path
) -> None:
    """Nothing is appended, nothing is broadcast, the old time stands."""
    first = ledger.ingest(body("/b1/a.md"))
    listener = ledger.subscribe("b1", None, lambda: None)
    listener.take(0)
    again = ledger.ingest(dict(reversed(list(body("/b1/a.md").items()))))
    assert again is first
    assert frames(listener) == []
    assert len(logged(tmp_path)) == 1


def test_a_session_file_is_kept_and_its_first_mention_is_a_change(ledger: Ledger, tmp_path: Path) -> None:
    """Seen once it stays, also when a later report has none or an empty one."""
    ledger.ingest(body("/b1/a.md"))
    ledger.ingest(body("/b1/a.md", sessionFile="/f"))
    ledger.ingest(body("/b1/a.md", sessionFile="/f"))
    assert len(logged(tmp_path)) == 2
    ledger.ingest(body("/b1/a.md", sessionFile=""))
    assert len(logged(tmp_path)) == 2
    changed = ledger.ingest(body("/b1/a.md", status="closed"))
    assert changed is not None and changed.session_file == "/f"


def test_identity_is_card_harness_and_session(ledger: Ledger) -> None:
    """One session on two cards, two sessions on one card, two harnesses with one session id."""
    ledger.ingest(body("/b1/a.md"))
    ledger.ingest(body("/b1/b.md"))
    ledger.ingest(body("/b1/a.md", session="s2"))
    ledger.ingest(body("/b1/a.md", harness="opencode"))
    ledger.ingest(body("/b1/a.md", status="idle"))
    assert short(ledger.associations()) == [
        ("/b1/a.md", "s1", "idle"),
        ("/b1/b.md", "s1", "running"),
        ("/b1/a.md", "s2", "running"),
        ("/b1/a.md", "s1", "running"),
    ]


def test_an_unreadable_card_is_the_callers_error(ledger: Ledger, boards: FakeBoards) -> None:
    """The text is the operating system's, and it is counted."""
    boards.unreadable.add("/b1/a.md")
    with pytest.raises(CardReadError, match="Permission denied"):
        ledger.ingest(body("/b1/a.md"))
    assert _counts(ledger)["unreadableCards"] == 1


def test_odd_text_survives_log_and_broadcast(ledger: Ledger, tmp_path: Path) -> None:
    """A lone surrogate, a line separator and a quote in a session id."""
    listener = ledger.subscribe("b1", None, lambda: None)
    odd = 'a\ud83d\u2028"\n日'
    ledger.ingest(body("/b1/a.md", session=odd))
    assert logged(tmp_path)[0].session_id == odd
    name, data = frames(listener)[-1]
    assert name == "association" and isinstance(data, dict) and data["sessionId"] == odd


def _counts(ledger: Ledger) -> Dict[str, int]:
    counts = ledger.facts()["counts"]
    assert isinstance(counts, dict)
    return counts


# -- hook events


def test_a_status_without_paths_reaches_every_card_of_its_session(ledger: Ledger) -> None:
    """The prompt names two cards, the Stop none; the session file of the first event is kept."""
    event(ledger, Status.RUNNING, "/b1/a.md", "/b2/c.md", file="/t.jsonl")
    event(ledger, Status.IDLE, "/b1/a.md", session="other")
    event(ledger, Status.READY_FOR_REVIEW)
    assert short(ledger.associations()) == [
        ("/b1/a.md", "s1", "ready_for_review"),
        ("/b2/c.md", "s1", "ready_for_review"),
        ("/b1/a.md", "other", "idle"),
    ]
    assert [each.get("sessionFile") for each in ledger.associations()] == ["/t.jsonl", "/t.jsonl", None]


def test_found_cards_come_first_then_known_ones_each_once(ledger: Ledger, tmp_path: Path) -> None:
    """The order in the log is the order of recording."""
    event(ledger, Status.IDLE, "/b1/a.md", "/b1/b.md")
    event(ledger, Status.RUNNING, "/b2/c.md", "/nowhere/x.md", "/b1/b.md", "/b1/b.md")
    assert [each.card_uuid for each in logged(tmp_path)[2:]] == ["cc", "cb", "ca"]


def test_the_same_session_id_of_another_harness_is_another_session(ledger: Ledger) -> None:
    """Only the own harness's cards move."""
    ledger.ingest(body("/b1/a.md", session="s1", status="idle"))
    event(ledger, Status.RUNNING, "/b1/b.md")
    assert short(ledger.associations())[0] == ("/b1/a.md", "s1", "idle")


def test_an_unreadable_card_does_not_stop_the_others(ledger: Ledger, boards: FakeBoards) -> None:
    """Cards before and after it are recorded, then its error is raised."""
    boards.unreadable.add("/b1/b.md")
    with pytest.raises(CardReadError):
        event(ledger, Status.RUNNING, "/b1/a.md", "/b1/b.md", "/b1/b.md", "/b2/c.md")
    assert [each["cardUuid"] for each in ledger.associations()] == ["ca", "cc"]
    counts = ledger.facts()["counts"]
    assert isinstance(counts, dict) and counts["unreadableCards"] == 1, "it is looked at once"


@pytest.mark.parametrize("why", ["renamed", "gone", "board away", "replaced by another card"])
def test_a_known_card_that_is_not_at_its_place_keeps_the_sessions_status(
    ledger: Ledger, boards: FakeBoards, why: str
) -> None:
    """The status is the session's; a card that took the place is not linked."""
    event(ledger, Status.RUNNING, "/b1/a.md")
    if why == "renamed":
        boards.cards["/b1/z.md"] = boards.cards.pop("/b1/a.md")
    elif why == "gone":
        del boards.cards["/b1/a.md"]
    elif why == "board away":
        boards.unreadable.add("/b1")
    else:
        boards.cards["/b1/a.md"] = "another"
    event(ledger, Status.READY_FOR_REVIEW)
    assert [(each["cardUuid"], each["status"]) for each in ledger.associations()] == [
        ("ca", "ready_for_review")
    ]


# -- asking


def test_each_filter_counts_alone_and_both_together(ledger: Ledger) -> None:
    """By board, by card, by both; an unknown value finds nothing."""
    for path in ("/b1/a.md", "/b1/b.md", "/b2/c.md"):
        ledger.ingest(body(path))

    def cards(board: str, card: str) -> List[object]:
        return [each["cardUuid"] for each in ledger.associations(board, card)]

    assert cards("", "") == ["ca", "cb", "cc"]
    assert cards("b1", "") == ["ca", "cb"]
    assert cards("", "cb") == ["cb"]
    assert cards("b1", "cb") == ["cb"]
    assert cards("b2", "cb") == cards("b9", "") == cards("", "zz") == []


def test_a_path_is_no_card_uuid(ledger: Ledger, tmp_path: Path, boards: FakeBoards) -> None:
    """A legacy record, which is told by its path, is not found by that path as a uuid."""
    ledger.close()
    legacy = {"cardPath": "/b1/a.md", "sessionId": "s", "status": "idle", "updatedAt": "t"}
    log_of(tmp_path).write_text(json.dumps(legacy) + "\n")
    fresh = make_ledger(tmp_path, boards)
    assert len(fresh.associations()) == 1
    assert fresh.associations(card_uuid="/b1/a.md") == []


def test_the_fold_of_the_log_is_the_state_after_a_restart(
    ledger: Ledger, tmp_path: Path, boards: FakeBoards
) -> None:
    """Same records, same order."""
    ledger.ingest(body("/b1/a.md"))
    ledger.ingest(body("/b1/b.md"))
    ledger.ingest(body("/b1/a.md", status="closed", sessionFile="/f"))
    before = ledger.associations()
    ledger.close()
    assert make_ledger(tmp_path, boards).associations() == before


def test_a_log_of_nothing_but_junk_is_an_empty_log(
    tmp_path: Path, boards: FakeBoards, ledger: Ledger
) -> None:
    """Nothing is held, and the next record is found again."""
    ledger.close()
    log_of(tmp_path).write_bytes(b'junk\n{"half": \n[]\n\xff\xfe\n{"status": "idle"}')
    fresh = make_ledger(tmp_path, boards)
    assert fresh.associations() == []
    fresh.ingest(body("/b1/a.md"))
    fresh.close()
    assert short(make_ledger(tmp_path, boards).associations()) == [("/b1/a.md", "s1", "running")]


def test_a_first_report_with_an_empty_session_file_is_taken(ledger: Ledger) -> None:
    """It is valid, names no file, and a real one that comes later takes its place for good."""
    assert ledger.ingest(body("/b1/a.md", sessionFile="")) is not None
    ledger.ingest(body("/b1/a.md", sessionFile="/f"))
    ledger.ingest(body("/b1/a.md", sessionFile="", status="closed"))
    assert ledger.associations()[0]["sessionFile"] == "/f"


# -- forgetting


def test_a_card_is_expunged_with_all_its_events_on_all_boards(ledger: Ledger, tmp_path: Path) -> None:
    """The number is that of events, not of associations."""
    ledger.ingest(body("/b1/a.md"))
    ledger.ingest(body("/b1/a.md", status="idle"))
    ledger.ingest(body("/b1/a.md", session="s2"))
    ledger.ingest(body("/b1/b.md"))
    assert ledger.forget("ca", "", "") == 3
    assert [each["cardUuid"] for each in ledger.associations()] == ["cb"]
    assert [each.card_uuid for each in logged(tmp_path)] == ["cb"]
    assert ledger.forget("ca", "", "") == 0


def test_a_session_is_forgotten_everywhere_but_not_its_namesake(ledger: Ledger, tmp_path: Path) -> None:
    """Three events of one session go, another harness's session of that id stays."""
    ledger.ingest(body("/b1/a.md"))
    ledger.ingest(body("/b1/b.md"))
    ledger.ingest(body("/b2/c.md"))
    ledger.ingest(body("/b1/a.md", harness="claude"))
    assert ledger.forget("", "pi", "s1") == 3
    assert [(each.card_uuid, each.harness) for each in logged(tmp_path)] == [("ca", "claude")]
    assert [each["harness"] for each in ledger.associations()] == ["claude"]


def test_a_session_is_forgotten_on_one_card(ledger: Ledger) -> None:
    """It stays on its other cards, and so does the other harness's session on this one."""
    ledger.ingest(body("/b1/a.md"))
    ledger.ingest(body("/b1/b.md"))
    ledger.ingest(body("/b1/a.md", harness="claude"))
    assert ledger.forget("ca", "pi", "s1") == 1
    assert [(each["cardUuid"], each["harness"]) for each in ledger.associations()] == [
        ("cb", "pi"),
        ("ca", "claude"),
    ]


@pytest.mark.parametrize("selector", [("", "", ""), ("", "pi", ""), ("", "", "s1"), ("ca", "pi", "")])
def test_half_a_selector_is_refused(ledger: Ledger, selector: "tuple[str, str, str]") -> None:
    """Nothing is forgotten by mistake."""
    ledger.ingest(body("/b1/a.md"))
    with pytest.raises(BadRequest):
        ledger.forget(*selector)
    assert len(ledger.associations()) == 1


def test_forgetting_rewrites_the_log_even_when_nothing_matches(ledger: Ledger, tmp_path: Path) -> None:
    """Junk lines go with it."""
    ledger.ingest(body("/b1/a.md"))
    with log_of(tmp_path).open("ab") as file:
        file.write(b"junk\n")
    assert ledger.forget("none", "", "") == 0
    assert log_of(tmp_path).read_bytes().count(b"\n") == 1


def test_every_open_stream_gets_a_snapshot_after_forgetting(ledger: Ledger) -> None:
    """Of its own board, also when nothing was removed."""
    ledger.ingest(body("/b2/c.md"))
    one = ledger.subscribe("b1", None, lambda: None)
    two = ledger.subscribe("b2", None, lambda: None)
    one.take(0)
    two.take(0)
    ledger.forget("none", "", "")
    assert frames(one) == [("snapshot", [])]
    assert frames(two) == [("snapshot", ledger.associations("b2"))]


def test_when_the_log_cannot_be_rewritten_nothing_is_forgotten(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory and log still agree."""
    ledger.ingest(body("/b1/a.md"))

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("companion.sessions.journal.write_atomically", refuse)
    with pytest.raises(StorageError):
        ledger.forget("ca", "", "")
    assert len(ledger.associations()) == len(logged(tmp_path)) == 1


# -- listening


def test_a_listener_gets_a_snapshot_then_changes_of_its_board_only(ledger: Ledger) -> None:
    """Other boards and unchanged reports are not told."""
    first = ledger.ingest(body("/b1/a.md"))
    assert first is not None
    listener = ledger.subscribe("b1", None, lambda: None)
    assert frames(listener) == [("snapshot", [first.to_json()])]
    ledger.ingest(body("/b2/c.md"))
    ledger.ingest(body("/b1/a.md"))
    second = ledger.ingest(body("/b1/a.md", status="idle"))
    assert second is not None
    assert frames(listener) == [("association", second.to_json())]
    ledger.unsubscribe(listener)
    ledger.unsubscribe(listener)
    ledger.ingest(body("/b1/a.md", status="closed"))
    assert listener.closed and frames(listener) == []


def test_a_subscription_gives_every_open_stream_a_fresh_snapshot_first(ledger: Ledger) -> None:
    """Streams of all boards; the new one gets exactly its own."""
    one = ledger.subscribe("b1", None, lambda: None)
    two = ledger.subscribe("b2", None, lambda: None)
    assert [name for name, _ in frames(one)] == ["snapshot", "snapshot"]
    three = ledger.subscribe("b1", None, lambda: None)
    assert [name for name, _ in frames(one)] == ["snapshot"]
    assert [name for name, _ in frames(two)] == ["snapshot", "snapshot"]
    assert [name for name, _ in frames(three)] == ["snapshot"]


def test_a_card_that_changes_boards_leaves_the_old_boards_page(ledger: Ledger, boards: FakeBoards) -> None:
    """The new board hears of the change, the old one gets its state without the card."""
    ledger.ingest(body("/b1/a.md"))
    old = ledger.subscribe("b1", None, lambda: None)
    new = ledger.subscribe("b2", None, lambda: None)
    old.take(0)
    new.take(0)
    boards.cards["/b2/a.md"] = boards.cards.pop("/b1/a.md")
    ledger.ingest(body("/b2/a.md"))
    assert frames(old) == [("snapshot", [])]
    assert [name for name, _ in frames(new)] == ["association"]


# -- disks


def test_without_a_writable_disk_everything_works_from_memory(
    tmp_path: Path, boards: FakeBoards, caplog: pytest.LogCaptureFixture
) -> None:
    """Recording, telling, reconciling and forgetting; the problem is told, once in the log."""
    (tmp_path / "state").write_text("a file where the folder should be")
    ledger = make_ledger(tmp_path, boards)
    listener = ledger.subscribe("b1", None, lambda: None)
    for status in ("running", "idle"):
        ledger.ingest(body("/b1/a.md", status=status))
    ledger.ingest(body("/b1/b.md"))
    assert [name for name, _ in frames(listener)] == ["snapshot"] + ["association"] * 3
    assert ledger.facts()["problems"] and _counts(ledger)["unsaved"] == 3
    assert len([each for each in caplog.records if "Cannot write" in each.getMessage()]) <= 2
    ledger.reconcile()
    assert ledger.forget("ca", "", "") == 2
    assert [each["cardUuid"] for each in ledger.associations()] == ["cb"]
    (tmp_path / "state").unlink()
    ledger.ingest(body("/b1/b.md", status="idle"))
    assert [each.status.value for each in logged(tmp_path)] == ["running", "idle"]
    assert ledger.facts()["problems"] == []
    ledger.close()


@pytest.mark.parametrize("deed", ["delete", "truncate", "replace"])
def test_a_log_that_others_took_away_is_written_again(
    ledger: Ledger, tmp_path: Path, boards: FakeBoards, deed: str
) -> None:
    """Memory is the truth while we run: after the next record the log tells all of it."""
    ledger.ingest(body("/b1/a.md"))
    ledger.ingest(body("/b1/b.md"))
    if deed == "delete":
        log_of(tmp_path).unlink()
    elif deed == "truncate":
        os.truncate(log_of(tmp_path), 0)
    else:
        other = tmp_path / "other"
        other.write_text("junk\n")
        os.replace(other, log_of(tmp_path))
    ledger.reconcile()
    assert len(ledger.associations()) == 2
    ledger.ingest(body("/b2/c.md"))
    before = sorted(short(ledger.associations()))
    ledger.close()
    assert sorted(short(make_ledger(tmp_path, boards).associations())) == before


def test_records_that_others_append_are_taken_up_at_the_next_reconcile(
    ledger: Ledger, tmp_path: Path, boards: FakeBoards
) -> None:
    """But what we hold of a key already is newer to us."""
    ledger.ingest(body("/b1/a.md"))
    stranger = make_ledger(tmp_path, boards)
    stranger.ingest(body("/b1/a.md", status="closed"))
    stranger.ingest(body("/b1/b.md"))
    stranger.close()
    ledger.reconcile()
    assert short(ledger.associations()) == [("/b1/a.md", "s1", "running"), ("/b1/b.md", "s1", "running")]


def test_an_unreadable_log_is_told_and_read_when_it_can_be(tmp_path: Path, boards: FakeBoards) -> None:
    """Nothing of it is overwritten meanwhile."""
    made = make_ledger(tmp_path, boards)
    made.ingest(body("/b1/a.md"))
    made.close()
    aside = tmp_path / "aside"
    os.rename(log_of(tmp_path), aside)
    log_of(tmp_path).mkdir()
    ledger = make_ledger(tmp_path, boards)
    ledger.ingest(body("/b1/b.md"))
    ledger.reconcile()
    assert ledger.facts()["problems"]
    log_of(tmp_path).rmdir()
    os.rename(aside, log_of(tmp_path))
    ledger.reconcile()
    assert sorted(short(ledger.associations())) == [
        ("/b1/a.md", "s1", "running"),
        ("/b1/b.md", "s1", "running"),
    ]
    ledger.close()
    assert len(logged(tmp_path)) == 2


def test_a_log_full_of_history_is_shortened_on_load(
    tmp_path: Path, boards: FakeBoards, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state stays, in a fraction of the lines."""
    monkeypatch.setattr("companion.sessions.journal.KEEP_NEWEST", 5)
    ledger = make_ledger(tmp_path, boards)
    ledger.ingest(body("/b1/b.md"))
    for number in range(40):
        ledger.ingest(body("/b1/a.md", status="idle" if number % 2 else "running"))
    before = ledger.associations()
    ledger.close()
    monkeypatch.setattr("companion.sessions.lines.KEEP_NEWEST", 5)
    monkeypatch.setattr("companion.sessions.lines.compacted.__defaults__", (5,))
    again = make_ledger(tmp_path, boards)
    assert again.associations() == before
    assert len(logged(tmp_path)) == 6


def test_facts_are_numbers_and_texts(ledger: Ledger) -> None:
    """What the health report shows, fit for JSON."""
    ledger.ingest(body("/b1/a.md"))
    ledger.ingest(body("/b1/new.md"))
    facts = ledger.facts()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["withoutUuid"] == [{"path": "/b1/new.md", "harness": "pi", "status": "running"}]
    counts = _counts(ledger)
    assert (counts["associations"], counts["cards"], counts["sessions"], counts["pendingLinks"]) == (
        1,
        1,
        1,
        1,
    )


def test_times_never_run_backwards_within_one_key(tmp_path: Path, boards: FakeBoards) -> None:
    """Each record is stamped under the lock, in the order of the log."""
    clock = Clock()
    ledger = make_ledger(tmp_path, boards, now=clock)
    for number in range(10):
        ledger.ingest(body("/b1/a.md", status="idle" if number % 2 else "running"))
    times = [each.updated_at for each in logged(tmp_path)]
    assert times == sorted(times) and len(set(times)) == 10
