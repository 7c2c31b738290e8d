"""Heads as bytes in, and answers as bytes out."""

from typing import Tuple

import pytest

from companion.web.http1 import BadHead, may_begin, parse_head, render
from companion.web.limits import HEADERS, REQUEST_LINE_BYTES


def test_a_head_is_taken_apart() -> None:
    """Method, target, headers (lower-case names, values trimmed) and framing."""
    head = parse_head(b"POST /x?y=1 HTTP/1.1\r\nHost: a\r\nX-Two:  b \t\r\nContent-Length: 7")
    assert (head.method, head.target, head.length, head.keep_alive) == ("POST", "/x?y=1", 7, True)
    assert head.headers == {"host": "a", "x-two": "b", "content-length": "7"}


def test_bare_line_feeds_are_understood() -> None:
    """RFC 9112, 2.2 allows it, and people type requests by hand."""
    assert parse_head(b"GET / HTTP/1.1\nHost: a").headers == {"host": "a"}


def test_a_repeated_header_is_joined() -> None:
    """As RFC 9110, 5.3 has it."""
    assert parse_head(b"GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\na: 2").headers["a"] == "1, 2"


def test_a_target_is_utf_8_as_typed_by_curl() -> None:
    """Raw bytes above ASCII are text, and broken ones no error."""
    assert parse_head("GET /ü HTTP/1.0".encode()).target == "/ü"
    assert parse_head(b"GET /\xff HTTP/1.0").target == "/\ufffd"


@pytest.mark.parametrize(
    ("lines", "keep"),
    [
        (b"GET / HTTP/1.1\r\nHost: a", True),
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Close", False),
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, close", False),
        (b"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive", False),
    ],
)
def test_who_wants_to_keep_the_connection(lines: bytes, keep: bool) -> None:
    """HTTP/1.1 does unless it says close; HTTP/1.0 never gets it."""
    assert parse_head(lines).keep_alive is keep


def test_http_1_0_needs_no_host_here() -> None:
    """The guard refuses a missing one with its own words."""
    assert "host" not in parse_head(b"GET / HTTP/1.0").headers


def test_framing_headers() -> None:
    """No header: no body. Chunked: unknown length."""
    assert parse_head(b"POST / HTTP/1.1\r\nHost: a").length == 0
    assert parse_head(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked").length is None
    assert parse_head(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue").expects_continue
    assert not parse_head(b"POST / HTTP/1.0\r\nExpect: 100-continue").expects_continue


BAD: Tuple[Tuple[bytes, int], ...] = (
    (b"GET /", 400),
    (b"GET  / HTTP/1.1\r\nHost: a", 400),
    (b"GET / HTTP/1.1 \r\nHost: a", 400),
    (b"G(T / HTTP/1.1\r\nHost: a", 400),
    (b"GET / HTTP/x\r\nHost: a", 400),
    (b"GET / http/1.1\r\nHost: a", 400),
    (b"GET /\x00 HTTP/1.1\r\nHost: a", 400),
    (b"PRI * HTTP/2.0", 505),
    (b"GET / HTTP/1.1", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nOrigin: b\r\norigin: c", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nReferer: b\r\nReferer: c", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nA : b", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\n folded", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nA: b\x00", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nA: b\rOrigin: c", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nno colon", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1_0", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \xb2", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + b"9" * 30, 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked", 400),
    (b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked", 400),
    (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked", 501),
    (b"POST / HTTP/1.1\r\nHost: a\r\nExpect: magic", 417),
    (b"GET /" + b"a" * REQUEST_LINE_BYTES + b" HTTP/1.1\r\nHost: a", 414),
    (b"GET / HTTP/1.1\r\nHost: a" + b"\r\nA: b" * HEADERS, 431),
)


@pytest.mark.parametrize(("data", "status"), BAD, ids=[repr(data[:70]) for data, _ in BAD])
def test_what_cannot_be_served_says_why(data: bytes, status: int) -> None:
    """Anything that could be read in two ways is refused."""
    with pytest.raises(BadHead) as caught:
        parse_head(data)
    assert caught.value.status == status and str(caught.value)


def test_a_tls_client_is_recognised_by_its_first_byte() -> None:
    """It would otherwise wait for an end that never comes."""
    assert not may_begin(0x16)
    assert all(may_begin(letter) for letter in b"GPDOH\r\n")


def test_an_answer_is_one_piece() -> None:
    """Head and body, with length and connection; Date in English whatever the locale."""
    data = render(202, [("Content-Type", "application/json")], b"{}", close=True)
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 202 Accepted" and body == b"{}"
    assert b"Content-Type: application/json" in lines
    assert b"Content-Length: 2" in lines and b"Connection: close" in lines
    assert any(line.startswith(b"Date: ") and line.endswith(b" GMT") for line in lines)


def test_an_answer_without_content_has_no_length() -> None:
    """RFC 9110, 8.6: no Content-Length with 204. And the answer to HEAD has no body."""
    assert b"Content-Length" not in render(204, [], b"", close=False)
    head_only = render(404, [], b"text", close=False, with_body=False)
    assert b"Content-Length: 4" in head_only and head_only.endswith(b"\r\n\r\n")
