"""What routes get and give: a request already admitted, an answer, or an event stream."""

import math
from dataclasses import dataclass, field
from typing import Callable, List, Mapping, Optional, Tuple, Union

from companion.core.errors import BadRequest
from companion.core.hub import Frame, Subscription
from companion.web import json_text


@dataclass(frozen=True)
class Request:
    """One admitted request, as a route sees it."""

    method: str
    path: str
    """Normalised; see :mod:`companion.web.target`."""
    query: Mapping[str, str] = field(default_factory=dict)
    """First value of each parameter, decoded."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Lower-case names."""
    read_body: Callable[[int], bytes] = lambda most: b""
    """The whole body, or BodyTooLarge when it is longer than the given number of bytes."""
    cut: Callable[[], None] = lambda: None
    """Ends the connection from another thread, without waiting."""
    values: Mapping[str, List[str]] = field(default_factory=dict)
    """All values of each parameter, decoded; at least one each."""

    def json(self, most: int) -> object:
        """The body's JSON value. BadRequest with the parser's words, BodyTooLarge, RequestTimeout."""
        data = self.read_body(most)
        try:
            return json_text.loads(data)
        except ValueError as exc:
            raise BadRequest(f"Invalid JSON: {exc}") from exc


@dataclass(frozen=True)
class Response:
    """A complete answer."""

    status: int
    body: bytes = b""
    headers: Tuple[Tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Stream:
    """An answer that goes on: the frames of a subscription until one side ends it."""

    subscription: Subscription
    unsubscribe: Callable[[Subscription], None]
    """Called exactly once, whatever ends the stream."""
    event_id: Optional[Callable[[Frame], str]] = None
    """Gives each frame its id; None for frames that have none."""
    look_s: float = math.inf
    """How often at least to look whether the client has left, where keeping it costs something.
    Otherwise it is looked for when there is a sign of life to be given."""


Reply = Union[Response, Stream]

JSON_TYPE = ("Content-Type", "application/json")


def json_response(status: int, value: object, *headers: Tuple[str, str]) -> Response:
    """An answer with a JSON body."""
    return Response(status, json_text.dumps(value), (JSON_TYPE, *headers))


def error_response(status: int, text: str, *headers: Tuple[str, str]) -> Response:
    """The contract's error shape."""
    return json_response(status, {"error": text}, *headers)
