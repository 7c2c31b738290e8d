"""The library that plays launchd's part, built where there is a compiler."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT


def build(folder: Path) -> str:
    """The library's path; the test is skipped where nothing can build it."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler here")
    library = folder / "launchd.so"
    source = ROOT / "tests" / "fakes" / "launch_activate_socket.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True, timeout=120)
    return str(library)
