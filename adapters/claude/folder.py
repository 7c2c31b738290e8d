"""A folder of our own inside somebody else's tree: put in place, brought up to date, taken away.

Three rules. What is not ours is never replaced, entered or removed. Whoever looks in the middle of
it (or after a crash in the middle) sees the old state or the new one. Taking away is the exact
inverse of putting in place, parents that we had to make included.

A new folder is built beside its final place and renamed as a whole; an existing one is renamed
away as a whole before it is deleted. Only an update goes file by file (each one renamed into
place), because people may keep files of their own in there.
"""

import contextlib
import itertools
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, List, Optional, Tuple

PRIVATE_FILE_MODE = 0o600
PRIVATE_DIR_MODE = 0o700

# What a crash of ours leaves behind: the number is the pid that was at work.
_LEFTOVER = re.compile(r"\.mdello-([0-9]{1,10})-[0-9]+\.tmp")
# Somebody else may make or remove a parent between our look and our rename; each such race is
# lost at most once or twice in practice.
_ATTEMPTS = 8
_numbers = itertools.count()


@dataclass(frozen=True)
class Item:
    """One file or link of ours."""

    path: str
    """Relative to the folder, at most one level down, with ``/``."""
    data: bytes = b""
    link: Optional[str] = None
    """Target of a symbolic link; None for a plain file holding ``data``."""


def real_place(path: Path) -> Path:
    """The place with every link among its parents followed; the last part stays as it is.

    A parent may be a link into a dotfiles repository, even a dangling one: we write behind it and
    the link stays.
    """
    return Path(os.path.realpath(path.parent)) / path.name


def kind_of(path: Path) -> str:
    """``absent``, ``file``, ``folder``, ``link`` or ``special``. OSError when it cannot be told."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    kinds = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"), (stat.S_ISLNK, "link"))
    return next((name for test, name in kinds if test(mode)), "special")


def misplaced(place: Path, items: Tuple[Item, ...]) -> Optional[str]:
    """Which of our names in there belongs to something of another kind, hence not to us; or None."""
    for name in _folders(items):
        if kind_of(place / name) not in ("absent", "folder"):
            return f"{name} in it is no folder"
    for item in items:
        wanted = "file" if item.link is None else "link"
        if kind_of(place / item.path) not in ("absent", wanted):
            return f"{item.path} in it is no {'plain file' if wanted == 'file' else 'symbolic link'}"
    return None


def put_new(place: Path, items: Callable[[int], Tuple[Item, ...]]) -> None:
    """Make the folder in one step. FileExistsError when something stands there by now.

    ``items`` gets the number of parents that are made along with it.
    """
    for _ in range(_ATTEMPTS):
        top = _topmost_missing(place)
        if top is None:
            raise FileExistsError(f"{place} was made by another program just now")
        levels = len(place.relative_to(top).parts)
        beside = top.parent / _new_name()
        try:
            _build(beside / place.relative_to(top), beside, items(levels))
            os.rename(beside, top)
        except BaseException as exc:
            _delete(beside)
            if not isinstance(exc, OSError) or kind_of(top) == "absent":
                raise
            continue  # Lost a race: the parent (or the folder itself) is there now.
        _sync(top.parent)
        return
    raise FileExistsError(f"{place.parent} keeps changing")


def update(place: Path, items: Tuple[Item, ...]) -> List[str]:
    """Make the items in an existing folder as they should be; the paths of those that changed.

    What is right already is not touched, not even its time. Items are written in their order.
    """
    changed = [item for item in items if not _is_right(place, item)]
    for item in changed:
        path = place / item.path
        if path.parent != place:
            with contextlib.suppress(FileExistsError):
                os.mkdir(path.parent, PRIVATE_DIR_MODE)
        beside = path.with_name(_new_name())
        try:
            _write(beside, item)
            os.replace(beside, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise
        _sync(path.parent)
    return [item.path for item in changed]


def differing(place: Path, items: Tuple[Item, ...]) -> List[str]:
    """Paths of the items that are missing or have another content."""
    return [item.path for item in items if not _is_right(place, item)]


def take_away(place: Path, items: Tuple[Item, ...], made: int) -> List[str]:
    """Remove our items, the folder and the ``made`` parents above it; what was left, as paths.

    Only files of ours are deleted, and parents only when nothing else is in them. The first item,
    by which the folder is known as ours, is the last to go.
    """
    foreign = strangers(place, items)
    if foreign:
        _remove_items(place, items)
        return foreign
    top = place
    for parent in list(place.parents)[:made]:
        if os.listdir(parent) != [top.name]:
            break
        top = parent
    away = top.with_name(_new_name())
    os.rename(top, away)
    _remove_items(away / place.relative_to(top), items)
    _remove_empty(away, place.relative_to(top))
    if kind_of(away) == "folder":  # A stranger's file came in between our look and our rename.
        os.rename(away, top)
        return strangers(place, items) if kind_of(place) == "folder" else []
    _sync(top.parent)
    return []


def strangers(place: Path, items: Tuple[Item, ...]) -> List[str]:
    """What else is in the folder, as sorted relative paths; foreign folders are not entered."""
    ours = {item.path for item in items}
    folders = _folders(items)
    found = []
    for prefix in ("", *(f"{name}/" for name in folders)):
        if kind_of(place / prefix) != "folder":
            continue
        for name in os.listdir(place / prefix):
            if prefix + name not in ours and prefix + name not in folders and not _is_abandoned(name):
                found.append(prefix + name)
    return sorted(found)


def sweep(place: Path, items: Tuple[Item, ...]) -> None:
    """Delete what interrupted attempts of ours have left. Best effort."""
    nearest = next(folder for folder in place.parents if os.path.isdir(folder))
    for folder in (nearest, place, *(place / name for name in _folders(items))):
        for abandoned in _abandoned_in(folder):
            _delete(abandoned)


def _abandoned_in(folder: Path) -> List[Path]:
    if kind_of(folder) != "folder":
        return []
    return [folder / name for name in os.listdir(folder) if _is_abandoned(name)]


def _is_abandoned(name: str) -> bool:
    """Whether this is a temporary name of ours whose process is gone."""
    match = _LEFTOVER.fullmatch(name)
    if match is None:
        return False
    try:
        os.kill(int(match[1]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _new_name() -> str:
    # A dot in front: agents skip such folders when they look for plugins.
    return f".mdello-{os.getpid()}-{next(_numbers)}.tmp"


def _folders(items: Tuple[Item, ...]) -> List[str]:
    return sorted({item.path.split("/")[0] for item in items if "/" in item.path})


def _topmost_missing(place: Path) -> Optional[Path]:
    """The uppermost of the place and its parents that does not exist; None when all do."""
    missing = None
    for path in (place, *place.parents):
        if kind_of(path) != "absent":
            break
        missing = path
    return missing


def _build(folder: Path, root: Path, items: Tuple[Item, ...]) -> None:
    for parent in [*reversed(folder.relative_to(root).parents), folder.relative_to(root)]:
        with contextlib.suppress(FileExistsError):
            os.mkdir(root / parent, PRIVATE_DIR_MODE)
    for name in _folders(items):
        os.mkdir(folder / name, PRIVATE_DIR_MODE)
    for item in items:
        _write(folder / item.path, item)


def _write(path: Path, item: Item) -> None:
    if item.link is not None:
        os.symlink(item.link, path)
        return
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE_MODE)
    with os.fdopen(fd, "wb") as file:
        file.write(item.data)
        file.flush()
        os.fsync(fd)


def _is_right(place: Path, item: Item) -> bool:
    path = place / item.path
    try:
        if item.link is not None:
            return os.readlink(path) == item.link
        return os.lstat(path).st_size == len(item.data) and path.read_bytes() == item.data
    except OSError:
        return False


def _remove_items(folder: Path, items: Tuple[Item, ...]) -> None:
    for item in reversed(items):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(folder / item.path)
    for name in (*_folders(items), ""):
        for abandoned in _abandoned_in(folder / name):
            with contextlib.suppress(OSError):
                os.unlink(abandoned)
        with contextlib.suppress(OSError):  # Foreign things in it: it stays.
            os.rmdir(folder / name)


def _remove_empty(root: Path, inside: Path) -> None:
    """Remove ``root / inside`` and its parents up to ``root``, as far as they are empty."""
    for folder in (inside, *inside.parents):
        with contextlib.suppress(OSError):
            os.rmdir(root / folder)


def _delete(tree: Path) -> None:
    """Delete a file or tree of ours under a temporary name; links are not followed. Best effort."""
    if kind_of(tree) in ("file", "link"):
        with contextlib.suppress(OSError):
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


def _sync(folder: Path) -> None:
    """Make a rename durable; best effort, some file systems refuse it."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
