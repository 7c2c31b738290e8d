"""Writing our own files so that nothing is lost: locks, atomic replacement, owner and mode.

Every file the companion writes goes through here, so that a symlink kept in a dotfiles
repository stays a symlink and a crash never leaves half a file.
"""

import contextlib
import errno
import glob
import itertools
import os
import stat
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Callable, Iterator, Optional, Type

try:  # Windows has no fcntl; locking is then left out, as on a file system without locks.
    import fcntl
except ImportError:  # pragma: no cover - not on the platforms we test
    fcntl = None  # type: ignore[assignment]

PRIVATE_FILE_MODE = 0o600
PRIVATE_DIR_MODE = 0o700

# A lock is held for one read-modify-write of a small file: milliseconds. Whoever still waits
# after this long goes on without the lock rather than hang (a dead NFS lock daemon, ENOLCK).
LOCK_TIMEOUT_S = 2.0

# A file of ours is written within milliseconds; what is older than this belongs to nobody alive.
LEFTOVER_AGE_S = 60.0

_NO_LOCKS_HERE = frozenset(
    {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL, errno.EBADF}
)
_names = itertools.count()
# Of a file's name, in that of the file written beside it: the whole would be too long for some.
_NAME_PART = 40


def ensure_private_dir(path: Path) -> None:
    """Make a folder (and its parents) for this user alone. An existing one keeps its mode.

    OSError when it cannot be made.
    """
    path.mkdir(mode=PRIVATE_DIR_MODE, parents=True, exist_ok=True)


def real_target(path: Path) -> Path:
    """The file that a write to ``path`` should replace: the end of a chain of symlinks.

    A dangling link is followed to where it points. OSError (ELOOP) for a circle.
    """
    seen = 0
    while path.is_symlink():
        seen += 1
        if seen > 40:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        path = path.parent / os.readlink(path)
    return path


def write_atomically(
    path: Path,
    data: bytes,
    mode: int = PRIVATE_FILE_MODE,
    before_replacing: Optional[Callable[[], None]] = None,
) -> None:
    """Replace the file's content as a whole: write beside, fsync, rename.

    A symlink stays, its target is replaced. An existing file keeps its mode and, where the
    system lets us, its owner; a new one gets ``mode``. ``before_replacing`` is called at the last
    moment and may raise to leave everything as it was. OSError when it cannot be written; the
    old content is then untouched and nothing is left beside it.
    """
    with Replacement(path, mode) as new:
        new.write(data)
        new.sync()
        if before_replacing is not None:
            before_replacing()
        new.take_place()
    sync_dir(new.target.parent)


def write_new(path: Path, data: bytes, mode: int = PRIVATE_FILE_MODE) -> None:
    """Make a file that is not there yet, with all of its content or not at all.

    FileExistsError when there is anything of this name, a dangling link too; OSError when it
    cannot be written.
    """
    beside = path.with_name(f".{path.name[:_NAME_PART]}.{os.getpid()}-{next(_names)}.tmp")
    _write_exclusively(beside, data, mode)
    try:
        os.link(beside, path)
    except FileExistsError:
        raise
    except OSError:  # No hard links here (FAT, some network disks): a reader may see a part of it.
        _write_exclusively(path, data, mode)
    finally:
        os.unlink(beside)
    sync_dir(path.parent)


def _write_exclusively(path: Path, data: bytes, mode: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE_MODE)
    try:
        write_all(fd, data)
        os.fchmod(fd, mode)
        os.fsync(fd)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise
    finally:
        os.close(fd)


class Replacement:
    """A file that is written beside another one, and then takes its place in one step.

    For :func:`write_atomically`, and for a log whose writers must not wait for a disk: they go on
    with the old file until :meth:`take_place`. A context: what has not taken its place by the end
    is removed. Links, owner and mode are treated as in :func:`write_atomically`. Not safe for threads.

    Args:
        path: the file to replace; OSError when nothing can be written beside it.
        mode: of a file that is new.
    """

    def __init__(self, path: Path, mode: int = PRIVATE_FILE_MODE) -> None:
        self.target = real_target(path)
        """What is replaced: the end of a chain of symlinks."""
        try:
            self._before: Optional[os.stat_result] = os.stat(self.target)
        except FileNotFoundError:
            self._before = None
        self._mode = mode
        name = f".{self.target.name[:_NAME_PART]}.{os.getpid()}-{next(_names)}.tmp"
        self._beside = self.target.with_name(name)
        self._fd = os.open(self._beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE_MODE)
        self._open = True
        self._placed = False

    def write(self, data: bytes) -> None:
        """Add to the new content. OSError as it comes."""
        write_all(self._fd, data)

    def sync(self) -> None:
        """Bring all that was written to the disk; may take long. OSError as it comes."""
        _keep_owner_and_mode(self._fd, self._before, self._mode)
        os.fsync(self._fd)

    def take_place(self) -> None:
        """Replace the old file. Waits for no disk; :func:`sync_dir` makes it durable. OSError."""
        self._close()
        os.replace(self._beside, self.target)
        self._placed = True

    def __enter__(self) -> "Replacement":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if not self._placed:
            with contextlib.suppress(OSError):
                self._close()
            with contextlib.suppress(OSError):
                os.unlink(self._beside)

    def _close(self) -> None:
        if self._open:
            self._open = False
            os.close(self._fd)


def sweep(path: Path) -> None:
    """Remove what a process that was killed in :func:`write_atomically` left beside ``path``.

    What is younger than a minute may still be written by a command. Best effort, no error.
    """
    with contextlib.suppress(OSError):
        target = real_target(path)
        for left in target.parent.glob(f".{glob.escape(target.name[:_NAME_PART])}.*.tmp"):
            if time.time() - left.stat().st_mtime > LEFTOVER_AGE_S:
                left.unlink()


def write_all(fd: int, data: bytes) -> None:
    """Write every byte: ``os.write`` may take fewer than it is given. OSError as it comes."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_dir(folder: Path) -> None:
    """Make a rename in this folder durable; best effort, some file systems refuse it."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _keep_owner_and_mode(fd: int, before: Optional[os.stat_result], mode: int) -> None:
    if before is None:
        os.fchmod(fd, mode)
        return
    if hasattr(os, "fchown"):
        with contextlib.suppress(OSError):
            os.fchown(fd, before.st_uid, before.st_gid)
    os.fchmod(fd, stat.S_IMODE(before.st_mode))


_in_process = threading.Lock()  # Serialises the threads of this process: flock is per open file.


@contextlib.contextmanager
def locked(folder: Path, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[bool]:
    """Hold a lock on ``folder`` while a small file in it is read, changed and replaced.

    The folder itself is locked, so that no lock file is left behind. Yields whether the lock was
    really had. Where locks do not work (NFS, FUSE) the block runs all the same: a lost lock must
    never become a hang.
    """
    with _in_process:
        fd = _try_lock(folder, timeout_s)
        try:
            yield fd is not None
        finally:
            if fd is not None:
                os.close(fd)


@contextlib.contextmanager
def held_alone(folder: Path) -> Iterator[bool]:
    """Hold a lock on ``folder`` over long work; another process that tries is told so at once.

    Yields whether nobody else holds it. Where locks do not work nobody does.
    """
    fd: Optional[int] = None
    alone = True
    if fcntl is not None:
        with contextlib.suppress(OSError):
            fd = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as exc:
                alone = exc.errno in _NO_LOCKS_HERE
    try:
        yield alone
    finally:
        if fd is not None:
            os.close(fd)


def _try_lock(folder: Path, timeout_s: float) -> Optional[int]:
    if fcntl is None:
        return None
    try:
        fd = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    end = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except OSError as exc:
            if exc.errno in _NO_LOCKS_HERE or time.monotonic() >= end:
                os.close(fd)
                return None
        time.sleep(0.01)
