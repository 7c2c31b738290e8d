"""``serve`` as a process: the line it prints, the port it takes, how it ends."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.companion.commands.conftest import Mdello


def test_it_says_where_it_listens_and_answers(mdello: Mdello) -> None:
    """One line on stdout, pinned by the contract; then it serves."""
    server = mdello.start()
    health = mdello.ask("GET", "/health")
    assert health["name"] == "mdello" and health["pid"] == server.pid
    assert health["problems"] == []


def test_without_a_board_it_says_how_to_make_one(mdello: Mdello) -> None:
    """A newcomer is not left in front of silence; a companion with a board says nothing."""
    code, _, err = mdello.stop(mdello.start())
    assert code == 0 and "mdello.pyz board init DIR" in err
    assert mdello("board", "init", "board").returncode == 0
    assert mdello.stop(mdello.start()) == (0, "", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_orderly(mdello: Mdello, number: int) -> None:
    """Ctrl-C and a service manager's stop both end with success and without noise."""
    code, out, err = mdello.stop(mdello.start(), number)
    assert (code, out) == (0, "") and "Traceback" not in err


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


def test_debug_lines_have_the_contracts_form(mdello: Mdello) -> None:
    """``DEBUG=1`` shows events on stderr as prefix, message and JSON; nothing on stdout."""
    server = mdello.start(DEBUG="1")
    mdello.ask("GET", "/associations")
    _, out, err = mdello.stop(server)
    lines = err.splitlines()
    assert any(line.startswith('[mdello-companion] request received {"') for line in lines)
    assert any(line.startswith("[mdello-companion] server listening {") for line in lines)
    assert out == ""
