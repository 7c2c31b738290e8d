"""The build script: the same bytes everywhere, and what it leaves out."""

import ast
import importlib.util
import marshal
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import REAL_ENVIRON, ROOT


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_script", ROOT / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build = _load()


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository's sources in another folder, whose name is a trying one; built there."""
    folder = tmp_path_factory.mktemp("build") / "an other's föld er"
    folder.mkdir()
    for name in ("build.py", "mdello.py"):
        shutil.copy(ROOT / name, folder)
    for name in ("adapters", "companion"):
        shutil.copytree(ROOT / name, folder / name)
    built_in(folder)
    return folder


@pytest.fixture
def checkout(first: Path, tmp_path: Path) -> Path:
    """A copy of that folder, with what was built there."""
    return Path(shutil.copytree(first, tmp_path / "checkout"))


def built_in(folder: Path, **environ: str) -> bytes:
    """The bytes of the file that the script makes in a folder."""
    subprocess.run(
        [sys.executable, str(folder / "build.py"), "build"],
        env={**REAL_ENVIRON, **environ},
        cwd=folder.parent,
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    return (folder / "dist" / "mdello.pyz").read_bytes()


def test_two_folders_give_the_same_bytes(first: Path, checkout: Path) -> None:
    """Whatever the folder, file modes, times, leftovers, locale, time zone and variables are."""
    for path in checkout.rglob("*.py"):
        path.chmod(0o700)
        os.utime(path, (1_000_000_000, 1_000_000_000))
    (checkout / "companion" / "__pycache__").mkdir(exist_ok=True)
    (checkout / "companion" / "__pycache__" / "left.pyc").write_bytes(b"left over")
    (checkout / "companion" / ".hidden.swp").write_bytes(b"left over")
    second = built_in(
        checkout,
        TZ="Asia/Tokyo",
        LC_ALL="C",
        SOURCE_DATE_EPOCH="1700000000",
        PYTHONHASHSEED="7",
        PYTHONPATH=str(first),
        SHIV_ROOT="/nonexistent",
    )
    assert second == (first / "dist" / "mdello.pyz").read_bytes()


def test_the_python_that_runs_the_script_does_not_matter(checkout: Path) -> None:
    """The oldest one makes the same file (with the same zlib below it)."""
    before = (checkout / "dist" / "mdello.pyz").read_bytes()
    oldest = build.find_pythons()[0].path
    ask = [oldest, "-c", "import zlib; print(zlib.ZLIB_RUNTIME_VERSION)"]
    if subprocess.run(ask, capture_output=True, text=True).stdout.strip() != zlib.ZLIB_RUNTIME_VERSION:
        pytest.skip("the oldest Python here compresses with another zlib")
    subprocess.run([oldest, str(checkout / "build.py")], env=REAL_ENVIRON, check=True, capture_output=True)
    assert (checkout / "dist" / "mdello.pyz").read_bytes() == before


def test_a_second_build_is_not_made_without_need(checkout: Path) -> None:
    """``--if-needed`` looks at contents; a changed source is noticed."""
    command = [sys.executable, str(checkout / "build.py"), "build", "--if-needed"]
    said = []
    for change in (False, True):
        if change:
            with (checkout / "mdello.py").open("a") as handle:
                handle.write("\nCHANGED = 1\n")
        done = subprocess.run(command, env=REAL_ENVIRON, check=True, capture_output=True, text=True)
        said.append("bytes, compiled for" in done.stderr)
    assert said == [False, True]


def test_the_file_that_is_there_stays_when_a_build_fails(checkout: Path) -> None:
    """A syntax error: exit code 1, one line that names the step, the old file whole."""
    before = (checkout / "dist" / "mdello.pyz").read_bytes()
    (checkout / "companion" / "broken.py").write_text("def (:\n")
    done = subprocess.run(
        [sys.executable, str(checkout / "build.py")], env=REAL_ENVIRON, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "broken.py" in done.stderr
    assert (checkout / "dist" / "mdello.pyz").read_bytes() == before
    assert not list((checkout / "dist").glob(".mdello-*"))


def test_compiled_modules_never_push_the_file_over_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit starts from source; what short commands need is kept longest."""
    stage = tmp_path / "stage"
    (stage / "companion" / "core").mkdir(parents=True)
    for number in range(30):
        lines = [f"v{number}_{n} = {number * n * 7919} + len('{number * n}')" for n in range(60)]
        (stage / "companion" / f"zz{number}.py").write_text("\n".join(lines))
    (stage / "mdello.py").write_text("X = 1\n")
    (stage / "companion" / "core" / "files.py").write_text("Y = 2\n")
    pythons = build.find_pythons()[-1:]
    everything = marshal.loads(next(iter(build._ready_members(stage, pythons, {}).values())))
    assert len(everything) == 32
    monkeypatch.setattr(build, "READY_LIMIT_BYTES", 6_000)
    members = build._ready_members(stage, pythons, {})
    kept = marshal.loads(next(iter(members.values())))
    assert {"mdello", "companion.core.files"} <= set(kept) < set(everything)
    assert sum(len(zlib.compress(data, 9)) for data in members.values()) <= 6_000


def test_pythons_are_found_once_per_version_and_in_order() -> None:
    """Oldest first, this one among them, each with its own mark of compiled files."""
    found = build.find_pythons()
    versions = [python.version[:2] for python in found]
    assert versions == sorted(set(versions))
    assert sys.version_info[:2] in versions
    assert len({python.magic for python in found}) == len(found)


def test_tools_go_where_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The named folder, else the user's cache, else this repository's: a home may be unusable."""
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setattr(build, "ROOT", tmp_path / "repository")
    monkeypatch.setenv("MDELLO_BUILD_CACHE", str(tmp_path / "named"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert build.cache_dir() == tmp_path / "named"
    monkeypatch.setenv("MDELLO_BUILD_CACHE", "")
    assert build.cache_dir() == tmp_path / "xdg" / "mdello-build"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert build.cache_dir() == tmp_path / "home" / ".cache" / "mdello-build"
    monkeypatch.setenv("HOME", str(file / "home"))
    assert build.cache_dir() == tmp_path / "repository" / ".cache"


def test_the_script_imports_nothing_of_ours() -> None:
    """A broken source file must not break the build script."""
    for node in ast.walk(ast.parse((ROOT / "build.py").read_bytes())):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            assert not {name.partition(".")[0] for name in names} & {"mdello", "adapters", "companion"}


def test_an_unknown_option_is_refused() -> None:
    """Only ``test`` passes what it does not know on to pytest."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "build.py"), "build", "--fats"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "--fats" in done.stderr
