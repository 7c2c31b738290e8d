"""``backfill`` from the command line: its output, its refusals, its manners at a terminal."""

import argparse
import json
import os
import pty
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, NoReturn, Tuple

import pytest

from adapters.contract import Adapter, AdapterError
from companion.commands import backfill
from companion.commands.backfill import SHOWN_LINES
from companion.core.settings import Settings
from tests.adapters.opencode.stores import BOARD, NOW_MS, Made, files_of, left_by, text
from tests.conftest import ROOT


class Place:
    """A home with one board, some transcripts and a log."""

    def __init__(self, folder: Path, port: int) -> None:
        self.home = folder / "home of d\u00e9v"
        self.board = folder / "my board"
        self.sessions = self.home / ".claude/projects/-p"
        self.log = self.home / ".local/state/mdello/companion.jsonl"
        self.port = port
        self.environ = {
            "HOME": str(self.home),
            "MDELLO_COMPANION_PORT": str(port),
            "PATH": os.environ.get("PATH", os.defpath),
        }
        for path in (self.board, self.sessions, self.log.parent, self.home / ".config/mdello"):
            path.mkdir(parents=True)
        boards = [{"uuid": "b-1", "path": str(self.board), "updatedAt": "2026-01-01T00:00:00.000Z"}]
        self.config = self.home / ".config/mdello/companion.json"
        self.config.write_text(json.dumps({"boards": boards}))

    def card(self, name: str, uuid: str = "") -> Path:
        path = self.board / f"{name}.md"
        path.write_text(f"---\nuuid: {uuid}\n---\n" if uuid else "# no head\n")
        return path

    def session(self, name: str, *texts: str, stamp: str = "2026-01-02T00:00:00.000Z") -> Path:
        path = self.sessions / f"{name}.jsonl"
        lines = [
            {
                "type": "user",
                "message": {"role": "user", "content": text},
                "timestamp": stamp,
                "sessionId": name,
            }
            for text in texts
        ]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    def record(self, **fields: str) -> None:
        record = {
            "boardUuid": "b-1",
            "harness": "claude",
            "status": "closed",
            "updatedAt": "2026-01-01T00:00:00.000Z",
        }
        with self.log.open("a") as log:
            log.write(json.dumps({**record, **fields}) + "\n")

    def records(self) -> List[Dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def run(self, *arguments: str, **more: str) -> Tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, str(ROOT / "mdello.py"), "backfill", *arguments],
            env={**self.environ, **more},
            cwd=self.home,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
        )
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def place(tmp_path: Path) -> Place:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return Place(tmp_path, free.getsockname()[1])


def test_backfill_tells_what_it_did_and_a_second_run_changes_nothing(place: Place) -> None:
    """The contract's words; the other agent's record first; the transcript's path and time."""
    card = place.card("one", "u-1")
    file = place.session("s-1", f"work on {card}")
    place.session("s-2", "nothing of ours")
    place.record(cardUuid="u-9", cardPath="/gone/x.md", sessionId="old")
    place.record(cardUuid="u-1", cardPath=str(card), sessionId="p", harness="pi", status="running")
    code, out, err = place.run("claude")
    assert (code, err) == (0, "")
    assert out == (
        "claude: scanned 2 sessions, found 1 association in 1 session. "
        "Added 1; 0 already existed, 1 stale purged.\n"
    )
    assert [record["harness"] for record in place.records()] == ["pi", "claude"]
    assert place.records()[1] == {
        "boardUuid": "b-1",
        "cardUuid": "u-1",
        "cardPath": str(card),
        "harness": "claude",
        "sessionId": "s-1",
        "sessionFile": str(file),
        "status": "closed",
        "updatedAt": "2026-01-02T00:00:00.000Z",
    }
    before = place.log.read_bytes()
    code, out, _ = place.run("claude")
    assert "Added 0; 1 already existed, 0 stale purged." in out
    assert place.log.read_bytes() == before


def test_held_port_is_refused_and_nothing_touched(place: Place) -> None:
    """The message names the port and the log."""
    place.session("s-1", f"work on {place.card('one', 'u-1')}")
    place.record(cardUuid="u-9", cardPath="/gone/x.md", sessionId="old")
    before = place.log.read_bytes()
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", place.port))
        holder.listen()
        code, out, err = place.run("claude")
    assert (code, out) == (1, "")
    assert str(place.port) in err
    assert str(place.log) in err
    assert place.log.read_bytes() == before


def test_held_port_ends_it_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A companion at work is not even disturbed by our reading."""
    monkeypatch.setattr(backfill, "is_held", lambda port: True)
    monkeypatch.setattr(backfill, "backfill_agent", None)
    monkeypatch.setenv("MDELLO_COMPANION_PORT", "4567")
    assert backfill.run(argparse.Namespace(agents=[], json=False)) == 1
    out, err = capsys.readouterr()
    assert out == "" and "4567" in err


def test_the_port_is_tried_for_a_quarter_of_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """The contract's limit: a host that drops packets holds nobody up."""
    asked: List[Any] = []

    def refuse(*arguments: Any) -> NoReturn:
        asked.append(arguments)
        raise socket.timeout

    monkeypatch.setattr(socket, "create_connection", refuse)
    assert not backfill.is_held(4567)
    assert asked == [(("127.0.0.1", 4567), 0.25)]


def test_companion_that_starts_meanwhile_keeps_its_log(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It holds the port by the time that everything is read: the log is its own now."""
    place.session("s-1", f"work on {place.card('one', 'u-1')}")
    place.record(cardUuid="u-9", cardPath="/gone/x.md", sessionId="old")
    before = place.log.read_bytes()
    answers = iter([False, True])
    monkeypatch.setattr(backfill, "is_held", lambda port: next(answers))
    for name, value in place.environ.items():
        monkeypatch.setenv(name, value)
    assert backfill.run(argparse.Namespace(agents=["claude"], json=False)) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("claude: ") and str(place.port) in err
    assert place.log.read_bytes() == before


@pytest.mark.parametrize("arguments", [["cursor"], ["claude", "claude"], ["claude", "x"], ["--fast"]])
def test_wrong_call_is_told_before_the_port_is_looked_at(place: Place, arguments: List[str]) -> None:
    """Usage on stderr, a pointer to help, exit 1."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", place.port))
        holder.listen()
        code, out, err = place.run(*arguments)
    assert (code, out) == (1, "")
    assert err.startswith("Usage: mdello.pyz ")
    assert "backfill" in err
    assert "help" in err
    assert str(place.port) not in err


def test_json_tells_everything(place: Place) -> None:
    """Counts, unknown types, every file left out, cards without a uuid."""
    plain = place.card("plain")
    place.session("s-1", f"see {plain} and\n{place.card('one', 'u-1')}")
    bad = place.session("s-2", "hello")
    bad.write_text(bad.read_text() + '{"type":"new-thing"}\nhalf a line')
    (place.sessions / "agent-1.jsonl").write_text("{}\n")
    code, out, _ = place.run("claude", "--json")
    (told,) = json.loads(out)["harnesses"]
    assert code == 0
    assert told == {
        "harness": "claude",
        "scanned": 2,
        "matched": 1,
        "found": 1,
        "added": 1,
        "existing": 0,
        "purged": 0,
        "kept": 0,
        "withoutUuid": [str(plain)],
        "otherRoots": [],
        "records": 3,
        "damaged": 1,
        "damagedIn": {str(bad): 1},
        "incomplete": False,
        "alarm": False,
        "unknown": {"new-thing": 1},
        "skipped": [
            {
                "path": str(place.home / ".claude/projects"),
                "reason": "1 sub-agent logs: no sessions of their own",
            }
        ],
    }


def test_a_card_that_cannot_be_read_is_named(place: Place) -> None:
    """In words and in JSON."""
    os.mkfifo(place.board / "pipe.md")
    place.session("s", f"see {place.board}/pipe.md")
    (told,) = json.loads(place.run("claude", "--json")[1])["harnesses"]
    ((path, reason),) = [tuple(each.values()) for each in told["skipped"]]
    assert path == str(place.board / "pipe.md") and reason
    assert f"  Left out (1):\n    {path}: {reason}\n" in place.run("claude")[1]


def test_what_was_left_out_fits_a_screen(place: Place) -> None:
    """Many unreadable things are counted, some are named."""
    side = {
        "type": "user",
        "isSidechain": True,
        "sessionId": "s",
        "message": {"role": "user", "content": "x"},
    }
    for number in range(40):
        (place.sessions / f"{number}.jsonl").write_text(json.dumps(side) + "\n")
    place.session("s", "hello\x1b[31m")
    code, out, _ = place.run("claude")
    assert code == 0
    assert "Left out (40):" in out
    assert f"and {40 - SHOWN_LINES} more (--json shows all)" in out
    assert len(out.splitlines()) < 20


def test_store_named_by_its_variable(place: Place, tmp_path: Path) -> None:
    """The override of the contract; an absent store scans nothing and is said."""
    code, out, _ = place.run(CLAUDE_SESSIONS_DIR=str(tmp_path / "none"))
    assert code == 0
    assert out.startswith("claude: scanned 0 sessions, ")
    assert f"{tmp_path / 'none'}: No such file or directory" in out


@pytest.mark.parametrize("folder", ["-home-dev-My-Proj---x", "x", "\u65e5\u672c", "C--Users-x", "deep/er/-p"])
def test_folders_of_sessions_may_have_any_name(place: Place, folder: str) -> None:
    """Their names are lossy: where a session worked stands in its entries, and nowhere else."""
    place.card("one", "u-1")
    call = {"type": "tool_use", "id": "c", "name": "Write", "input": {"file_path": "one.md"}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "done"}
    path = place.home / ".claude/projects" / folder / "s-1.jsonl"
    path.parent.mkdir(parents=True)
    for role, block in (("assistant", call), ("user", result)):
        message = {"role": role, "content": [block]}
        entry = {"type": role, "sessionId": "s-1", "cwd": str(place.board), "message": message}
        with path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
    assert "Added 1;" in place.run()[1]
    assert place.records()[0]["sessionFile"] == str(path)


def test_old_file_is_outside_the_window(place: Place) -> None:
    """More than thirty days ago."""
    path = place.session("s-1", f"work on {place.card('one', 'u-1')}")
    old_s = time.time() - 31 * 24 * 60 * 60
    os.utime(path, (old_s, old_s))
    assert place.run()[1].startswith("claude: scanned 0 sessions, ")


def test_board_that_is_gone_costs_no_association(place: Place, tmp_path: Path) -> None:
    """An unmounted disk: kept, and said."""
    place.record(cardUuid="u-1", cardPath=str(place.board / "one.md"), sessionId="s-1")
    place.board.rename(tmp_path / "unmounted")
    code, out, _ = place.run()
    assert code == 0
    assert "Kept 1 association without a session: their cards or files cannot be judged now." in out
    assert len(place.records()) == 1


def test_unreadable_configuration_stops_it(place: Place) -> None:
    """Without the boards, everything would look stale."""
    place.config.write_text("{oops")
    place.record(cardUuid="u-1", cardPath="/x/one.md", sessionId="s-1")
    code, out, err = place.run()
    assert (code, out) == (1, "")
    assert str(place.config) in err
    assert len(place.records()) == 1


def test_without_a_board_nothing_is_lost(place: Place) -> None:
    """No board yet: sessions are counted, the log stays."""
    place.config.unlink()
    place.session("s-1", "work on /x/one.md")
    place.record(cardUuid="u-1", cardPath="/x/one.md", sessionId="s-1")
    code, out, _ = place.run()
    assert code == 0
    assert out.startswith("claude: scanned 1 session, found 0 associations")
    assert len(place.records()) == 1


def test_log_that_cannot_be_made_is_an_error(place: Place, tmp_path: Path) -> None:
    """Nothing is claimed that was not saved."""
    place.session("s-1", f"work on {place.card('one', 'u-1')}")
    (tmp_path / "file").write_text("")
    code, out, err = place.run("claude", MDELLO_COMPANION_DATA=str(tmp_path / "file/x/companion.jsonl"))
    assert (code, out) == (1, "")
    assert "companion.jsonl" in err


def test_progress_is_drawn_on_a_terminal_only(place: Place) -> None:
    """A bar on stderr while it works, wiped at the end; stdout stays clean."""
    place.session("s-1", "hello")
    terminal, its_end = pty.openpty()
    done = subprocess.run(
        [sys.executable, str(ROOT / "mdello.py"), "backfill"],
        env={**place.environ, "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=its_end,
        timeout=60,
    )
    os.close(its_end)
    drawn = os.read(terminal, 65536).decode()
    os.close(terminal)
    assert "Claude Code [" in drawn
    assert "1/1 files" in drawn
    assert drawn.endswith("\r")
    assert done.stdout.startswith(b"claude: scanned 1 session, ")


# --- all agents --------------------------------------------------------------------------------------


def pi_session(place: Place, name: str, *texts: str) -> Path:
    """A session of Pi's in its default place."""
    path = place.home / f".pi/agent/sessions/--p--/2026_{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    stamp = "2026-01-02T00:00:00.000Z"
    lines: List[Dict[str, Any]] = [{"type": "session", "id": name, "timestamp": stamp, "cwd": "/p"}]
    for words in texts:
        message = {"role": "user", "content": [{"type": "text", "text": words}]}
        lines.append({"type": "message", "timestamp": stamp, "message": message})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def opencode_session(place: Place, name: str, *texts: str) -> Path:
    """A session in OpenCode's database in its default place."""
    made = Made(place.home / ".local/share/opencode/opencode.db")
    made.session(name, int(time.time() * 1000))
    made.message(name, *(text(words) for words in texts))
    return made.close()


def codex_session(place: Place, name: str, text: str) -> Path:
    """A session of Codex in its default place."""
    file = place.home / f".codex/sessions/2026/01/02/rollout-2026-01-02T00-00-00-{name}.jsonl"
    item = {"type": "UserMessage", "content": [{"type": "text", "text": text}]}
    records = (("session_meta", {"id": name}), ("event_msg", {"type": "item_completed", "item": item}))
    file.parent.mkdir(parents=True)
    file.write_text(
        "".join(
            json.dumps({"timestamp": "2026-01-02T00:00:00.000Z", "type": kind, "payload": payload}) + "\n"
            for kind, payload in records
        )
    )
    return file


def test_all_agents_in_the_order_of_the_contract(place: Place) -> None:
    """claude, codex, opencode, pi; each its line; a second run adds nothing and purges nothing."""
    card = place.card("one", "u-1")
    place.session("c", f"work on {card}")
    rollout = codex_session(place, "x", f"work on {card}")
    database = opencode_session(place, "o", f'"work on {card}"')
    file = pi_session(place, "p", f"work on {card}")
    place.record(cardUuid="u-9", cardPath="/gone/x.md", sessionId="old", harness="pi")
    code, out, err = place.run()
    assert (code, err) == (0, "")
    line = "scanned 1 session, found 1 association in 1 session. Added 1; 0 already existed,"
    purged = (("claude", 0), ("codex", 0), ("opencode", 0), ("pi", 1))
    assert out.splitlines() == [f"{name}: {line} {count} stale purged." for name, count in purged]
    told = [(each["harness"], each["sessionId"], each["status"]) for each in place.records()]
    names = [("claude", "c"), ("codex", "x"), ("opencode", "o"), ("pi", "p")]
    assert told == [(*each, "closed") for each in names]
    assert [each["sessionFile"] for each in place.records()[1:]] == [str(rollout), str(database), str(file)]
    before = place.log.read_bytes()
    code, out, _ = place.run()
    assert out.count("Added 0; 1 already existed, 0 stale purged.") == 4
    assert place.log.read_bytes() == before


def test_failing_agent_does_not_stop_the_others(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told on stderr and by the exit code; in JSON, beside the others' counts."""
    real = backfill.backfill_agent

    def failing(adapter: Adapter, settings: Settings, bar: backfill.Bar) -> backfill.Result:
        if adapter.NAME == "opencode":
            raise AdapterError("file is nothing we know", Path("/x/opencode.db"))
        return real(adapter, settings, bar)

    monkeypatch.setattr(backfill, "backfill_agent", failing)
    for name, value in place.environ.items():
        monkeypatch.setenv(name, value)
    assert backfill.run(argparse.Namespace(agents=[], json=False)) == 1
    out, err = capsys.readouterr()
    assert [line.partition(":")[0] for line in out.splitlines() if not line.startswith(" ")] == [
        "claude",
        "codex",
        "pi",
    ]
    assert err == "opencode: /x/opencode.db: file is nothing we know\n"
    assert backfill.run(argparse.Namespace(agents=[], json=True)) == 1
    told = json.loads(capsys.readouterr().out)["harnesses"]
    assert [each["harness"] for each in told] == ["claude", "codex", "opencode", "pi"]
    assert told[2] == {"harness": "opencode", "error": "/x/opencode.db: file is nothing we know"}


def test_store_that_cannot_be_read_costs_no_association(place: Place) -> None:
    """A damaged database is named; what is known of its sessions stays."""
    path = opencode_session(place, "o", f"work on {place.card('one', 'u-1')}")
    place.run("opencode")
    (before,) = place.records()
    path.write_bytes(b"not a database any more" * 500)
    code, out, _ = place.run("opencode")
    assert code == 0
    assert out.startswith("opencode: scanned 0 sessions, found 0 associations in 0 sessions. Added 0; ")
    assert "  Kept 1 association without a session: not all sessions could be read.\n" in out
    assert f"    {path}: file is not a database\n" in out
    assert place.records() == [before]


def test_session_that_cannot_be_read_costs_no_association(place: Place) -> None:
    """Nor a part of it: here, what a session's sub-agents did. Whose it was nobody knows."""
    card = place.card("one", "u-1")
    place.session("s", "hello")
    place.record(cardUuid="u-1", cardPath=str(card), sessionId="another")
    before = place.records()
    (place.sessions / "s").mkdir()
    logs = place.sessions / "s" / "subagents"
    logs.write_text("no folder any more")
    _, out, _ = place.run("claude")
    assert "  Kept 1 association without a session: not all sessions could be read.\n" in out
    assert f"    {logs}: Not a directory\n" in out
    assert place.records() == before
    logs.unlink()
    assert "1 stale purged" in place.run("claude")[1]


def test_damage_is_counted_and_named(place: Place) -> None:
    """In words and in JSON, for every agent: the file, or the session within a store."""
    file = place.session("s", "hello")
    file.write_text(file.read_text() + "{torn\n{torn too\n")
    log = place.sessions / "s/subagents/agent-1.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text('{"type":"user"}\n{torn')
    pi = pi_session(place, "p", "hello")
    pi.write_text(pi.read_text() + "{torn\n")
    rollout = codex_session(place, "x", "hello")
    rollout.write_text(rollout.read_text() + "{torn\n")
    database = opencode_session(place, "o", f"see {place.board}/torn.md")
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE part SET data = substr(data, 1, length(data) - 2)")
    connection.close()
    _, out, _ = place.run()
    store = f"{database}: session o"
    assert f"  Skipped 3 damaged lines:\n    {file}: 2\n    {log}: 1\n" in out
    assert f"  Skipped 1 damaged line:\n    {store}: 1\n" in out
    assert f"  Skipped 1 damaged line:\n    {pi}: 1\n" in out
    told = json.loads(place.run("--json")[1])["harnesses"]
    assert [(each["damaged"], each["damagedIn"]) for each in told] == [
        (3, {str(file): 2, str(log): 1}),
        (1, {str(rollout): 1}),
        (1, {store: 1}),
        (1, {str(pi): 1}),
    ]


def test_format_that_changed_is_an_alarm(place: Place) -> None:
    """Sessions of which nothing is understood look like sessions without cards: it is said aloud, and
    nothing is purged."""
    card = place.card("one", "u-1")
    place.record(cardUuid="u-1", cardPath=str(card), sessionId="p", harness="pi")
    path = pi_session(place, "p")
    path.write_text(json.dumps({"type": "talk", "said": f"see {card}"}) + "\n{torn\n")
    _, out, _ = place.run("pi")
    assert "  ALARM: parsed 0 of 2 records. Has the format changed?\n" in out
    assert json.loads(place.run("pi", "--json")[1])["harnesses"][0]["alarm"] is True
    assert "  Kept 1 association without a session: not all sessions could be read.\n" in out
    pi_session(place, "p", f"see {card}")
    assert "ALARM" not in place.run("pi")[1]


def test_the_built_program_reads_all_agents(place: Place, pyz: Path) -> None:
    """From the zip, in an isolated home: sessions that real versions left, on cards of ours."""
    opencode = place.home / ".local/share/opencode"
    later_ms = max(0, int(time.time() * 1000) - NOW_MS)
    for version in ("0.5.29", "1.1.65", "1.18.33"):
        left_by(version, opencode, str(place.board), later_ms)
    sessions = place.home / ".pi/agent/sessions/--home-dev-project--"
    sessions.mkdir(parents=True)
    for path in (ROOT / "tests/fixtures/pi/history").glob("*.jsonl"):
        (sessions / path.name).write_text(path.read_text().replace(BOARD, str(place.board)))
    for name in ("named", "written", "edit-me", "later", "by-child", "absent", "read-only", "told"):
        place.card(name, f"u-{name}")
    before = {**files_of(opencode), **files_of(sessions)}
    for added, existing in ((1, 0), (0, 1)):
        done = subprocess.run(
            [sys.executable, str(pyz), "backfill", "--json"],
            env=place.environ,
            cwd=place.home,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (done.returncode, done.stderr) == (0, "")
        told = {each["harness"]: each for each in json.loads(done.stdout)["harnesses"]}
        counted = ("scanned", "matched", "found", "added", "existing", "purged", "damaged")
        assert [told["opencode"][name] for name in counted] == [3, 3, 15, 15 * added, 15 * existing, 0, 0]
        assert [told["pi"][name] for name in counted] == [5, 5, 20, 20 * added, 20 * existing, 0, 0]
        for name in ("opencode", "pi"):
            assert (told[name]["unknown"], told[name]["skipped"]) == ({}, [])
    assert {**files_of(opencode), **files_of(sessions)} == before
    by_child = [each for each in place.records() if each["cardUuid"] == "u-by-child"]
    assert sorted(each["sessionId"] for each in by_child) == [
        "ses_dd0cbae87ffePuJ6BqukmvUpW8",
        "ses_dd0cbc2a9ffeRcgRmG7JDmU8Pe",
        "ses_dd0cbd210ffemf5vgeh17in8lQ",
    ]


def test_folders_that_this_process_was_not_told_of(place: Place) -> None:
    """A session of another profile is known: its folder is read too, and that is said."""
    card = place.card("one", "u-1")
    place.session("s-1", "nothing of ours")
    other = place.home / "profile of work" / "projects" / "-p"
    other.mkdir(parents=True)
    home, place.sessions = place.sessions, other
    known = place.session("known", "no card any more")
    place.session("new", f"work on {card}")
    (other / "damaged.jsonl").write_text("torn\n")
    place.sessions = home
    place.record(cardUuid="u-1", cardPath=str(card), sessionId="known", sessionFile=str(known))
    code, out, _ = place.run("claude")
    assert code == 0 and f"Read too, since known sessions lie there:\n    {other.parent}\n" in out
    assert "Skipped 1 damaged line" in out
    assert {record["sessionId"] for record in place.records()} == {"known", "new"}
    (told,) = json.loads(place.run("claude", "--json")[1])["harnesses"]
    assert told["otherRoots"] == [str(other.parent)]
