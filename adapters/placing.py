"""Small files and links of ours in folders of others: each step happens as a whole or not at all.

What is written appears under its name in one rename. A process that dies on the way leaves at most
an entry whose name tells that it is ours, and whose process is gone: the next one sweeps it away.
"""

import contextlib
import errno
import itertools
import os
import re
import stat
from pathlib import Path
from typing import List, Mapping, Set

from adapters.contract import AdapterError

PRIVATE_FILE_MODE = 0o600
PRIVATE_DIR_MODE = 0o700

# What a crash of ours leaves behind: the number is the pid that was at work.
_LEFTOVER = re.compile(r"\.mdello-([0-9]{1,10})-[0-9]+\.tmp")
_numbers = itertools.count()
_issued: Set[str] = set()
"""Temporary names of this process."""


def real_place(path: Path) -> Path:
    """The place with every link among its parents followed; the last part stays as it is.

    A parent may be a link into a dotfiles repository, even a dangling one: we write behind it and
    the link stays.
    """
    return Path(os.path.realpath(path.parent)) / path.name


def told_folder(environ: Mapping[str, str], variable: str, default: Path) -> Path:
    """An agent's folder: what its variable names, else ``default``. Empty counts as unset.

    AdapterError for a relative one: it means another folder in every directory.
    """
    told = environ.get(variable, "")
    if told and not os.path.isabs(told):
        raise AdapterError(f"{variable} is {told!r}: it must be an absolute path")
    return Path(told) if told else default


def kind_of(path: Path) -> str:
    """``absent``, ``file``, ``folder``, ``link`` or ``special``. OSError when it cannot be told."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    kinds = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"), (stat.S_ISLNK, "link"))
    return next((name for test, name in kinds if test(mode)), "special")


def missing_folders(folder: Path) -> List[Path]:
    """Those of a folder and its parents that do not exist, topmost first."""
    missing: List[Path] = []
    for path in (folder, *folder.parents):
        if kind_of(path) != "absent":
            break
        missing.insert(0, path)
    return missing


def demand_writable(place: Path) -> None:
    """Raise PermissionError when nothing can be made or removed in the folder of ``place``.

    Of a folder that does not exist, its nearest existing parent is asked.
    """
    folder = next(path for path in place.parents if os.path.isdir(path))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"{os.strerror(errno.EACCES)}: {folder}", str(folder))


def holds_other(folder: Path, *names: str) -> bool:
    """Whether a folder holds entries with other names than these. Never raises."""
    try:
        return any(name not in names for name in os.listdir(folder))
    except OSError:
        return False


def read_small(path: Path, most_bytes: int) -> bytes:
    """The first bytes of a plain file; empty when it is none or cannot be read."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return b""
        with path.open("rb") as file:
            return file.read(most_bytes)
    except OSError:
        return b""


def write_new(path: Path, data: bytes) -> None:
    """Write a file that does not exist yet, for this user alone. OSError as it comes."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE_MODE)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(fd)


def put_file(place: Path, data: bytes) -> None:
    """Replace the file at ``place`` (or make it) as a whole. OSError; then nothing has changed."""
    beside = place.with_name(new_name())
    try:
        write_new(beside, data)
        os.replace(beside, place)
    except BaseException:
        delete(beside)
        raise
    sync(place.parent)


def put_link(place: Path, target: str, replacing: bool) -> None:
    """Make a symbolic link. FileExistsError when something stands there, unless ``replacing``."""
    if not replacing:
        os.symlink(target, place)
    else:
        beside = place.with_name(new_name())
        try:
            os.symlink(target, beside)
            os.replace(beside, place)
        except BaseException:
            delete(beside)
            raise
    sync(place.parent)


def new_name() -> str:
    """A name for something of ours that is not ready yet, or not wanted any more."""
    # A dot in front: agents skip such entries when they look for plugins.
    name = f".mdello-{os.getpid()}-{next(_numbers)}.tmp"
    _issued.add(name)
    return name


def is_abandoned(name: str) -> bool:
    """Whether this is a temporary name of ours whose process is gone."""
    match = _LEFTOVER.fullmatch(name)
    if match is None:
        return False
    if int(match[1]) == os.getpid():  # In a container each run may have the same number.
        return name not in _issued
    try:
        os.kill(int(match[1]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def abandoned_in(folder: Path) -> List[Path]:
    """What interrupted attempts of ours have left in a folder; none when it cannot be read."""
    try:
        if kind_of(folder) != "folder":
            return []
        return [folder / name for name in os.listdir(folder) if is_abandoned(name)]
    except OSError:
        return []


def sweep(folder: Path) -> None:
    """Delete what interrupted attempts of ours have left in a folder. Best effort."""
    for abandoned in abandoned_in(folder):
        delete(abandoned)


def delete(tree: Path) -> None:
    """Delete a file or tree of ours under a temporary name; links are not followed. Best effort."""
    with contextlib.suppress(OSError):
        if kind_of(tree) in ("file", "link"):
            os.unlink(tree)
            return
    for folder, folders, files in os.walk(tree, topdown=False):
        for name in files:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, name))
        for name in folders:
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError):
                (os.unlink if os.path.islink(path) else os.rmdir)(path)
    with contextlib.suppress(OSError):
        os.rmdir(tree)


def sync(folder: Path) -> None:
    """Make a rename durable; best effort, some file systems refuse it."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
