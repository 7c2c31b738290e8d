"""What keeps Pi from loading an extension: one table, which the real Pi is asked about as well."""

import json
from pathlib import Path
from typing import Any, Dict, Tuple

import pytest

from adapters.pi import loading
from tests.conftest import ROOT

TABLE = json.loads((ROOT / "tests/fixtures/pi/loading.json").read_text(encoding="utf-8"))
NAME = "mdello-companion.js"


def told(files: Dict[str, str], home: Path) -> Tuple[str, ...]:
    """The obstacles in an agent folder that holds these files."""
    extension = home / "agent" / loading.EXTENSIONS / NAME
    extension.parent.mkdir(parents=True)
    extension.touch()
    for name, text in files.items():
        (home / "agent" / name).write_bytes(text.encode("utf-8"))
    return loading.obstacles(extension, home)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: repr(list(row["files"].values())))
def test_the_table_holds(row: Dict[str, Any], tmp_path: Path) -> None:
    """Each obstacle is one line that names a file which is there."""
    found = told(row["files"], tmp_path)
    assert (not found) == row["loaded"]
    assert all(any(str(tmp_path / "agent" / name) in line for name in row["files"]) for line in found)


def test_the_line_is_told(tmp_path: Path) -> None:
    """So that a person finds it."""
    (line,) = told({"extensions/.ignore": "*.ts\n  \n*.js\n"}, tmp_path)
    assert line == f'{tmp_path / "agent/extensions/.ignore"} has "*.js", so Pi leaves it out'


@pytest.mark.parametrize(
    "content", ["{", "[]", "[" * 100_000, "", '{"extensions": {}}', '{"extensions": [3, null, {}]}', "\x00"]
)
def test_what_cannot_be_understood_is_nobodys_obstacle(content: str, tmp_path: Path) -> None:
    """Pi will say so itself."""
    assert told({"settings.json": content, "extensions/package.json": content}, tmp_path) == ()


def test_hostile_patterns_take_no_time(tmp_path: Path) -> None:
    """Neither deep nor long ones: nobody waits for ``doctor``."""
    globs = ["**/" * 1000 + "x", "*/**/" * 800 + "x", "*a" * 2000, "/" * 4000, "[" * 1_000_000]
    ignored = "\n".join(["[" * 4000, "[" * 1_000_000, "*m" * 2000, "\\" * 4001, "**/" * 1300 + "x"])
    settings = json.dumps({"extensions": [f"!{glob}" for glob in globs]})
    assert told({"settings.json": settings, "extensions/.gitignore": ignored}, tmp_path) == ()
