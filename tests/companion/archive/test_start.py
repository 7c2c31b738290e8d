"""The finder of modules in the archive, on small archives made here."""

import importlib
import importlib.resources
import linecache
import marshal
import os
import sys
import traceback
import zipfile
from pathlib import Path
from typing import Dict, Iterator

import pytest

from companion.archive import start
from companion.archive.start import ArchiveFinder

SOURCES = {
    "ourtest/__init__.py": "NAME = 'package'\n",
    "ourtest/leaf.py": "def fail():\n    raise ValueError('on purpose')\n",
    "ourtest/deep/__init__.py": "",
    "ourtest/deep/data.txt": "some text",
}


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An archive that holds the package ``ourtest``, which counts as ours."""
    path = tmp_path / "our test.pyz"
    with zipfile.ZipFile(path, "w") as target:
        for name, text in SOURCES.items():
            target.writestr(f"site-packages/{name}", text)
    monkeypatch.setattr(start, "OURS", ("ourtest",))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield path
    for name in [name for name in sys.modules if name.partition(".")[0] == "ourtest"]:
        del sys.modules[name]


def ready(filename: str, text: str, letter: bytes) -> bytes:
    """One compiled module, as the build packs it."""
    return letter + marshal.dumps(compile(text, filename, "exec"))


def use(archive: Path, compiled: Dict[str, bytes]) -> ArchiveFinder:
    """Put a finder for the archive first."""
    finder = ArchiveFinder(str(archive), compiled)
    sys.meta_path.insert(0, finder)
    return finder


def test_modules_come_from_source_when_nothing_is_compiled(archive: Path) -> None:
    """Package and module, with the file name that a traceback needs."""
    use(archive, {})
    module = importlib.import_module("ourtest.leaf")
    assert module.__file__ == os.path.join(str(archive), "site-packages", "ourtest", "leaf.py")
    assert sys.modules["ourtest"].__path__ == [os.path.join(str(archive), "site-packages", "ourtest")]
    assert sys.modules["ourtest"].NAME == "package"


def test_compiled_modules_win_over_source(archive: Path) -> None:
    """And a package that is compiled may have modules that are not."""
    use(archive, {"ourtest": ready("x", "NAME = 'compiled'\n", b"P")})
    assert importlib.import_module("ourtest").NAME == "compiled"
    assert importlib.import_module("ourtest.leaf").fail


def test_strangers_are_left_to_python(archive: Path) -> None:
    """Only our own top-level names are looked for; a missing module of ours is an ImportError."""
    finder = use(archive, {})
    assert finder.find_spec("json") is None
    assert finder.find_spec("ourtestimony") is None
    assert finder.find_spec("ourtest.nothing") is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("ourtest.nothing")
    with pytest.raises(ImportError):
        finder.get_code("ourtest.nothing")
    assert finder.get_source("ourtest.nothing") is None


def test_tracebacks_show_the_source_line(archive: Path) -> None:
    """Compiled code has no text; it is read from the archive when it is needed."""
    text = SOURCES["ourtest/leaf.py"]
    use(archive, {"ourtest.leaf": ready("mdello.pyz/leaf.py", text, b"M")})
    linecache.clearcache()
    module = importlib.import_module("ourtest.leaf")
    with pytest.raises(ValueError, match="on purpose") as caught:
        module.fail()
    assert "raise ValueError('on purpose')" in "".join(
        traceback.format_exception(None, caught.value, caught.tb)
    )


def test_resources_can_be_read(archive: Path) -> None:
    """Through importlib.resources and through the loader's get_data."""
    finder = use(archive, {})
    package = importlib.import_module("ourtest.deep")
    assert finder.is_package("ourtest.deep")
    assert not finder.is_package("ourtest.leaf")
    read = importlib.resources.files(package).joinpath("data.txt").read_text(encoding="utf-8")
    assert read == "some text"
    assert (
        finder.get_data(os.path.join(str(archive), "site-packages", "ourtest", "deep", "data.txt"))
        == b"some text"
    )
    with pytest.raises(OSError, match="nothing"):
        finder.get_data(os.path.join(str(archive), "nothing"))
