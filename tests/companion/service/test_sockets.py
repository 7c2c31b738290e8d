"""Sockets that a service manager hands in."""

import contextlib
import fcntl
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Tuple

import pytest

from companion.service import sockets
from tests.companion.service import launchd_library
from tests.conftest import ROOT


class Given:
    """Puts descriptors where a manager puts them, in a row; not at 3, which is taken in a test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.numbers: List[int] = []
        self._monkeypatch = monkeypatch

    def __call__(self, *things: int, **changes: str) -> Dict[str, str]:
        """Hand these descriptors in; the environment that says so."""
        first = 200
        for number, thing in enumerate(things, first):
            self.numbers.append(fcntl.fcntl(thing, fcntl.F_DUPFD, number))
            os.set_inheritable(number, True)
        assert self.numbers == list(range(first, first + len(things)))
        self._monkeypatch.setattr(sockets, "_FIRST", first)
        told = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(things)), "LISTEN_FDNAMES": "a:b"}
        return {**told, "OTHER": "kept", **changes}

    def open_ones(self) -> List[int]:
        """Those that are open still."""
        return [number for number in self.numbers if self._is_open(number)]

    def _is_open(self, number: int) -> bool:
        try:
            os.fstat(number)
        except OSError:
            return False
        return True


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Iterator[Given]:
    """Nothing is left open afterwards."""
    made = Given(monkeypatch)
    yield made
    for number in made.open_ones():
        os.close(number)


Listening = Callable[[], socket.socket]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A listening socket of 127.0.0.1, as the manager has it."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock


def port_of(sock: socket.socket) -> int:
    """Its port."""
    port: int = sock.getsockname()[1]
    return port


def test_a_listening_socket_of_our_port_is_taken(given: Given, listener: socket.socket) -> None:
    """No child will inherit it, and no child is told of it."""
    environ = given(listener.fileno())
    handed_in = sockets.take(environ, port_of(listener))
    (sock,) = handed_in.sockets
    assert handed_in.notes == () and environ == {"OTHER": "kept"}
    assert sock.getsockname() == listener.getsockname() and not sock.get_inheritable()
    with socket.create_connection(listener.getsockname()) as client:
        accepted, address = sock.accept()
        assert address == client.getsockname()
        accepted.close()
    assert sockets.take(environ, port_of(listener)) == sockets.HandedIn()
    sock.close()


def test_both_addresses_are_taken(given: Given) -> None:
    """In whatever order; a second one of the same address is not."""
    try:
        six = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("there is no [::1] here")
    with six, socket.create_server(("127.0.0.1", port_of(six))) as four:
        handed_in = sockets.take(given(six.fileno(), four.fileno(), four.fileno()), port_of(six))
        assert [sock.family for sock in handed_in.sockets] == [socket.AF_INET6, socket.AF_INET]
        assert handed_in.notes == ("Two sockets of 127.0.0.1 were handed in; the second is not used",)
        assert len(given.open_ones()) == 2
        for sock in handed_in.sockets:
            sock.close()


def useless() -> Iterator[Tuple[socket.socket, str]]:
    """Sockets that are no good, each with what is said of it."""
    yield socket.create_server(("0.0.0.0", 0)), "has the address ('0.0.0.0', "
    yield socket.create_server(("127.0.0.1", 0)), "has the address ('127.0.0.1', "
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    yield udp, "is no TCP socket"
    yield socket.socketpair()[0], "is no TCP socket"


def test_sockets_of_no_use_are_named_and_closed(given: Given, listener: socket.socket) -> None:
    """Another address, another port, another protocol; the good one among them is taken."""
    bad = list(useless())
    environ = given(*(sock.fileno() for sock, _ in bad), listener.fileno())
    handed_in = sockets.take(environ, port_of(listener))
    assert len(handed_in.sockets) == 1 and len(handed_in.notes) == len(bad)
    for note, (number, (_, why)) in zip(handed_in.notes, enumerate(bad, 200)):
        assert note.startswith(f"A descriptor that was handed in is not used: {number} {why}")
    assert given.open_ones() == [handed_in.sockets[0].fileno()]
    for sock in (*(sock for sock, _ in bad), *handed_in.sockets):
        sock.close()


def test_a_socket_that_does_not_listen_is_named(given: Given) -> None:
    """Bound to our port, but deaf."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        handed_in = sockets.take(given(deaf.fileno()), port_of(deaf))
    assert handed_in.sockets == () and handed_in.notes[0].endswith("200 does not listen")


def test_what_is_no_socket_is_left_alone(given: Given, tmp_path: Path) -> None:
    """It may be a file of ours: only a manager's word says that it is not."""
    with (tmp_path / "file").open("w") as file:
        handed_in = sockets.take(given(file.fileno()), 51999)
        assert handed_in.sockets == () and "200 is no socket" in handed_in.notes[0]
        assert given.open_ones() == [200]
    os.close(200)
    given.numbers.clear()
    assert "200 is no socket" in sockets.take(given(LISTEN_FDS="1"), 51999).notes[0]


@pytest.mark.parametrize("count", ["", "-1", "x", "1 ", "\u0663", "17", "99999999999"])
def test_a_senseless_number_is_named(given: Given, count: str) -> None:
    """And nothing is touched."""
    handed_in = sockets.take(given(LISTEN_FDS=count), 51999)
    assert handed_in.sockets == () and handed_in.notes == (f"LISTEN_FDS is {count!r}: no sockets are taken",)


@pytest.mark.parametrize("pid", ["1", "", "x"])
def test_what_is_meant_for_another_process_is_none_of_our_business(
    given: Given, listener: socket.socket, pid: str
) -> None:
    """A parent that passed its variables on; they go no further."""
    environ = given(listener.fileno(), LISTEN_PID=pid)
    assert sockets.take(environ, port_of(listener)) == sockets.HandedIn()
    assert environ == {"OTHER": "kept"} and given.open_ones() == [200]


LAUNCHED = """
import json, os, socket, sys
from companion.service import sockets
keeper = socket.create_server(("127.0.0.1", 0))
os.environ["FAKE_LAUNCHD_SOCKETS"] = sys.argv[1].replace("FD", str(os.dup(keeper.fileno())))
found = [sockets.take(os.environ, keeper.getsockname()[1]) for _ in range(2)]
print(json.dumps([[len(each.sockets), each.notes] for each in found]))
"""


def launched(library: str, told: str, **environ: str) -> List[List[object]]:
    """Two tries in a process that launchd has started: how many sockets, and what was said."""
    done = subprocess.run(
        [sys.executable, "-c", LAUNCHED, told],
        cwd=ROOT,
        env={"LD_PRELOAD": library, "XPC_SERVICE_NAME": sockets.LABEL, **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    value: List[List[object]] = json.loads(done.stdout)
    return value


def test_launchd_is_asked_for_its_sockets(tmp_path: Path) -> None:
    """By the name that is in the plist; it gives them once."""
    library = launchd_library.build(tmp_path)
    first, second = launched(library, "Listeners:FD,FD")
    assert first == [1, ["Two sockets of 127.0.0.1 were handed in; the second is not used"]]
    assert second == [0, [f"launchd hands no sockets in: {os.strerror(114)}"]]
    assert launched(library, "Others:FD")[0] == [0, [f"launchd hands no sockets in: {os.strerror(2)}"]]


def test_only_its_own_job_asks_launchd(tmp_path: Path) -> None:
    """A terminal has another name, or none."""
    library = launchd_library.build(tmp_path)
    for name in ("", "0", "com.apple.Terminal"):
        assert launched(library, "Listeners:FD", XPC_SERVICE_NAME=name) == [[0, []], [0, []]]


def test_where_launchd_is_not_nobody_is_asked() -> None:
    """Somebody set the variable by hand: we bind by ourselves, and say so."""
    if sys.platform == "darwin":
        pytest.skip("launchd is here")
    (count, notes), _ = launched("", "Listeners:FD")
    assert count == 0 and "launchd cannot be asked for sockets" in str(notes)


def test_a_python_without_ctypes_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some are built without it."""
    monkeypatch.setitem(sys.modules, "ctypes", None)
    handed_in = sockets.take({"XPC_SERVICE_NAME": sockets.LABEL}, 51999)
    assert handed_in.sockets == () and "launchd cannot be asked" in handed_in.notes[0]
    with contextlib.suppress(KeyError):
        monkeypatch.delitem(sys.modules, "ctypes")
