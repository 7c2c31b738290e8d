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
from typing import List

import pytest

from tests.conftest import REAL_ENVIRON, ROOT


def _load(folder: Path = ROOT) -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_script", folder / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build = _load()


@pytest.fixture
def checkout(tmp_path: Path, pyz: Path) -> Path:
    """The repository's sources in another folder, whose name is a trying one, and what was built of them."""
    folder = tmp_path / "an other's föld er"
    (folder / "dist").mkdir(parents=True)
    for name in ("build.py", "mdello.py"):
        shutil.copy(ROOT / name, folder)
    for name in ("adapters", "companion"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(pyz, folder / "dist")
    return folder


def another_python() -> str:
    """The oldest Python that is not this one and has the same zlib; this one when there is none."""
    ask = ["-c", "import zlib; print(zlib.ZLIB_RUNTIME_VERSION)"]
    for python in build.find_pythons():
        if python.version[:2] != sys.version_info[:2]:
            said = subprocess.run([python.path, *ask], capture_output=True, text=True).stdout
            if said.strip() == zlib.ZLIB_RUNTIME_VERSION:
                return str(python.path)
    return sys.executable


def test_the_same_bytes_everywhere(checkout: Path, pyz: Path) -> None:
    """Whatever the folder, Python, file modes, times, leftovers, locale, time zone and variables are.

    What was built is not built again without need.
    """
    for path in checkout.rglob("*.py"):
        path.chmod(0o700)
        os.utime(path, (1_000_000_000, 1_000_000_000))
    (checkout / "companion" / "__pycache__").mkdir(exist_ok=True)
    (checkout / "companion" / "__pycache__" / "left.pyc").write_bytes(b"left over")
    (checkout / "companion" / ".hidden.swp").write_bytes(b"left over")
    trying = {
        "TZ": "Asia/Tokyo",
        "LC_ALL": "C",
        "SOURCE_DATE_EPOCH": "1700000000",
        "PYTHONHASHSEED": "7",
        "PYTHONPATH": str(ROOT),
        "SHIV_ROOT": "/nonexistent",
    }
    shutil.rmtree(checkout / "dist")
    command = [another_python(), str(checkout / "build.py"), "build"]
    environ = {**REAL_ENVIRON, **trying}
    for more in ([], ["--if-needed"]):
        done = subprocess.run(
            [*command, *more], env=environ, cwd=checkout.parent, check=True, capture_output=True, text=True
        )
        assert ("bytes, compiled for" in done.stderr) == (not more)
    assert (checkout / "dist" / "mdello.pyz").read_bytes() == pyz.read_bytes()


@pytest.mark.parametrize("change", ["nothing", "a source", "the script", "the Pythons", "no file"])
def test_a_build_is_made_when_needed(checkout: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    """``--if-needed`` looks at contents, and at the Pythons that are compiled for."""
    copy = _load(checkout)
    pythons = [copy.Python((3, minor, 1), f"0{minor}", f"/bin/python3.{minor}") for minor in (9, 13)]
    copy.BUILT_FROM.write_text(copy._fingerprint(pythons), "utf-8")
    made: List[object] = []
    monkeypatch.setattr(copy, "build", made.append)
    if change in ("a source", "the script"):
        with (checkout / ("mdello.py" if change == "a source" else "build.py")).open("a") as handle:
            handle.write("\nCHANGED = 1\n")
    elif change == "no file":
        copy.PYZ.unlink()
    wanted = pythons[:-1] if change == "the Pythons" else pythons
    copy.build_if_needed(wanted)
    assert made == ([] if change == "nothing" else [wanted])


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
