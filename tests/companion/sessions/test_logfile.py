"""Log files seen from outside."""

import os
from pathlib import Path

import pytest

from companion.sessions.logfile import look, open_to_read, refuse_irregular, seen_of, surely_absent


def test_a_look_tells_one_state_of_a_file_from_another(tmp_path: Path) -> None:
    """By device, inode and size; nothing for a missing file."""
    path = tmp_path / "log"
    assert look(path) is None
    path.write_bytes(b"1")
    first = look(path)
    assert first == seen_of(os.stat(path)) and first is not None and first.size == 1
    path.write_bytes(b"12")
    second = look(path)
    assert second is not None and second[:2] == first[:2] and second != first


def test_only_what_is_surely_not_there_is_absent(tmp_path: Path) -> None:
    """A dangling link is there; below a file nothing can be."""
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").write_bytes(b"")
    assert surely_absent(tmp_path / "none") and surely_absent(tmp_path / "file" / "below")
    assert not surely_absent(tmp_path / "link") and not surely_absent(tmp_path / "file")
    assert not surely_absent(tmp_path / ("x" * 300))


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    """A pipe would hang, a folder has no lines, a missing file is no error."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(OSError, match=r"regular|directory"):
            open_to_read(path)
        with pytest.raises(OSError, match="not a regular file"):
            refuse_irregular(os.stat(path))
    assert open_to_read(tmp_path / "none") is None
    (tmp_path / "log").write_bytes(b"x\n")
    file = open_to_read(tmp_path / "log")
    assert file is not None
    with file:
        assert file.read() == b"x\n"
