"""The file that this program was started from, and whether it still is the same.

Whoever starts us again (a service, an agent's hook) needs its absolute path. And a running server
must notice that it was replaced: Python reads modules from an archive by the positions it learned
at the start, so after a replacement a late import would run wrong bytes.
"""

import hashlib
import importlib
import os
import pkgutil
import sys
from pathlib import Path
from typing import Optional, Tuple

_CHUNK_BYTES = 1 << 20

# device, inode, size in bytes, time of change in ns; None when there is no such file.
_Identity = Optional[Tuple[int, int, int, int]]


def program_path() -> Path:
    """Absolute path of what to hand to Python to start us again; symlinks are kept.

    ``mdello.pyz``; the folder it was unzipped into; or ``mdello.py`` of a checkout.
    """
    return _PROGRAM


def in_archive() -> bool:
    """Whether we run from a single file, not from a checkout or an unzipped folder."""
    return _PROGRAM.suffix != ".py" and _PROGRAM.is_file()


def sha256(path: Path) -> str:
    """The file's SHA-256 in hex. OSError when it cannot be read."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        for chunk in iter(lambda: handle.read(_CHUNK_BYTES), b""):
            digest.update(chunk)
    return digest.hexdigest()


def import_all(*packages: str) -> int:
    """Import every module below these packages, so that nothing is read from the archive later.

    Returns their number. An ImportError of one of ours is a bug and comes as it is.
    """
    count = 0
    for name in packages:
        package = importlib.import_module(name)
        count += 1
        for found in pkgutil.iter_modules(package.__path__, name + "."):
            if found.name == "companion.archive":  # Start-up code, done when we are running.
                continue
            if found.ispkg:
                count += import_all(found.name)
            else:
                importlib.import_module(found.name)
                count += 1
    return count


class ArchiveWatch:
    """Remembers what the program's file was when this was made."""

    def __init__(self, path: Optional[Path] = None) -> None:
        self.path = program_path() if path is None else path
        self._before = _identity(self.path)

    def replaced(self) -> bool:
        """Whether the file is another one now, was changed, or is gone. One ``stat``; never raises."""
        return _identity(self.path) != self._before


def _identity(path: Path) -> _Identity:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _find_program() -> Path:
    """``__main__`` knows best, also when shiv unpacked us; without it, ask where this module lies."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    if main and os.path.basename(main) in ("__main__.py", "__main__.pyc"):
        holder = Path(os.path.abspath(main)).parent
        if holder.is_file() or (holder / "site-packages" / "mdello.py").is_file():
            return holder
    here = Path(os.path.abspath(__file__))
    for parent in here.parents:
        if parent.is_file():
            return parent
    return here.parents[2] / "mdello.py"


_PROGRAM = _find_program()  # At import: a relative path means something else after a chdir.
