"""The built program under a service manager of ours: started, killed, stopped, and always reachable."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

import pytest

from companion.service import launchd, profile, systemd
from companion.service import plan as plans
from tests.companion.service import launchd_library
from tests.companion.service.conftest import World
from tests.companion.service.running import Supervised, Waiting, boards_in, health, recorded
from tests.companion.web.talk import Talk, eventually
from tests.conftest import free_port

JSON = (("Content-Type", "application/json"),)


def has_ipv6() -> bool:
    """Whether ``[::1]`` exists here."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


Service = Tuple[World, int, Supervised]


@pytest.fixture(params=["units", "plist"])
def service(request: pytest.FixtureRequest, tmp_path: Path, pyz: Path) -> Iterator[Service]:
    """Installed in a home with an odd name, and supervised: home, port, supervisor."""
    world = World(tmp_path, "my \u00fc home's 100% $HOME \\ \"; ")
    world.program = world.home / "my mdello.pyz"
    shutil.copy(pyz, world.program)
    port = free_port()
    if request.param == "units":
        world.manager("systemctl")
        systemd.install(world.context(port=port))
        arguments = ["units", str(systemd.unit_dir(world.context()))]
    else:
        library = launchd_library.build(tmp_path)
        world.manager("launchctl")
        launchd.install(world.context(port=port), 501)
        arguments = ["plist", str(launchd.plist_path(world.context())), library]
    with Supervised(*arguments) as supervised:
        supervised.next_pid()
        yield world, port, supervised


def test_the_program_serves_what_was_handed_in(service: Service) -> None:
    """On both addresses, with its checks, as the very process that was started."""
    world, port, supervised = service
    assert health(port)["pid"] == supervised.pids[-1]
    assert health(port)["problems"] == []
    assert health(port)["socketsHandedIn"] == (["127.0.0.1", "::1"] if has_ipv6() else ["127.0.0.1"])
    if has_ipv6():
        assert health(port, "::1")["pid"] == supervised.pids[-1]
    with Talk(port) as talk:
        assert talk.ask("GET", "/health", host="evil.example").status == 403
    output = world.home / ".local" / "state" / "mdello" / "companion.log"
    assert output.read_text() == f"Mdello companion listening at http://127.0.0.1:{port}\n"
    assert "No board is registered yet" in output.with_name("companion-error.log").read_text()


def test_a_kill_is_not_noticed_by_who_calls_afterwards(service: Service) -> None:
    """Requests of the gap wait in the socket; the next life answers all of them."""
    _, port, supervised = service
    first = health(port)["pid"]
    for _ in range(2):
        supervised.kill()
        assert supervised.line().startswith("ended")
        waiting = Waiting(20, lambda: health(port))
        second = supervised.next_pid()
        assert waiting.pids() == [second] and second != first


def test_an_orderly_stop_neither(service: Service) -> None:
    """What the socket holds is left to the next life; it is started by who calls."""
    _, port, supervised = service
    health(port)
    for _ in range(2):
        supervised.kill(signal.SIGTERM)
        assert supervised.line() == "ended 0"
        waiting = Waiting(20, lambda: health(port))
        assert waiting.pids() == [supervised.next_pid()]


def test_nothing_that_was_acknowledged_is_lost(service: Service) -> None:
    """Hooks and posts around several deaths: each is answered, each is in the log."""
    world, port, supervised = service
    boards_in(world.home)
    card = world.home / "board" / "card.md"
    card.write_text("---\nuuid: u-1\n---\n", encoding="utf-8")
    health(port)
    sent: List[str] = []

    def post() -> Dict[str, Any]:
        session = f"s-{len(sent)}"
        sent.append(session)
        body = {"cardPath": str(card), "harness": "pi", "sessionId": session, "status": "running"}
        with Talk(port) as talk:
            answer = talk.ask("POST", "/associations", json.dumps(body).encode(), JSON).json()
        assert isinstance(answer, dict)
        return {**answer, "pid": 0}

    for number in (signal.SIGKILL, signal.SIGTERM):
        supervised.kill(number)
        assert supervised.line().startswith("ended")
        waiting = Waiting(10, post)
        supervised.next_pid()
        assert waiting.pids() == [0]
    assert {record["sessionId"] for record in recorded(world.home)} == set(sent)


def test_a_deleted_state_folder_does_not_keep_it_from_starting(service: Service) -> None:
    """It is made again, logs included."""
    world, port, supervised = service
    health(port)
    if not supervised_by_launchd(world):
        shutil.rmtree(world.home / ".local" / "state")
        supervised.kill()
        supervised.next_pid()
        assert health(port)["pid"] == supervised.pids[-1]
        assert "listening" in (world.home / ".local/state/mdello/companion.log").read_text()


def supervised_by_launchd(world: World) -> bool:
    """There launchd makes the folder itself, which our supervisor does not play."""
    return launchd.plist_path(world.context()).exists()


def test_a_start_by_hand_finds_it(service: Service) -> None:
    """Said, and no failure, as with any other companion."""
    world, port, _ = service
    health(port)
    done = by_hand(world, port)
    assert (done.returncode, done.stdout) == (
        0,
        f"Mdello companion is already running at http://127.0.0.1:{port}\n",
    )


def by_hand(world: World, port: int, **environ: str) -> "subprocess.CompletedProcess[str]":
    """``serve`` on a terminal."""
    return subprocess.run(
        [sys.executable, str(world.program), "serve"],
        env={"HOME": str(world.home), "MDELLO_COMPANION_PORT": str(port), "PATH": "/usr/bin:/bin", **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_open_streams_end_with_an_orderly_stop(service: Service) -> None:
    """A page connects again, and finds the next life."""
    world, port, supervised = service
    health(port)
    events = f"/events?boardUuid=x&boardPath={world.folder}"
    with Talk(port) as talk:
        talk.send(f"GET {events} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()).head()
        supervised.kill(signal.SIGTERM)
        assert b"event: snapshot" in talk.rest()
    assert supervised.line() == "ended 0"


STRANGE = """
import os, socket, sys
sock = socket.create_server((sys.argv[1], int(sys.argv[2])))
os.dup2(sock.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.executable, [sys.executable, sys.argv[3], "serve"])
"""


def test_a_strange_socket_is_named_and_the_port_is_served_all_the_same(pyz: Path, world: World) -> None:
    """Bound to every address of the machine: not ours to serve."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-c", STRANGE, "0.0.0.0", str(free_port()), str(pyz)],
        env={"HOME": str(world.home), "MDELLO_COMPANION_PORT": str(port)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None and "listening" in process.stdout.readline()
        assert health(port)["pid"] == process.pid and health(port)["socketsHandedIn"] == []
    finally:
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert "A descriptor that was handed in is not used: 3 has the address ('0.0.0.0', " in err


def test_children_get_neither_sockets_nor_their_names(service: Service) -> None:
    """What we start must not keep the port open, nor take it for its own."""
    _, port, supervised = service
    health(port)
    eventually(lambda: inheritable(supervised.pids[-1]) == [])


def inheritable(pid: int) -> Optional[List[str]]:
    """Descriptors above stderr that a child would get; None when one was closed while we looked."""
    folder = Path(f"/proc/{pid}/fdinfo")
    if not folder.is_dir():
        pytest.skip("/proc tells no flags here")
    found = []
    for entry in folder.iterdir():
        try:
            flags = int(entry.read_text().split("flags:")[1].split()[0], 8)
        except (OSError, IndexError):
            return None
        if int(entry.name) > 2 and not flags & 0o2000000:
            found.append(entry.name)
    return found


def test_without_a_manager_the_profiles_line_starts_it_once(pyz: Path, world: World) -> None:
    """Three logins, one companion."""
    port = free_port()
    world.program = pyz
    lines = "\n".join(profile.lines(plans.make(world.context(port=port))))
    for _ in range(3):
        subprocess.run(
            ["sh", "-c", lines], env={"HOME": str(world.home), "PATH": "/usr/bin:/bin"}, check=True
        )
    eventually(lambda: listens(port))
    pid = health(port)["pid"]
    log = world.home / ".local" / "state" / "mdello" / "companion.log"
    eventually(lambda: log.read_text().count("already running") == 2)
    assert log.read_text().count("listening") == 1
    os.kill(pid, signal.SIGTERM)
    eventually(lambda: not listens(port))


def listens(port: int) -> bool:
    """Whether somebody does."""
    try:
        with Talk(port):
            return True
    except OSError:
        return False
