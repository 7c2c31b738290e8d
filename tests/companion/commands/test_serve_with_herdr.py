"""The built file and a herdr, as processes: labels, focus, and an end that does not wait."""

import json
import os
from pathlib import Path
from typing import Any, Dict, Iterator, List
from urllib.parse import quote

import pytest

from tests.companion.commands.conftest import MakeCard, Mdello, _run
from tests.companion.web.talk import Talk, eventually
from tests.fakes.fake_herdr import FakeHerdr

BOARD = "board-1"


@pytest.fixture
def built(pyz: Path, clean_environ: Dict[str, str]) -> Iterator[Mdello]:
    """The command line from the built file."""
    yield from _run(clean_environ, pyz)


@pytest.fixture
def herdr(tmp_path: Path) -> FakeHerdr:
    """A herdr in which one session runs."""
    made = FakeHerdr(tmp_path / "herdr")
    made.run_session("s-1")
    return made


@pytest.fixture
def card(tmp_path: Path, make_card: MakeCard) -> Path:
    """A card on a board that is registered by listening."""
    board = tmp_path / "board"
    board.mkdir()
    return make_card(board, "a.md", "card-a")


def listen(built: Mdello, card: Path) -> Talk:
    """An open stream, its head read."""
    talk = Talk(built.port)
    path = f"/events?boardUuid={BOARD}&boardPath={quote(str(card.parent))}"
    talk.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert talk.head()[0] == 200
    return talk


def labels_of(record: Any) -> List[object]:
    """Workspace and tab as a page would show them."""
    return [record.get("herdrWorkspace"), record.get("herdrTab")]


def report(built: Mdello, card: Path) -> None:
    """What a client posts; the answer has no labels."""
    body = {"cardPath": str(card), "harness": "opencode", "sessionId": "s-1", "status": "running"}
    assert "herdrTab" not in built.ask("POST", "/associations", body)


def test_labels_and_focus(built: Mdello, card: Path, herdr: FakeHerdr) -> None:
    """Told and listed, never written; the session's pane and tab come to the front."""
    server = built.start(HERDR_PATH=str(herdr.path))
    with listen(built, card) as stream:
        stream.event()
        report(built, card)
        told = [stream.event().json()]
        while labels_of(told[-1]) == [None, None]:
            told.append(stream.event().json())
        assert len(told) <= 2 and labels_of(told[-1]) == ["Shop", "Basket"]
    assert labels_of(built.ask("GET", "/associations")[0]) == ["Shop", "Basket"]
    eventually(lambda: herdr.syncs() in (1, 2))
    action = {"action": "focus", "harness": "opencode", "sessionId": "s-1"}
    assert built.ask("POST", "/actions", action) == {"ok": True}
    assert herdr.calls()[-3:] == ["agent list", "agent focus w1:p1", "tab focus w1:t1"]
    assert built.ask("GET", "/health")["notes"] == []
    assert built.stop(server)[0] == 0
    log = built.home / ".local" / "state" / "mdello" / "companion.jsonl"
    assert b"s-1" in log.read_bytes() and b"herdr" not in log.read_bytes()


def test_a_herdr_that_fails_is_a_note_and_nothing_worse(built: Mdello, card: Path, herdr: FakeHerdr) -> None:
    """It may just not run. ``doctor`` shows it and is content."""
    herdr.misbehave(workspace="fail")
    server = built.start(HERDR_PATH=str(herdr.path))
    with listen(built, card) as stream:
        assert stream.event().json() == []
    eventually(lambda: built.ask("GET", "/health")["notes"])
    health = built.ask("GET", "/health")
    assert health["notes"] == [
        "herdr does not tell where sessions run: herdr failed (exit code 1): Error: no server is running"
    ]
    assert health["problems"] == []
    doctor = json.loads(built("doctor", "--json").stdout)
    found = [each for each in doctor["findings"] if "herdr does not" in each["text"]]
    assert [each["state"] for each in found] == ["unknown"]
    assert built.stop(server)[0] == 0


def test_a_hanging_herdr_does_not_keep_it_from_ending(built: Mdello, card: Path, herdr: FakeHerdr) -> None:
    """Neither a sync nor a focus; and no process of herdr's is left behind."""
    herdr.misbehave(agent="hang", tab="hang", workspace="hang")
    server = built.start(HERDR_PATH=str(herdr.path))
    with listen(built, card) as stream, Talk(built.port) as talk:
        assert stream.event().json() == []
        report(built, card)
        assert stream.event().name == "association"
        action = b'{"action":"focus","harness":"opencode","sessionId":"s-1"}'
        head = f"POST /actions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(action)}\r\n\r\n"
        talk.send(head.encode() + action)
        eventually(lambda: herdr.calls().count("agent list") == 2)
        code, out, err = built.stop(server)
    assert (code, out) == (0, "") and "Traceback" not in err
    eventually(lambda: not _running(herdr))


def _running(herdr: FakeHerdr) -> List[str]:
    """Processes that have this herdr's folder among their arguments."""
    if not Path("/proc/self/cmdline").exists():
        pytest.skip("this system does not show processes as files")
    found = []
    for name in os.listdir("/proc"):
        try:
            line = Path("/proc", name, "cmdline").read_bytes() if name.isdigit() else b""
        except OSError:  # It has ended.
            continue
        if str(herdr.folder).encode() in line:
            found.append(name)
    return found
