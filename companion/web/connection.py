"""One client connection from its first byte to its last: requests in, answers out."""

import logging
import socket
import threading
import time
from dataclasses import dataclass
from typing import Optional

from companion.core import logs
from companion.core.clock import Deadline
from companion.core.errors import CompanionError, MethodNotAllowed, Overloaded
from companion.web import peer, router, sse
from companion.web.body import Body
from companion.web.guard import CorsHeaders, Guard
from companion.web.http1 import BadHead, Head, parse_head, render
from companion.web.limits import Limits
from companion.web.messages import Reply, Request, Response, Stream, error_response
from companion.web.services import Services
from companion.web.target import parse_target
from companion.web.wire import ClientGone, OutOfTime, Wire

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Shared:
    """What all connections of a server have in common."""

    services: Services
    guard: Guard
    limits: Limits
    large_bodies: threading.Semaphore
    streams: threading.Semaphore
    stopping: threading.Event
    """Set before :meth:`Connection.stop` is called: no answer keeps its connection afterwards."""


class Connection:
    """Serves one socket on one thread; :meth:`stop` and :meth:`cut` come from others."""

    def __init__(self, sock: socket.socket, shared: Shared) -> None:
        self._shared = shared
        self._limits = shared.limits
        self._sock = sock
        self._wire = Wire(sock)
        self._lock = threading.Lock()  # Between becoming idle and being told to stop.
        self._idle_since: Optional[float] = time.monotonic()
        self._stopped = False

    def serve(self) -> None:
        """Answer requests until either side ends the connection. Never raises."""
        try:
            refusal = peer.refusal(self._sock)
            if refusal is not None:  # Told at once: another user must not keep a thread waiting.
                self._give_up(error_response(403, refusal))
                return
            while self._await_request() and self._serve_one():
                pass
        except ClientGone as exc:
            _log.debug("client left: %s", exc)
        except Exception:  # A thread's top: nobody above could do anything about it.
            _log.exception("connection failed")
        finally:
            self._wire.close()

    def idle_since(self) -> Optional[float]:
        """Monotonic seconds since when no request is under way; None while one is."""
        return self._idle_since

    def stop(self) -> None:
        """End the connection after the request under way, at once when there is none. Never waits."""
        with self._lock:
            self._stopped = True
            if self._idle_since is not None:
                self._wire.cut(socket.SHUT_RD)

    def cut(self) -> None:
        """End the connection whatever it is doing. Never waits."""
        self._wire.cut()

    def close(self) -> None:
        """Give up a connection that is not being served."""
        self._wire.close()

    def _await_request(self) -> bool:
        with self._lock:
            if self._stopped:
                return False
            self._idle_since = time.monotonic()
        arrived = self._wire.wait_for_request(Deadline(self._limits.idle_s))
        with self._lock:
            self._idle_since = None
        return arrived

    def _serve_one(self) -> bool:
        """One request and its answer. Whether another one may follow."""
        try:
            head = parse_head(self._wire.read_head(Deadline(self._limits.head_s)))
        except BadHead as exc:
            return self._give_up(error_response(exc.status, str(exc)))
        except OutOfTime:
            return self._give_up(error_response(408, "Request head did not arrive in time"))
        body = Body(self._wire, head, self._limits, self._shared.large_bodies)
        try:
            return self._answer(head, body)
        finally:
            body.release()

    def _answer(self, head: Head, body: Body) -> bool:
        cors: CorsHeaders = ()
        reply: Reply
        try:
            target = parse_target(head.target)
            if target is None:
                raise BadHead(400, "Bad request target")
            cors = self._shared.guard.admit(head.method, target, head.headers)
            logs.debug_event("request received", {"method": head.method, "path": target.path})
            request = Request(
                head.method, target.path, target.query, head.headers, body.read, self.cut, target.values
            )
            reply = router.answer(request, self._shared.services)
        except MethodNotAllowed as exc:
            reply = error_response(exc.status, str(exc), ("Allow", ", ".join(exc.allowed)))
        except (CompanionError, BadHead) as exc:
            reply = error_response(exc.status, str(exc))
        except ClientGone:
            raise
        except Exception:  # Our bug: the client gets an answer, the log gets the traceback.
            _log.exception("%s %s failed", head.method, head.target.partition("?")[0])
            reply = error_response(500, "Internal error")
        if isinstance(reply, Stream):
            return self._stream(reply, cors)
        return self._send(reply, cors, head, body)

    def _send(self, reply: Response, cors: CorsHeaders, head: Head, body: Body) -> bool:
        # A client that is still sending does not read: its request is taken in first.
        whole = body.discard()
        keep = whole and head.keep_alive and not self._shared.stopping.is_set()
        headers = (*reply.headers, *cors)
        data = render(reply.status, headers, reply.body, close=not keep, with_body=head.method != "HEAD")
        self._wire.send(data, self._limits.send_s)
        if not whole:
            self._wire.linger(self._limits.linger_s)
        return keep

    def _give_up(self, reply: Response) -> bool:
        """Answer something that was no request; where the next one would begin is unknown."""
        self._wire.send(render(reply.status, reply.headers, reply.body, close=True), self._limits.send_s)
        self._wire.linger(self._limits.linger_s)
        return False

    def _stream(self, stream: Stream, cors: CorsHeaders) -> bool:
        if not self._shared.streams.acquire(blocking=False):
            stream.unsubscribe(stream.subscription)
            return self._give_up(error_response(Overloaded.status, "Too many open event streams", *cors))
        try:
            sse.run(self._wire, stream, cors, self._limits)
        finally:
            self._shared.streams.release()
        return False
