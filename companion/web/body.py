"""A request's body: read to its end within bounds of size and time, whatever its framing."""

import threading
from typing import Iterator, List

from companion.core.clock import Deadline
from companion.core.errors import BadRequest, BodyTooLarge, RequestTimeout
from companion.web.http1 import CONTINUE, Head
from companion.web.limits import LARGE_BODY_BYTES, Limits
from companion.web.wire import OutOfTime, Wire

# A chunk's size in hexadecimal and an extension that nobody uses.
_CHUNK_LINE_BYTES = 4_096
_TRAILER_LINES = 100


class Body:
    """The body that follows one head. Used by the connection's thread only."""

    def __init__(self, wire: Wire, head: Head, limits: Limits, large: threading.Semaphore) -> None:
        self._wire = wire
        self._head = head
        self._limits = limits
        self._large = large
        self._holds_large = False
        self._owes_continue = head.expects_continue and head.length != 0
        self._pieces = self._read_pieces(Deadline(limits.body_s))
        self._received = 0
        self._broken = False
        self._ended = head.length == 0

    def read(self, most: int) -> bytes:
        """The whole body.

        BodyTooLarge when it has more than ``most`` bytes (it is read to its end first),
        RequestTimeout, BadRequest for broken chunks. ClientGone when the client leaves.
        """
        length = self._head.length
        if length is not None and length > most:
            self.discard()
            raise BodyTooLarge("Request body too large")
        self._send_continue()
        kept: List[bytes] = []
        try:
            for piece in self._pieces:
                if self._received > most:
                    kept.clear()
                    self.discard()
                    raise BodyTooLarge("Request body too large")
                self._admit_large()
                kept.append(piece)
        except OutOfTime as exc:
            self._broken = True
            raise RequestTimeout("Request body did not arrive in time") from exc
        except ValueError as exc:
            self._broken = True
            raise BadRequest("Bad chunked body") from exc
        self._ended = True
        return b"".join(kept)

    def discard(self) -> bool:
        """Read the rest and forget it. Whether the end was reached, so that a request may follow."""
        if self._ended or self._broken or self._owes_continue:
            # A client that was not told to continue may send its body or not: nothing can follow.
            return self._ended
        length = self._head.length
        if length is not None and length > self._limits.drain_bytes:
            self._broken = True
            return False
        try:
            for _ in self._pieces:
                if self._received > self._limits.drain_bytes:
                    self._broken = True
                    return False
        except (OutOfTime, ValueError):
            self._broken = True
            return False
        self._ended = True
        return True

    def release(self) -> None:
        """Let the next large body in. To be called when the request is done with."""
        if self._holds_large:
            self._holds_large = False
            self._large.release()

    def _send_continue(self) -> None:
        if self._owes_continue:
            self._owes_continue = False
            if not self._wire.pending():
                self._wire.send(CONTINUE, self._limits.send_s)

    def _admit_large(self) -> None:
        if self._received > LARGE_BODY_BYTES and not self._holds_large:
            if not self._large.acquire(timeout=self._limits.body_s):
                raise OutOfTime
            self._holds_large = True

    def _read_pieces(self, deadline: Deadline) -> Iterator[bytes]:
        if self._head.length is not None:
            yield from self._read_exactly(self._head.length, deadline)
            return
        while True:
            size = _chunk_size(self._wire.read_line(_CHUNK_LINE_BYTES, deadline))
            if size == 0:
                break
            yield from self._read_exactly(size, deadline)
            if self._wire.read_line(0, deadline):
                raise ValueError("chunk without its end")
        for _ in range(_TRAILER_LINES):
            if not self._wire.read_line(_CHUNK_LINE_BYTES, deadline):
                return
        raise ValueError("too many trailers")

    def _read_exactly(self, size: int, deadline: Deadline) -> Iterator[bytes]:
        while size:
            piece = self._wire.read_some(size, deadline)
            size -= len(piece)
            self._received += len(piece)
            yield piece


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip(b" \t")
    if not digits or len(digits) > 15 or digits.strip(b"0123456789abcdefABCDEF"):
        raise ValueError("bad chunk size")
    return int(digits, 16)
