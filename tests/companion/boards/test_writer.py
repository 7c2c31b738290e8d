"""Boards are made once, and cards get a uuid without harm to anything else."""

import os
import stat
from pathlib import Path

import pytest

from companion.boards import uuid_line, writer
from companion.boards.boardfile import read_board_file
from companion.boards.frontmatter import card_uuid, read_front_matter
from companion.boards.writer import give_uuid, init_board
from companion.core.errors import BoardError
from tests.companion.boards.conftest import NOW_S, AsNobody, MakeCard

UUID = "5f0c1f3e-8f53-4a77-9d3f-1f6f2f7a9b10"


def _now() -> float:
    return NOW_S


def test_a_board_is_made_with_one_welcome_card(tmp_path: Path) -> None:
    """Folder, board file, card; both with uuids of their own."""
    made = init_board(tmp_path / "new" / "board", _now)
    folder = tmp_path / "new" / "board"
    assert made.path == str(folder)
    assert made.written == (str(folder / "mdello.yml"), str(folder / "welcome.md"))
    found = read_board_file(folder)
    assert found is not None
    assert (found.uuid, found.path, found.companion) == (made.uuid, str(folder), True)
    assert len(found.columns) >= 3
    front = read_front_matter((folder / "welcome.md").read_bytes())
    assert front.fields["column"] in found.columns
    assert front.fields["created"] == "2026-01-02T03:04:05.250Z"
    assert front.fields["title"]
    assert card_uuid((folder / "welcome.md").read_bytes()) not in (None, made.uuid)
    assert stat.S_IMODE((folder / "welcome.md").stat().st_mode) == 0o644


def test_making_it_again_changes_nothing(tmp_path: Path) -> None:
    """Not a byte, not a time stamp."""
    first = init_board(tmp_path / "board", _now)
    before = {path: path.stat() for path in (tmp_path / "board").iterdir()}
    again = init_board(tmp_path / "board", _now)
    assert (again.uuid, again.written, again.notes) == (first.uuid, (), ())
    assert {path: path.stat() for path in (tmp_path / "board").iterdir()} == before


def test_a_folder_with_cards_gets_no_welcome_card(tmp_path: Path, card: MakeCard) -> None:
    """Nor anything else but the board's file."""
    card(tmp_path / "x.md", content=b"text")
    made = init_board(tmp_path, _now)
    assert [Path(path).name for path in made.written] == ["mdello.yml"]


def test_an_existing_board_file_keeps_all_but_a_missing_uuid(tmp_path: Path) -> None:
    """Comments and unknown keys too; what keeps the web page away is told."""
    (tmp_path / "mdello.yml").write_bytes(b"# mine\r\ncolumns: [Now]\r\nextra: 1\r\n")
    made = init_board(tmp_path, _now)
    expected = f"# mine\r\nuuid: {made.uuid}\r\ncolumns: [Now]\r\nextra: 1\r\n".encode()
    assert (tmp_path / "mdello.yml").read_bytes() == expected
    assert len(made.notes) == 2
    front = read_front_matter((tmp_path / "welcome.md").read_bytes())
    assert front.fields["column"] == "Now"


def test_an_existing_uuid_is_used(tmp_path: Path) -> None:
    """The file is not written."""
    content = f"uuid: ' mine '\npath: {tmp_path}\ncompanion: true\n".encode()
    (tmp_path / "mdello.yml").write_bytes(content)
    made = init_board(tmp_path, _now)
    assert (made.uuid, made.notes) == ("mine", ())
    assert (tmp_path / "mdello.yml").read_bytes() == content


def test_a_board_file_that_cannot_be_read_stops_it(tmp_path: Path) -> None:
    """Nothing is written beside it."""
    (tmp_path / "mdello.yml").write_bytes(b"a: b: c\n")
    with pytest.raises(BoardError, match="line 1"):
        init_board(tmp_path, _now)
    assert [path.name for path in tmp_path.iterdir()] == ["mdello.yml"]


def test_a_file_in_the_folders_place_is_an_error(tmp_path: Path) -> None:
    """With the system's words."""
    (tmp_path / "board").write_text("")
    with pytest.raises(BoardError, match="File exists"):
        init_board(tmp_path / "board", _now)


def test_a_folder_whose_name_is_not_utf8_is_refused(tmp_path: Path) -> None:
    """It could not be registered."""
    with pytest.raises(BoardError, match="not UTF-8"):
        init_board(tmp_path / os.fsdecode(b"caf\xe9"), _now)
    assert list(tmp_path.iterdir()) == []


def test_a_board_in_a_folder_that_may_not_be_written(open_folder: Path, as_nobody: AsNobody) -> None:
    """The reason is told, nothing is left behind."""

    def work() -> object:
        try:
            init_board(open_folder, _now)
        except BoardError as exc:
            return str(exc)
        return None

    open_folder.chmod(0o555)
    assert as_nobody(work) == f"Cannot make a board in {open_folder}: Permission denied"
    assert list(open_folder.iterdir()) == []


def test_a_card_gets_the_uuid_and_keeps_its_mode(tmp_path: Path, card: MakeCard) -> None:
    """And everything else."""
    path = card(tmp_path / "x.md", content=b"---\r\ntitle: x\r\n---\r\nbody")
    path.chmod(0o640)
    result = give_uuid(path, UUID)
    assert (result.uuid, result.changed, result.refused, result.notes) == (UUID, True, None, ())
    assert path.read_bytes() == f"---\r\nuuid: {UUID}\r\ntitle: x\r\n---\r\nbody".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [found.name for found in tmp_path.iterdir()] == ["x.md"]


def test_a_dry_run_writes_nothing(tmp_path: Path, card: MakeCard) -> None:
    """It says what would be done."""
    path = card(tmp_path / "x.md", content=b"\xef\xbb\xbftext")
    result = give_uuid(path, UUID, dry_run=True)
    assert result.changed and result.notes == ("removed the byte order mark in front",)
    assert path.read_bytes() == b"\xef\xbb\xbftext"


def test_a_card_with_a_uuid_is_not_written(tmp_path: Path, card: MakeCard) -> None:
    """Its own uuid is reported."""
    path = card(tmp_path / "x.md", "mine")
    before = path.stat()
    result = give_uuid(path, UUID)
    assert (result.uuid, result.changed) == ("mine", False)
    assert path.stat() == before


def test_a_linked_card_stays_a_link(tmp_path: Path, card: MakeCard) -> None:
    """Its target is changed."""
    target = card(tmp_path / "target.md", content=b"text")
    link = tmp_path / "link.md"
    link.symlink_to("target.md")
    assert give_uuid(link, UUID).changed
    assert link.is_symlink()
    assert card_uuid(target.read_bytes()) == UUID


@pytest.mark.parametrize("same_size", [False, True])
def test_a_card_that_was_changed_in_the_meantime_is_left_alone(
    tmp_path: Path, card: MakeCard, monkeypatch: pytest.MonkeyPatch, same_size: bool
) -> None:
    """An agent's words are never overwritten by what was read before them."""
    path = card(tmp_path / "x.md", content=b"one")
    real = uuid_line.card_with_uuid
    newer = b"two" if same_size else b"two and more"

    def slow(data: bytes, uuid: str) -> object:
        path.write_bytes(newer)
        return real(data, uuid)

    monkeypatch.setattr(writer, "card_with_uuid", slow)
    result = give_uuid(path, UUID)
    assert (result.changed, result.uuid) == (False, None)
    assert "in the meantime" in str(result.refused)
    assert path.read_bytes() == newer
    assert [found.name for found in tmp_path.iterdir()] == ["x.md"]


def test_a_card_that_was_replaced_in_the_meantime_is_left_alone(
    tmp_path: Path, card: MakeCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another file, even with the same words, may be on its way elsewhere; a vanished one stays away."""
    path = card(tmp_path / "x.md", content=b"one")
    real = uuid_line.card_with_uuid

    def gone(data: bytes, uuid: str) -> object:
        path.unlink()
        return real(data, uuid)

    monkeypatch.setattr(writer, "card_with_uuid", gone)
    assert give_uuid(path, UUID).refused == "No such file or directory"
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, card: MakeCard) -> None:
    """Missing, a folder, a pipe, too large, malformed: a reason, never an exception."""
    (tmp_path / "folder.md").mkdir()
    os.mkfifo(tmp_path / "pipe.md")
    card(tmp_path / "bad.md", content=b"---\na: b: c\n---\n")
    card(tmp_path / "big.md", content=b"x" * 11)
    monkeypatch.setattr(writer, "MAX_CARD_BYTES", 10)
    reasons = {
        name: give_uuid(tmp_path / name, UUID).refused
        for name in ("none.md", "folder.md", "pipe.md", "big.md", "x\0.md")
    }
    assert reasons["none.md"] == "No such file or directory"
    assert reasons["folder.md"] == "Is a directory"
    assert reasons["pipe.md"] == "it is not a regular file"
    assert reasons["big.md"] == "it is too large to be rewritten"
    assert reasons["x\0.md"]
    monkeypatch.undo()
    assert str(give_uuid(tmp_path / "bad.md", UUID).refused).startswith("line 2: ")


def test_a_read_only_board_is_left_as_it_is(open_folder: Path, as_nobody: AsNobody, card: MakeCard) -> None:
    """The system's reason is told."""
    path = card(open_folder / "x.md", content=b"text")
    open_folder.chmod(0o555)
    assert as_nobody(lambda: give_uuid(path, UUID).refused) == "Permission denied"
    assert path.read_bytes() == b"text"
