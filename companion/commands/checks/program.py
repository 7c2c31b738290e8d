"""Is the Python right, and which file of ours is this?"""

import os
import platform
import shlex
import sys
from pathlib import Path
from typing import List, Tuple

from companion.commands.checks.finding import Finding, ok, unknown, wrong
from companion.core import archive

SECTION = "Program"
OLDEST_PYTHON = (3, 9)


def check(path: Path, version: str, python: Tuple[int, ...] = tuple(sys.version_info[:3])) -> List[Finding]:
    """Python's version and place, our version, our file and its SHA-256."""
    shown = ".".join(map(str, python))
    text = f"Python {shown} ({platform.python_implementation()}) at {sys.executable}"
    oldest = ".".join(map(str, OLDEST_PYTHON))
    return [
        ok(SECTION, text)
        if python >= OLDEST_PYTHON
        else wrong(SECTION, text, f"Use Python {oldest} or newer"),
        _file(path, version),
        *_noexec(path),
    ]


def _noexec(path: Path) -> List[Finding]:
    """Told only where the system refuses to start our file by itself; what we install does not do so."""
    try:
        refused = os.statvfs(path).f_flag & getattr(os, "ST_NOEXEC", 0)
    except (OSError, AttributeError):  # Windows has no statvfs.
        return []
    text = f"The disk of {path} is mounted noexec: it does not start by its name alone"
    return [unknown(SECTION, text, f"Start it so: python3 {shlex.quote(str(path))}")] if refused else []


def _file(path: Path, version: str) -> Finding:
    if not archive.in_archive():
        return ok(SECTION, f"mdello {version} from a folder: {path}")
    try:
        return ok(SECTION, f"mdello {version} at {path}, SHA-256 {archive.sha256(path)}")
    except OSError as exc:
        return unknown(SECTION, f"mdello {version} at {path} cannot be read: {exc.strerror or exc}")
