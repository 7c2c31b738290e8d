"""``board``: what a person does with boards in a terminal."""

import json
import os
import unicodedata
from pathlib import Path
from typing import Callable, Dict, List

import pytest

from companion.boards.frontmatter import card_uuid
from companion.boards.writer import RepairResult
from companion.commands import board as board_command
from companion.commands.wiring import open_boards
from companion.core.settings import load
from tests.companion.commands.conftest import Mdello

MakeCard = Callable[[Path, str, str], Path]

JSON = Dict[str, object]


def _boards(mdello: Mdello) -> List[JSON]:
    found: List[JSON] = json.loads(mdello("board", "list", "--json").stdout)
    return found


def _bare(path: Path, content: bytes = b"# A title\n") -> Path:
    path.write_bytes(content)
    return path


@pytest.fixture
def folder(mdello: Mdello) -> Path:
    """A registered board with its welcome card."""
    assert mdello("board", "init", "board").returncode == 0
    return mdello.home / "board"


def test_init_makes_a_board_and_registers_it(mdello: Mdello) -> None:
    """From a relative path; what was written is told."""
    done = mdello("board", "init", "my board/")
    path = mdello.home / "my board"
    (row,) = _boards(mdello)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.splitlines() == [
        f"Wrote {path / 'mdello.yml'}",
        f"Wrote {path / 'welcome.md'}",
        f"Board {row['uuid']} in {path}",
    ]
    assert (row["path"], row["problem"]) == (str(path), None)
    assert f"uuid: {row['uuid']}\n" in (path / "mdello.yml").read_text(encoding="utf-8")


def test_init_again_changes_nothing(mdello: Mdello, folder: Path) -> None:
    """Same uuid, same files, still one board."""
    before = {path: path.read_bytes() for path in folder.iterdir()}
    (row,) = _boards(mdello)
    done = mdello("board", "init", str(folder))
    assert done.stdout == f"Board {row['uuid']} in {folder}\n"
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert [each["uuid"] for each in _boards(mdello)] == [row["uuid"]]


@pytest.mark.parametrize("action", ["init", "add"])
def test_a_board_needs_a_folder(mdello: Mdello, action: str) -> None:
    """An empty argument, as an unset variable gives it, is not the working directory."""
    assert mdello("board", action, "").returncode != 0
    assert list(mdello.home.iterdir()) == []


def test_a_board_that_cannot_be_made_is_one_line_on_stderr(mdello: Mdello) -> None:
    """Exit 1, and nothing is registered."""
    (mdello.home / "file").write_text("")
    done = mdello("board", "init", "file")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"Cannot make a board in {mdello.home / 'file'}: File exists\n"
    assert _boards(mdello) == []


def test_a_board_that_cannot_be_registered_is_told(mdello: Mdello) -> None:
    """A configuration that cannot be saved would be forgotten with this process."""
    (mdello.home / ".config").write_text("in the way")
    done = mdello("board", "init", "board")
    assert (done.returncode, done.stdout) == (1, "")
    assert "companion.json: Not a directory" in done.stderr
    assert not (mdello.home / "board").exists()


def test_add_registers_an_existing_board(mdello: Mdello) -> None:
    """With the uuid of its file; what keeps its web page away is told."""
    path = mdello.home / "board"
    path.mkdir()
    (path / "mdello.yml").write_text("uuid: mine\n")
    done = mdello("board", "add", "board")
    assert (done.returncode, done.stdout) == (0, f"Board mine in {path}\n")
    assert "companion: true" in done.stderr and "path: " in done.stderr
    assert [row["uuid"] for row in _boards(mdello)] == ["mine"]
    assert [found.name for found in path.iterdir()] == ["mdello.yml"]


@pytest.mark.parametrize(
    ("content", "why"), [(None, "no mdello.yml"), ("columns: []\n", "no uuid"), ("a: b: c\n", "line 1")]
)
def test_add_refuses_what_is_no_board(mdello: Mdello, content: object, why: str) -> None:
    """And says how to make it one."""
    path = mdello.home / "it's a folder"
    path.mkdir()
    if isinstance(content, str):
        (path / "mdello.yml").write_text(content)
    done = mdello("board", "add", str(path))
    assert done.returncode == 1
    assert why in done.stderr
    if "line" not in why:
        assert f"""mdello.pyz board init '{mdello.home}/it'"'"'s a folder'""" in done.stderr
    assert _boards(mdello) == []


def test_a_moved_board_replaces_its_old_place(mdello: Mdello, folder: Path) -> None:
    """A copied one too, which is told: two folders must not share a uuid."""
    folder.rename(mdello.home / "moved")
    done = mdello("board", "add", "moved")
    assert f"registered in {folder} until now." in done.stderr
    assert [row["path"] for row in _boards(mdello)] == [str(mdello.home / "moved")]
    folder.mkdir()
    (folder / "mdello.yml").write_bytes((mdello.home / "moved" / "mdello.yml").read_bytes())
    assert "two folders must not share" in mdello("board", "add", str(folder)).stderr


def test_list_shows_boards_in_order_and_what_is_wrong_with_them(mdello: Mdello, folder: Path) -> None:
    """One line each; notes on stderr."""
    mdello("board", "init", "second")
    (mdello.home / "second" / "mdello.yml").unlink()
    (mdello.home / "second" / "welcome.md").unlink()
    (mdello.home / "second").rmdir()
    config = mdello.home / ".config" / "mdello" / "companion.json"
    content = json.loads(config.read_text())
    content["boards"].append({"uuid": 1})
    config.write_text(json.dumps(content))
    done = mdello("board", "list")
    first, second = done.stdout.splitlines()
    assert first.endswith(f"  {folder}")
    assert second.endswith(f"  {mdello.home / 'second'}  (No such file or directory)")
    assert done.stderr == f"Note: 1 entry in {config} is no board and is skipped\n"


def test_list_without_boards_says_how_to_make_one(mdello: Mdello) -> None:
    """On stderr; the result itself is empty."""
    done = mdello("board", "list")
    assert (done.returncode, done.stdout) == (0, "")
    assert "board init DIR" in done.stderr
    assert _boards(mdello) == []


def test_a_broken_configuration_is_told(mdello: Mdello, folder: Path) -> None:
    """Where it is and what is wrong with it."""
    config = mdello.home / ".config" / "mdello" / "companion.json"
    config.write_text("{")
    assert str(config) in mdello("board", "list").stderr
    before = list(mdello.home.rglob("*"))
    for action in (["init", "new"], ["add", str(folder)], ["remove", str(folder)]):
        done = mdello("board", *action)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"{config}: it is not JSON") and "Nothing was changed" in done.stderr
    assert config.read_text() == "{" and list(mdello.home.rglob("*")) == before


def test_remove_forgets_a_board_and_keeps_its_files(mdello: Mdello, folder: Path) -> None:
    """By folder; the sessions that stay remembered are counted."""
    (row,) = _boards(mdello)
    log = mdello.home / ".local" / "state" / "mdello" / "companion.jsonl"
    log.parent.mkdir(parents=True)
    record = {"boardUuid": row["uuid"], "cardPath": f"{folder}/x.md", "harness": "pi", "updatedAt": "t"}
    lines = [
        {**record, "cardUuid": card, "sessionId": session, "status": status}
        for card, session, status in [("a", "1", "running"), ("b", "1", "idle"), ("a", "2", "closed")]
    ]
    log.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {**lines[0], "boardUuid": "other"}]))
    done = mdello("board", "remove", "board/")
    assert done.returncode == 0
    assert done.stdout == f"Forgot board {row['uuid']} in {folder}; its files stay.\n"
    assert "2 sessions on its cards stay remembered" in done.stderr
    assert _boards(mdello) == []
    assert (folder / "welcome.md").exists()


def test_remove_by_uuid_and_of_what_is_not_there(mdello: Mdello, folder: Path) -> None:
    """Exit 1 when nothing is registered so."""
    (row,) = _boards(mdello)
    assert mdello("board", "remove", str(row["uuid"])).returncode == 0
    done = mdello("board", "remove", str(row["uuid"]))
    assert (done.returncode, done.stdout) == (1, "")
    assert str(row["uuid"]) in done.stderr


@pytest.mark.parametrize(
    "arguments", [(), ("bogus",), ("init",), ("remove",), ("repair", "--what"), ("list", "x")]
)
def test_a_wrong_call_is_told(mdello: Mdello, arguments: List[str]) -> None:
    """With the usage, exit 1 or 2 as for any command."""
    done = mdello("board", *arguments)
    assert done.returncode in (1, 2)
    assert done.stdout == "" and "Usage" in done.stderr


def test_repair_gives_uuids_to_all_cards_without_one(mdello: Mdello, folder: Path) -> None:
    """Of all boards; the files read back with the uuids that are told."""
    paths = [
        _bare(folder / "a.md"),
        _bare(folder / "b.md", b"\xef\xbb\xbf---\r\ntitle: x\r\n---\r\nText\r\n"),
        _bare(folder / "c.md", b"---\nuuid:\n---\n"),
    ]
    done = mdello("board", "repair")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    for path, line in zip(paths, lines):
        assert line.startswith(f"Changed {path}: uuid {card_uuid(path.read_bytes())}")
    assert lines[1].endswith("; removed the byte order mark in front")
    again = mdello("board", "repair")
    assert (again.returncode, again.stdout) == (0, "Every card has a uuid.\n")


def test_repair_tells_what_it_leaves_alone(mdello: Mdello, folder: Path) -> None:
    """Exit 1; the rest is done."""
    bad = _bare(folder / "bad.md", b"---\ntitle: Fix: x\n---\n")
    good = _bare(folder / "good.md")
    done = mdello("board", "repair")
    assert done.returncode == 1
    assert done.stdout.startswith(f"Changed {good}: uuid ")
    assert done.stderr.startswith(f"Left alone: {bad}: line 2: ")
    assert bad.read_bytes() == b"---\ntitle: Fix: x\n---\n"


def test_repair_of_a_board_that_is_gone(mdello: Mdello, folder: Path) -> None:
    """It could not be looked at: exit 1."""
    folder.rename(mdello.home / "away")
    done = mdello("board", "repair")
    assert done.returncode == 1
    assert done.stderr == f"Left alone: {folder}: No such file or directory\n"


def test_repair_of_named_boards_and_cards_only(mdello: Mdello, folder: Path) -> None:
    """A relative card, a board, and what is neither."""
    mdello("board", "init", "second")
    mine, other, third = (
        _bare(folder / "mine.md"),
        _bare(folder / "other.md"),
        _bare(mdello.home / "second" / "third.md"),
    )
    done = mdello("board", "repair", "board/mine.md", str(third.parent), "board/mine.md")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 2
    assert card_uuid(mine.read_bytes()) and card_uuid(third.read_bytes())
    assert other.read_bytes() == b"# A title\n"
    outside = _bare(mdello.home / "outside.md")
    for wrong in [str(outside), str(mdello.home), "board/archive/x.md", "board/mdello.yml"]:
        done = mdello("board", "repair", wrong)
        assert (done.returncode, done.stdout) == (1, ""), wrong
        assert wrong in done.stderr
    assert outside.read_bytes() == b"# A title\n"
    missing = mdello("board", "repair", "board/none.md")
    assert missing.returncode == 1
    assert missing.stderr == f"Left alone: {folder / 'none.md'}: No such file or directory\n"


def test_repair_finds_a_card_in_the_other_unicode_form(mdello: Mdello, folder: Path) -> None:
    """As typed on one system and kept on another."""
    path = _bare(folder / unicodedata.normalize("NFD", "Tür.md"))
    done = mdello("board", "repair", str(folder / unicodedata.normalize("NFC", "Tür.md")))
    assert done.returncode == 0
    assert card_uuid(path.read_bytes()) is not None


def test_a_dry_run_only_says_what_would_be_done(mdello: Mdello, folder: Path) -> None:
    """Nothing is written."""
    path = _bare(folder / "a.md")
    done = mdello("board", "repair", "--dry-run")
    assert done.returncode == 0
    assert done.stdout.startswith(f"Would change {path}: uuid ")
    assert path.read_bytes() == b"# A title\n"


def _link(mdello: Mdello, path: Path, *statuses: str) -> None:
    log = mdello.home / ".local" / "state" / "mdello" / "companion-pending.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    record = {"cardPath": str(path), "harness": "claude", "sessionId": "s-1", "updatedAt": "t"}
    with log.open("a") as file:
        file.writelines(json.dumps({**record, "status": status}) + "\n" for status in statuses)


@pytest.mark.parametrize("status", ["running", "waiting_for_input"])
def test_a_card_in_the_middle_of_a_turn_is_left_alone(mdello: Mdello, folder: Path, status: str) -> None:
    """The agent could be writing it; ``--force`` is for sessions that died."""
    busy, free = _bare(folder / "busy.md"), _bare(folder / "free.md")
    _link(mdello, busy, "idle", status)
    _link(mdello, free, "running", "ready_for_review")
    done = mdello("board", "repair")
    assert done.returncode == 1
    assert f"Left alone: {busy}: claude session s-1 is working on it" in done.stderr
    assert busy.read_bytes() == b"# A title\n"
    assert card_uuid(free.read_bytes()) is not None
    assert mdello("board", "repair", "--force").returncode == 0
    assert card_uuid(busy.read_bytes()) is not None


def test_repair_can_answer_in_json(mdello: Mdello, folder: Path) -> None:
    """One object per file."""
    good = _bare(folder / "a.md")
    _bare(folder / "b.md", b"---\nuuid: 12\n---\n")
    done = mdello("board", "repair", "--json")
    first, second = json.loads(done.stdout)
    assert done.returncode == 1
    assert first == {
        "path": str(good),
        "uuid": card_uuid(good.read_bytes()),
        "changed": True,
        "notes": [],
        "refused": None,
    }
    assert (second["changed"], second["uuid"]) == (False, None)
    assert "not text but 12" in second["refused"]


def test_files_that_share_a_uuid_are_named(mdello: Mdello, folder: Path, make_card: MakeCard) -> None:
    """A copied card; which one is meant only its owner knows."""
    first, second = (make_card(folder, name, "u-1") for name in ("a.md", "b.md"))
    done = mdello("board", "repair")
    assert done.returncode == 0
    assert f"the uuid u-1 is in several files, the last one counts: {first}, {second}" in done.stderr


def test_a_name_that_is_not_utf8_is_left_alone(mdello: Mdello, folder: Path) -> None:
    """And shown as well as it can be."""
    (folder / os.fsdecode(b"caf\xe9.md")).write_bytes(b"text")
    done = mdello("board", "repair")
    assert done.returncode == 1
    assert done.stderr == f"Left alone: {folder}/caf\ufffd.md: its name is not UTF-8\n"


def test_who_is_busy_is_asked_for_each_file(mdello: Mdello, folder: Path) -> None:
    """The question is handed in; an answer leaves the file alone."""
    paths = [_bare(folder / "a.md"), _bare(folder / "b.md")]
    boards = open_boards(load(mdello.environ))
    asked: List[str] = []

    def busy_on(path: str) -> "str | None":
        asked.append(path)
        return "somebody" if path == str(paths[0]) else None

    results: List[RepairResult] = board_command.repair(boards, [], busy_on, dry_run=True)
    assert asked == [str(path) for path in paths]
    assert [result.refused is None for result in results] == [False, True]


def test_a_board_that_is_no_folder_is_told_so(mdello: Mdello) -> None:
    """Before anything is said about files in it."""
    done = mdello("board", "add", "nowhere")
    assert done.returncode == 1 and done.stderr == f"{mdello.home / 'nowhere'} is no folder.\n"


def test_a_registered_board_under_another_name_is_no_second_board(mdello: Mdello) -> None:
    """A link to the same folder does not share a uuid with it: it is it."""
    assert mdello("board", "init", "board").returncode == 0
    (mdello.home / "link").symlink_to("board")
    done = mdello("board", "add", "link")
    assert done.returncode == 0 and "must not share" not in done.stderr
