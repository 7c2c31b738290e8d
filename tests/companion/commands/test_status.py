"""``status``: the contract's line per board, and who works on what."""

import json
from pathlib import Path

import pytest

from companion.commands.status import printable
from tests.companion.commands.conftest import MakeCard, Mdello


@pytest.fixture
def board(mdello: Mdello) -> Path:
    """A registered board with one card more than the welcome one."""
    folder = mdello.home / "board"
    assert mdello("board", "init", str(folder)).returncode == 0
    return folder


def uuid_of(mdello: Mdello) -> str:
    uuid: str = json.loads(mdello("board", "list", "--json").stdout)[0]["uuid"]
    return uuid


def test_without_boards_it_says_so(mdello: Mdello) -> None:
    """The contract's words, and success."""
    done = mdello("status", "surplus")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "No tracked boards."


def test_a_board_is_one_line_with_its_events(mdello: Mdello, board: Path, make_card: MakeCard) -> None:
    """History counts: two statuses of one session are two events."""
    path = make_card(board, "a.md", "uuid-a")
    mdello.start()
    mdello.report(path, "running")
    mdello.report(path, "waiting_for_input")
    lines = mdello("status").stdout.splitlines()
    assert lines[0] == f"{uuid_of(mdello)} {board}: 2 events"
    assert lines[1].split()[:6] == ["waiting", "for", "input", "a.md", "pi", "s-1"]
    assert "running at" in lines[-1]


def test_sessions_that_need_a_person_come_first(mdello: Mdello, board: Path, make_card: MakeCard) -> None:
    """Waiting, then ready for review, then running; closed ones are a number."""
    path = make_card(board, "a.md", "uuid-a")
    mdello.start()
    for session, status in (
        ("s-run", "running"),
        ("s-done", "ready_for_review"),
        ("s-ask", "waiting_for_input"),
        ("s-gone", "closed"),
    ):
        mdello.report(path, status, session)
    text = mdello("status").stdout
    assert text.index("s-ask") < text.index("s-done") < text.index("s-run")
    assert "s-gone" not in text and "1 closed" in text


def test_files_without_a_uuid_are_named_with_their_sessions(mdello: Mdello, board: Path) -> None:
    """Silence would be a lost link: the file, the reason, the session and the remedy."""
    plain = board / "plain.md"
    plain.write_text("# No head\n", encoding="utf-8")
    mdello.start()
    assert mdello.report(plain, "running") == {"ignored": True, "reason": "unknown_card"}
    text = mdello("status").stdout
    assert str(plain) in text and "pi s-1 running" in text and "board repair" in text


def test_what_cannot_be_read_is_said(mdello: Mdello, board: Path) -> None:
    """A board that is gone and damaged log lines are named, not hidden."""
    log = mdello.home / ".local" / "state" / "mdello" / "companion.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text("{torn\n", encoding="utf-8")
    board.rename(board.with_name("moved"))
    text = mdello("status").stdout
    assert f"Could not be read: {log}: 1 damaged line" in text
    assert f"Could not be read: {board}" in text


def test_json_is_complete_and_ascii(mdello: Mdello, board: Path, make_card: MakeCard) -> None:
    """For programs: every field, whatever the terminal's encoding."""
    make_card(board, "é.md", "uuid-e")
    mdello.start()
    mdello.report(board / "é.md", "running")
    done = mdello("status", "--json", LC_ALL="C", PYTHONUTF8="0")
    shown = json.loads(done.stdout)
    assert done.stdout.isascii()
    assert shown["companion"] == "ours"
    assert [each["cardUuid"] for each in shown["sessions"]] == ["uuid-e"]
    assert shown["boards"][0]["events"] == 1 and shown["problems"] == []


def test_foreign_names_cannot_move_the_cursor(mdello: Mdello, board: Path, make_card: MakeCard) -> None:
    """A session id with control characters is shown with escapes."""
    path = make_card(board, "a.md", "uuid-a")
    mdello.start()
    mdello.report(path, "running", "s\x1b[2J\n1")
    assert "s\\x1b[2J\\n1" in mdello("status").stdout
    assert printable("a\ud83db é") == "a\\ud83db é"


def test_sessions_of_a_board_that_was_removed_are_not_hidden(
    mdello: Mdello, board: Path, make_card: MakeCard
) -> None:
    """They are kept and shown until the board is back or they are purged."""
    path = make_card(board, "a.md", "uuid-a")
    mdello.start()
    mdello.report(path, "running")
    mdello("board", "remove", str(board))
    text = mdello("status").stdout
    assert text.startswith("No tracked boards.")
    assert "Not on a registered board" in text and "s-1" in text


def test_what_the_log_could_not_take_is_shown_all_the_same(
    mdello: Mdello, board: Path, make_card: MakeCard
) -> None:
    """A full or read-only disk: the running companion knows more than its log, and that is said."""
    path = make_card(board, "a.md", "uuid-a")
    log = mdello.home / ".local" / "state" / "mdello" / "companion.jsonl"
    log.mkdir(parents=True)  # No log can be written where a folder stands, not even by root.
    mdello.start()
    mdello.report(path, "running")
    mdello.report(path, "waiting_for_input")
    text = mdello("status").stdout
    assert "waiting for input a.md" in text and "2 events are in memory only" in text
    shown = json.loads(mdello("status", "--json").stdout)
    assert shown["unsaved"] == 2 and [each["sessionId"] for each in shown["sessions"]] == ["s-1"]
