"""Small files and links of ours in foreign folders: whole or not at all, and nothing left beside them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adapters import placing
from adapters.contract import AdapterError
from tests.adapters.disk import refusal_to_nobody


def dead_pid() -> int:
    """The pid of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_links_among_the_parents_are_followed_and_the_last_part_is_not(tmp_path: Path) -> None:
    """Also a dangling one: that is where a write will go."""
    (tmp_path / "link").symlink_to("behind/deep")
    (tmp_path / "last").symlink_to("behind")
    assert placing.real_place(tmp_path / "link" / "x") == tmp_path / "behind" / "deep" / "x"
    assert placing.real_place(tmp_path / "last") == tmp_path / "last"


def test_kinds(tmp_path: Path) -> None:
    """A link is a link, wherever it leads; below a file there is nothing."""
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    found = {
        name: placing.kind_of(tmp_path / name) for name in (".", "file", "link", "pipe", "no", "file/no")
    }
    assert found == {
        ".": "folder",
        "file": "file",
        "link": "link",
        "pipe": "special",
        "no": "absent",
        "file/no": "absent",
    }


def test_missing_folders_are_named_topmost_first(tmp_path: Path) -> None:
    """None when all of them exist."""
    assert placing.missing_folders(tmp_path) == []
    assert placing.missing_folders(tmp_path / "a" / "b") == [tmp_path / "a", tmp_path / "a" / "b"]


def test_a_read_only_folder_is_told_by_its_name(tmp_path: Path) -> None:
    """Also when it is only a parent of what would have to be made."""
    placing.demand_writable(tmp_path / "a" / "b" / "c")

    def ask() -> None:
        try:
            placing.demand_writable(Path("/usr/no/such/place"))
        except PermissionError as exc:
            raise AdapterError(str(exc.strerror)) from exc

    assert "Permission denied: /usr" in refusal_to_nobody(ask)


def test_only_plain_files_are_read_and_only_so_much(tmp_path: Path) -> None:
    """Anything else is empty; a pipe would never end."""
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    assert placing.read_small(tmp_path / "file", 3) == b"123"
    assert [placing.read_small(tmp_path / name, 3) for name in ("link", "pipe", "none", ".")] == [b""] * 4


def test_what_else_a_folder_holds(tmp_path: Path) -> None:
    """A folder that cannot be read holds nothing that we know of."""
    (tmp_path / "ours").touch()
    assert not placing.holds_other(tmp_path, "ours")
    assert placing.holds_other(tmp_path)
    assert not placing.holds_other(tmp_path / "ours", "x")


def test_a_file_is_replaced_as_a_whole_and_is_private(tmp_path: Path) -> None:
    """A failure leaves the old one and nothing beside it."""
    place = tmp_path / "file"
    placing.put_file(place, b"1")
    assert place.stat().st_mode & 0o777 == 0o600
    placing.put_file(place, b"22")
    assert place.read_bytes() == b"22"


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing beside it."""
    place = tmp_path / "file"
    placing.put_file(place, b"1")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        placing.put_file(place, b"22")
    assert place.read_bytes() == b"1"
    assert list(tmp_path.iterdir()) == [place]


def test_a_link_replaces_only_when_that_is_meant(tmp_path: Path) -> None:
    """What has appeared in its place meanwhile stays."""
    place = tmp_path / "link"
    placing.put_link(place, "/one", replacing=False)
    with pytest.raises(FileExistsError):
        placing.put_link(place, "/two", replacing=False)
    placing.put_link(place, "/two", replacing=True)
    assert os.readlink(place) == "/two"
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        placing.put_link(tmp_path / "folder", "/two", replacing=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link"]


def test_sweeping_removes_leftovers_of_the_dead_only(tmp_path: Path) -> None:
    """Names that merely look alike, and what a living process is at, stay; links are not followed."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").touch()
    folder = tmp_path / "folder"
    dead = folder / f".mdello-{dead_pid()}-3.tmp"
    (dead / "deep").mkdir(parents=True)
    (dead / "deep" / "link").symlink_to(outside)
    (dead / "file").touch()
    (folder / f".mdello-{dead_pid()}-4.tmp").symlink_to(outside)
    # Of one that was killed and had our number: in a container that is the rule.
    (folder / f".mdello-{os.getpid()}-999999.tmp").touch()
    living = folder / f".mdello-{os.getppid()}-3.tmp"
    alike = [folder / name for name in (".mdello-1x-3.tmp", ".mdello-999999999999-1.tmp", "mdello-1-1.tmp")]
    own = folder / placing.new_name()
    for path in (living, own, *alike):
        path.touch()
    placing.sweep(folder)
    assert set(folder.iterdir()) == {living, own, *alike}
    assert (outside / "file").exists()
    placing.sweep(tmp_path / "none")


def test_a_folder_that_the_environment_tells() -> None:
    """An absolute one, or none; a relative one is refused by its variable's name."""
    default = Path("/home/dev/.agent")
    assert placing.told_folder({"AGENT": "/else"}, "AGENT", default) == Path("/else")
    assert placing.told_folder({"AGENT": ""}, "AGENT", default) == default
    assert placing.told_folder({}, "AGENT", default) == default
    with pytest.raises(AdapterError, match=r"^AGENT is 'here': it must be an absolute path$"):
        placing.told_folder({"AGENT": "here"}, "AGENT", default)
