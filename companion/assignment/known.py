"""Which issues and pull requests a board's cards link to already."""

import errno
import os
import stat
from typing import Iterable, Iterator, Set

from companion.assignment.search import LINK, link_key
from companion.core.errors import AssignmentFailed

_PIECE_BYTES = 1024 * 1024
# Characters; longer than any link, which may lie across two pieces.
_OVERLAP = 1_024
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def links_in(folder: str) -> Set[str]:
    """Keys of all links in the folder's own ``.md`` files; not in folders below, such as archives.

    CompanionError when one cannot be read: its issues would be put on the board again.
    """
    path = folder
    try:
        found: Set[str] = set()
        for name in os.listdir(folder):
            if name.endswith(".md"):
                path = os.path.join(folder, name)
                found.update(map(link_key, _links(_pieces(path))))
        return found
    except OSError as exc:
        raise AssignmentFailed(f"What is on the board cannot be read: {exc.strerror or exc}: {path}") from exc


def _links(pieces: Iterable[bytes]) -> Iterator[str]:
    rest = ""
    for piece in pieces:
        text = rest + piece.decode("utf-8", "replace")
        # At the very end it may go on in the next piece: .../pull/1|2
        yield from (link.group() for link in LINK.finditer(text) if link.end() < len(text))
        rest = text[-_OVERLAP:]
    yield from (link.group() for link in LINK.finditer(rest))


def _pieces(path: str) -> Iterator[bytes]:
    """The content of a regular file; nothing of what is none, or has just gone. OSError."""
    try:
        # Without O_NONBLOCK a named pipe would be waited for.
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError as exc:
        if exc.errno in _GONE:
            return
        raise
    try:
        while stat.S_ISREG(os.fstat(fd).st_mode):
            piece = os.read(fd, _PIECE_BYTES)
            if not piece:
                return
            yield piece
    finally:
        os.close(fd)
