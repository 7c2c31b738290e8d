"""HTTP/1.1 heads: bytes in, a checked :class:`Head` out, and an answer's bytes. No sockets here.

``http.server`` reads them; what a guard against web pages must not have to think about is refused
around it: a header that decides over admission given twice, folded lines, stray control characters,
framing that can be read in two ways. Answers are made here in one piece: its several writes would
reach a kept-alive client 40 ms late.
"""

import email.utils
import functools
import io
import re
import time
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Dict, Mapping, Optional, Sequence, Tuple

from companion.web.limits import HEADERS, REQUEST_LINE_BYTES

Headers = Sequence[Tuple[str, str]]

_TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST_LINE = re.compile(rf"({_TOKEN}) ([^\x00-\x20\x7f]+) HTTP/([0-9])\.([0-9])")
_NAME = re.compile(_TOKEN)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_MAY_BEGIN = frozenset(b"!#$%&'*+.^_`|~0123456789-\r\nABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")

# Two of these would leave it open which one counts, and each decides over admission or framing.
_ONLY_ONCE = frozenset({"host", "origin", "referer", "content-length", "transfer-encoding"})

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class BadHead(Exception):
    """A head that cannot be served. Carries the HTTP status; the text is for the client."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Head:
    """One request's head, framing already understood."""

    method: str
    target: str
    """As sent, read as UTF-8."""
    headers: Mapping[str, str]
    """Lower-case names; repeated ones joined by a comma. Values are latin-1."""
    length: Optional[int]
    """Bytes of the body; None when it comes in chunks."""
    keep_alive: bool
    """Whether the client wants to send another request on this connection."""
    expects_continue: bool
    """Whether the client waits for ``100 Continue`` before it sends the body."""


def may_begin(first: int) -> bool:
    """Whether a request can begin with this byte; TLS, for one, cannot."""
    return first in _MAY_BEGIN


class _Protocol(BaseHTTPRequestHandler):
    """The standard library's handler, without a socket: reads one head."""

    protocol_version = "HTTP/1.1"

    def __init__(self, head: bytes) -> None:
        # Not the base's, which would serve a connection from its constructor.
        self.raw_requestline, _, rest = head.partition(b"\n")
        self.rfile = io.BytesIO(rest + b"\r\n\r\n")

    def send_error(self, code: int, message: Optional[str] = None, explain: Optional[str] = None) -> None:
        """What the base cannot read; an answer in our own form is made elsewhere."""
        raise BadHead(code, message or explain or "Bad request")

    def handle_expect_100(self) -> bool:
        """Nothing yet: a body that will be refused must not be asked for."""
        return True


def parse_head(data: bytes) -> Head:
    """The head in ``data``, which ends before the empty line. BadHead when it cannot be served."""
    method, target, minor = _request_line(data.partition(b"\n")[0])
    # The header parser takes a bare CR for the end of a line; a header could hide behind it.
    if data.count(b"\r") != data.count(b"\r\n"):
        raise BadHead(400, "Bad header line")
    protocol = _Protocol(data)
    protocol.parse_request()
    if protocol.headers.defects:
        raise BadHead(400, "Bad header line")
    headers = _checked(protocol.headers.items())
    if minor >= 1 and "host" not in headers:
        raise BadHead(400, "Host header is missing")
    connection = {word.strip() for word in headers.get("connection", "").lower().split(",")}
    return Head(
        method=method,
        target=target,
        headers=headers,
        length=_length(headers, minor),
        keep_alive=minor >= 1 and "close" not in connection,
        expects_continue=minor >= 1 and _expects_continue(headers),
    )


def render(status: int, headers: Headers, body: bytes, *, close: bool, with_body: bool = True) -> bytes:
    """A whole answer as one piece, so that it leaves in one write.

    ``with_body`` is False for the answer to HEAD, which only tells the length.
    """
    lines = [*headers, ("Date", _date(int(time.time())))]
    if status != 204:
        lines.append(("Content-Length", str(len(body))))
    lines.append(("Connection", "close" if close else "keep-alive"))
    return render_head(status, lines) + (body if with_body else b"")


def render_head(status: int, headers: Headers) -> bytes:
    """Status line and headers, with the empty line. Values must hold no line ends."""
    phrase = _Protocol.responses[HTTPStatus(status)][0]
    text = "".join([f"{name}: {value}\r\n" for name, value in headers])
    return f"HTTP/1.1 {status} {phrase}\r\n{text}\r\n".encode("latin-1", errors="replace")


@functools.lru_cache(maxsize=1)
def _date(unix_s: int) -> str:
    """RFC 9110, 5.6.7, in English whatever the locale; made once a second."""
    return email.utils.formatdate(unix_s, usegmt=True)


def _request_line(line: bytes) -> Tuple[str, str, int]:
    if len(line) > REQUEST_LINE_BYTES:
        raise BadHead(414, "Request line too long")
    # latin-1 gives each byte its own character, so nothing is lost by looking at text.
    found = _REQUEST_LINE.fullmatch(line.rstrip(b"\r").decode("latin-1"))
    if found is None:
        raise BadHead(400, "Bad request line")
    method, target, major, minor = found.groups()
    if major != "1":
        raise BadHead(505, "HTTP version not supported")
    return method, target.encode("latin-1").decode("utf-8", errors="replace"), int(minor)


def _checked(items: Sequence[Tuple[str, str]]) -> Dict[str, str]:
    """Headers by lower-case name, each value in one line; repeated ones joined where that is safe."""
    if len(items) > HEADERS:
        raise BadHead(431, "Too many headers")
    headers: Dict[str, str] = {}
    for given, value in items:
        if _NAME.fullmatch(given) is None or _CONTROL.search(value):  # A folded value holds its line end.
            raise BadHead(400, "Bad header line")
        name = given.lower()
        value = value.strip(" \t")
        if name not in headers:
            headers[name] = value
        elif name in _ONLY_ONCE:
            raise BadHead(400, f"Repeated header: {name}")
        else:
            headers[name] = f"{headers[name]}, {value}"
    return headers


def _length(headers: Mapping[str, str], minor: int) -> Optional[int]:
    """RFC 9112, 6.3: a request without either header has no body; one with both is refused."""
    coding = headers.get("transfer-encoding")
    length = headers.get("content-length")
    if coding is not None:
        if length is not None or minor < 1:
            raise BadHead(400, "Transfer-Encoding does not go with this request")
        if coding.lower() != "chunked":
            raise BadHead(501, "Transfer-Encoding is not supported")
        return None
    if length is None:
        return 0
    if not (length.isascii() and length.isdigit()) or len(length) > 18:
        raise BadHead(400, "Bad Content-Length")
    return int(length)


def _expects_continue(headers: Mapping[str, str]) -> bool:
    expectation = headers.get("expect", "")
    if expectation and expectation.lower() != "100-continue":
        raise BadHead(417, "Expectation failed")
    return bool(expectation)
