"""What can be told of a log file from outside, and how it is opened without surprises."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, NamedTuple, Optional, Union


class Seen(NamedTuple):
    """What tells one state of a file from another, as far as our appends go."""

    device: int
    inode: int
    size: int


def look(path: Union[Path, str]) -> Optional[Seen]:
    """The file as it is now, through symlinks; None when it cannot be seen."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return Seen(found.st_dev, found.st_ino, found.st_size)


def seen_of(found: os.stat_result) -> Seen:
    """The same from a stat that was made already."""
    return Seen(found.st_dev, found.st_ino, found.st_size)


def surely_absent(path: Path) -> bool:
    """Whether there is surely no file. A folder that may not be entered proves nothing."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def refuse_irregular(found: os.stat_result) -> None:
    """OSError unless it is a regular file: a rename must never replace ``/dev/null``, a read never
    hang."""
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")


def open_to_read(path: Path) -> Optional[BinaryIO]:
    """The file, or None when there is none. OSError for anything but a regular file."""
    try:
        # Without O_NONBLOCK a named pipe would be waited for.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    file = os.fdopen(fd, "rb")
    try:
        refuse_irregular(os.fstat(fd))
    except OSError:
        file.close()
        raise
    return file
