"""A folder of our own inside somebody else's tree: put in place, brought up to date, taken away.

Three rules. What is not ours is never replaced, entered or removed. Whoever looks in the middle of
it (or after a crash in the middle) sees the old state or the new one. Taking away is the exact
inverse of putting in place, parents that we had to make included.

A new folder is built beside its final place and renamed as a whole; an existing one is renamed
away as a whole before it is deleted. Only an update goes file by file (each one renamed into
place), because people may keep files of their own in there.
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional, Tuple

from adapters import placing
from adapters.placing import kind_of


@dataclass(frozen=True)
class Item:
    """One file or link of ours."""

    path: str
    """Relative to the folder, at most one level down, with ``/``."""
    data: bytes = b""
    link: Optional[str] = None
    """Target of a symbolic link; None for a plain file holding ``data``."""


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


def put_new(place: Path, items: Tuple[Item, ...]) -> None:
    """Make the folder in one step, below a folder that exists.

    FileExistsError when something stands there by now.
    """
    if kind_of(place) != "absent":
        raise FileExistsError(f"{place} was made by another program just now")
    beside = place.with_name(placing.new_name())
    try:
        os.mkdir(beside, placing.PRIVATE_DIR_MODE)
        for name in _folders(items):
            os.mkdir(beside / name, placing.PRIVATE_DIR_MODE)
        for item in items:
            _write(beside / item.path, item)
        os.rename(beside, place)
    except BaseException as exc:
        placing.delete(beside)
        if isinstance(exc, OSError) and kind_of(place) != "absent":
            raise FileExistsError(f"{place} was made by another program just now") from exc
        raise
    placing.sync(place.parent)


def update(place: Path, items: Tuple[Item, ...]) -> List[str]:
    """Make the items in an existing folder as they should be; the paths of those that changed.

    What is right already is not touched, not even its time. Items are written in their order.
    """
    changed = [item for item in items if not _is_right(place, item)]
    for item in changed:
        path = place / item.path
        if path.parent != place:
            with contextlib.suppress(FileExistsError):
                os.mkdir(path.parent, placing.PRIVATE_DIR_MODE)
        if item.link is None:
            placing.put_file(path, item.data)
        else:
            placing.put_link(path, item.link, replacing=True)
    return [item.path for item in changed]


def differing(place: Path, items: Tuple[Item, ...]) -> List[str]:
    """Paths of the items that are missing or have another content."""
    return [item.path for item in items if not _is_right(place, item)]


def take_away(place: Path, items: Tuple[Item, ...]) -> List[str]:
    """Remove our items and the folder; what was left in it, as paths.

    Only files of ours are deleted. The first item, by which the folder is known as ours, is the
    last to go. PermissionError before anything is changed when one of them cannot be deleted.
    """
    for path in (place, *(place / item.path for item in items)):
        if kind_of(path) != "absent":
            placing.demand_writable(path)
    foreign = strangers(place, items)
    if foreign:
        _remove_items(place, items)
        return foreign
    away = place.with_name(placing.new_name())
    os.rename(place, away)
    try:
        _remove_items(away, items)
    except OSError:
        os.rename(away, place)
        raise
    if kind_of(away) == "folder":  # A stranger's file came in between our look and our rename.
        os.rename(away, place)
        return strangers(place, items)
    placing.sync(place.parent)
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
            if prefix + name not in ours and prefix + name not in folders and not placing.is_abandoned(name):
                found.append(prefix + name)
    return sorted(found)


def sweep(place: Path, items: Tuple[Item, ...]) -> None:
    """Delete what interrupted attempts of ours have left. Best effort."""
    nearest = next(folder for folder in place.parents if os.path.isdir(folder))
    for folder in (nearest, place, *(place / name for name in _folders(items))):
        placing.sweep(folder)


def _folders(items: Tuple[Item, ...]) -> List[str]:
    return sorted({item.path.split("/")[0] for item in items if "/" in item.path})


def _write(path: Path, item: Item) -> None:
    if item.link is not None:
        os.symlink(item.link, path)
    else:
        placing.write_new(path, item.data)


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
        placing.sweep(folder / name)
        with contextlib.suppress(OSError):  # Foreign things in it: it stays.
            os.rmdir(folder / name)
