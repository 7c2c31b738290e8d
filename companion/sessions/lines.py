"""JSON lines: how a record becomes a line, a file becomes lines, and history becomes short."""

import json
import re
import time
from collections import deque
from typing import (
    BinaryIO,
    Callable,
    Deque,
    Dict,
    Hashable,
    Iterable,
    Iterator,
    List,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
)

Record = TypeVar("Record")

# How much history a compaction leaves. At about 400 bytes a record: two megabytes.
KEEP_NEWEST = 5_000

# Longer than any request body that we admit for a record (64 KiB, at most six bytes per
# character when escaped). A longer line is not ours; it is skipped without being held in memory.
MAX_LINE_BYTES = 1 << 20

# So much of a long rewrite is written at once.
BLOCK_BYTES = 1 << 16

# A thread that computes without a pause lets the others wait up to five milliseconds (the
# interpreter's switch interval) whenever they come back from a disk or a socket.
BUSY_S = 0.000_3
PAUSE_S = 0.000_5

_SURROGATE = re.compile("[\ud800-\udfff]")
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def json_bytes(value: object) -> bytes:
    """JSON on a single line as UTF-8. Lone surrogates, valid in JSON, are written as escapes."""
    return text_bytes(_encoder.encode(value))


def text_bytes(text: str) -> bytes:
    """JSON text as UTF-8; see :func:`json_bytes`."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode("utf-8")


def compacted(
    records: Iterable[Record], key: Callable[[Record], Hashable], newest: int = KEEP_NEWEST
) -> List[Record]:
    """The last record of every key and the ``newest`` ones, in their order.

    Folding the result gives the same state as folding ``records``.
    """
    last: Dict[Hashable, int] = {}
    kept: Dict[int, Record] = {}
    recent: Deque[int] = deque()
    for number, record in enumerate(records):
        before = last.get(key(record))
        last[key(record)] = number
        kept[number] = record
        recent.append(number)
        # Whatever left the window stays only as the last of its key.
        if before is not None and (not recent or before < recent[0]):
            kept.pop(before, None)
        if len(recent) > newest:
            out = recent.popleft()
            if last.get(key(kept[out])) != out:
                del kept[out]
    return [kept[number] for number in sorted(kept)]


def gently(items: Iterable[Record]) -> Iterator[Record]:
    """The items as they come, with pauses in which other threads get on."""
    since = time.perf_counter()
    for item in items:
        yield item
        if time.perf_counter() - since > BUSY_S:
            time.sleep(PAUSE_S)
            since = time.perf_counter()


def lines_of(file: BinaryIO, limit: Optional[int] = None) -> Iterator[bytes]:
    """Lines with their ends. A monstrous one comes as its first part, which is no JSON.

    With a ``limit``, lines that begin behind so many bytes are left out.
    """
    while limit is None or file.tell() < limit:
        line = file.readline(MAX_LINE_BYTES)
        if not line:
            return
        yield line
        while len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE_BYTES)


def blocks_of(lines: Iterable[bytes]) -> Iterator[Tuple[bytes, int]]:
    """Lines, given without their LF, in blocks fit to be written: (bytes, number of lines)."""
    block: List[bytes] = []
    size = 0
    for line in lines:
        block.append(line)
        size += len(line)
        if size >= BLOCK_BYTES:
            yield b"\n".join(block) + b"\n", len(block)
            block, size = [], 0
    if block:
        yield b"\n".join(block) + b"\n", len(block)


def looks_whole(line: bytes) -> bool:
    """Whether a line has the shape of one of our records; torn ones and other junk have not."""
    return line.startswith(b'{"') and line.rstrip(b"\r").endswith(b"}")


def needles_of(texts: Sequence[str]) -> List[bytes]:
    """Bytes that a line holds when its record holds these texts; see :func:`surely_lacks`."""
    # The replacement character may stand for any broken byte, so it cannot be looked for.
    return [json_bytes(text)[1:-1] for text in texts if text and "\ufffd" not in text]


def surely_lacks(line: bytes, needles: Sequence[bytes]) -> bool:
    """Whether one of the needles is not in a line. A line with an escape may hold anything."""
    return b"\\" not in line and not all(needle in line for needle in needles)
