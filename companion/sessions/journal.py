"""An append-only log of JSON records, one per line: what the companion remembers on disk.

Three logs use it: associations, links to cards without a uuid, and what adapters remember of
their sessions. The rules:

- a record is one ``write`` of line and LF on a descriptor opened for appending, so a crash can
  tear at most the last line, and a torn last line is ended before anything follows it;
- a whole rewrite is written beside and renamed; one that only shortens history makes nobody wait,
  for what is appended meanwhile is carried over (:meth:`Journal.rewrite_before`);
- what cannot be written (full disk, read-only file system, no home) stays in memory, in order, and
  is tried again before the next append; nobody who appends ever sees an error;
- a line that cannot be understood is skipped and counted, never repaired by guessing.

There is no fsync per append: records survive the death of the process, which is what happens, and
an fsync would make every hook of an agent wait for the disk.
"""

import errno
import json
import os
import threading
from collections import deque
from pathlib import Path
from typing import (
    Callable,
    Deque,
    Generic,
    Hashable,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    TypeVar,
)

from companion.core.errors import StorageError
from companion.core.files import (
    PRIVATE_FILE_MODE,
    Replacement,
    ensure_private_dir,
    sync_dir,
    write_all,
    write_atomically,
)
from companion.sessions.association import Association, from_json
from companion.sessions.lines import (
    KEEP_NEWEST,
    blocks_of,
    compacted,
    gently,
    lines_of,
    looks_whole,
    needles_of,
    surely_lacks,
)
from companion.sessions.logfile import Seen, look, open_to_read, refuse_irregular, seen_of, surely_absent

Record = TypeVar("Record")

_OPEN_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK


class Mark(NamedTuple):
    """A file as it was at one moment; see :meth:`Journal.mark`."""

    seen: Seen
    generation: int


class Journal(Generic[Record]):
    """One log file. Safe to use from several threads.

    Args:
        path: the file; it and its folder are made at the first append.
        parse: foreign JSON to a record; ValueError when it is none.
        encode: a record to one line of JSON, without LF.
        key: what identifies the thing that a record tells the state of.
    """

    def __init__(
        self,
        path: Path,
        parse: Callable[[object], Record],
        encode: Callable[[Record], bytes],
        key: Callable[[Record], Hashable],
    ) -> None:
        self.path = path
        self._path = str(path)  # For the look before each append, which is a tenth quicker so.
        self._parse = parse
        self._encode = encode
        self._key = key
        self._lock = threading.Lock()  # Guards everything below and every access to the file.
        self._fd: Optional[int] = None
        self._seen: Optional[Seen] = None  # The file as our last access left it.
        self._unsaved: Deque[Record] = deque()
        self._generation = 0  # Changes when the file is another one: marks are void then.
        self.lines = 0
        """Records in the file, as far as we know."""
        self.damaged = 0
        """Lines of the last whole read that were no record; blank ones do not count."""
        self.problem: Optional[str] = None
        """Why the file could not be read or written the last time, or None."""
        self.replaced = False
        """Somebody replaced, shortened or deleted the file; True until the next whole read."""
        self.grown = False
        """Somebody else appended to the file; True until the next whole read."""

    @property
    def unsaved(self) -> int:
        """Records that wait in memory for a disk that takes them."""
        return len(self._unsaved)

    def read(self) -> List[Record]:
        """Every record in order: the file's, then the unsaved ones. A missing file is empty.

        StorageError when the file is there but cannot be read.
        """
        with self._lock:
            self._notice(look(self.path))
            self._close()
            try:
                records = self._read_file()
            except OSError as exc:
                raise self._failed("read", exc) from exc
            self.replaced = self.grown = False
            return records + list(self._unsaved)

    def open(self) -> bool:
        """Make folder and file if they are missing, end a torn last line. False with ``problem``."""
        with self._lock:
            try:
                self._ready()
            except OSError as exc:
                self._failed("write", exc)
                return False
            return True

    def touched(self) -> bool:
        """Whether somebody else replaced the file or appended to it since the last whole read."""
        with self._lock:
            self._notice(look(self.path))
            return self.replaced or self.grown

    def append(self, record: Record) -> bool:
        """Add one record. False when it could only be kept in memory; see ``problem``."""
        with self._lock:
            self._unsaved.append(record)
            return self._flush()

    def flush(self) -> bool:
        """Try to write what is unsaved. True when nothing is left."""
        with self._lock:
            return self._flush()

    def rewrite(self, records: Iterable[Record]) -> None:
        """Replace the whole content, unsaved records included, in one step.

        StorageError when the old file is still there and could not be replaced; then nothing has
        changed. Where there is no file and none can be made, the records are kept as unsaved.
        """
        with self._lock:
            kept = list(records)
            self._put(list(map(self._line, kept)), kept)

    def drop(self, doomed: Callable[[Record], bool], hints: Sequence[str]) -> int:
        """Rewrite the file without some records; how many there were, unsaved ones included.

        Junk goes with them. ``hints`` are texts that every doomed record holds: a line that
        surely lacks one is copied unread, which makes this quick. StorageError as for
        :meth:`rewrite`.
        """
        with self._lock:
            self._close()
            try:
                lines = self._bytes().split(b"\n")
            except OSError as exc:
                raise self._failed("read", exc) from exc
            needles = needles_of(hints)
            kept: List[bytes] = []
            dropped = 0
            for line in lines:
                if not (looks_whole(line) and surely_lacks(line, needles)):
                    found = list(self._records([line]))
                    if not found or doomed(found[0]):
                        dropped += len(found)
                        continue
                kept.append(line.rstrip(b"\r") + b"\n")
            waiting = [each for each in self._unsaved if not doomed(each)]
            dropped += len(self._unsaved) - len(waiting)
            self._put(kept + list(map(self._line, waiting)), waiting)
            return dropped

    def overgrown(self, live: int) -> bool:
        """Whether the file holds more than twice what a compaction to ``live`` keys would leave."""
        return self.lines > 2 * (live + KEEP_NEWEST)

    def mark(self) -> Optional[Mark]:
        """The file as it is now, for :meth:`rewrite_before`; None when records are unsaved."""
        with self._lock:
            return self._mark()

    def rewrite_before(self, mark: Mark, records: Iterable[Record], alone: bool = False) -> bool:
        """Put ``records`` in the place of all that the file held at ``mark``; the rest stays.

        The long part, also waiting for the disk, runs without the lock: appends go on meanwhile
        and are carried over. ``alone``: nobody else has work to do yet, so no pauses are made for
        them. False when it has to be tried again: the file has become another one, or cannot be
        written (``problem``); nothing has changed then.
        """
        try:
            with Replacement(self.path) as new:
                lines = 0
                for block, count in blocks_of(map(self._encode, records if alone else gently(records))):
                    new.write(block)
                    lines += count
                new.sync()
                with self._lock:
                    tail = self._tail(mark)
                    if tail is None:
                        return False
                    # Like every append, the tail is not waited for.
                    new.write(tail)
                    new.take_place()
                    self._is_new(lines + tail.count(b"\n"))
            sync_dir(new.target.parent)
        except OSError as exc:
            self._failed("compact", exc)
            return False
        return True

    def compact(self, alone: bool = False) -> bool:
        """Drop old history; the state that the log tells stays. False when it has to wait.

        Nobody who appends waits meanwhile. ``alone`` as in :meth:`rewrite_before`.
        """
        with self._lock:
            mark = self._mark()
            if mark is None or self.replaced:
                return False
        try:
            with self.path.open("rb") as file:
                lines = lines_of(file, mark.seen.size)
                kept = compacted(self._records(lines if alone else gently(lines)), self._key)
        except OSError as exc:
            self._failed("compact", exc)
            return False
        return self.rewrite_before(mark, kept, alone)

    def close(self) -> None:
        """Try to save what is unsaved and let go of the file. A later append opens it again."""
        with self._lock:
            self._flush()
            self._close()

    # Everything below runs under the lock.

    def _put(self, lines: Sequence[bytes], unsaved_otherwise: Iterable[Record]) -> None:
        try:
            self._replace(b"".join(lines), len(lines))
        except OSError as exc:
            failure = self._failed("write", exc)
            if not surely_absent(self.path):
                raise failure from exc
            self._unsaved = deque(unsaved_otherwise)
            return
        self._unsaved.clear()

    def _flush(self) -> bool:
        try:
            while self._unsaved:
                self._write(self._line(self._unsaved[0]))
                self._unsaved.popleft()
                self.problem = None
        except OSError as exc:
            self._failed("write", exc)
            self._close()
            if len(self._unsaved) > 2 * KEEP_NEWEST:
                self._unsaved = deque(compacted(self._unsaved, self._key, KEEP_NEWEST // 2))
            return False
        return True

    def _mark(self) -> Optional[Mark]:
        if self._unsaved:
            return None
        try:
            self._ready()
        except OSError as exc:
            self._failed("write", exc)
            return None
        assert self._seen is not None
        return Mark(self._seen, self._generation)

    def _write(self, line: bytes) -> None:
        fd = self._ready()
        seen = self._seen
        assert seen is not None
        written = os.write(fd, line)
        if written == len(line):
            self._seen = Seen(seen.device, seen.inode, seen.size + written)
            self.lines += 1
            return
        # The disk took a part. Take it back if nobody wrote behind it; otherwise the next opening
        # ends the torn line.
        if os.fstat(fd).st_size == seen.size + written:
            os.ftruncate(fd, seen.size)
        else:
            self._seen = seen_of(os.fstat(fd))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _ready(self) -> int:
        """A descriptor of the file that is at ``path`` now, its last line ended."""
        now = look(self._path)
        if self._fd is not None and now is not None and now == self._seen:
            return self._fd
        self._notice(now)
        self._close()
        ensure_private_dir(self.path.parent)
        fd = os.open(self.path, _OPEN_FLAGS, PRIVATE_FILE_MODE)
        try:
            refuse_irregular(os.fstat(fd))
            size = os.fstat(fd).st_size
            if size and os.pread(fd, 1, size - 1) != b"\n":
                write_all(fd, b"\n")
            self._seen = seen_of(os.fstat(fd))
        except OSError:
            os.close(fd)
            raise
        self._fd = fd
        return fd

    def _notice(self, now: Optional[Seen]) -> None:
        seen = self._seen
        if seen is None or now == seen:
            return
        if now is None or now[:2] != seen[:2] or now.size < seen.size:
            self.replaced = True
            self._generation += 1
        else:
            self.grown = True

    def _replace(self, data: bytes, lines: int) -> None:
        ensure_private_dir(self.path.parent)
        if self.path.exists():
            refuse_irregular(os.stat(self.path))
        write_atomically(self.path, data)
        self._is_new(lines)
        self.replaced = self.grown = False

    def _is_new(self, lines: int) -> None:
        """We have put another file in its place."""
        self._close()
        self._generation += 1
        self._seen = look(self.path)
        self.lines = lines
        self.problem = None

    def _tail(self, mark: Mark) -> Optional[bytes]:
        """What was appended since ``mark``; None when the file is not that one any more."""
        now = look(self.path)
        self._notice(now)
        if now is None or self._generation != mark.generation or now[:2] != mark.seen[:2]:
            return None
        with self.path.open("rb") as file:
            file.seek(mark.seen.size)
            return file.read()

    def _read_file(self) -> List[Record]:
        self.lines = self.damaged = 0
        self._seen = None
        file = open_to_read(self.path)
        if file is None:
            return []
        with file:
            records = list(self._records(lines_of(file)))
            self._seen = seen_of(os.fstat(file.fileno()))._replace(size=file.tell())
        self.lines = len(records)
        return records

    def _bytes(self) -> bytes:
        file = open_to_read(self.path)
        if file is None:
            return b""
        with file:
            return file.read()

    def _close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    # No lock needed from here on, but for the counter, which is a number for people.

    def _records(self, lines: Iterable[bytes]) -> Iterator[Record]:
        damaged = 0
        for line in lines:
            if not line.strip():
                continue
            try:
                yield self._parse(json.loads(line.decode("utf-8", errors="replace")))
            except (ValueError, RecursionError):
                damaged += 1
        self.damaged = damaged

    def _line(self, record: Record) -> bytes:
        return self._encode(record) + b"\n"

    def _failed(self, verb: str, exc: OSError) -> StorageError:
        self.problem = f"Cannot {verb} {self.path}: {exc.strerror or exc}"
        return StorageError(self.problem)


def association_journal(path: Path) -> "Journal[Association]":
    """The contract's log of associations, ``companion.jsonl``."""
    return Journal(path, parse=from_json, encode=lambda each: each.encoded, key=lambda each: each.key)
