"""Files are replaced as a whole or not at all; links, modes and owners stay; locks never hang."""

import errno
import os
import shutil
import stat
import threading
from pathlib import Path
from typing import List

import pytest

from companion.core import files
from companion.core.files import (
    Replacement,
    ensure_private_dir,
    held_alone,
    locked,
    real_target,
    sweep,
    write_all,
    write_atomically,
    write_new,
)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def _names(folder: Path) -> List[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_is_private_unless_told_otherwise(tmp_path: Path) -> None:
    """Whatever the umask."""
    write_atomically(tmp_path / "a", b"1")
    write_atomically(tmp_path / "b", b"2", 0o644)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o644
    assert _names(tmp_path) == ["a", "b"]


def test_an_existing_file_keeps_its_mode(tmp_path: Path) -> None:
    """Content new, rights old."""
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o664)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o664


@needs_root
def test_an_existing_file_keeps_its_owner(tmp_path: Path) -> None:
    """Root may edit somebody's file without taking it away."""
    path = tmp_path / "a"
    path.write_bytes(b"old")
    os.chown(path, 1234, 2345)
    write_atomically(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


def test_a_file_whose_owner_cannot_be_kept_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a user whose group differs from the file's."""
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def refuse(fd: int, uid: int, gid: int) -> None:
        raise PermissionError(errno.EPERM, "not yours")

    monkeypatch.setattr(os, "fchown", refuse)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("kind", ["relative", "absolute", "chain", "through a linked folder", "up and down"])
def test_a_symlink_stays_and_its_target_is_replaced(tmp_path: Path, kind: str) -> None:
    """As dotfiles repositories need it."""
    dotfiles, home = tmp_path / "dotfiles", tmp_path / "home"
    dotfiles.mkdir()
    home.mkdir()
    target, link = dotfiles / "config", home / "config"
    target.write_bytes(b"old")
    if kind == "relative":
        link.symlink_to("../dotfiles/config")
    elif kind == "absolute":
        link.symlink_to(target)
    elif kind == "chain":
        (home / "second").symlink_to("third")
        (home / "third").symlink_to(target)
        link.symlink_to("second")
    elif kind == "through a linked folder":
        (tmp_path / "alias").symlink_to(dotfiles)
        link.symlink_to("../alias/config")
    else:
        link.symlink_to("../home/../dotfiles/./config")
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert not target.is_symlink()
    assert target.read_bytes() == b"new"
    assert _names(dotfiles) == ["config"]


def test_a_dangling_link_is_followed(tmp_path: Path) -> None:
    """The file is made where it points; into a folder that is not there it cannot be."""
    (tmp_path / "link").symlink_to("target")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"
    (tmp_path / "lost").symlink_to("nowhere/target")
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "lost", b"new")


def test_a_circle_of_links_is_an_error(tmp_path: Path) -> None:
    """Not a hang."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError) as caught:
        real_target(tmp_path / "a")
    assert caught.value.errno == errno.ELOOP


def test_a_link_to_a_file_in_a_folder_that_may_not_be_written_is_an_error(tmp_path: Path) -> None:
    """A folder in the target's place, for one; the link and the folder stay."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    with pytest.raises(OSError):
        write_atomically(tmp_path / "link", b"new")
    assert _names(tmp_path) == ["folder", "link"]


@pytest.mark.parametrize("step", ["write", "fsync", "replace", "fchmod"])
def test_a_failed_write_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A full disk: old content, nothing beside it."""
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def fail(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError) as caught:
        write_atomically(path, b"new")
    monkeypatch.undo()
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == b"old"
    assert _names(tmp_path) == ["a"]


def test_the_last_look_may_stop_it(tmp_path: Path) -> None:
    """Called when everything is written, before anything is replaced."""
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def look() -> None:
        assert path.read_bytes() == b"old"
        assert len(_names(tmp_path)) == 2
        raise RuntimeError("changed")

    with pytest.raises(RuntimeError):
        write_atomically(path, b"new", before_replacing=look)
    assert path.read_bytes() == b"old"
    assert _names(tmp_path) == ["a"]


def test_a_replacement_can_grow_until_it_takes_its_place(tmp_path: Path) -> None:
    """The old file is there, and written by others, up to that moment; mode and link stay."""
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o640)
    (tmp_path / "link").symlink_to("a")
    with Replacement(tmp_path / "link") as new:
        new.write(b"1")
        new.sync()
        assert path.read_bytes() == b"old"
        new.write(b"2")
        new.take_place()
    assert path.read_bytes() == b"12" and (tmp_path / "link").is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert _names(tmp_path) == ["a", "link"]


def test_a_replacement_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    """With an error or without one."""
    (tmp_path / "a").write_bytes(b"old")
    with Replacement(tmp_path / "a") as new:
        new.write(b"1")
    with pytest.raises(RuntimeError), Replacement(tmp_path / "a"):
        raise RuntimeError
    assert (tmp_path / "a").read_bytes() == b"old" and _names(tmp_path) == ["a"]


def test_a_long_name_is_no_obstacle(tmp_path: Path) -> None:
    """The file written beside needs a name too."""
    path = tmp_path / ("日" * 80 + ".md")
    write_atomically(path, b"1")
    assert path.read_bytes() == b"1"


def test_readers_see_one_content_or_the_other(tmp_path: Path) -> None:
    """Never an empty or a half file."""
    path = tmp_path / "a"
    contents = {b"a" * 10_000, b"b" * 20_000}
    write_atomically(path, min(contents))
    seen, stop = set(), threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(20):
        for content in contents:
            write_atomically(path, content)
    stop.set()
    reader.join()
    assert seen <= contents


def test_every_byte_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may take fewer than it is given."""
    taken: List[bytes] = []

    def write(fd: int, data: memoryview) -> int:
        taken.append(bytes(data[:3]))
        return len(taken[-1])

    monkeypatch.setattr(os, "write", write)
    write_all(1, b"0123456789")
    assert b"".join(taken) == b"0123456789"


def test_a_private_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    """An existing one keeps its mode."""
    ensure_private_dir(tmp_path / "a" / "b")
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    (tmp_path / "a").chmod(0o755)
    ensure_private_dir(tmp_path / "a")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755


def test_a_lock_leaves_no_file(tmp_path: Path) -> None:
    """The folder itself is locked."""
    with locked(tmp_path) as had:
        assert had
        assert _names(tmp_path) == []


def test_a_lock_keeps_other_threads_out(tmp_path: Path) -> None:
    """One block at a time."""
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with locked(tmp_path):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF])
def test_a_file_system_without_locks_does_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The block runs at once, unlocked; the limit of a minute is not waited for."""
    calls: List[int] = []

    def flock(fd: int, operation: int) -> None:
        calls.append(operation)
        raise OSError(number, "no locks here")

    monkeypatch.setattr("fcntl.flock", flock)
    with locked(tmp_path, timeout_s=60) as had:
        assert not had
    assert len(calls) == 1


def test_a_lock_that_is_never_let_go_is_not_waited_for(tmp_path: Path) -> None:
    """After the limit the block runs without it."""
    import fcntl

    holder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    try:
        with locked(tmp_path, timeout_s=0.05) as had:
            assert not had
    finally:
        os.close(holder)
    with locked(tmp_path) as had:
        assert had


def test_a_folder_that_is_not_there_is_not_locked(tmp_path: Path) -> None:
    """The block runs; what it does will tell."""
    with locked(tmp_path / "none") as had:
        assert not had


def test_a_system_without_fcntl_has_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Windows."""
    monkeypatch.setattr(files, "fcntl", None)
    with locked(tmp_path) as had:
        assert not had


def test_what_a_killed_writer_left_is_swept_away(tmp_path: Path) -> None:
    """Old leftovers of this file go; young ones, other files' and the file itself stay."""
    path = tmp_path / "a[1].jsonl"
    path.write_bytes(b"kept")
    left = {name: tmp_path / name for name in (".a[1].jsonl.77-0.tmp", ".a1.jsonl.77-0.tmp", ".b.77-0.tmp")}
    for each in left.values():
        each.write_bytes(b"half")
        os.utime(each, (1_000_000, 1_000_000))
    (tmp_path / ".a[1].jsonl.78-0.tmp").write_bytes(b"being written")
    sweep(path)
    assert _names(tmp_path) == [".a1.jsonl.77-0.tmp", ".a[1].jsonl.78-0.tmp", ".b.77-0.tmp", "a[1].jsonl"]
    sweep(tmp_path / "no" / "such")


def test_what_is_left_of_a_file_with_a_long_name_is_swept_away_too(tmp_path: Path) -> None:
    """Its leftovers carry only the beginning of the name."""
    path = tmp_path / ("n" * 200 + ".jsonl")

    def killed() -> None:
        (left,) = tmp_path.iterdir()
        shutil.copy(left, tmp_path / (left.name[: -len(".tmp")] + "0.tmp"))

    write_atomically(path, b"kept", before_replacing=killed)
    (left,) = (each for each in tmp_path.iterdir() if each != path)
    os.utime(left, (1_000_000, 1_000_000))
    sweep(path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_is_whole_and_never_takes_anothers_place(tmp_path: Path) -> None:
    """Not that of a file, a folder, or a dangling link; nothing is left beside it."""
    write_new(tmp_path / "a", b"1", 0o640)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("a", "folder", "link"):
        with pytest.raises(FileExistsError):
            write_new(tmp_path / name, b"2")
    assert (tmp_path / "a").read_bytes() == b"1"
    assert _names(tmp_path) == ["a", "folder", "link"]


def test_where_there_are_no_hard_links_a_new_file_is_written_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAT and some network disks have none."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    write_new(tmp_path / "a", b"1")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "a", b"2")
    assert (tmp_path / "a").read_bytes() == b"1"
    assert _names(tmp_path) == ["a"]


@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_that_cannot_be_finished_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    """A disk that is full, at the first or the second try."""
    calls: List[int] = []
    real_fsync = os.fsync

    def full(fd: int) -> None:
        calls.append(fd)
        if links or len(calls) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real_fsync(fd)

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(OSError, match="space"):
        write_new(tmp_path / "a", b"1")
    assert _names(tmp_path) == []


def test_many_writers_of_one_new_name_give_one_file(tmp_path: Path) -> None:
    """All but one are told."""
    refused: List[int] = []

    def write(number: int) -> None:
        try:
            write_new(tmp_path / "a", str(number).encode() * 10_000)
        except FileExistsError:
            refused.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 7 and _names(tmp_path) == ["a"]
    assert len(set((tmp_path / "a").read_bytes())) == 1


def test_a_folder_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    """The second is told so at once, and may try again later."""
    with held_alone(tmp_path) as first:
        assert first
        with held_alone(tmp_path) as second:
            assert not second
    with held_alone(tmp_path) as third:
        assert third
    assert _names(tmp_path) == []


def test_where_there_are_no_locks_everybody_is_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather two at work than none: on disks without locks, for folders that are away, without fcntl."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with held_alone(tmp_path / "away") as alone:
        assert alone
    monkeypatch.setattr("companion.core.files.fcntl.flock", refuse)
    with held_alone(tmp_path) as alone:
        assert alone
    monkeypatch.setattr(files, "fcntl", None)
    with held_alone(tmp_path) as alone:
        assert alone
