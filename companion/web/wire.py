"""A connected socket, read through a buffer; every wait ends with a :class:`Deadline`."""

import re
import socket

from companion.core.clock import Deadline
from companion.web.http1 import BadHead, may_begin
from companion.web.limits import HEAD_BYTES, KIB, REQUEST_LINE_BYTES

# A head and a usual hook fit. Much larger ones cost more to allocate than to fill (mmap).
_HEAD_PIECE = 16 * KIB
_PIECE = 256 * KIB
_HEAD_END = re.compile(rb"\r?\n\r?\n")


class ClientGone(ConnectionError):
    """The client closed the connection (or was cut off) in the middle of something."""


class OutOfTime(Exception):
    """A wait took longer than its deadline allows."""


class Wire:
    """One client's byte stream. Belongs to one thread; only :meth:`cut` may be called by others."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = bytearray()
        # An answer is one write, so there is nothing to gather and nothing to wait for.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def wait_for_request(self, deadline: Deadline) -> bool:
        """Wait for the next request's first byte. False when the client leaves or stays silent."""
        while True:
            while self._buffer and self._buffer[0] in b"\r\n":  # RFC 9112, 2.2: to be ignored.
                del self._buffer[0]
            if self._buffer:
                return True
            try:
                self._fill(deadline)
            except (ClientGone, OutOfTime):
                return False

    def read_head(self, deadline: Deadline) -> bytes:
        """A request's head without the empty line. BadHead, OutOfTime, ClientGone."""
        looked_at = 0
        while True:
            if not may_begin(self._buffer[0]):
                raise BadHead(400, "Bad request line")
            end = _HEAD_END.search(self._buffer, max(0, looked_at - 3))
            if end is not None and end.start() <= HEAD_BYTES:
                head = bytes(self._buffer[: end.start()])
                del self._buffer[: end.end()]
                return head
            looked_at = len(self._buffer)
            if looked_at > REQUEST_LINE_BYTES and b"\n" not in self._buffer[: REQUEST_LINE_BYTES + 2]:
                raise BadHead(414, "Request line too long")
            if looked_at > HEAD_BYTES:
                raise BadHead(431, "Request head too large")
            self._fill(deadline)

    def read_some(self, most: int, deadline: Deadline) -> bytes:
        """Between one byte and ``most``. OutOfTime, ClientGone."""
        if not self._buffer:
            return self._receive(min(most, _PIECE), deadline)
        piece = bytes(self._buffer[:most])
        del self._buffer[:most]
        return piece

    def read_line(self, most: int, deadline: Deadline) -> bytes:
        """A line without its end. ValueError when it is longer than ``most``; OutOfTime, ClientGone."""
        while True:
            end = self._buffer.find(b"\n", 0, most + 2)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                return line[:-1] if line.endswith(b"\r") else line
            if len(self._buffer) >= most + 2:
                raise ValueError("line too long")
            self._fill(deadline)

    def pending(self) -> bool:
        """Whether bytes lie in the buffer that nobody has read yet."""
        return bool(self._buffer)

    def send(self, data: bytes, timeout_s: float) -> None:
        """Write everything. ClientGone, also when the client takes nothing for ``timeout_s``."""
        try:
            self._sock.settimeout(timeout_s)
            self._sock.sendall(data)
        except OSError as exc:
            raise ClientGone(str(exc)) from exc

    def client_left(self) -> bool:
        """Whether the client has closed its side; never waits."""
        try:
            self._sock.settimeout(0.0)
            return self._sock.recv(1, socket.MSG_PEEK) == b""
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            return True

    def linger(self, timeout_s: float) -> None:
        """After an answer that came before the request's end: say that we are done, then read on.

        Closing at once would make the kernel send a reset, which can take the answer with it.
        """
        deadline = Deadline(timeout_s)
        try:
            self._sock.shutdown(socket.SHUT_WR)
            while True:
                self._receive(_PIECE, deadline)
        except (OSError, OutOfTime):
            return

    def cut(self, how: int = socket.SHUT_RDWR) -> None:
        """Wake whoever waits on this connection; it then ends. Never waits; any thread may call it."""
        try:
            self._sock.shutdown(how)
        except OSError:
            return  # Already gone.

    def close(self) -> None:
        """Give the socket back. May be called twice."""
        self._sock.close()

    def _fill(self, deadline: Deadline) -> None:
        self._buffer += self._receive(_HEAD_PIECE, deadline)

    def _receive(self, most: int, deadline: Deadline) -> bytes:
        left_s = deadline.left_s()
        if left_s <= 0.0:
            raise OutOfTime
        try:
            self._sock.settimeout(left_s)
            piece = self._sock.recv(most)
        except socket.timeout as exc:
            raise OutOfTime from exc
        except OSError as exc:
            raise ClientGone(str(exc)) from exc
        if not piece:
            raise ClientGone("closed by the client")
        return piece
