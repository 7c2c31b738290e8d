"""Listening sockets that a service manager opened, keeps, and hands to us.

While we are away the manager holds the port: whoever calls waits in the socket, and the manager
starts us. systemd names the descriptors in ``LISTEN_FDS`` and ``LISTEN_PID`` (sd_listen_fds(3));
launchd is asked for them (launch_activate_socket(3)).
"""

import os
import socket
from dataclasses import dataclass
from typing import Dict, List, MutableMapping, Tuple, Union

LABEL = "com.mdello.companion"
"""The service's name in launchd."""
SOCKETS = "Listeners"
"""The name of our sockets in the plist."""

# sd_listen_fds(3): the descriptors begin behind stdin, stdout and stderr.
_FIRST = 3
# We have two. A number far above that is a mistake, and would have us look at files of our own.
_MOST = 16
_VARIABLES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID")
_LOOPBACK: Dict[int, str] = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}


@dataclass(frozen=True)
class HandedIn:
    """What we were given."""

    sockets: Tuple[socket.socket, ...] = ()
    """Listening on our port of 127.0.0.1 or ``[::1]``, at most one of each; children get none."""
    notes: Tuple[str, ...] = ()
    """What else was given, and why it is of no use: one line each."""


def take(environ: MutableMapping[str, str], port: int) -> HandedIn:
    """The sockets that were handed in for ``port``. A second call gets none.

    The variables that name them are removed from ``environ``, so that no child takes them for its
    own. Sockets of no use are closed. Never raises.
    """
    told = {name: environ.pop(name, "") for name in _VARIABLES}
    notes: List[str] = []
    numbers = _from_systemd(told, notes)
    if environ.get("XPC_SERVICE_NAME") == LABEL:  # Set by launchd for this job alone.
        numbers += _from_launchd(notes)
    kept: Dict[int, socket.socket] = {}
    for number in numbers:
        sock = _usable(number, port)
        if isinstance(sock, str):
            notes.append(f"A descriptor that was handed in is not used: {sock}")
        elif sock.family in kept:
            notes.append(f"Two sockets of {_LOOPBACK[sock.family]} were handed in; the second is not used")
            sock.close()
        else:
            kept[sock.family] = sock
    return HandedIn(tuple(kept.values()), tuple(notes))


def _from_systemd(told: Dict[str, str], notes: List[str]) -> List[int]:
    # Inherited from a parent that should have removed them, they speak of its descriptors, not ours.
    if told["LISTEN_PID"] != str(os.getpid()):
        return []
    count = told["LISTEN_FDS"]
    if not count.isascii() or not count.isdigit() or len(count) > 3 or int(count) > _MOST:
        notes.append(f"LISTEN_FDS is {count!r}: no sockets are taken")
        return []
    return list(range(_FIRST, _FIRST + int(count)))


def _from_launchd(notes: List[str]) -> List[int]:
    try:
        import ctypes  # noqa: PLC0415 - takes its time, is for launchd alone, and some Pythons lack it

        library = ctypes.CDLL(None)
        activate, free = library.launch_activate_socket, library.free
    except (ImportError, OSError, AttributeError) as exc:
        notes.append(f"launchd cannot be asked for sockets: {exc}")
        return []
    # int launch_activate_socket(const char *name, int **fds, size_t *cnt): 0 or an error number;
    # the array is ours to free.
    numbers, count = ctypes.POINTER(ctypes.c_int)(), ctypes.c_size_t()
    activate.restype, free.argtypes = ctypes.c_int, [ctypes.c_void_p]
    code = activate(SOCKETS.encode(), ctypes.byref(numbers), ctypes.byref(count))
    if code:
        notes.append(f"launchd hands no sockets in: {os.strerror(code)}")
        return []
    found = [int(numbers[index]) for index in range(count.value)]
    free(numbers)
    return found


def _usable(number: int, port: int) -> Union[socket.socket, str]:
    """A socket of ours; or why it is none, and then it is closed."""
    try:
        sock = socket.socket(fileno=number)
    except (OSError, ValueError) as exc:
        # Left open: who knows whose it is.
        return f"{number} is no socket ({getattr(exc, 'strerror', None) or exc})"
    try:
        problem = _problem(sock, port)
    except OSError as exc:
        problem = exc.strerror or str(exc)
    if problem:
        sock.close()
        return f"{number} {problem}"
    sock.set_inheritable(False)
    return sock


def _problem(sock: socket.socket, port: int) -> str:
    address = _LOOPBACK.get(sock.family)
    if address is None or sock.type != socket.SOCK_STREAM:
        return "is no TCP socket"
    if sock.getsockname()[:2] != (address, port):
        return f"has the address {sock.getsockname()[:2]}, not {(address, port)}"
    try:
        listening = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError:  # macOS does not tell.
        return ""
    return "" if listening else "does not listen"
