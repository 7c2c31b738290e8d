"""``mdello --version --verbose``: what exactly is running here."""

import platform
import sys

from companion.core import archive


def print_details() -> None:
    """Print the interpreter, the program's file and, for the single file, its SHA-256."""
    program = archive.program_path()
    print(f"python    {platform.python_version()} ({platform.python_implementation()}) {sys.executable}")
    print(f"program   {program}")
    if not archive.in_archive():
        print("sha256    none: this is a checkout or an unzipped folder, not the single file")
        return
    try:
        print(f"sha256    {archive.sha256(program)}")
    except OSError as exc:
        print(f"sha256    unknown: the file cannot be read ({exc.strerror})")
