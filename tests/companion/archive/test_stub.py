"""The archive's first lines: old Pythons must be able to read them."""

import ast
import subprocess
from pathlib import Path
from typing import List

import pytest

from tests.conftest import ROOT, Interpreter

STUB = ROOT / "companion" / "archive" / "stub.py"


def test_every_python_parses_it(interpreters: List[Interpreter]) -> None:
    """All interpreters of this machine compile it, Python 2.7 too if it is there."""
    for _, program in interpreters:
        code = "import sys; compile(open(sys.argv[1]).read(), 'stub', 'exec')"
        done = subprocess.run([program, "-c", code, str(STUB)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr


def test_its_syntax_is_python_2() -> None:
    """Where no old interpreter is at hand: nothing newer than 2.7 is used, only ASCII."""
    text = STUB.read_bytes().decode("ascii")
    newer = (
        ast.AnnAssign,
        ast.AsyncFunctionDef,
        ast.Await,
        ast.FormattedValue,
        ast.JoinedStr,
        ast.NamedExpr,
        ast.Nonlocal,
        ast.Starred,
        ast.YieldFrom,
    )
    for node in ast.walk(ast.parse(text)):
        assert not isinstance(node, newer), ast.dump(node)
        assert not (isinstance(node, ast.Raise) and node.cause)


def test_the_version_is_asked_before_anything_else() -> None:
    """Only ``sys`` is imported before: any other import might not exist in an old Python."""
    body = ast.parse(STUB.read_text(encoding="utf-8")).body
    assert [type(node) for node in body[:2]] == [ast.Import, ast.If]
    assert isinstance(body[0], ast.Import)
    assert [alias.name for alias in body[0].names] == ["sys"]


@pytest.mark.parametrize("name", ["start.py", "shiv.py", "__init__.py"])
def test_what_it_starts_lies_beside_it(name: str) -> None:
    """The stub names ``start.py`` by its path in the archive."""
    assert (Path(STUB).parent / name).is_file()
