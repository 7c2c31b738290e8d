"""``--version --verbose`` in a checkout. In the built file: ``tests/test_pyz.py``."""

import subprocess
import sys
from pathlib import Path

import pytest

from companion.commands import version
from companion.core import archive
from tests.conftest import ROOT


def test_a_checkout_says_that_it_is_one() -> None:
    """Python, the script, and why there is no sum."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "mdello.py"), "--version", "--verbose"],
        capture_output=True,
        text=True,
        check=True,
    )
    first, python, program, digest = done.stdout.splitlines()
    assert first.startswith("mdello ")
    assert sys.executable in python
    assert program.split() == ["program", str(ROOT / "mdello.py")]
    assert "checkout" in digest


def test_a_file_that_cannot_be_read_has_no_sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Removed while we run: said, not raised."""
    monkeypatch.setattr(archive, "in_archive", lambda: True)
    monkeypatch.setattr(archive, "program_path", lambda: tmp_path / "gone.pyz")
    version.print_details()
    assert "unknown: the file cannot be read" in capsys.readouterr().out
