"""A folder of ours in a foreign tree; what :mod:`adapters.claude.install` does with it is tested there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.claude import folder
from adapters.claude.folder import Item

ITEMS = (Item("mark/own.json", b"{}"), Item("link", link="/somewhere"), Item("data/x", b"1"))


def dead_pid() -> int:
    """The pid of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_the_folder_appears_as_a_whole_and_goes_as_a_whole(tmp_path: Path) -> None:
    """For this user alone."""
    place = tmp_path / "ours"
    folder.put_new(place, ITEMS)
    assert (place / "mark" / "own.json").read_bytes() == b"{}"
    assert os.readlink(place / "link") == "/somewhere"
    assert place.stat().st_mode & 0o777 == 0o700
    assert (place / "data" / "x").stat().st_mode & 0o777 == 0o600
    assert folder.take_away(place, ITEMS) == []
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_above_nothing_is_made(tmp_path: Path) -> None:
    """That is the record's business."""
    with pytest.raises(FileNotFoundError):
        folder.put_new(tmp_path / "a" / "ours", ITEMS)
    assert list(tmp_path.iterdir()) == []


def test_something_in_its_place_is_never_replaced(tmp_path: Path) -> None:
    """Not even an empty folder."""
    place = tmp_path / "ours"
    place.mkdir()
    with pytest.raises(FileExistsError):
        folder.put_new(place, ITEMS)
    assert list(tmp_path.rglob("*")) == [place]


def test_what_appears_in_its_place_in_the_meantime_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing of ours is left beside it."""
    place = tmp_path / "ours"
    rename = os.rename

    def late(source: Path, target: Path) -> None:
        place.mkdir()
        (place / "theirs").touch()
        rename(source, target)

    monkeypatch.setattr(os, "rename", late)
    with pytest.raises(FileExistsError):
        folder.put_new(place, ITEMS)
    assert sorted(tmp_path.rglob("*")) == [place, place / "theirs"]


def test_updating_writes_only_what_differs(tmp_path: Path) -> None:
    """In order; what is right is not touched."""
    place = tmp_path / "ours"
    folder.put_new(place, ITEMS)
    before = (place / "mark" / "own.json").stat()
    newer = (ITEMS[0], Item("link", link="/else"), Item("data/x", b"22"))
    assert folder.differing(place, newer) == ["link", "data/x"]
    assert folder.update(place, newer) == ["link", "data/x"]
    assert folder.update(place, newer) == []
    after = (place / "mark" / "own.json").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_failed_update_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, for one."""
    place = tmp_path / "ours"
    folder.put_new(place, ITEMS)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        folder.update(place, (Item("data/x", b"22"),))
    assert (place / "data" / "x").read_bytes() == b"1"
    assert folder.strangers(place, ITEMS) == []


def test_strangers_are_named_and_foreign_folders_not_entered(tmp_path: Path) -> None:
    """Anything but our names, sorted; leftovers of a dead process of ours are no strangers."""
    place = tmp_path / "ours"
    folder.put_new(place, ITEMS)
    (place / "more").mkdir()
    (place / "more" / "inside").touch()
    (place / "data" / "y").touch()
    (place / f".mdello-{dead_pid()}-0.tmp").touch()
    alive = f".mdello-{os.getpid()}-0.tmp"
    (place / alive).touch()
    assert folder.strangers(place, ITEMS) == [alive, "data/y", "more"]


def test_sweeping_removes_leftovers_of_the_dead_only(tmp_path: Path) -> None:
    """Names that merely look alike, and what a living process is at, stay."""
    place = tmp_path / "a" / "ours"
    dead = tmp_path / f".mdello-{dead_pid()}-3.tmp"
    (dead / "ours" / "mark").mkdir(parents=True)
    (dead / "ours" / "link").symlink_to(tmp_path)
    living = tmp_path / f".mdello-{os.getppid()}-3.tmp"
    living.mkdir()
    alike = [tmp_path / name for name in (".mdello-1x-3.tmp", ".mdello-999999999999-1.tmp", "mdello-1-1.tmp")]
    for path in alike:
        path.touch()
    folder.sweep(place, ITEMS)
    assert not dead.exists()
    assert all(path.exists() for path in (living, *alike))


def test_a_file_that_comes_in_while_the_folder_goes_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is put back where it was, and named."""
    place = tmp_path / "ours"
    folder.put_new(place, ITEMS)
    rename = os.rename

    def late(source: Path, target: Path) -> None:
        if Path(source) == place:
            (place / "late").write_text("mine")
        rename(source, target)

    monkeypatch.setattr(os, "rename", late)
    assert folder.take_away(place, ITEMS) == ["late"]
    assert (place / "late").read_text() == "mine"
    assert [path.name for path in place.iterdir()] == ["late"]


def test_a_folder_that_cannot_be_emptied_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read-only folders within, for one: it is still known as ours afterwards."""
    place = tmp_path / "ours"
    folder.put_new(place, ITEMS)

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(PermissionError):
        folder.take_away(place, ITEMS)
    assert (place / "mark" / "own.json").exists()


def test_our_names_held_by_other_kinds_are_misplaced(tmp_path: Path) -> None:
    """A folder that is a link, or a file that is a folder, is not ours."""
    place = tmp_path / "ours"
    place.mkdir()
    assert folder.misplaced(place, ITEMS) is None
    (place / "data").symlink_to(tmp_path)
    assert folder.misplaced(place, ITEMS) == "data in it is no folder"
    (place / "data").unlink()
    (place / "link").touch()
    assert folder.misplaced(place, ITEMS) == "link in it is no symbolic link"
