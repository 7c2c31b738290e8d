"""Whose socket the other end is: asked of the real kernel, with processes of other users."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Iterator, List, Tuple

import pytest

from companion.web import peer
from tests.companion.web.talk import PATIENCE_S, eventually

OURS = 12_345
NOBODY = 65_534
ROOT = Path(__file__).resolve().parents[3]

needs_kernel = pytest.mark.skipif(
    not peer.kernel_tells(), reason="this kernel does not tell whose sockets are"
)
needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can run something as another user"
)

Connect = Tuple[socket.socket, socket.socket]


def connect(family: int, address: str, call: str = "") -> Connect:
    """The accepted socket and the client's, both in this process."""
    with socket.create_server((address, 0), family=family) as listener:
        client = socket.create_connection((call or address, listener.getsockname()[1]), timeout=PATIENCE_S)
        return listener.accept()[0], client


@pytest.fixture(params=["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def pair(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """A connection over each kind of loopback address; the last is how dual-stack clients call."""
    address = str(request.param)
    try:
        if address == "::ffff:127.0.0.1":
            with socket.create_server(("127.0.0.1", 0)) as listener:
                client = socket.socket(socket.AF_INET6)
                client.connect((address, listener.getsockname()[1]))
                made = listener.accept()[0], client
        else:
            made = connect(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
    except OSError:
        pytest.skip(f"no {address} here")
    yield made
    for sock in made:
        sock.close()


@needs_kernel
def test_our_own_client_is_let_in(pair: Connect) -> None:
    """It is found, with our uid."""
    owner = peer._owner_of_peer(pair[0])
    assert (
        owner is not None and owner.uid == os.geteuid() and owner.inode == os.fstat(pair[1].fileno()).st_ino
    )
    assert peer.refusal(pair[0]) is None


@needs_kernel
def test_another_user_is_refused(pair: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here we take ourselves for somebody else. Root is let in everywhere."""
    monkeypatch.setattr(os, "geteuid", lambda: OURS)
    owner = peer._Owner(NOBODY, 1)
    monkeypatch.setattr(peer, "_owner_of_peer", lambda connection: owner)
    refusal = peer.refusal(pair[0])
    assert refusal is not None and peer.OTHER_USER in refusal and "12345" in refusal and "65534" in refusal
    owner = peer._Owner(0, 1)
    assert peer.refusal(pair[0]) is None


@needs_kernel
def test_half_closing_is_no_leaving(pair: Connect) -> None:
    """The socket still has its owner."""
    pair[1].shutdown(socket.SHUT_WR)
    assert peer.refusal(pair[0]) is None


@needs_kernel
@pytest.mark.parametrize("reset", [False, True])
def test_a_client_that_left_may_have_been_anybody(pair: Connect, reset: bool) -> None:
    """The kernel then reads uid 0: nobody must be able to pass for root by closing quickly."""
    pair[1].sendall(b"GET / HTTP/1.1\r\n\r\n")
    if reset:
        pair[1].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    pair[1].close()
    eventually(lambda: peer.refusal(pair[0]) is not None)


@needs_kernel
def test_a_peer_outside_this_kernel_is_let_in(pair: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection stands, but no such socket is known: WSL's mirrored network."""
    monkeypatch.setattr(peer, "_owner_of_peer", lambda connection: None)
    assert peer.refusal(pair[0]) is None


@needs_kernel
def test_a_listener_is_not_taken_for_the_peer() -> None:
    """The kernel names one when it knows no connection; whoever listens there is not our client."""
    accepted, client = connect(socket.AF_INET, "127.0.0.1")
    with accepted, client, socket.create_server(("127.0.0.1", 0)) as listener:
        elsewhere = listener.getsockname()
        ours = accepted.getsockname()
        assert len(peer._ask(socket.AF_INET, elsewhere, ours)) > peer._OWNER_AT
        fake = type("Fake", (), {})()
        fake.family = socket.AF_INET
        fake.getpeername = lambda: elsewhere
        fake.getsockname = lambda: ours
        assert peer._owner_of_peer(fake) is None


def test_everybody_is_let_in_where_the_kernel_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """No netlink (macOS), or none for us."""
    peer.kernel_tells.cache_clear()
    monkeypatch.delattr(socket, "AF_NETLINK", raising=False)
    assert peer.kernel_tells() is False
    accepted, client = connect(socket.AF_INET, "127.0.0.1")
    with accepted, client:
        monkeypatch.setattr(peer, "_owner_of_peer", lambda connection: peer._Owner(NOBODY, 1))
        assert peer.refusal(accepted) is None
    monkeypatch.undo()
    peer.kernel_tells.cache_clear()


@pytest.mark.parametrize("uid", [NOBODY, 0])
def test_a_kernel_that_names_the_wrong_owner_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, uid: int
) -> None:
    """Our own socket is the test: some containers see every user as nobody."""
    peer.kernel_tells.cache_clear()
    monkeypatch.setattr(peer, "_owner_of_peer", lambda connection: peer._Owner(uid, 1))
    monkeypatch.setattr(os, "geteuid", lambda: OURS)
    assert peer.kernel_tells() is False
    monkeypatch.undo()
    peer.kernel_tells.cache_clear()


# Everything is imported first: the other user may not be able to read this Python's own files.
BECOME = """
import os, sys, threading
from pathlib import Path
from companion.web.client import probe
from tests.companion.web.talk import Talk
from tests.companion.web.world import World
b"x".decode("utf-8-sig")  # a codec comes from a file, too
uid, *arguments = sys.argv[1:]
os.setgroups([])
os.setgid(int(uid))
os.setuid(int(uid))
"""

SERVER = """
world = World(Path(arguments[0])).start()
print(world.port, world.card_a, flush=True)
sys.stdin.read()
print(world.ledger.associations(), flush=True)
world.stop()
"""

CLIENT = """
port, path = int(arguments[0]), arguments[1]
json = (("Content-Type", "application/json"),)
body = b'{"session": "s", "status": "idle", "paths": ["%b"]}' % path.encode()
asked = (("GET", "/health", None), ("POST", "/hooks/toy", body), ("POST", "/x", b"y" * 100))
for method, where, data in asked:
    with Talk(port) as talk:
        answer = talk.ask(method, where, data, json)
        print(answer.status, answer.error() if answer.status == 403 else "-")
print(probe(port, 20.0).name)
for _ in range(20):  # send and run: nobody may get in by leaving
    with Talk(port) as talk:
        talk.send(b"POST /hooks/toy HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\n"
                  b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
"""


def run_as(uid: int, program: str, arguments: List[str]) -> "subprocess.Popen[str]":
    """A Python program of another user, talking through pipes."""
    return subprocess.Popen(
        [sys.executable, "-B", "-c", BECOME + program, str(uid), *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@needs_kernel
@needs_root
@pytest.mark.parametrize("client", [NOBODY, OURS])
def test_two_users_on_one_machine(client: int) -> None:
    """A real companion of one user, real clients of the same and of another one."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    os.chown(folder, OURS, OURS)
    server = run_as(OURS, SERVER, [str(folder)])
    try:
        assert server.stdout is not None and server.stdin is not None
        port, card = server.stdout.readline().split()
        said, _ = run_as(client, CLIENT, [port, card]).communicate(timeout=60)
        lines = said.splitlines()
        held, _ = server.communicate("", timeout=60)
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder)
    if client == OURS:
        assert lines == ["200 -", "202 -", "404 -", "OURS"] and "card-a" in held
    else:
        refused = f"403 This mdello-companion belongs to another user (uid {OURS}); you are uid {NOBODY}."
        assert lines == [refused, refused, refused, "OTHER_USER"]
        assert held.strip() == "[]"
