"""A plain HTTP client for tests: says exactly the bytes it is told to, and reads what comes back."""

import json
import socket
import time
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

PATIENCE_S = 20.0
"""How long a test waits for what must come; never reached when all is well."""


@dataclass(frozen=True)
class Answer:
    """One complete HTTP answer."""

    status: int
    headers: Dict[str, str]
    """Lower-case names."""
    body: bytes

    def json(self) -> object:
        """The body's JSON value."""
        value: object = json.loads(self.body)
        return value

    def error(self) -> str:
        """The text of the contract's error shape, which must be all there is."""
        value = self.json()
        assert isinstance(value, dict) and list(value) == ["error"]
        assert self.headers["content-type"] == "application/json"
        return str(value["error"])


@dataclass(frozen=True)
class Event:
    """One frame of an event stream."""

    name: str
    id: str
    """Empty where there is none."""
    data: str

    def json(self) -> object:
        """The data's JSON value."""
        value: object = json.loads(self.data)
        return value


class Talk:
    """One connection to a server on this machine."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.port = port
        self.sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect((host, port))
        self._received = b""

    def __enter__(self) -> "Talk":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave."""
        self.sock.close()

    def send(self, data: bytes) -> "Talk":
        """Send these bytes."""
        self.sock.sendall(data)
        return self

    def ask(
        self,
        method: str,
        path: str,
        body: Optional[bytes] = None,
        headers: Tuple[Tuple[str, str], ...] = (),
        host: Optional[str] = None,
    ) -> Answer:
        """One request with a proper head, and its answer."""
        self.send(request(method, path, body, headers, host or f"127.0.0.1:{self.port}"))
        return self.answer(with_body=method != "HEAD")

    def answer(self, with_body: bool = True) -> Answer:
        """The next answer, read by its Content-Length (none means: no body)."""
        status, headers = self.head()
        length = int(headers.get("content-length", "0")) if with_body else 0
        while len(self._received) < length:
            self._more()
        body, self._received = self._received[:length], self._received[length:]
        return Answer(status, headers, body)

    def head(self) -> Tuple[int, Dict[str, str]]:
        """Status and headers of the next answer; its body stays unread."""
        text = self._until(b"\r\n\r\n").decode("latin-1")
        first, *lines = text.split("\r\n")
        assert first.startswith("HTTP/1.1 ")
        pairs = [line.split(": ", 1) for line in lines]
        headers = {name.lower(): value for name, value in pairs}
        assert len(headers) == len(pairs), "a header stands twice"
        return int(first.split(" ")[1]), headers

    def event(self) -> Event:
        """The next frame; comments are skipped."""
        while True:
            lines = self.block().split("\n")
            if not lines[0].startswith(":"):
                break
        fields = dict(line.split(": ", 1) for line in lines)
        assert list(fields) in (["id", "event", "data"], ["event", "data"])
        return Event(fields["event"], fields.get("id", ""), fields["data"])

    def block(self) -> str:
        """The next frame or comment as it stands."""
        return self._until(b"\n\n").decode("utf-8")

    def rest(self) -> bytes:
        """Everything until the server closes."""
        while True:
            try:
                self._more()
            except EOFError:
                rest, self._received = self._received, b""
                return rest

    def ended(self) -> bool:
        """Whether the server closes without another byte (waits for it)."""
        try:
            return self.rest() == b""
        except ConnectionError:
            return True

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._received:
            self._more()
        found, _, self._received = self._received.partition(mark)
        return found

    def _more(self) -> None:
        piece = self.sock.recv(65536)
        if not piece:
            raise EOFError
        self._received += piece


def request(
    method: str,
    path: str,
    body: Optional[bytes] = None,
    headers: Tuple[Tuple[str, str], ...] = (),
    host: str = "127.0.0.1",
) -> bytes:
    """The bytes of an HTTP/1.1 request; ``Content-Length`` when there is a body."""
    lines: List[str] = [f"{method} {path} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


def eventually(what: object) -> None:
    """Wait until a function of no arguments is true."""
    assert callable(what)
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)
