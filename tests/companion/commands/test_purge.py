"""``purge``: everything remembered is forgotten, on disk and in a running companion."""

import json

from tests.companion.commands.conftest import MakeCard, Mdello


def test_it_makes_and_empties_the_log(mdello: Mdello) -> None:
    """Missing parents are made; both names do the same; the contract's line is printed."""
    log = mdello.home / ".local" / "state" / "mdello" / "companion.jsonl"
    for name in ("purge", "reset"):
        done = mdello(name, "surplus")
        assert (done.returncode, done.stdout) == (0, "Purged companion session data.\n")
        assert log.read_bytes() == b""
        log.write_text("junk\n", encoding="utf-8")


def test_a_running_companion_forgets_too(mdello: Mdello, make_card: MakeCard) -> None:
    """Memory and log agree afterwards, and later records are kept again."""
    board = mdello.home / "board"
    mdello("board", "init", str(board))
    path = make_card(board, "a.md", "uuid-a")
    mdello.start()
    for session in ("s-1", "s 2"):
        mdello.report(path, "running", session)
    assert len(mdello.ask("GET", "/associations")) == 2
    assert mdello("purge").returncode == 0
    assert mdello.ask("GET", "/associations") == []
    mdello.report(path, "idle", "s-3")
    assert [each["sessionId"] for each in mdello.ask("GET", "/associations")] == ["s-3"]
    log = mdello.home / ".local" / "state" / "mdello" / "companion.jsonl"
    assert [json.loads(line)["sessionId"] for line in log.read_text().splitlines()] == ["s-3"]


def test_links_without_a_uuid_are_forgotten_too(mdello: Mdello) -> None:
    """A file that gets its uuid after a purge is not linked to sessions from before."""
    board = mdello.home / "board"
    mdello("board", "init", str(board))
    plain = board / "plain.md"
    plain.write_text("# No head\n", encoding="utf-8")
    mdello.start()
    mdello.report(plain, "ready_for_review")
    assert mdello.ask("GET", "/health")["counts"]["pendingLinks"] == 1
    mdello("purge")
    assert mdello.ask("GET", "/health")["counts"]["pendingLinks"] == 0
    assert mdello("board", "repair").returncode == 0
    assert mdello.ask("GET", "/associations") == []


def test_without_a_companion_every_file_is_emptied(mdello: Mdello, make_card: MakeCard) -> None:
    """The log, links without a uuid and what adapters remember; nothing comes back with the next start."""
    mdello("board", "init", str(mdello.home / "board"))
    plain = mdello.home / "board" / "plain.md"
    plain.write_text("# No head\n", encoding="utf-8")
    card = make_card(mdello.home / "board", "a.md", "uuid-a")
    server = mdello.start()
    mdello.report(plain, "ready_for_review")
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": f"see {card}"}
    mdello.ask("POST", "/hooks/claude", prompt)
    mdello.stop(server)
    state = mdello.home / ".local" / "state" / "mdello"
    names = ["companion-hooks.jsonl", "companion-pending.jsonl", "companion.jsonl"]
    assert sorted(path.name for path in state.iterdir() if path.read_bytes()) == names
    assert mdello("purge").returncode == 0
    assert [path for path in state.iterdir() if path.read_bytes()] == []
    mdello.start()
    assert mdello.ask("GET", "/associations") == []
    assert mdello.ask("GET", "/health")["counts"]["pendingLinks"] == 0
