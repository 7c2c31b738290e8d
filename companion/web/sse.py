"""Event streams: the head, the frames and the loop that writes them, a thread per listener."""

from typing import Tuple

from companion.core.hub import Frame, Hub
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


def encode(hub: Hub, frame: Frame) -> bytes:
    """One frame as the browser reads it. The JSON in it was made once, by the publisher."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (
        hub.event_id(frame).encode("utf-8"),
        frame.name.encode("utf-8"),
        frame.data,
    )


def run(wire: Wire, stream: Stream, headers: Headers, hub: Hub, limits: Limits) -> None:
    """Write frames until the client leaves, falls too far behind, or the hub closes.

    A client that is gone is noticed at the latest by the second heartbeat. Always unsubscribes.
    """
    subscription = stream.subscription
    try:
        wire.send(head(headers), limits.send_s)
        while True:
            frames = subscription.take(limits.heartbeat_s)
            if frames:
                wire.send(b"".join([encode(hub, frame) for frame in frames]), limits.send_s)
            elif subscription.closed or wire.client_left():
                return
            else:
                wire.send(HEARTBEAT, limits.send_s)
    except ClientGone:
        return
    finally:
        stream.unsubscribe(subscription)
