"""Where we run from, and whether that file is still the same."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Dict

import pytest

from companion.core import archive
from companion.core.archive import ArchiveWatch
from tests.conftest import ROOT

WHERE = "from companion.core import archive; print(archive.program_path(), archive.in_archive())"


def test_a_checkout_is_started_by_its_script() -> None:
    """Also when something else (a test runner) imported us."""
    assert archive.program_path() == ROOT / "mdello.py"
    assert not archive.in_archive()


def test_the_archive_knows_its_absolute_path(
    pyz: Path, clean_environ: Dict[str, str], tmp_path: Path
) -> None:
    """Called by a relative path; also unpacked by shiv, where the file itself is meant."""
    for more in ({}, {"SHIV_ROOT": str(tmp_path / "shiv")}):
        environ = {**clean_environ, **more, "SHIV_ENTRY_POINT": "", "SHIV_INTERPRETER": "1"}
        done = subprocess.run(
            [sys.executable, os.path.relpath(pyz, tmp_path), "-c", WHERE],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == f"{pyz} True\n"


def test_a_watch_on_an_untouched_file_is_silent(tmp_path: Path) -> None:
    """Reading the file or its neighbours changes nothing."""
    file = tmp_path / "it.pyz"
    file.write_bytes(b"one")
    watch = ArchiveWatch(file)
    file.read_bytes()
    (tmp_path / "other").touch()
    assert not watch.replaced()


@pytest.mark.parametrize("how", ["renamed over", "written", "removed", "touched"])
def test_a_watch_notices_every_change(tmp_path: Path, how: str) -> None:
    """Atomic or in place, to the same bytes too: positions learned before may be wrong now."""
    file = tmp_path / "it.pyz"
    file.write_bytes(b"one")
    watch = ArchiveWatch(file)
    if how == "renamed over":
        (tmp_path / "new").write_bytes(b"one")
        os.replace(tmp_path / "new", file)
    elif how == "written":
        file.write_bytes(b"longer")
    elif how == "removed":
        file.unlink()
    else:
        os.utime(file, ns=(1, 1))
    assert watch.replaced()


def test_a_watch_follows_the_link(tmp_path: Path) -> None:
    """An update may point the symlink at another version."""
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(name.encode())
    link = tmp_path / "link"
    link.symlink_to("one")
    watch = ArchiveWatch(link)
    link.unlink()
    link.symlink_to("two")
    assert watch.replaced()


def test_a_missing_file_is_replaced_once_it_is_there(tmp_path: Path) -> None:
    """Nothing is raised for a file that cannot be asked about."""
    watch = ArchiveWatch(tmp_path / "later")
    assert not watch.replaced()
    (tmp_path / "later").touch()
    assert watch.replaced()


def test_sha256_reads_all_of_the_file(tmp_path: Path) -> None:
    """More than one chunk; OSError for a missing file."""
    file = tmp_path / "big"
    data = b"x" * (archive._CHUNK_BYTES + 1)
    file.write_bytes(data)
    assert archive.sha256(file) == hashlib.sha256(data).hexdigest()
    with pytest.raises(FileNotFoundError):
        archive.sha256(tmp_path / "none")


def test_import_all_imports_every_module() -> None:
    """All of a package; the archive's own start-up code is none of it."""
    command = (
        "import sys; from companion.core import archive; n = archive.import_all('companion.core');"
        "print(n == sum(m.startswith('companion.core') for m in sys.modules));"
        "print('companion.core.hub' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "True"]


def test_import_all_works_in_the_archive(pyz: Path, clean_environ: Dict[str, str]) -> None:
    """Modules compiled and not compiled are found alike."""
    command = (
        "from companion.core import archive;print(archive.import_all('companion.core'), archive.__file__)"
    )
    environ = {**clean_environ, "SHIV_INTERPRETER": "1", "SHIV_ROOT": "/proc/no/such"}
    done = subprocess.run(
        [sys.executable, str(pyz), "-c", command], env=environ, capture_output=True, text=True, check=True
    )
    modules = list((ROOT / "companion" / "core").glob("*.py"))
    assert done.stdout.split()[0] == str(len(modules))
