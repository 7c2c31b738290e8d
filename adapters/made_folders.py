"""The record of folders that installs had to make, so that uninstalling removes exactly those.

Integrations share parents: ``~/.config`` may be made for one and still be needed by another. So
there is one record for all of them, ``made-folders.json`` in our data folder. It names the folders
that we made and the places (files, links, folders of ours) that stand in them. Whoever takes a place
away removes the folders that are empty then; the record goes with the last place.

A folder is written down before it is made. So a crash at any point leaves nothing that a later
uninstall does not find.
"""

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Iterable, Iterator, List, Mapping, Optional, Set

from adapters import placing
from adapters.contract import AdapterError

try:  # Windows has no fcntl; there two installs at once are not kept apart.
    import fcntl
except ImportError:  # pragma: no cover - not on the platforms we test
    fcntl = None  # type: ignore[assignment]

NAME = "made-folders.json"

# An install or uninstall is at work for milliseconds; the lock ends with its process.
LOCK_TIMEOUT_S = 10.0
# The record has some 100 bytes per folder; a larger file is none of ours.
_MAX_BYTES = 1024 * 1024
# Somebody else may make a parent between our look and our rename.
_ATTEMPTS = 8
# From our data folder up to the home, in the usual case.
_SWEPT_LEVELS = 4
_OWNER = "mdello-companion"


def data_dir(home: Path, environ: Mapping[str, str]) -> Path:
    """Our data folder. As XDG has it, an empty or relative ``XDG_DATA_HOME`` is ignored."""
    base = environ.get("XDG_DATA_HOME", "")
    return (Path(base) if os.path.isabs(base) else home / ".local" / "share") / "mdello"


@contextlib.contextmanager
def opened(home: Path, folder: Path) -> Iterator["MadeFolders"]:
    """The record in our data folder ``folder``, while no other process of ours works on it.

    Everything that an install or uninstall writes belongs into this context. When it is left by an
    exception, folders that were made in it are gone again, as far as nothing stands in them.
    AdapterError when another process holds it for too long, or when something that is not ours
    stands in the record's place.
    """
    with _locked(home if home.is_dir() else folder):
        made = MadeFolders(placing.real_place(folder / NAME))
        made.sweep()
        try:
            yield made
        except BaseException:
            with contextlib.suppress(OSError):
                made.release()
            raise


class MadeFolders:
    """What is in the record. Use it within :func:`opened`, and pass real paths (no links in them)."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._folders: Set[Path] = set()
        self._places: Set[Path] = set()
        self._made_now: Set[Path] = set()
        self._load()

    def sweep(self) -> None:
        """Delete what was left when the record was being made or removed, and somebody died."""
        parents = list(self._file.parents)
        existing = next(folder for folder in parents if folder.is_dir())
        for folder in {existing, *parents[:_SWEPT_LEVELS]}:
            placing.sweep(folder)

    @property
    def places(self) -> List[Path]:
        """Every place that is written down, sorted."""
        return sorted(self._places)

    def demand_writable(self) -> None:
        """Raise PermissionError when there is something in the record that could not be taken out."""
        if self._places or self._folders:
            placing.demand_writable(self._file)

    def hold(self, place: Path, always: bool = False) -> None:
        """Make the folder of ``place``, and write down what had to be made.

        The place itself is made by the caller, afterwards. It is written down too when a folder
        above it is ours; ``always``: in any case. OSError when it cannot be written.
        """
        missing = placing.missing_folders(place.parent)
        if always or missing or self._folders.intersection(place.parents):
            self._remember(place, missing)

    def hold_folder(self, folder: Path) -> None:
        """Make a folder that is wanted for itself: when made by us, it stays until released."""
        missing = placing.missing_folders(folder)
        if missing or folder in self._folders:
            self._remember(folder, missing)

    def _remember(self, place: Path, missing: List[Path]) -> None:
        self._places.add(place)
        self._folders.update(missing)
        self._save()
        self._make(missing)

    def adopt(self, place: Path, folders: Iterable[Path]) -> None:
        """Take over what an older version had written down elsewhere."""
        self._places.add(place)
        self._folders.update(folders)
        self._save()

    def release(self, *places: Path) -> None:
        """Forget places, and remove the made folders that are empty now.

        Places that do not exist any more are forgotten as well. OSError when the record cannot be
        written; a made folder that cannot be removed stays.
        """
        self._places.difference_update(places)
        self._places = {place for place in self._places if _stands(place)}
        # What hangs on no place is nobody's any more: folders in which others have put something.
        for folder in sorted(self._folders, key=lambda path: len(path.parts), reverse=True):
            if folder not in self._places and _removed(folder):
                self._folders.discard(folder)
        if self._places:
            self._save()
        else:
            self._remove()

    # -- the file

    def _load(self) -> None:
        if placing.kind_of(self._file) == "absent":
            return
        content: object = None
        with contextlib.suppress(ValueError, RecursionError):
            content = json.loads(placing.read_small(self._file, _MAX_BYTES))
        if not isinstance(content, dict) or content.get("managedBy") != _OWNER:
            raise AdapterError("is in the way, and not ours. Move it away", self._file)
        lists = [content.get("folders"), content.get("places")]
        for known, listed in zip((self._folders, self._places), lists):
            for path in listed if isinstance(listed, list) else ():
                if isinstance(path, str) and os.path.isabs(path) and "\0" not in path:
                    known.add(Path(path))

    def _content(self) -> bytes:
        content = {
            "managedBy": _OWNER,
            "about": "Folders that installing had to make; uninstalling removes them and this file.",
            "folders": sorted(map(str, self._folders)),
            "places": sorted(map(str, self._places)),
        }
        return (json.dumps(content, indent=2) + "\n").encode("ascii")

    def _save(self) -> None:
        for _ in range(_ATTEMPTS):
            chain = placing.missing_folders(self._file.parent)
            self._folders.update(chain)
            content = self._content()
            if not chain:
                if placing.read_small(self._file, _MAX_BYTES) != content:
                    placing.put_file(self._file, content)
                return
            try:
                self._save_with_folders(chain, content)
            except OSError:
                self._folders.difference_update(chain)
                if placing.kind_of(chain[0]) == "absent":
                    raise
                continue  # Somebody else has made it at this moment.
            self._made_now.update(chain)
            return
        raise OSError(f"{self._file.parent} keeps changing")

    def _save_with_folders(self, chain: List[Path], content: bytes) -> None:
        """The record appears in one step with the folders that are made for it."""
        top = chain[0]
        beside = top.parent / placing.new_name()
        try:
            for folder in chain:
                os.mkdir(beside / folder.relative_to(top), placing.PRIVATE_DIR_MODE)
            placing.write_new(beside / self._file.relative_to(top), content)
            os.rename(beside, top)
        except BaseException:
            placing.delete(beside)
            raise
        placing.sync(top.parent)

    def _make(self, folders: List[Path]) -> None:
        not_ours = set()
        for folder in folders:
            try:
                os.mkdir(folder, placing.PRIVATE_DIR_MODE)
            except FileExistsError:
                if folder not in self._made_now:
                    not_ours.add(folder)  # Somebody else has made it at this moment.
            else:
                self._made_now.add(folder)
        if not_ours:
            self._folders -= not_ours
            self._save()

    def _remove(self) -> None:
        """Remove the record, and in the same step the folders that were made for it alone."""
        if placing.kind_of(self._file) == "absent":
            return
        top = self._file
        while top.parent in self._folders and os.listdir(top.parent) == [top.name]:
            top = top.parent
        away = top.with_name(placing.new_name())
        try:
            os.rename(top, away)
        except OSError:  # The folder above is read-only by now.
            os.unlink(self._file)
            return
        inside = self._file.relative_to(top)
        os.unlink(away / inside)
        for folder in inside.parents if top != self._file else ():
            with contextlib.suppress(OSError):
                os.rmdir(away / folder)
        if placing.kind_of(away) == "folder":  # A stranger's file came in just now: it stays.
            os.rename(away, top)
        placing.sync(top.parent)


def _stands(place: Path) -> bool:
    try:
        return placing.kind_of(place) != "absent"
    except OSError:
        return True  # It cannot be told.


def _removed(folder: Path) -> bool:
    """Remove a folder when it is empty; whether it is gone, or no folder any more."""
    placing.sweep(folder)
    try:
        os.rmdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock on a folder that exists, or on its nearest parent; no lock file is left.

    Where locks do not work (NFS, FUSE) the block runs all the same.
    """
    while not folder.is_dir():
        folder = folder.parent
    fd = _lock(folder)
    try:
        yield
    finally:
        if fd is not None:
            os.close(fd)


def _lock(folder: Path) -> Optional[int]:
    if fcntl is None:
        return None
    try:
        fd = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    end = time.monotonic() + LOCK_TIMEOUT_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except BlockingIOError:
            if time.monotonic() >= end:
                os.close(fd)
                raise AdapterError("Another install or uninstall is at work. Try again later") from None
        except OSError:
            os.close(fd)
            return None
        time.sleep(0.01)
