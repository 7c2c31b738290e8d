"""Which user owns the other end of a loopback connection: Linux can tell.

On a host with several users anybody can connect to our port, with any header. The kernel knows
who made the peer's socket; we ask for exactly that one (NETLINK_SOCK_DIAG, about 20 us).
Elsewhere nobody can tell, and everybody is let in, as any other local server does.
"""

import functools
import os
import socket
import struct
from typing import NamedTuple, Optional, Tuple

OTHER_USER = "belongs to another user"
"""Stands in the text of every refusal, so that our own client can tell it from other refusals."""

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLMSG_ERROR = 2
_NLM_F_REQUEST = 1
_ANY_STATE = 0xFFFFFFFF
_NO_COOKIE = 0xFFFFFFFF
_TCP_ESTABLISHED = 1
_TCP_LISTEN = 10

# linux/netlink.h: nlmsghdr. linux/inet_diag.h: inet_diag_req_v2 around an inet_diag_sockid.
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBBI")
_PORTS = struct.Struct("!HH")
_TAIL = struct.Struct("=III")
# inet_diag_msg: state is its second byte; uid and inode stand at its end, after the sockid.
_STATE_AT = _HEADER.size + 1
_OWNER_AT = _HEADER.size + 4 + 48 + 12
_OWNER = struct.Struct("=II")


class _Owner(NamedTuple):
    uid: int
    inode: int
    """Zero for a socket that no process holds any more; its uid then reads 0 and means nothing."""


class _Unavailable(Exception):
    """The kernel does not answer such questions, or not to us."""


def refusal(connection: socket.socket) -> Optional[str]:
    """Why this connection may not be served, or None. Everybody is let in where nobody can tell.

    The socket must be a connected TCP one; its owner is ours, root, or it is refused.
    """
    if not kernel_tells():
        return None
    try:
        owner = _owner_of_peer(connection)
    except (_Unavailable, OSError):
        return _gone(connection)
    if owner is None or owner.inode == 0:
        return _gone(connection)
    if owner.uid in (os.geteuid(), 0):
        return None
    return f"This mdello-companion {OTHER_USER} (uid {os.geteuid()}); you are uid {owner.uid}."


@functools.cache
def kernel_tells() -> bool:
    """Whether the kernel names the owner of a socket that we know to be ours. Asked once."""
    try:
        listener = socket.create_server(("127.0.0.1", 0))
        with listener, socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
            client.connect(listener.getsockname())
            with listener.accept()[0] as accepted:
                owner = _owner_of_peer(accepted)
    except (_Unavailable, OSError):
        return False
    return owner is not None and owner.inode != 0 and owner.uid == os.geteuid()


def _gone(connection: socket.socket) -> Optional[str]:
    """A peer socket that the kernel does not know, or that no process holds.

    While our own end is still open both ways it lives outside this kernel (WSL's mirrored network) and is
    let in. Else its process closed it, and nobody can say any more whose it was: another user
    could send, close, and be taken for nobody. Only a client that reads no answer gets here.
    """
    try:
        state = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    except OSError:
        state = 0
    if state == _TCP_ESTABLISHED:
        return None
    return f"This mdello-companion may be used by uid {os.geteuid()} only; the sender has left."


def _owner_of_peer(connection: socket.socket) -> Optional[_Owner]:
    """Owner of the socket at the other end; None when there is no such socket here."""
    peer, ours = connection.getpeername()[:2], connection.getsockname()[:2]
    reply = _ask(socket.AF_INET6 if ":" in ours[0] else socket.AF_INET, peer, ours)
    length, kind = struct.unpack_from("=IH", reply)
    if kind == _NLMSG_ERROR:
        return None
    if kind != _SOCK_DIAG_BY_FAMILY or length < _OWNER_AT + _OWNER.size or len(reply) < length:
        raise _Unavailable
    if reply[_STATE_AT] == _TCP_LISTEN:  # The kernel's fallback when no connection matches.
        return None
    return _Owner(*_OWNER.unpack_from(reply, _OWNER_AT))


def _ask(family: int, peer: Tuple[str, int], ours: Tuple[str, int]) -> bytes:
    request = (
        _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, _ANY_STATE)
        + _PORTS.pack(peer[1], ours[1])
        + socket.inet_pton(family, peer[0]).ljust(16, b"\0")
        + socket.inet_pton(family, ours[0]).ljust(16, b"\0")
        + _TAIL.pack(0, _NO_COOKIE, _NO_COOKIE)
    )
    header = _HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 0, 0)
    if not hasattr(socket, "AF_NETLINK"):
        raise _Unavailable
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as netlink:
        netlink.sendto(header + request, (0, 0))
        # The kernel answers within sendto; a message that is not there now will never come.
        return netlink.recv(4096, socket.MSG_DONTWAIT)
