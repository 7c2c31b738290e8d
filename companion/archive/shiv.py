"""Shiv's own start-up, for those who ask for it by one of its environment variables.

Shiv unpacks the program below ``$SHIV_ROOT`` (else ``~/.shiv``) and runs it from there. Where
that cannot work it ends in a traceback or waits for ever for a lock. So the unpacking is done
here first, with each reason for failure seen to; when there is one, it is told in one line and
the program runs from the archive all the same.
"""

import contextlib
import importlib
import os
import shutil
import stat
import sys
import time
import zipfile
from pathlib import Path
from types import TracebackType
from typing import Any, Optional, Type

try:
    import fcntl
except ImportError:  # Windows: two first runs at once may trip over each other there.
    fcntl = None  # type: ignore[assignment]

# Unpacking takes less than a second; whoever holds the lock longer than this hangs.
LOCK_TIMEOUT_S = 10.0

# Variables of shiv that stay when set to nothing, and would then mean "run nothing".
_MAY_BE_EMPTY = ("SHIV_ROOT", "SHIV_ENTRY_POINT", "SHIV_MODULE", "SHIV_CONSOLE_SCRIPT", "SHIV_INTERPRETER")


class Unusable(Exception):
    """The folder to unpack into cannot be used; the text says why."""


def run(here: str) -> None:
    """Run what shiv's variables ask for, and exit; return when that is simply our own program.

    ``here`` is the archive's path. From an unzipped folder there is nothing to unpack: returns.
    """
    for name in _MAY_BE_EMPTY:
        if os.environ.get(name) == "":
            del os.environ[name]
    if not os.path.isfile(here):
        _say("shiv's variables mean nothing to an unzipped folder; they are ignored")
        return
    sys.path.insert(0, here)
    bootstrap: Any = importlib.import_module("_bootstrap")
    sys.path.remove(here)
    try:
        unpacked = _unpack(bootstrap, here)
    except (Unusable, OSError, RuntimeError) as exc:
        _say(f"not unpacked ({exc}); running from the archive")
        _run_from_archive(bootstrap)
        return
    os.environ.pop("SHIV_FORCE_EXTRACT", None)  # Done already.
    _forget_ours(here, unpacked)
    sys.argv[0] = here  # Shiv opens it; it may have been typed relative.
    bootstrap.bootstrap()
    sys.exit(0)  # Shiv's interpreter comes back when it is done.


def _unpack(bootstrap: Any, here: str) -> Path:
    """Have the program unpacked, whole, in a folder that only we can write; that folder."""
    with zipfile.ZipFile(here) as archive:
        environment = bootstrap.Environment.from_json(archive.read("environment.json").decode())
        target: Path = bootstrap.cache_path(archive, environment.root, environment.build_id)
        _refuse_strangers(target.parent)
        _refuse_strangers(target)
        if environment.force_extract or not _is_whole(archive, target):
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _Lock(target.with_name(f".{target.name}_lock")):
                if environment.force_extract or not _is_whole(archive, target):
                    _extract(bootstrap, archive, target, environment.compile_pyc)
    return target / "site-packages"


def _extract(bootstrap: Any, archive: zipfile.ZipFile, target: Path, compile_pyc: bool) -> None:
    """Let shiv unpack, from a clean start; leave nothing half done. The lock is held."""
    beside = target.with_name(target.name + ".tmp")
    shutil.rmtree(beside, ignore_errors=True)
    bootstrap.FileLock = contextlib.nullcontext  # Shiv's waits for ever; ours is held.
    try:
        bootstrap.extract_site_packages(archive, target, compile_pyc, 0, True)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _refuse_strangers(folder: Path) -> None:
    """Unusable when somebody else may put files there: they would run with our rights."""
    try:
        found = os.stat(folder)
    except FileNotFoundError:
        return
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        raise Unusable(f"{folder} belongs to another user")
    if stat.S_IMODE(found.st_mode) & stat.S_IWOTH:
        raise Unusable(f"{folder} can be written by everybody")


def _is_whole(archive: zipfile.ZipFile, target: Path) -> bool:
    """Whether all is there in its full size. A cleaner of old files may have taken a part."""
    for info in archive.infolist():
        if info.filename.startswith("site-packages/"):
            try:
                if os.stat(target / info.filename).st_size != info.file_size:
                    return False
            except OSError:
                return False
    return True


def _run_from_archive(bootstrap: Any) -> None:
    """What bootstrap would run, without its folder. Returns when that is simply our own program."""
    environ = os.environ
    entry = environ.get("SHIV_ENTRY_POINT") or environ.get("SHIV_MODULE")
    script = environ.get("SHIV_CONSOLE_SCRIPT")
    if environ.get("SHIV_INTERPRETER"):
        bootstrap.execute_interpreter()
        sys.exit(0)
    if script and script != "mdello":
        sys.exit(f"mdello: there is no console script {script!r} in this file")
    if entry and not script:
        bootstrap.run(bootstrap.import_string(entry))


def _forget_ours(here: str, unpacked: Path) -> None:
    """From here on the unpacked modules count, and nobody's before them."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "ArchiveFinder"]
    for name in list(sys.modules):
        if name.partition(".")[0] in ("companion", "mdello", "adapters"):
            del sys.modules[name]
    packed = os.path.join(here, "site-packages")
    sys.path[:] = [str(unpacked) if path == packed else path for path in sys.path]


def _say(text: str) -> None:
    sys.stderr.write(f"mdello: {text}\n")


class _Lock:
    """Shiv's lock, with an end: it gives up where locks do not work, or when the holder hangs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def __enter__(self) -> "_Lock":
        if fcntl is None:
            return self
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        end = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return self
            except BlockingIOError:
                if time.monotonic() > end:
                    raise Unusable(f"{self._path} is locked by another process") from None
            except OSError as exc:
                raise Unusable(f"locks do not work there: {exc.strerror}") from exc
            time.sleep(0.01)

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._fd >= 0:
            os.close(self._fd)
