"""Python and our own file."""

import hashlib
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from companion.commands.checks import program
from companion.commands.checks.finding import State
from companion.core import archive


def test_python_and_a_checkout_are_named(tmp_path: Path) -> None:
    """Version and path of both."""
    python, ours = program.check(tmp_path / "mdello.py", "1.2.3")
    assert python.state is State.OK and sys.executable in python.text
    assert ours.state is State.OK and "1.2.3 from a folder" in ours.text


def test_a_file_is_told_with_its_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it can be compared with the published one."""
    file = tmp_path / "mdello.pyz"
    file.write_bytes(b"zip")
    monkeypatch.setattr(archive, "in_archive", lambda: True)
    _, ours = program.check(file, "1.2.3")
    assert hashlib.sha256(b"zip").hexdigest() in ours.text
    file.unlink()
    _, ours = program.check(file, "1.2.3")
    assert ours.state is State.UNKNOWN


def test_an_old_python_is_wrong(tmp_path: Path) -> None:
    """With the version that is needed."""
    python, _ = program.check(tmp_path, "1", (3, 8, 9))
    assert python.state is State.WRONG and "3.9" in python.hint


def test_a_disk_that_starts_nothing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the form that works there. Otherwise nothing is said."""
    path = tmp_path / "my mdello.pyz"
    path.touch()
    assert len(program.check(path, "1")) == 2
    monkeypatch.setattr(os, "ST_NOEXEC", 8, raising=False)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=8 | 2))
    *_, told = program.check(path, "1")
    assert told.state is State.UNKNOWN and "noexec" in told.text
    assert told.hint == f"Start it so: python3 '{path}'"
    path.unlink()
    monkeypatch.undo()
    assert len(program.check(path, "1")) == 2
