"""New cards: whatever title and text hold, js-yaml reads the head as we do, and nothing is overwritten."""

import errno
import os
import stat
import sys
from pathlib import Path
from typing import List

import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.boards import newcard
from companion.boards.boardfile import new_board_file
from companion.boards.cards import CardFinder
from companion.boards.frontmatter import read_front_matter
from companion.boards.newcard import add_card, card_bytes, slug_of
from companion.core.errors import BoardError
from tests.another_user import open_to_all
from tests.companion.boards.conftest import Boards
from tests.companion.boards.js_yaml import JsYaml
from tests.conftest import ROOT, RunAs

UUID = "5f0c1f3e-8f53-4a77-9d3f-1f6f2f7a9b10"
CREATED = "2026-05-14T12:34:56.000Z"

TITLES = [
    "Plain words",
    "Review Requested: Fix: the parser",
    "---",
    "--- # no front matter",
    "two\nlines\r\nand uuid: other",
    "quotes \" and ' and \\ and \\n",
    "tab\there",
    "# a comment",
    "ends with a colon:",
    "- a list",
    "[a, b]",
    "{a: b}",
    "*alias &anchor !tag",
    "@at `tick` %percent",
    "yes",
    "null",
    "~",
    "1e3",
    "2026-05-14",
    "  spaces around  ",
    "",
    "ñandú über 漢字",
    "family \U0001f469\u200d\U0001f469\u200d\U0001f467 and a flag \U0001f1e9\U0001f1ea",
    "bell \x07 escape \x1b[31m nul \x00 delete \x7f",
    "half \ud83d a pair, unused \uffff \U0001fffe",
    "mark \ufeff, line \u2028 and paragraph \u2029 and \x85 next",
    "right to left \u202e override",
    "x" * 5000,
]


def board(tmp_path: Path) -> Path:
    """A board's folder."""
    folder = tmp_path / "board"
    folder.mkdir()
    (folder / "mdello.yml").write_bytes(new_board_file("board-1", str(folder), ["Triage"]))
    return folder


def test_a_card_is_written(boards: Boards) -> None:
    """All keys, a text, and a uuid that the finder knows."""
    folder = board(boards.home)
    boards.registry.register("board-1", str(folder))
    path = add_card(folder, "Fix the parser", "Triage", "First.\n\nSecond.", CREATED)
    assert path == folder / "fix-the-parser.md"
    front = read_front_matter(path.read_bytes())
    assert list(front.fields) == ["uuid", "title", "column", "tags", "created"]
    assert front.fields["title"] == "Fix the parser" and front.fields["tags"] == []
    assert front.fields["column"] == "Triage" and front.fields["created"] == CREATED
    assert path.read_text(encoding="utf-8").endswith("\n---\n\nFirst.\n\nSecond.\n")
    card = CardFinder(boards.registry).resolve(str(path)).card
    assert card is not None and card.uuid == front.fields["uuid"]


@pytest.mark.parametrize("title", TITLES)
def test_no_title_breaks_the_head(title: str) -> None:
    """Uuid and column are as they were given; the title is text on one line."""
    front = read_front_matter(card_bytes(UUID, title, "Triage", "Text", CREATED))
    assert front.problem is None
    assert front.fields["uuid"] == UUID and front.fields["column"] == "Triage"
    shown = front.fields["title"]
    assert isinstance(shown, str) and "\n" not in shown
    if title.isascii() and title.isprintable():
        assert shown == " ".join(title.split())


def test_js_yaml_reads_the_same(js_yaml: JsYaml) -> None:
    """The board's web page must see the card that we wrote."""
    cards = [card_bytes(UUID, title, "Triage", "Text", CREATED) for title in TITLES]
    for card, answer in zip(cards, js_yaml.cards(cards)):
        assert answer["ok"] and answer["uuid"] == UUID, card
        told = dict(answer["value"][1:])  # type: ignore[index]
        assert told["title"] == read_front_matter(card).fields["title"]
        assert told["tags"] == ["list"] and told["created"] == CREATED


@given(title=st.text(max_size=80), body=st.text(max_size=200))
def test_any_text_gives_a_card(title: str, body: str) -> None:
    """Whatever the characters: the head stays ours, the file is UTF-8 without control characters."""
    data = card_bytes(UUID, title, "Triage", body, CREATED)
    front = read_front_matter(data)
    assert front.fields["uuid"] == UUID and front.fields["created"] == CREATED
    assert not [each for each in data.decode("utf-8") if each < " " and each not in "\n\t"]


@pytest.mark.parametrize(
    "body", ["---\nuuid: other\n---\n", "\n\n---", "a\r\n---\r\nb\rc", "\x00\x1b[2J\ud800"]
)
def test_no_body_breaks_the_head(body: str) -> None:
    """A rule, another front matter, foreign line ends, control characters: all of it is text."""
    data = card_bytes(UUID, "Title", "Triage", body, CREATED)
    front = read_front_matter(data)
    assert front.fields["uuid"] == UUID
    assert b"\r" not in data and b"\x00" not in data and b"\x1b" not in data


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Review Requested: Fix  the (parser)!", "review-requested-fix-the-parser"),
        ("---", "card"),
        ("漢字", "card"),
        ("Ünder", "nder"),
        ("a" * 100, "a" * 60),
        ("a" * 59 + " b", "a" * 59),
        ("../../etc/passwd", "etc-passwd"),
        ("CON", "con"),
    ],
)
def test_slugs(title: str, slug: str) -> None:
    """Lower-cased, single dashes, at most 60 characters, never a path."""
    assert slug_of(title) == slug


def test_taken_names_get_a_number(tmp_path: Path) -> None:
    """Files, folders and dangling links are left alone."""
    folder = board(tmp_path)
    (folder / "a.md").write_text("mine")
    (folder / "a-1.md").mkdir()
    (folder / "a-2.md").symlink_to("nowhere")
    assert add_card(folder, "A", "Triage", "x", CREATED).name == "a-3.md"
    assert add_card(folder, "A", "Triage", "x", CREATED).name == "a-4.md"
    assert (folder / "a.md").read_text() == "mine" and (folder / "a-2.md").is_symlink()


def test_a_name_that_is_taken_at_the_last_moment_gets_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent may write a file of this very name meanwhile."""
    folder = board(tmp_path)
    (folder / "a.md").write_text("mine")
    monkeypatch.setattr(os.path, "lexists", lambda path: False)
    assert add_card(folder, "A", "Triage", "x", CREATED).name == "a-1.md"
    assert (folder / "a.md").read_text() == "mine"


def test_an_end_of_names_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No endless search."""
    monkeypatch.setattr(newcard, "_MOST_OF_ONE_NAME", 2)
    folder = board(tmp_path)
    for _ in range(2):
        add_card(folder, "A", "Triage", "x", CREATED)
    with pytest.raises(BoardError, match="taken"):
        add_card(folder, "A", "Triage", "x", CREATED)


@pytest.mark.parametrize(
    ("mode", "expected"), [(0o644, 0o644), (0o600, 0o600), (0o664, 0o664), (0o755, 0o644)]
)
def test_it_has_the_rights_of_the_boards_file(tmp_path: Path, mode: int, expected: int) -> None:
    """A private board's cards are private."""
    folder = board(tmp_path)
    (folder / "mdello.yml").chmod(mode)
    path = add_card(folder, "A", "Triage", "x", CREATED)
    assert stat.S_IMODE(path.stat().st_mode) == expected


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line for people, no half card."""
    folder = board(tmp_path)

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    before = sorted(folder.iterdir())
    with pytest.raises(BoardError, match="No space left"):
        add_card(folder, "A", "Triage", "x", CREATED)
    assert sorted(folder.iterdir()) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="drops root's rights")
def test_a_board_that_cannot_be_written_is_told(tmp_path: Path, run: RunAs) -> None:
    """As another user."""
    folder = board(tmp_path)
    open_to_all(folder)
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from companion.boards.newcard import add_card\n"
        "import os; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "add_card(Path(sys.argv[2]), 'A', 'Triage', 'x', '2026')\n"
    )
    command: List[str] = [sys.executable, "-c", code, str(ROOT), str(folder)]
    done = run(command)
    assert "BoardError: Cannot write a card into" in done.stderr and "Permission denied" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["mdello.yml"]
