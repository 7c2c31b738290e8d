"""A listening socket at which several threads wait for clients, and a word that lets all look up.

Not a plain ``accept()``: only a client wakes a thread in there, or ``shutdown()`` of the socket. A
socket that a service manager handed in is not ours to shut down (systemd.socket(5), ``Accept=``):
the manager keeps it open for our next life, and whoever calls meanwhile waits in it.
"""

import contextlib
import select
import socket
import threading
from typing import List, Optional, Tuple

# How many clients the kernel lets wait for us; more get a reset.
_BACKLOG = 512

FAMILIES: Tuple[Tuple[socket.AddressFamily, str], ...] = (
    (socket.AF_INET, "127.0.0.1"),
    (socket.AF_INET6, "::1"),
)
"""Where we may be reached: (family, address), the one that clients use first."""


def listen(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    """A socket of our own. OSError when the address does not exist here or is taken."""
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        # A restart must not wait for connections of the last life. Two sockets that are bound like
        # this can both be bound before either listens; listen() settles it, hence both in one go.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((address, port))
        sock.listen(_BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


class Door:
    """One listening socket and its threads. Any number of threads may be in :meth:`accept`.

    Args:
        sock: a listening TCP socket; closed, but never shut down, with :meth:`close`.
        word: becomes readable, for ever, when nobody is to wait any more.
    """

    def __init__(self, sock: socket.socket, word: socket.socket) -> None:
        self.socket = sock
        self._word = word
        self._own = threading.local()  # A waiter of its own for each thread.
        # Of several threads that see a client come, one gets it; the others must not be stuck.
        sock.setblocking(False)

    def accept(self) -> Optional[socket.socket]:
        """Wait for the next client. None when another thread was faster, or the word was given.

        OSError when the client is gone already, or when the system has no room for it.
        """
        if not hasattr(self._own, "waiter"):
            self._own.waiter = _waiter(self.socket, self._word)
        if not self._own.waiter.wait():
            return None
        try:
            return self.socket.accept()[0]
        except BlockingIOError:
            return None

    def close(self) -> None:
        """Stop listening here; a socket that was handed in goes on elsewhere. May be called twice."""
        self.socket.close()


class _ExclusiveWaiter:
    """Of the threads that wait, the kernel wakes one for a client, not all (Linux 4.5 and later)."""

    def __init__(self, sock: socket.socket, word: socket.socket) -> None:
        self._epoll = select.epoll()
        self._epoll.register(sock, select.EPOLLIN | select.EPOLLEXCLUSIVE)
        self._epoll.register(word, select.EPOLLIN)
        self._word = word.fileno()

    def wait(self) -> bool:
        """Wait for a client: True; or for the word: False, whoever may have come as well."""
        return all(found != self._word for found, _ in self._epoll.poll())


class _PlainWaiter:
    def __init__(self, sock: socket.socket, word: socket.socket) -> None:
        self._both: List[socket.socket] = [sock, word]

    def wait(self) -> bool:
        """As above."""
        return self._both[1] not in select.select(self._both, [], [])[0]


def _waiter(sock: socket.socket, word: socket.socket) -> "_ExclusiveWaiter | _PlainWaiter":
    with contextlib.suppress(AttributeError, OSError):  # Not Linux, or an old one.
        return _ExclusiveWaiter(sock, word)
    return _PlainWaiter(sock, word)
