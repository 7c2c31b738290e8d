"""A companion for tests of clients: takes ``POST /associations`` and can misbehave in every way.

In the test's own process, with a thread per connection; what came in is in ``posts``.
"""

import json
import socket
import ssl
import threading
import time
from typing import Callable, Dict, List, NamedTuple, Optional

WAIT_S = 30.0
LIMIT_BYTES = 1 << 20

Json = Dict[str, object]


class Post(NamedTuple):
    """One request that came in whole."""

    head: str
    body: Json


class FakeCompanion:
    """Listens on 127.0.0.1; the same port again after :meth:`stop` and :meth:`start`."""

    def __init__(self) -> None:
        self.posts: List[Post] = []
        self.answer = b'{"cardUuid":"x"}'
        self.status: Optional[int] = 202
        """None: what comes in is read and noted, and never answered."""
        self.raw: Optional[bytes] = None
        """Sent instead of any proper answer."""
        self.keep_open = False
        """Whether connections stay open behind the answer, whatever the client asked for."""
        self.slow_s = 0.0
        self.ignored: Callable[[str], bool] = lambda path: False
        """Which card paths are answered as unknown."""
        self.tls: Optional[ssl.SSLContext] = None
        """Set before a client comes: connections are encrypted."""
        self.port = 0
        self._changed = threading.Condition()
        self._listener: Optional[socket.socket] = None
        self._open: List[socket.socket] = []
        self.start()

    @property
    def url(self) -> str:
        """As clients are told."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen, on the port of before."""
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", self.port))
        self._listener.listen(128)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def stop(self) -> None:
        """Die: connections are refused from now on, open ones are cut."""
        if self._listener is not None:
            listener, self._listener = self._listener, None
            listener.shutdown(socket.SHUT_RDWR)  # Wakes accept().
            listener.close()
        for connection in self._open:
            connection.close()
        self._open.clear()

    def states(self, path: str = "") -> List[str]:
        """The statuses that came in, of one card or of all, in order."""
        with self._changed:
            return [str(p.body["status"]) for p in self.posts if path in ("", p.body["markdownPath"])]

    def wait_for(self, holds: "Callable[[FakeCompanion], bool]", what: str = "that") -> None:
        """Wait until something holds; looked at after every request."""
        until = time.monotonic() + WAIT_S
        with self._changed:
            while not holds(self):
                left = until - time.monotonic()
                assert left > 0, f"no {what}; had {[p.body for p in self.posts]}"
                self._changed.wait(min(left, 0.5))

    def wait_for_number(self, path: str, least: int) -> None:
        """Wait until a card had so many statuses."""
        self.wait_for(lambda it: len(it._plain(path)) >= least, f"{least} statuses of {path}")

    def wait_for_states(self, path: str, expected: List[str]) -> None:
        """Wait until a card had as many statuses; they must be these."""
        self.wait_for_number(path, len(expected))
        assert self.states(path) == expected

    def _plain(self, path: str) -> List[object]:
        return [post for post in self.posts if post.body["markdownPath"] == path]

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection = listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self.tls is not None:
                connection = self.tls.wrap_socket(connection, server_side=True)
            self._open.append(connection)
            post = self._read(connection)
            if post is None:
                return
            if self.slow_s:
                time.sleep(self.slow_s)
            with self._changed:
                self.posts.append(post)
                self._changed.notify_all()
            if self.status is None:
                return  # The socket stays open: it is in the list.
            connection.sendall(self._reply(str(post.body.get("markdownPath"))))
            if not self.keep_open:
                connection.close()
        except OSError:
            pass  # A client that has gone is part of many tests.

    def _read(self, connection: socket.socket) -> Optional[Post]:
        data = b""
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more or len(data) > LIMIT_BYTES:
                return None
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        text = head.decode("ascii")
        length = int(text.lower().partition("content-length:")[2].split("\r\n")[0])
        while len(body) < length:
            body += connection.recv(65536)
        return Post(text, json.loads(body))

    def _reply(self, path: str) -> bytes:
        if self.raw is not None:
            return self.raw
        answer = b'{"ignored":true,"reason":"unknown_card"}' if self.ignored(path) else self.answer
        head = f"HTTP/1.1 {self.status} Whatever\r\nContent-Length: {len(answer)}\r\n\r\n"
        return head.encode() + answer
