"""Event streams: the head, the frames and the loop that writes them, a thread per listener."""

from typing import Callable, Optional, Tuple

from companion.core.clock import Deadline
from companion.core.hub import Frame
from companion.web.http1 import Headers, render_head
from companion.web.limits import Limits
from companion.web.messages import Stream
from companion.web.wire import ClientGone, Wire

HEARTBEAT = b": still here\n\n"

_HEAD: Tuple[Tuple[str, str], ...] = (
    ("Content-Type", "text/event-stream"),
    ("Cache-Control", "no-cache"),
    ("Connection", "keep-alive"),
)


def head(headers: Headers) -> bytes:
    """The stream's head. Without a length the stream lasts until the connection ends."""
    return render_head(200, [*_HEAD, *headers])


def encode(frame: Frame, event_id: Optional[Callable[[Frame], str]]) -> bytes:
    """One frame as the browser reads it. The JSON in it was made once, by the publisher."""
    number = b"" if event_id is None else b"id: %b\n" % event_id(frame).encode("utf-8")
    return b"%bevent: %b\ndata: %b\n\n" % (number, frame.name.encode("utf-8"), frame.data)


def run(wire: Wire, stream: Stream, headers: Headers, limits: Limits) -> None:
    """Write frames until the client leaves, falls too far behind, or the subscription is closed.

    A client that is gone is noticed after ``stream.look_s``, at the latest by the second
    heartbeat. Always unsubscribes.
    """
    subscription = stream.subscription
    try:
        wire.send(head(headers), limits.send_s)
        silence = Deadline(limits.heartbeat_s)
        while True:
            frames = subscription.take(min(silence.left_s(), stream.look_s))
            if frames:
                wire.send(b"".join([encode(frame, stream.event_id) for frame in frames]), limits.send_s)
            elif subscription.closed or wire.client_left():
                return
            elif silence.over():
                wire.send(HEARTBEAT, limits.send_s)
            else:
                continue
            silence = Deadline(limits.heartbeat_s)
    except ClientGone:
        return
    finally:
        stream.unsubscribe(subscription)
