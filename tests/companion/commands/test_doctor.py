"""``doctor`` as a whole: what a person sees on a new machine, on a good one and on a broken one."""

import json
from pathlib import Path
from typing import Any, List, Tuple

from companion.commands import doctor
from companion.commands.checks.finding import ok, unknown, wrong


def marks(text: str) -> List[Tuple[str, str]]:
    """(mark, text) of every finding's line."""
    lines = [line for line in text.splitlines() if line[2:4] in ("ok", "!!", "??")]
    return [(line[2:4], line[6:]) for line in lines]


def make_board(mdello: Any) -> Path:
    """An empty registered board."""
    board: Path = mdello.home / "board"
    board.mkdir()
    config = mdello.home / ".config" / "mdello" / "companion.json"
    config.parent.mkdir(parents=True)
    entry = {"uuid": "board-1", "path": str(board), "updatedAt": "2026-03-01T10:00:00.000Z"}
    config.write_text(json.dumps({"boards": [entry]}))
    return board


def test_on_a_new_machine_nothing_is_wrong_and_the_next_steps_are_told(mdello: Any, tmp_path: Path) -> None:
    """No board, no server, not connected: each with the command that changes it. Nothing is written."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("claude", "pi"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    done = mdello("doctor", PATH=str(programs))
    assert (done.returncode, done.stderr) == (0, "")
    for command in ("serve", "board init DIR", "install claude", "install pi"):
        assert f"mdello.pyz {command}" in done.stdout
    assert "OpenCode: not found on this machine" in done.stdout
    assert not [text for mark, text in marks(done.stdout) if mark == "!!"]
    assert list(mdello.home.iterdir()) == []


def test_on_a_working_machine_every_part_is_ok(mdello: Any, make_card: Any) -> None:
    """Board, port and integration are well, and the last event is told with its age."""
    board = make_board(mdello)
    make_card(board, "a.md", "uuid-a")
    mdello("install", "claude")
    mdello.start()
    before = mdello("doctor")
    assert "no event ever received" in before.stdout
    mdello.ask(
        "POST", "/hooks/claude", {"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"}
    )
    mdello.ask("POST", "/hooks/claude", {"hook_event_name": "Strange", "session_id": "s"})
    done = mdello("doctor")
    assert done.returncode == 0, done.stdout
    assert "last event " in done.stdout and ": Strange (2 since" in done.stdout
    assert "does not know: Strange (1)" in done.stdout
    assert [mark for mark, text in marks(done.stdout) if str(board) in text] == ["ok"]
    assert [mark for mark, text in marks(done.stdout) if text.startswith("Running on port")] == ["ok"]


def test_a_client_is_at_work_when_its_reports_arrive(mdello: Any, make_card: Any) -> None:
    """Never, then the age of the last; a client that is gone or outdated is wrong."""
    board = make_board(mdello)
    card = make_card(board, "a.md", "uuid-a")
    mdello("install", "pi")
    mdello.start()
    assert "Pi: no report ever received" in mdello("doctor").stdout
    mdello.report(card, "running")
    done = mdello("doctor")
    assert done.returncode == 0 and "Pi: last report " in done.stdout
    client = mdello.home / ".local" / "share" / "mdello" / "clients" / "pi.js"
    client.write_bytes(client.read_bytes() + b"// older\n")
    done = mdello("doctor")
    assert done.returncode == 1 and "out of date" in done.stdout
    client.unlink()
    assert "which is gone" in mdello("doctor").stdout


def test_what_is_wrong_is_marked_and_makes_exit_1(mdello: Any) -> None:
    """A board that is gone, a plugin folder of somebody else's, a broken configuration."""
    board = make_board(mdello)
    board.rename(mdello.home / "elsewhere")
    (mdello.home / ".claude" / "skills" / "mdello-companion").mkdir(parents=True)
    done = mdello("doctor")
    assert done.returncode == 1
    said = [text for mark, text in marks(done.stdout) if mark == "!!"]
    assert any(str(board) in text for text in said)
    assert any("is not ours" in text for text in said)
    (mdello.home / ".config" / "mdello" / "companion.json").write_text("{")
    done = mdello("doctor")
    assert done.returncode == 1 and "companion.json" in done.stdout


def test_json_has_the_same_findings(mdello: Any) -> None:
    """For programs: ``ok`` and a list, whose states are ok, wrong and unknown."""
    done = mdello("doctor", "--json", "surplus")
    told = json.loads(done.stdout)
    assert told["ok"] is True and done.returncode == 0
    assert {each["section"] for each in told["findings"]} == {
        "Program",
        "Companion",
        "Boards",
        "Files",
        "Integrations",
    }
    assert {each["state"] for each in told["findings"]} <= {"ok", "wrong", "unknown"}
    assert all(set(each) == {"section", "state", "text", "hint"} for each in told["findings"])


def test_a_file_without_uuid_is_named_with_what_to_do(mdello: Any) -> None:
    """And so is the session that waits for it."""
    board = make_board(mdello)
    plain = board / "plain.md"
    plain.write_text("# No head\n", encoding="utf-8")
    mdello.start()
    mdello.report(plain, "ready_for_review")
    done = mdello("doctor")
    assert done.returncode == 0
    told = [text for mark, text in marks(done.stdout) if mark == "??" and str(plain) in text]
    assert len(told) == 2 and any("s-1" in text for text in told)
    assert "board repair" in done.stdout


def test_the_report_is_laid_out_by_sections() -> None:
    """Marks, hints and the closing line."""
    findings = [ok("A", "one"), wrong("A", "two", "do this"), unknown("B", "three")]
    assert doctor.as_text(findings).splitlines() == [
        "A",
        "  ok  one",
        "  !!  two",
        "      -> do this",
        "",
        "B",
        "  ??  three",
        "",
        "Wrong: 1. See the lines marked !!",
    ]
    assert doctor.as_text([unknown("B", "three")]).endswith("Nothing is wrong.")
    assert doctor.as_json(findings)["ok"] is False


def test_it_runs_without_a_home_that_can_be_used(mdello: Any, tmp_path: Path) -> None:
    """No traceback; what cannot be written is said."""
    (tmp_path / "file").touch()
    done = mdello("doctor", HOME=str(tmp_path / "file" / "home"))
    assert done.returncode == 1 and done.stderr == ""
    assert "cannot be written" in done.stdout
