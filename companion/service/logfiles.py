"""Where a companion that nobody watches writes what it would have said on a terminal.

The program opens the files itself. systemd could (``StandardOutput=append:``), but it makes no
folders: once the state folder is deleted, the service would never start again (209/STDOUT).
"""

import os
from pathlib import Path
from typing import List, Optional

from companion.core.files import PRIVATE_FILE_MODE, ensure_private_dir

OUTPUT = "companion.log"
"""In the state folder: what goes to stdout."""
ERRORS = "companion-error.log"
"""In the state folder: what goes to stderr."""

# Some thousand lines of trouble. What is older than that is kept once, beside it.
MOST_BYTES = 1024 * 1024
_FORMER = ".old"


def write_there(folder: Path) -> Optional[str]:
    """Point stdout and stderr of this process, and of its children, to the files in ``folder``.

    Returns why that is not possible, or None; both then stay what they were. A file above
    ``MOST_BYTES`` is put aside first.
    """
    opened: List[int] = []
    try:
        ensure_private_dir(folder)
        opened = [_open(folder / OUTPUT)]
        opened.append(_open(folder / ERRORS))
        os.dup2(opened[0], 1)
        os.dup2(opened[1], 2)
    except OSError as exc:
        return f"No log is written in {folder}: {exc.strerror or exc}"
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return None


def _open(path: Path) -> int:
    # No pipe or device of somebody else's may keep us from starting.
    opened = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, PRIVATE_FILE_MODE)
    if os.fstat(opened).st_size > MOST_BYTES:
        os.close(opened)
        os.replace(path, path.with_name(path.name + _FORMER))
        return _open(path)
    return opened
