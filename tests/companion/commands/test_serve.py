"""``serve`` as a process: the line it prints, the port it takes, how it ends."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
from pathlib import Path
from typing import Dict, List

import pytest

from tests.companion.commands.conftest import MakeCard, Mdello
from tests.companion.web.talk import Talk, eventually


@pytest.mark.parametrize("arguments", [[], ["serve"], ["serve", "surplus", "arguments"]])
def test_it_says_where_it_listens_and_answers(mdello: Mdello, arguments: List[str]) -> None:
    """One line on stdout, pinned by the contract; then it serves. ``serve`` need not be said."""
    server = subprocess.Popen(
        [sys.executable, str(mdello.program), *arguments],
        env=mdello.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    mdello.servers.append(server)
    assert server.stdout is not None
    line = server.stdout.readline()
    assert line == f"Mdello companion listening at http://127.0.0.1:{mdello.port}\n"
    health = mdello.ask("GET", "/health")
    assert health["name"] == "mdello" and health["pid"] == server.pid
    assert health["problems"] == []
    assert mdello.stop(server)[:2] == (0, "")


def test_without_a_board_it_says_how_to_make_one(mdello: Mdello) -> None:
    """A newcomer is not left in front of silence; a companion with a board says nothing."""
    code, _, err = mdello.stop(mdello.start())
    assert code == 0 and "mdello.pyz board init DIR" in err
    assert mdello("board", "init", "board").returncode == 0
    assert mdello.stop(mdello.start()) == (0, "", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_orderly(mdello: Mdello, number: int) -> None:
    """Ctrl-C, a service manager's stop and a closed terminal end with success and without noise."""
    code, out, err = mdello.stop(mdello.start(), number)
    assert (code, out) == (0, "") and "Traceback" not in err


def test_nohup_outlives_the_terminal(mdello: Mdello) -> None:
    """Whoever ignores the hang-up for us means it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        server = mdello.start()
    finally:
        signal.signal(signal.SIGHUP, before)
    server.send_signal(signal.SIGHUP)
    assert mdello.ask("GET", "/health")["pid"] == server.pid
    assert mdello.stop(server)[0] == 0


def test_the_demo_board_is_thrown_away(mdello: Mdello, tmp_path: Path) -> None:
    """It has a card, knows no other board, writes nothing into the home, and leaves nothing."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    server = mdello.start("--demo", TMPDIR=str(scratch))
    boards = mdello.ask("GET", "/health")["boards"]
    assert len(boards) == 1 and Path(boards[0]["path"]).is_relative_to(scratch)
    cards = list(Path(boards[0]["path"]).glob("*.md"))
    assert len(cards) == 1
    assert mdello.report(cards[0], "running")["status"] == "running"
    assert mdello.stop(server)[0] == 0
    assert list(scratch.iterdir()) == []
    assert list(mdello.home.iterdir()) == []


def test_a_second_start_finds_the_first(mdello: Mdello) -> None:
    """Ours holds the port: said so, and that is no failure."""
    mdello.start()
    second = mdello("serve")
    assert second.returncode == 0
    assert second.stdout == f"Mdello companion is already running at http://127.0.0.1:{mdello.port}\n"


def test_a_foreign_holder_is_named_with_a_way_out(mdello: Mdello) -> None:
    """Another program on the port: which port, how to choose another, exit code 1."""
    with socket.socket() as foreign:
        foreign.bind(("127.0.0.1", mdello.port))
        foreign.listen()
        done = mdello("serve")
    assert done.returncode == 1 and done.stdout == ""
    assert f"Port {mdello.port} is taken by another program" in done.stderr
    assert "MDELLO_COMPANION_PORT=" in done.stderr


def test_ten_starts_at_once_give_one_server(mdello: Mdello) -> None:
    """Nine find the tenth and leave politely, whoever of them wins."""
    starts = [
        subprocess.Popen(
            [sys.executable, str(mdello.program), "serve"],
            env=mdello.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        for _ in range(10)
    ]
    mdello.servers += starts
    end = time.monotonic() + 60
    while sum(start.poll() is None for start in starts) > 1:
        assert time.monotonic() < end
        time.sleep(0.05)
    running = [start for start in starts if start.poll() is None]
    assert len(running) == 1
    assert [start.returncode for start in starts if start is not running[0]] == [0] * 9
    assert mdello.ask("GET", "/health")["pid"] == running[0].pid


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MDELLO_COMPANION_PORT", "abc"),
        ("MDELLO_COMPANION_PORT", "0"),
        ("MDELLO_COMPANION_PORT", "65536"),
        ("MDELLO_COMPANION_PORT", "-1"),
        ("MDELLO_COMPANION_DATA", "/"),
        ("MDELLO_COMPANION_CONFIG", "/tmp/"),
    ],
)
def test_an_unusable_environment_value_is_refused(mdello: Mdello, name: str, value: str) -> None:
    """One clear line that names the variable and its value; exit code 2."""
    done = mdello("serve", **{name: value})
    assert done.returncode == 2 and done.stdout == ""
    assert name in done.stderr and repr(value) in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "name", ["MDELLO_COMPANION_DATA", "MDELLO_COMPANION_CONFIG", "XDG_STATE_HOME", "DEBUG"]
)
def test_an_empty_environment_value_counts_as_unset(mdello: Mdello, name: str) -> None:
    """An empty variable is what a shell leaves behind, not a wish."""
    mdello.start(**{name: ""})
    assert mdello.ask("GET", "/health")["name"] == "mdello"
    assert os.path.exists(mdello.home / ".local" / "state" / "mdello" / "companion.jsonl")


def provoke_every_debug_line(mdello: Mdello, card: Path) -> None:
    """Whatever a companion says with ``DEBUG=1``, it is said once at least."""
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": f"see {card}"}
    for status in ("idle", "idle"):
        mdello.report(card, status)
    mdello.report(card.with_name("none.md"), "idle")
    mdello.ask("POST", "/hooks/claude", prompt)
    mdello.ask("POST", "/hooks/claude", {"hook_event_name": "Setup", "session_id": "s"})
    with Talk(mdello.port) as talk:
        talk.ask("POST", "/associations", b"{")
        talk.ask("POST", "/hooks/claude", b"{", (("Content-Type", "application/json"),))
        talk.ask("POST", "/hooks/claude", b"{}", (("Content-Type", "text/plain"),))
        talk.ask("GET", f"/events?boardUuid=x&boardPath={card.parent}%00")
    with Talk(mdello.port) as talk:
        path = f"/events?boardUuid=x&boardPath={card.parent}"
        talk.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()).head()
        talk.event()
    mdello.ask("DELETE", "/associations?cardUuid=uuid-a")


def test_debug_lines_have_the_contracts_form(mdello: Mdello, make_card: MakeCard) -> None:
    """``DEBUG=1`` shows events on stderr as prefix, message and JSON; nothing on stdout."""
    assert mdello("board", "init", "board").returncode == 0
    card = make_card(mdello.home / "board", "a.md", "uuid-a")
    server = mdello.start(DEBUG="1")
    provoke_every_debug_line(mdello, card)
    _, out, err = mdello.stop(server)
    assert out == ""
    messages: Dict[str, int] = {}
    for line in err.splitlines():
        assert line.startswith("[mdello-companion] ")
        message, brace, details = line[len("[mdello-companion] ") :].partition(" {")
        assert isinstance(json.loads(brace.strip() + details), dict)
        messages[message] = messages.get(message, 0) + 1
    assert set(messages) == {
        "server listening",
        "request received",
        "association recorded",
        "association unchanged",
        "association ignored",
        "association request failed",
        "associations expunged",
        "hook recorded",
        "hook ignored",
        "hook rejected",
        "hook request failed",
        "board registered",
        "board registration failed",
        "event stream subscribed",
        "event stream unsubscribed",
    }
    assert (messages["association recorded"], messages["association unchanged"]) == (2, 1)


@pytest.mark.parametrize("value", ["0", "true", "", "11"])
def test_without_debug_events_are_silent(mdello: Mdello, make_card: MakeCard, value: str) -> None:
    """Only exactly 1 asks for them."""
    assert mdello("board", "init", "board").returncode == 0
    card = make_card(mdello.home / "board", "a.md", "uuid-a")
    server = mdello.start(DEBUG=value)
    provoke_every_debug_line(mdello, card)
    assert mdello.stop(server) == (0, "", "")


@pytest.mark.parametrize(
    ("locale", "name"),
    [
        ({"LC_ALL": "C"}, "k\u00e4rtchen \ud55c.md"),
        ({"LC_ALL": "", "LANG": "C", "PYTHONUTF8": "0"}, "k\u00e4rtchen \ud55c.md"),
        # Here Python itself cannot spell other names.
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "card.md"),
    ],
    ids=["C", "LANG=C", "ASCII only"],
)
def test_a_locale_without_utf8_does_no_harm(
    mdello: Mdello, make_card: MakeCard, locale: Dict[str, str], name: str
) -> None:
    """What agents send is UTF-8 whatever the terminal is: cards, log and events stay whole."""
    assert mdello("board", "init", "board").returncode == 0
    card = make_card(mdello.home / "board", name, "\u00fc-1")
    server = mdello.start(DEBUG="1", **locale)
    prompt = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "\U0001f600",
        "prompt": f"\U0001f600 {card}",
    }
    assert mdello.ask("POST", "/hooks/claude", prompt) == {}
    (held,) = mdello.ask("GET", "/associations")
    assert (held["cardUuid"], held["cardPath"], held["sessionId"]) == ("\u00fc-1", str(card), "\U0001f600")
    code, out, err = mdello.stop(server)
    assert (code, out) == (0, "") and "Traceback" not in err and "Logging error" not in err
    log = mdello.home / ".local" / "state" / "mdello" / "companion.jsonl"
    assert json.loads(log.read_bytes().decode("utf-8")) == held


@pytest.mark.parametrize("seconds", [0.2, 0.5, 0.9])
def test_kill_minus_nine_loses_nothing_that_was_acknowledged(
    mdello: Mdello, make_card: MakeCard, seconds: float
) -> None:
    """The server dies in the middle of 200 reports; the next one has every record that was answered."""
    assert mdello("board", "init", "board").returncode == 0
    cards = [make_card(mdello.home / "board", f"{n}.md", f"uuid-{n}") for n in range(10)]
    server = mdello.start()
    begun = time.monotonic()
    answered: Dict[str, Dict[str, object]] = {}
    for number in range(200):
        if number >= 20 and time.monotonic() - begun > seconds:
            server.kill()
        status = ("running", "idle", "waiting_for_input")[number % 3]
        with contextlib.suppress(urllib.error.URLError, OSError):
            record = mdello.report(cards[number % 10], status, f"s-{number % 70}")
            answered[f"{record['cardUuid']} {record['sessionId']}"] = record
    server.kill()
    server.wait(timeout=20)
    assert len(answered) >= 20
    mdello.start()
    held = {f"{each['cardUuid']} {each['sessionId']}": each for each in mdello.ask("GET", "/associations")}
    lost = {key: record for key, record in answered.items() if held.get(key) != record}
    # The record under way when it died may be there although its answer was not.
    assert all(held[key]["updatedAt"] >= record["updatedAt"] for key, record in lost.items())
    assert len(lost) <= 1 and set(answered) <= set(held)
    log = mdello.home / ".local" / "state" / "mdello" / "companion.jsonl"
    assert all(json.loads(line) for line in log.read_text(encoding="utf-8").splitlines())


def test_a_demo_beside_a_running_companion_is_not_started_silently(mdello: Mdello) -> None:
    """The port is ours already; that there is no demo board is said."""
    mdello.start()
    second = mdello("serve", "--demo")
    assert second.returncode == 0
    assert "already running" in second.stdout and "No demo was started" in second.stderr


def test_what_no_disk_took_is_told_at_the_end(mdello: Mdello, tmp_path: Path, make_card: MakeCard) -> None:
    """Records that only memory held are lost with the process: said with their number."""
    board = tmp_path / "board"
    mdello("board", "init", str(board))
    (tmp_path / "file").write_text("", encoding="utf-8")
    server = mdello.start(XDG_STATE_HOME=str(tmp_path / "file"))
    assert mdello.report(make_card(board, "a.md", "uuid-a"), "running")["status"] == "running"
    code, _, err = mdello.stop(server)
    assert code == 0 and "1 event(s) could not be saved and are lost" in err


def test_it_writes_log_files_when_nobody_watches(mdello: Mdello) -> None:
    """What a terminal would show stands in the state folder instead; a second start adds to it."""
    server = subprocess.Popen(
        [sys.executable, str(mdello.program), "serve", "--log-files"],
        env=mdello.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    mdello.servers.append(server)
    state = mdello.home / ".local" / "state" / "mdello"
    line = f"Mdello companion listening at http://127.0.0.1:{mdello.port}\n"
    eventually(lambda: (state / "companion.log").is_file() and (state / "companion.log").read_text() == line)
    assert mdello("serve", "--log-files").stdout == ""
    assert (state / "companion.log").read_text() == line + line.replace("listening", "is already running")
    assert mdello.stop(server) == (0, "", "")
    assert "No board is registered yet" in (state / "companion-error.log").read_text()


def test_log_files_that_cannot_be_written_are_told(mdello: Mdello, tmp_path: Path) -> None:
    """It serves all the same."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    server = mdello.start("--log-files", XDG_STATE_HOME=str(tmp_path / "file"))
    assert mdello.ask("GET", "/health")["socketsHandedIn"] == []
    assert "No log is written in" in mdello.stop(server)[2]


def test_sockets_that_cannot_be_used_are_told(mdello: Mdello) -> None:
    """Numbers that a manager would never send."""
    program = (
        "import os, sys; os.environ['LISTEN_PID'] = str(os.getpid()); os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-c", program, sys.executable, str(mdello.program), "serve"]
    server = subprocess.Popen(
        command,
        env={**mdello.environ, "LISTEN_FDS": "none"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    mdello.servers.append(server)
    assert server.stdout is not None and "listening" in server.stdout.readline()
    assert "LISTEN_FDS is 'none': no sockets are taken" in mdello.stop(server)[2]
