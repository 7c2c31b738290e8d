"""Making modules small: what goes, what stays, and that nothing changes its meaning."""

import ast
import marshal
import subprocess
import sys
from pathlib import Path
from typing import Dict, Tuple

import pytest

from companion.archive import pack
from tests.conftest import ROOT

MODULE = '''\
#!/usr/bin/env python3
"""Module.

Second line.
"""
from __future__ import annotations  # why

NAMES = ["# no comment", "é"]  # ünï


class A:
    """Class."""

    x: int = 1  # stays


def f(a: int = 1) -> str:
    """Ünï."""; return "é#"  # a docstring is not alone on its line


def only() -> None:
    "Only a docstring."
'''

DATACLASS = '''\
"""Module."""
from __future__ import annotations
from dataclasses import dataclass

@dataclass
class A:
    """Class."""
    x: int = 1

def f():
    "Doc."
    assert False, "kept"

def g():
    return "text"
'''

ANNOTATED = '''\
"""Module."""
class A:
    """Class."""

def f(a: int, *b: str, c: "list[int]" = 1, **d: bytes) -> None:
    """Function."""

async def g() -> int:
    """Function."""
    return 1
'''


def slim(text: str) -> Tuple[Dict[str, object], str]:
    """What a module's slimmed code does, and its text."""
    tree = pack.slimmed(ast.parse(text))
    namespace: Dict[str, object] = {}
    exec(compile(ast.fix_missing_locations(tree), "x", "exec"), namespace)
    return namespace, ast.unparse(tree)


def test_slimming_drops_what_nobody_reads() -> None:
    """Docstrings and the annotations of functions; a body that was only a docstring still is one."""
    names, text = slim(ANNOTATED)
    assert names.get("__doc__") is None
    for gone in ("Module", "Class", "Function", "int", "str", "bytes", "None"):
        assert gone not in text


def test_slimming_keeps_what_counts() -> None:
    """Assertions, class annotations (they make dataclasses), futures, strings that are values."""
    names, slimmed = slim(DATACLASS)
    assert names["A"](x=3).x == 3  # type: ignore[operator]
    assert names["g"]() == "text"  # type: ignore[operator]
    with pytest.raises(AssertionError, match="kept"):
        names["f"]()  # type: ignore[operator]
    assert "annotations" in slimmed


def test_comments_go_and_lines_keep_their_numbers() -> None:
    """A traceback of the archive points into the repository's file."""
    data = pack.without_comments(MODULE.encode(), "m.py")
    before, after = MODULE.splitlines(), data.decode().splitlines()
    assert len(after) == len(before)
    for number, line in enumerate(before):
        if line.startswith(("class", "def", "from")):
            assert after[number].startswith(line.split("  #")[0])
    for gone in (b"why", b"Module", b"Class", b"stays", b"Second", b"Only", b"bin/env"):
        assert gone not in data
    namespace: Dict[str, object] = {"__name__": "m"}
    exec(compile(data, "m.py", "exec"), namespace)
    assert namespace["NAMES"] == ["# no comment", "é"]
    assert namespace["f"]() == "é#"  # type: ignore[operator]


def test_every_module_of_ours_survives_it() -> None:
    """The check inside compares the trees; a second time changes nothing."""
    for path in [ROOT / "mdello.py", *(ROOT / "companion").rglob("*.py"), *(ROOT / "adapters").rglob("*.py")]:
        once = pack.without_comments(path.read_bytes(), path.name)
        assert pack.without_comments(once, path.name) == once


def test_modules_are_named_as_they_are_imported(tmp_path: Path) -> None:
    """Packages with a P, others with an M, and no folder of the builder in the code."""
    (tmp_path / "pack" / "age").mkdir(parents=True)
    for name in ("top.py", "pack/__init__.py", "pack/age/__init__.py", "pack/age/leaf.py"):
        (tmp_path / name).write_text(f"WHO = {name!r}  # who\n")
    compiled = marshal.loads(pack.compile_all(tmp_path))
    assert {name: data[:1] for name, data in compiled.items()} == {
        "top": b"M",
        "pack": b"P",
        "pack.age": b"P",
        "pack.age.leaf": b"M",
    }
    code = marshal.loads(compiled["pack.age.leaf"][1:])
    assert code.co_filename == "mdello.pyz/site-packages/pack/age/leaf.py"
    pack.strip(tmp_path)
    assert (tmp_path / "top.py").read_text() == "WHO = 'top.py'\n"


def test_a_pyc_needs_no_source(tmp_path: Path) -> None:
    """Python itself imports it, with no source beside it."""
    (tmp_path / "source.txt").write_text("import sys\nprint('ran')\n")
    (tmp_path / "alone.pyc").write_bytes(pack.as_pyc(tmp_path / "source.txt"))
    done = subprocess.run(
        [sys.executable, "alone.pyc"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "ran\n"


def test_clients_stand_alone_after_packing(tmp_path: Path) -> None:
    """The shared part goes into each, and is itself gone; modules are left to the other tasks."""
    client = tmp_path / "adapters" / "client"
    agent = tmp_path / "adapters" / "agent"
    client.mkdir(parents=True)
    agent.mkdir()
    (client / "bundle.py").write_bytes((ROOT / "adapters" / "client" / "bundle.py").read_bytes())
    (client / "companion.js").write_text("export const ONE = 1;\n")
    (agent / "client.js").write_text('import { ONE } from "../client/companion.js";\nuse(ONE);\n')
    pack.complete_clients(tmp_path)
    assert (agent / "client.js").read_text() == "const ONE = 1;\nuse(ONE);\n"
    assert sorted(path.name for path in client.iterdir()) == ["bundle.py"]
