"""Configuration and boards as doctor sees them."""

import json
from pathlib import Path
from typing import Dict, List

import pytest

from companion.commands.checks import boards
from companion.commands.checks.finding import Finding, State
from companion.commands.wiring import open_boards
from companion.core.settings import load


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Where the configuration goes."""
    path = tmp_path / ".config" / "mdello" / "companion.json"
    path.parent.mkdir(parents=True)
    return path


def check(home: Path) -> List[Finding]:
    """The check over a home."""
    return boards.check(open_boards(load({"HOME": str(home)})))


def entry(path: Path, uuid: str = "board-1") -> Dict[str, str]:
    """A registered board."""
    return {"uuid": uuid, "path": str(path), "updatedAt": "2026-03-01T10:00:00.000Z"}


def card(path: Path, uuid: str) -> None:
    """A card's file."""
    path.write_text(f"---\nuuid: {uuid}\n---\n", encoding="utf-8")


def about(found: List[Finding], word: object) -> List[State]:
    """States of the lines that hold a word."""
    return [each.state for each in found if str(word) in each.text]


def test_no_configuration_and_no_board(tmp_path: Path) -> None:
    """Neither is wrong."""
    found = check(tmp_path)
    assert [each.state for each in found] == [State.OK, State.UNKNOWN]
    assert "board init" in found[1].hint


@pytest.mark.parametrize("content", ["{", "[]", "\x00", '{"boards": [{"uuid": "x"}, 3]}'])
def test_a_configuration_that_cannot_be_used_is_wrong(content: str, tmp_path: Path, config: Path) -> None:
    """No JSON, no object, or entries that are no boards."""
    config.write_text(content)
    assert State.WRONG in about(check(tmp_path), config)


def test_what_was_set_aside_is_named(tmp_path: Path, config: Path) -> None:
    """A page registered its board while the file could not be read: the others are in the older one."""
    config.write_text('{"boards": [')
    opened = open_boards(load({"HOME": str(tmp_path)}))
    opened.registry.register("board-1", str(tmp_path))
    found = check(tmp_path)
    aside = next(each for each in found if ".unreadable-" in each.text)
    assert (aside.state, State.OK) == (State.UNKNOWN, about(found, "companion.json: readable")[0])
    assert Path(aside.text.partition(": ")[0]).read_text() == '{"boards": ['


def test_each_board_is_told_with_its_number_of_cards(tmp_path: Path, config: Path) -> None:
    """Its own cards only; files that are no cards are named with the reason."""
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    card(one / "a.md", "u-1")
    card(one / "b.md", "u-2")
    card(two / "c.md", "u-3")
    (two / "plain.md").write_text("# Plain\n")
    config.write_text(json.dumps({"boards": [entry(one), entry(two, "board-2")]}))
    found = check(tmp_path)
    assert about(found, f"{one}: 2 cards (board-1)") == [State.OK]
    assert about(found, f"{two}: 1 card (board-2)") == [State.OK]
    assert about(found, two / "plain.md") == [State.UNKNOWN]


def test_the_remedy_is_one_that_works(tmp_path: Path, config: Path) -> None:
    """``board repair`` is named only where it would not refuse; nothing is written."""
    heads = {
        "plain.md": "# Plain\n",
        "colon.md": "---\ntitle: Fix: x\n---\n",
        "number.md": "---\nuuid: 1\n---\n",
    }
    for name, head in heads.items():
        (tmp_path / name).write_text(head)
    config.write_text(json.dumps({"boards": [entry(tmp_path)]}))
    hints = {Path(each.text.split(" is no card")[0]).name: each.hint for each in check(tmp_path)}
    assert hints["plain.md"] == "Give it a uuid: mdello.pyz board repair"
    assert all("by hand" in hints[name] for name in ("colon.md", "number.md"))
    assert {name: (tmp_path / name).read_text() for name in heads} == heads


def test_a_board_that_is_gone_is_wrong(tmp_path: Path, config: Path) -> None:
    """One line, with both ways out."""
    config.write_text(json.dumps({"boards": [entry(tmp_path / "gone")]}))
    found = check(tmp_path)
    (gone,) = [each for each in found if str(tmp_path / "gone") in each.text]
    assert gone.state is State.WRONG and "board remove board-1" in gone.hint


def test_a_copied_uuid_is_wrong(tmp_path: Path, config: Path) -> None:
    """Both files are named."""
    folder = tmp_path / "one"
    folder.mkdir()
    card(folder / "a.md", "u-1")
    card(folder / "copy.md", "u-1")
    config.write_text(json.dumps({"boards": [entry(folder)]}))
    (twice,) = [each for each in check(tmp_path) if "several files" in each.text]
    assert twice.state is State.WRONG
    assert str(folder / "a.md") in twice.text and str(folder / "copy.md") in twice.text
