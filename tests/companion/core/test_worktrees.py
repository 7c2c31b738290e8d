"""Folders of real repositories, worktrees and submodules."""

import os
import subprocess
from pathlib import Path

import pytest

from companion.core.worktrees import repository_of


def git(folder: Path, *words: str) -> None:
    """Run git as nobody in particular."""
    who = ["-c", "user.name=Dev", "-c", "user.email=dev@example.org", "-c", "protocol.file.allow=always"]
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *who, *words], cwd=folder, env=environ, check=True, capture_output=True)


@pytest.fixture
def main(tmp_path: Path) -> Path:
    """A repository with one commit."""
    folder = tmp_path / "my repository"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def test_a_folder_belongs_to_the_repository_above_it(main: Path) -> None:
    """However deep."""
    deep = main / "a" / "b"
    deep.mkdir(parents=True)
    assert repository_of(str(deep)) == repository_of(str(main)) == str(main)


def test_a_worktree_belongs_to_its_repository(main: Path, tmp_path: Path) -> None:
    """Wherever it lies; of one that was removed nothing is told."""
    git(main, "worktree", "add", "-q", "../elsewhere", "-b", "other")
    inner = tmp_path / "elsewhere" / "src"
    inner.mkdir()
    assert repository_of(str(inner)) == str(main)
    git(main, "worktree", "remove", "--force", "../elsewhere")
    assert repository_of(str(inner)) is None


def test_a_submodule_is_a_repository_of_its_own(main: Path, tmp_path: Path) -> None:
    """Its .git is a file, too."""
    part = tmp_path / "part"
    part.mkdir()
    git(part, "init", "-q")
    git(part, "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "submodule", "add", "-q", "../part", "inner")
    assert repository_of(str(main / "inner")) == str(main / "inner")


@pytest.mark.parametrize("content", [b"", b"gitdir:", b"\xff\xfe", b"gitdir: /nowhere/at/all", b"x" * 9000])
def test_a_damaged_file_is_no_repository(tmp_path: Path, content: bytes) -> None:
    """Nor is it an error."""
    (tmp_path / ".git").write_bytes(content)
    assert repository_of(str(tmp_path)) in (None, str(tmp_path))


def test_what_is_no_folder_belongs_to_none() -> None:
    """It comes from a file of somebody else."""
    for folder in ("/", "/nowhere/at/all", "relative", "", "/\0"):
        assert repository_of(folder) is None
