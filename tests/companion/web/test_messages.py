"""What routes get and give."""

import math

import pytest

from companion.core.errors import BadRequest
from companion.core.hub import Subscription
from companion.web.messages import Request, Response, Stream, error_response, json_response


def test_a_request_reads_its_body_when_asked() -> None:
    """With the route's own limit."""
    request = Request("POST", "/", read_body=lambda most: b"%d" % most)
    assert request.json(42) == 42


def test_a_request_without_a_body_has_no_value() -> None:
    """An empty text is no JSON; the parser's words are passed on."""
    with pytest.raises(BadRequest, match="Invalid JSON: "):
        Request("POST", "/").json(10)


def test_a_stream_without_wishes_has_no_ids_and_is_not_watched() -> None:
    """Who needs either says so."""
    stream = Stream(Subscription("", lambda: None), lambda ended: None)
    assert (stream.event_id, stream.look_s) == (None, math.inf)


def test_answers_are_json() -> None:
    """Exactly this content type, without a charset."""
    assert json_response(202, {"a": "ü"}, ("X", "y")) == Response(
        202, '{"a":"ü"}'.encode(), (("Content-Type", "application/json"), ("X", "y"))
    )
    assert error_response(404, "Not found").body == b'{"error":"Not found"}'
