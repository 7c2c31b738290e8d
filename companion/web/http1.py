"""HTTP/1.1 heads: bytes in, a checked :class:`Head` out, and an answer's bytes. No sockets here.

Why not ``http.server``: importing it costs 40 ms and 7 MB, it writes an answer in several pieces
(40 ms late on a kept-alive connection), it has no time limit for a request as a whole, its errors
are HTML, and its header parser accepts things (two Hosts, folded lines) that a guard against web
pages must not have to think about.
"""

import functools
import re
import time
from dataclasses import dataclass
from typing import Dict, Mapping, Optional, Sequence, Tuple

from companion.web.limits import HEADERS, REQUEST_LINE_BYTES

Headers = Sequence[Tuple[str, str]]

_TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST_LINE = re.compile(rf"({_TOKEN}) ([^\x00-\x20\x7f]+) HTTP/([0-9])\.([0-9])")
_HEADER_LINE = re.compile(rf"({_TOKEN}):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_MAY_BEGIN = frozenset(b"!#$%&'*+.^_`|~0123456789-\r\nABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")

# Two of these would leave it open which one counts, and each decides over admission or framing.
_ONLY_ONCE = frozenset({"host", "origin", "referer", "content-length", "transfer-encoding"})

_REASONS = {
    200: "OK",
    202: "Accepted",
    204: "No Content",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    414: "URI Too Long",
    415: "Unsupported Media Type",
    417: "Expectation Failed",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

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


def parse_head(data: bytes) -> Head:
    """The head in ``data``, which ends before the empty line. BadHead when it cannot be served."""
    # latin-1 gives each byte its own character, so nothing is lost by looking at text.
    lines = [line[:-1] if line.endswith("\r") else line for line in data.decode("latin-1").split("\n")]
    method, target, minor = _request_line(lines[0])
    headers = _headers(lines[1:])
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
    lines = [*headers, ("Date", _http_date(int(time.time())))]
    if status != 204:
        lines.append(("Content-Length", str(len(body))))
    lines.append(("Connection", "close" if close else "keep-alive"))
    return render_head(status, lines) + (body if with_body else b"")


def render_head(status: int, headers: Headers) -> bytes:
    """Status line and headers, with the empty line. Values must hold no line ends."""
    text = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"HTTP/1.1 {status} {_REASONS[status]}\r\n{text}\r\n".encode("latin-1", errors="replace")


def _request_line(line: str) -> Tuple[str, str, int]:
    if len(line) > REQUEST_LINE_BYTES:
        raise BadHead(414, "Request line too long")
    found = _REQUEST_LINE.fullmatch(line)
    if found is None:
        raise BadHead(400, "Bad request line")
    method, target, major, minor = found.groups()
    if major != "1":
        raise BadHead(505, "HTTP version not supported")
    return method, target.encode("latin-1").decode("utf-8", errors="replace"), int(minor)


def _headers(lines: Sequence[str]) -> Dict[str, str]:
    if len(lines) > HEADERS:
        raise BadHead(431, "Too many headers")
    headers: Dict[str, str] = {}
    for line in lines:
        found = _HEADER_LINE.fullmatch(line)
        if found is None:
            raise BadHead(400, "Bad header line")
        name = found.group(1).lower()
        value = found.group(2).rstrip(" \t")
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


@functools.lru_cache(maxsize=1)
def _http_date(unix_s: int) -> str:
    """RFC 9110, 5.6.7. Not ``strftime``, whose names depend on the locale."""
    moment = time.gmtime(unix_s)
    return (
        f"{_DAYS[moment.tm_wday]}, {moment.tm_mday:02d} {_MONTHS[moment.tm_mon - 1]} {moment.tm_year}"
        f" {moment.tm_hour:02d}:{moment.tm_min:02d}:{moment.tm_sec:02d} GMT"
    )
