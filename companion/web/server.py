"""The listening sockets, the threads behind them, and an orderly end.

A thread per connection: a user has a few dozen at most, and a thread that waits for its client
blocks nobody. Importing this module imports everything that serving needs.
"""

import contextlib
import errno
import functools
import logging
import select
import socket
import threading
import time
from typing import Dict, List, Optional, Sequence, Set

from companion.core import config, logs
from companion.web import door as doors
from companion.web import peer
from companion.web.connection import Connection, Shared
from companion.web.door import Door
from companion.web.guard import Guard
from companion.web.limits import Limits
from companion.web.reception import Reception
from companion.web.services import Services

_log = logging.getLogger(__name__)

# Between two looks for a free place while all are taken, and after a failure to accept.
_PAUSE_S = 0.05
# A connection younger than this has its first request on the way: it is not idle yet.
_FRESH_S = 0.1
# After this the process may go: threads are daemons and hold nothing that needs an orderly end.
_CUT_WAIT_S = 0.5


class CompanionServer:
    """HTTP on 127.0.0.1 and, where it exists, ``[::1]``."""

    def __init__(self, services: Services, limits: Limits = Limits()) -> None:  # noqa: B008 - frozen
        self.port = services.settings.port
        """The port asked for; after :meth:`bind` the real one (0 asks for any free one)."""
        self.ipv6_problem: Optional[str] = None
        """Why ``[::1]`` is not served, or None. Clients use 127.0.0.1; this is no failure."""
        self.handed_in: List[str] = []
        """The addresses whose sockets a service manager keeps open for us."""
        self._limits = limits
        origin = config.web_origin(services.config.read())
        self._shared = Shared(
            services=services,
            guard=Guard(origin, services.settings.config_path),
            limits=limits,
            large_bodies=threading.BoundedSemaphore(limits.large_bodies),
            streams=threading.BoundedSemaphore(limits.streams),
            stopping=threading.Event(),
        )
        self._places = threading.BoundedSemaphore(_affordable(limits.connections))
        self._doors: List[Door] = []
        self._receptions: List[Reception[Connection]] = []
        # Guards the connections; told whenever one of them ends.
        self._changed = threading.Condition()
        self._connections: Set[Connection] = set()
        # One byte, never read: it wakes the serving thread and all who wait at the doors. Written by
        # stop(), which may run in a signal handler.
        self._word, self._word_giver = socket.socketpair()
        # Set once, before ``stopping`` is looked at: whoever stops knows who ends the server.
        self._serving_thread: Optional[int] = None
        self._ended = threading.Event()

    def bind(self, handed_in: Sequence[socket.socket] = ()) -> None:
        """Take the port and listen; clients wait until we serve. OSError (EADDRINUSE) as it comes.

        Args:
            handed_in: listening sockets of this very port that a service manager keeps open for us;
                what is not among them is bound here.
        """
        given: Dict[int, socket.socket] = {sock.family: sock for sock in handed_in}
        for family, address in doors.FAMILIES:
            try:
                sock = given.get(family) or doors.listen(family, address, self.port)
            except OSError as exc:
                if family == socket.AF_INET:
                    raise
                self.ipv6_problem = exc.strerror or str(exc)
                _log.info("not serving [%s]:%d: %s", address, self.port, self.ipv6_problem)
                continue
            self._doors.append(Door(sock, self._word))
            self.handed_in += [address] if family in given else []
            self.port = sock.getsockname()[1]
        # Asked now rather than by the first request: later nothing should be left to find out.
        peer.kernel_tells()

    def serve_until_stopped(self) -> None:
        """Serve on this thread until :meth:`stop`; then end everything as described there."""
        self._serving_thread = threading.get_ident()
        if self._shared.stopping.is_set():
            self._end()
            return
        logs.debug_event("server listening", {"port": self.port})
        try:
            for door in self._doors:
                wait = functools.partial(self._wait_for_client, door)
                self._receptions.append(Reception(wait, self._serve, self._turn_away))
                self._receptions[-1].open()
            select.select([self._word], [], [])
        finally:
            self._end()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Stop serving. May be called twice, from any thread, and from a signal handler.

        In this order: no new connections (those of a socket that was handed in wait for our next
        life); event streams end; idle connections close; requests under way get ``stop_s`` to
        finish; what is left is cut off. Waits for all that (at most
        ``timeout_s``), except on the serving thread itself, which does it on its way out.
        """
        self._give_word()
        if self._serving_thread is None:
            self._end()
        elif self._serving_thread != threading.get_ident():
            self._ended.wait(timeout_s)

    def connections(self) -> List[Connection]:
        """The connections that are open now."""
        with self._changed:
            return list(self._connections)

    def _wait_for_client(self, door: Door) -> Optional[Connection]:
        """The next client, or None when we are stopping. Several threads are in here at a time."""
        while not self._shared.stopping.is_set():
            connection = self._accept(door)
            if connection is not None:
                return connection
        return None

    def _accept(self, door: Door) -> Optional[Connection]:
        """The next client, in a place of its own; None when there is none after all, or we are stopping."""
        try:
            sock = door.accept()
        except OSError as exc:
            if exc.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS):
                _log.warning("cannot accept a connection: %s", exc)
                self._make_room()
                time.sleep(_PAUSE_S)
            return None
        if sock is None:
            return None
        if not self._take_place():
            sock.close()
            return None
        try:
            connection = Connection(sock, self._shared)
        except OSError:
            sock.close()
            self._places.release()
            return None
        with self._changed:  # Registered before it is served, so that _end() never misses one.
            self._connections.add(connection)
        return connection

    def _serve(self, connection: Connection) -> None:
        try:
            connection.serve()
        finally:
            self._forget(connection)

    def _turn_away(self, connection: Connection) -> None:
        _log.warning("no thread is to be had for a connection")
        connection.close()
        self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        with self._changed:
            self._connections.discard(connection)
            self._changed.notify_all()
        self._places.release()

    def _take_place(self) -> bool:
        """Wait for a free place, pushing out whoever does nothing. False when we are stopping."""
        while not self._places.acquire(blocking=False):
            if self._shared.stopping.is_set():
                return False
            self._make_room()
            if self._places.acquire(timeout=_PAUSE_S):
                break
        return True

    def _make_room(self) -> None:
        """Close the connection that has been idle for the longest, if there is one."""
        fresh = time.monotonic() - _FRESH_S
        with self._changed:
            seen = [(each.idle_since(), each) for each in self._connections]
        idle = [(since, each) for since, each in seen if since is not None and since < fresh]
        if idle:
            min(idle, key=lambda pair: pair[0])[1].stop()

    def _give_word(self) -> None:
        self._shared.stopping.set()
        with contextlib.suppress(OSError):
            self._word_giver.send(b"\0")

    def _end(self) -> None:
        if not self._shared.stopping.is_set():  # An exception ends the serving thread, nobody's word.
            self._give_word()
        for reception in self._receptions:
            reception.wait_closed(_CUT_WAIT_S)
        for door in self._doors:
            door.close()
        self._shared.services.hub.close()
        self._shared.services.lookups.close()
        self._stop_connections()
        self._wait_for_the_end(self._limits.stop_s)
        for connection in self.connections():
            connection.cut()
        self._wait_for_the_end(_CUT_WAIT_S)
        for sock in (self._word, self._word_giver):
            sock.close()
        self._ended.set()

    def _stop_connections(self) -> None:
        """End those that are idle, after a moment also those whose first request may be on its way."""
        fresh = time.monotonic() - _FRESH_S
        for connection in self.connections():
            since = connection.idle_since()
            if since is None or since < fresh:
                connection.stop()
        self._wait_for_the_end(_FRESH_S)
        for connection in self.connections():
            connection.stop()

    def _wait_for_the_end(self, timeout_s: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._connections, timeout_s)


def _affordable(connections: int) -> int:
    """At most half of the open files that the system grants us; the rest is for our own files."""
    try:
        import resource  # noqa: PLC0415 - absent on Windows
    except ImportError:
        return connections
    granted = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return connections if granted == resource.RLIM_INFINITY else max(16, min(connections, granted // 2))
