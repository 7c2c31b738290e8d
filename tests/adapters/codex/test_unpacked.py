"""Compressed files, unpacked by Python or by the program."""

import importlib.util
import os
import shutil
import stat
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from adapters.codex import unpacked as module
from adapters.codex.unpacked import unpacked
from tests.adapters.codex.records import meta, rollout

has_module = importlib.util.find_spec("compression") is not None
needs_zstd = pytest.mark.skipif(not (shutil.which("zstd") or has_module), reason="no zstd")


def packed(path: Path) -> Path:
    """The file in compressed form, in its place."""
    assert os.spawnlp(os.P_WAIT, "zstd", "zstd", "-q", "--rm", str(path)) == 0
    return path.with_name(path.name + ".zst")


def program(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A zstd of ours alone on PATH, for a Python without its own."""
    monkeypatch.setitem(sys.modules, "compression", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    path = folder / "bin" / "zstd"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(path.parent))


def test_a_plain_file_is_itself(tmp_path: Path) -> None:
    """Nothing is copied."""
    path = rollout(tmp_path, meta())
    with unpacked(path) as plain:
        assert plain == path


@needs_zstd
@pytest.mark.skipif(shutil.which("zstd") is None, reason="no zstd")
def test_a_copy_that_is_gone_afterwards(tmp_path: Path) -> None:
    """For this user alone."""
    path = rollout(tmp_path, meta())
    data = path.read_bytes()
    with unpacked(packed(path)) as plain:
        assert plain.read_bytes() == data
        assert plain.stat().st_mode & 0o077 == 0
    assert not plain.exists()


@needs_zstd
def test_damage_is_an_error_for_people(tmp_path: Path) -> None:
    """And leaves no copy."""
    path = tmp_path / "rollout-x.jsonl.zst"
    path.write_bytes(b"no zstd")
    with pytest.raises(OSError, match="unpack"), unpacked(path):
        pytest.fail("it was unpacked")


def test_without_program_or_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said what is needed."""
    program(tmp_path, monkeypatch, "")
    (tmp_path / "bin" / "zstd").unlink()
    with pytest.raises(OSError, match=r"the program zstd, or Python 3\.14"), unpacked(tmp_path / "x.zst"):
        pytest.fail("it was unpacked")


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("while :; do echo too much; done", "more than"),
        ("echo some; exit 3", "exit code 3"),
        ("exec sleep 600", "exit code -9"),
    ],
)
def test_the_program_has_limits(
    script: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of size and of time; it is ended, and what it wrote is gone."""
    program(tmp_path, monkeypatch, f'PATH=/usr/bin:/bin; [ "$1" = -dcq ] || exit 9; {script}')
    monkeypatch.setattr(module, "LIMIT_BYTES", 3 * 1024 * 1024)
    monkeypatch.setattr(module, "LIMIT_S", 1.0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(OSError, match=told), unpacked(tmp_path / "x.zst"):
        pytest.fail("it was unpacked")
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


def test_pythons_own_module_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is one; its errors are ours."""
    path = tmp_path / "x.zst"
    path.write_bytes(b"words")
    fake: Any = types.ModuleType("compression.zstd")
    fake.ZstdError, fake.open = ValueError, open
    monkeypatch.setitem(sys.modules, "compression", types.ModuleType("compression"))
    monkeypatch.setitem(sys.modules, "compression.zstd", fake)
    monkeypatch.setenv("PATH", "")
    with unpacked(path) as plain:
        assert plain.read_bytes() == b"words"

    def damaged(*_: object) -> Any:
        raise ValueError("bad frame")

    fake.open = damaged
    with pytest.raises(OSError, match="bad frame"), unpacked(path):
        pytest.fail("it was unpacked")
