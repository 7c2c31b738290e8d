"""Unpacking by shiv's start-up code, with a small stand-in for shiv.

The real one, in the real file, is driven by ``tests/test_pyz.py``.
"""

import errno
import os
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, List

import pytest

from companion.archive import shiv


class FakeShiv:
    """What of ``_bootstrap`` is used: the environment, the path, and the unpacking."""

    def __init__(self, root: Path, force: bool = False, fails: bool = False) -> None:
        self.root = root
        self.fails = fails
        self.unpacked: List[Path] = []
        settings = SimpleNamespace(root=str(root), build_id="id", force_extract=force, compile_pyc=False)
        self.Environment = SimpleNamespace(from_json=lambda text: settings)

    def cache_path(self, archive: zipfile.ZipFile, root: str, build_id: str) -> Path:
        """As shiv: the root, the archive's name, the build."""
        return Path(root) / f"it_{build_id}"

    def extract_site_packages(self, archive: zipfile.ZipFile, target: Path, *more: Any) -> None:
        """As shiv: to a folder beside, then moved."""
        self.unpacked.append(target)
        beside = target.with_name(target.name + ".tmp")
        archive.extract("site-packages/a.py", beside)
        if self.fails:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.replace(beside, target)


@pytest.fixture
def archive(tmp_path: Path) -> str:
    """A file with one module."""
    path = tmp_path / "it.pyz"
    with zipfile.ZipFile(path, "w") as target:
        target.writestr("environment.json", "{}")
        target.writestr("site-packages/a.py", "A = 1\n")
    return str(path)


def test_the_first_run_unpacks_and_the_second_uses_it(archive: str, tmp_path: Path) -> None:
    """Into a folder for this user alone."""
    fake = FakeShiv(tmp_path / "root")
    for _ in range(2):
        assert shiv._unpack(fake, archive) == tmp_path / "root" / "it_id" / "site-packages"
    assert len(fake.unpacked) == 1
    assert (tmp_path / "root").stat().st_mode & 0o777 == 0o700


def test_a_failure_leaves_nothing_beside(archive: str, tmp_path: Path) -> None:
    """A full disk: the error comes out, the half of the tree does not stay."""
    with pytest.raises(OSError, match="space"):
        shiv._unpack(FakeShiv(tmp_path / "root", fails=True), archive)
    assert [path.name for path in (tmp_path / "root").iterdir()] == [".it_id_lock"]


def test_a_damaged_tree_is_not_whole(archive: str, tmp_path: Path) -> None:
    """A file that is missing or shorter than it should be."""
    fake = FakeShiv(tmp_path / "root")
    file = shiv._unpack(fake, archive) / "a.py"
    with zipfile.ZipFile(archive) as opened:
        assert shiv._is_whole(opened, tmp_path / "root" / "it_id")
        file.write_text("A")
        assert not shiv._is_whole(opened, tmp_path / "root" / "it_id")
        file.unlink()
        assert not shiv._is_whole(opened, tmp_path / "root" / "it_id")


def test_a_root_that_all_may_write_is_refused(tmp_path: Path) -> None:
    """Somebody could have put files there; a missing folder is fine."""
    shiv._refuse_strangers(tmp_path / "missing")
    shiv._refuse_strangers(tmp_path)
    tmp_path.chmod(0o777)
    with pytest.raises(shiv.Unusable, match="by everybody"):
        shiv._refuse_strangers(tmp_path)


def test_an_unzipped_folder_ignores_the_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says so in one line, and an empty variable is taken away."""
    monkeypatch.setenv("SHIV_ENTRY_POINT", "")
    shiv.run(str(tmp_path))
    assert "SHIV_ENTRY_POINT" not in os.environ
    assert len(capsys.readouterr().err.splitlines()) == 1
