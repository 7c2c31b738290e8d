"""``explain``: the verdict on a session and what it rests on."""

import json
import os
from pathlib import Path
from typing import Dict, List

import pytest

from companion.commands.explain import choose, lines
from companion.core.errors import UsageError
from tests.companion.commands.conftest import MakeCard, Mdello

UUID = "3f6e0a52-1c7b-4e0e-9d55-0b8d4a1f2c3d"


@pytest.fixture
def card(mdello: Mdello, make_card: MakeCard) -> Path:
    """A card on a registered board, with a companion that serves it."""
    board = mdello.home / "board"
    assert mdello("board", "init", str(board)).returncode == 0
    path = make_card(board, "a.md", UUID)
    mdello.start()
    return Path(path)


def test_nobody_answers(mdello: Mdello) -> None:
    """The evidence is the companion's: how to start it is said."""
    done = mdello("explain")
    assert (done.returncode, done.stdout) == (1, "") and "mdello.pyz serve" in done.stderr


def test_without_sessions(mdello: Mdello, card: Path) -> None:
    """Nothing is open; whatever is asked for is not known."""
    assert mdello("explain").stdout == "No session is open.\n"
    for what in ("nobody", str(card), UUID, "pi:nobody", ""):
        done = mdello("explain", what)
        assert done.returncode == 1 and done.stderr.startswith("Neither a session nor a card")


def test_one_session_by_any_of_its_names(mdello: Mdello, card: Path) -> None:
    """Its id, the beginning, the agent's name in front; its card by path and by uuid."""
    mdello.report(card, "running", "session-one")
    mdello.report(card, "closed", "session-two")
    told = mdello("explain").stdout
    assert told.splitlines()[0] == "pi session-one: running" and "session-two" not in told
    assert "because as the agent said last (rule event," in told
    assert f"card: {card}" in told and "event report: running, " in told and " s ago" in told
    assert "Missing:" in told and "no process is known" in told
    for what in ("session-one", "session-o", "pi:session-one"):
        assert mdello("explain", what).stdout.splitlines()[0] == told.splitlines()[0]
    for what in (str(card), "board/a.md", "./board/../board/a.md", UUID):
        both = mdello("explain", what).stdout
        assert "pi session-one: running" in both and "pi session-two: closed" in both
    ambiguous = mdello("explain", "session-")
    assert ambiguous.returncode == 1 and "pi:session-one, pi:session-two" in ambiguous.stderr


def test_for_programs(mdello: Mdello, card: Path) -> None:
    """What the route answers, one entry for each session."""
    mdello.report(card, "running", "session-one")
    (told,) = json.loads(mdello("explain", "--json").stdout)["sessions"]
    assert (told["sessionId"], told["rule"], told["evidence"]["event"]["status"]) == (
        "session-one",
        "event",
        "running",
    )


def test_status_tells_the_reason_and_sessions_without_a_card(mdello: Mdello, card: Path) -> None:
    """Where the companion runs; one more request."""
    mdello.report(card, "running", "session-one")
    mdello.report(Path("/nowhere.md"), "waiting_for_input", "session-two")
    text = mdello("status").stdout
    (line,) = [each for each in text.splitlines() if "session-one" in each]
    assert line.endswith("(as the agent said last)")
    below = text.splitlines()[text.splitlines().index("Without a card:") + 1]
    assert below.split()[:5] == ["waiting", "for", "input", "pi", "session-two"]
    watched = json.loads(mdello("status", "--json").stdout)["watched"]
    assert [each["sessionId"] for each in watched] == ["session-two", "session-one"]


def test_status_tells_what_the_companion_cannot_read(mdello: Mdello, card: Path) -> None:
    """Where an agent's own records have another form by now, nothing may look like rest."""
    records = mdello.home / ".claude" / "sessions"
    records.mkdir(parents=True)
    (records / "4242.json").write_text("[not a record")
    for _ in range(100):
        text = mdello("status").stdout
        if "4242.json" in text:
            break
    assert (
        f"The companion says: None of claude's own records of its processes could be read: {records}" in text
    )


def row(harness: str, session: str, path: str = "") -> Dict[str, object]:
    """A session as the companion tells it."""
    cards = [{"cardPath": path, "cardUuid": UUID}] if path else []
    return {"harness": harness, "sessionId": session, "cards": cards}


def test_who_is_meant(tmp_path: Path) -> None:
    """A whole id before a beginning, an agent's name in front only if there is such an agent."""
    rows: List[Dict[str, object]] = [
        row("pi", "abcd"),
        row("pi", "abcde"),
        row("claude", "abcd"),
        row("pi", "a:b"),
    ]
    assert choose([*rows], "abcd", "/") == [rows[0], rows[2]]
    assert choose([*rows], "claude:abcd", "/") == [rows[2]]
    assert choose([*rows], "a:b", "/") == [rows[3]]
    assert choose([*rows], "abcde", "/") == [rows[1]]
    for what in ("abc", "x", "claude:x", "/b/a.md"):
        with pytest.raises(UsageError):
            choose([*rows], what, "/")


def test_a_card_through_a_link(tmp_path: Path) -> None:
    """The board may be registered under another name than the one that is typed."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.md").touch()
    os.symlink("real", tmp_path / "link")
    found = row("pi", "s", str(tmp_path / "link" / "a.md"))
    assert choose([found], "real/a.md", str(tmp_path)) == [found]
    assert choose([found], "link/a.md", str(tmp_path)) == [found]


def test_all_evidence_is_laid_out() -> None:
    """With ages in units that people use; control characters of foreign texts are shown, not sent."""
    told = {
        "harness": "claude",
        "sessionId": "s\x1b[2J",
        "status": "ready_for_review",
        "reason": "its file ends with an interruption",
        "rule": "file_interrupted",
        "sure": "certain",
        "since": "2026-01-01T00:00:00.000Z",
        "project": "/p",
        "cwd": "/p",
        "sessionFile": "/f",
        "evidence": {
            "event": {"name": "Stop", "status": "running", "paused": True, "ageSeconds": 3.5},
            "processes": [
                {
                    "pid": 7,
                    "life": "alive",
                    "ageSeconds": 0.2,
                    "record": {"status": None, "said": "", "ageSeconds": None},
                }
            ],
            "file": {"mark": "interrupted", "said": "", "ageSeconds": 7300},
        },
        "contradicts": ["this"],
        "missing": [],
    }
    assert lines(told) == [
        "claude s\\x1b[2J: ready for review",
        "  because its file ends with an interruption (rule file_interrupted, certain)",
        "  since 2026-01-01T00:00:00.000Z",
        "  project: /p",
        "  file: /f",
        "  Evidence:",
        "    event Stop: running, its own agents go on, 3.5 s ago",
        "    process 7: alive, looked at 0.2 s ago",
        "    the agent's record of it: nothing, at an unknown time",
        "    its file ends with interrupted, 2 h ago",
        "  Speaks against it:",
        "    this",
    ]
    assert lines({})[-1] == "    none"
