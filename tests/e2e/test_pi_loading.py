"""The table of what keeps Pi from loading an extension, asked of the real Pi."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.e2e

TABLE = ROOT / "tests/fixtures/pi/loading.json"


def test_pi_decides_as_the_table_says(node: Path, pi_script: Path, tmp_path: Path) -> None:
    """By the very code with which it looks for extensions when it starts."""
    package = pi_script.parents[2]  # dist/bundle/cli.js
    script = ROOT / "tests/e2e/pi_loading.mjs"
    done = subprocess.run(
        [str(node), str(script), str(package), str(TABLE), str(tmp_path)],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PI_OFFLINE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(TABLE.read_text(encoding="utf-8"))
    loaded = json.loads(done.stdout)
    assert [row for row, real in zip(rows, loaded) if row["loaded"] != real] == []
    assert len(loaded) == len(rows)
