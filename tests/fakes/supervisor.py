"""A service manager as small as can be: it holds sockets, starts one service, and starts it again.

``supervisor.py units FOLDER`` reads our two systemd units, ``supervisor.py plist FILE LIBRARY`` our
plist (``LIBRARY`` then plays the part of launchd's in the service). It prints ``started PID`` and
``ended HOW`` as they happen. A service that failed is started again at once; one that ended well is
started by the next client. SIGTERM ends both.

Nothing here knows how the files are written; the rules are systemd.syntax(7)'s and
systemd.service(5)'s, launchd.plist(5)'s.
"""

import os
import plistlib
import re
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, Iterator, List, NoReturn, Optional, Tuple

_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " "}
_SPACE = " \t"


@dataclass
class Unit:
    """What a service manager knows of a service."""

    argv: List[str] = field(default_factory=list)
    environment: Dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    logs: Tuple[str, str] = (os.devnull, os.devnull)
    library: str = ""


def settings(text: str) -> Iterator[Tuple[str, str, str]]:
    """(section, key, value) of a unit file."""
    section, whole = "", ""
    for line in text.split("\n"):
        if line.lstrip().startswith(("#", ";")):
            continue
        if line.endswith("\\"):
            whole += line[:-1] + " "
            continue
        whole, line = "", (whole + line).strip()
        if line.startswith("["):
            section = line[1:-1]
        elif "=" in line:
            key, _, value = line.partition("=")
            yield section, key.strip(), value.strip()


def items(value: str) -> List[str]:
    """The quoted or bare items of a value, unescaped."""
    found: List[str] = []
    at = 0
    while at < len(value):
        if value[at] in _SPACE:
            at += 1
            continue
        quote = value[at] if value[at] in "\"'" else ""
        at += len(quote)
        item = ""
        while at < len(value) and value[at] != quote and not (not quote and value[at] in _SPACE):
            if value[at] == "\\":
                piece, length = _escape(value, at + 1)
                item, at = item + piece, at + 1 + length
            else:
                item, at = item + value[at], at + 1
        if quote:
            if at >= len(value) or value[at + 1 : at + 2] not in ("", *_SPACE):
                raise ValueError(f"unbalanced quoting: {value}")
            at += 1
        found.append(item)
    return found


def _escape(value: str, at: int) -> Tuple[str, int]:
    """What the escape behind a backslash means, and how long it is."""
    letter = value[at : at + 1]
    if letter in _ESCAPES:
        return _ESCAPES[letter], 1
    if letter in ("\\", '"', "'"):
        return letter, 1
    raise ValueError(f"unknown escape: {value[at:]}")


def specified(item: str) -> str:
    """With its specifiers replaced; we know none but the percent sign."""
    if re.search(r"%(?!%)", item.replace("%%", "")):
        raise ValueError(f"a specifier: {item}")
    return item.replace("%%", "%")


def expanded(item: str, environment: Dict[str, str]) -> List[str]:
    """With its variables replaced; a variable that is an item of its own is split."""
    if re.fullmatch(r"\$\w+", item):
        return environment.get(item[1:], "").split()
    return [re.sub(r"\$(\$|\{(\w*)\})", lambda m: "$" if m[1] == "$" else environment.get(m[2], ""), item)]


def read_service(text: str) -> Unit:
    """A service unit. ValueError for what systemd would refuse."""
    unit = Unit()
    commands = [value for section, key, value in settings(text) if (section, key) == ("Service", "ExecStart")]
    for section, key, value in settings(text):
        if (section, key) == ("Service", "Environment"):
            pairs = (specified(item).partition("=") for item in items(value))
            unit.environment.update({name: told for name, _, told in pairs})
    (command,) = commands
    program, *arguments = items(command)
    program = specified(program)
    if not program.startswith("/") or set(program) & set("\"'\\") or re.search(r"[\x00-\x1f\x7f]", program):
        raise ValueError(f"the name of the program has special characters: {program}")
    # The path is taken as it is, but as an argument it is searched for variables like all others.
    if expanded(program, unit.environment) != [program]:
        raise ValueError(f"the program would be told another name: {program}")
    unit.argv = [program]
    for each in arguments:
        unit.argv += expanded(specified(each), unit.environment)
    return unit


def read_plist(path: str, library: str) -> Tuple[Unit, List[socket.socket]]:
    """A launch agent, and its sockets."""
    told = plistlib.loads(Path(path).read_bytes())
    unit = Unit(
        told["ProgramArguments"],
        {**told["EnvironmentVariables"], "XPC_SERVICE_NAME": told["Label"]},
        told["WorkingDirectory"],
        (told["StandardOutPath"], told["StandardErrorPath"]),
        library,
    )
    families = {"IPv4": socket.AF_INET, "IPv6": socket.AF_INET6}
    socks = [
        listening(families[each["SockFamily"]], each["SockNodeName"], int(each["SockServiceName"]))
        for each in told["Sockets"]["Listeners"]
    ]
    return unit, [sock for sock in socks if sock is not None]


def read_units(folder: str) -> Tuple[Unit, List[socket.socket]]:
    """The service and what the socket unit listens on."""
    unit = read_service(Path(folder, "mdello-companion.service").read_text(encoding="utf-8"))
    text = Path(folder, "mdello-companion.socket").read_text(encoding="utf-8")
    told = [value for _, key, value in settings(text) if key == "ListenStream"]
    socks = []
    for each in told:
        address, _, port = each.rpartition(":")
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        socks.append(listening(family, address.strip("[]"), int(port)))
    return unit, [sock for sock in socks if sock is not None]


def listening(family: int, address: str, port: int) -> Optional[socket.socket]:
    """A socket that stays ours; None when there is no IPv6 here."""
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        sock.bind((address, port))
    except OSError:
        if family == socket.AF_INET:
            raise
        return None
    sock.listen(128)
    return sock


def start(unit: Unit, socks: List[socket.socket]) -> int:
    """Start the service with copies of the sockets; its process number."""
    pid = os.fork()
    if pid:
        print(f"started {pid}", flush=True)
        return pid
    try:
        _become(unit, socks)
    finally:
        os._exit(203)


def _become(unit: Unit, socks: List[socket.socket]) -> NoReturn:
    environment = dict(unit.environment)
    copies = [os.dup(sock.fileno()) for sock in socks]  # Above the numbers that they get.
    for number, copy in enumerate(copies, 3):
        os.dup2(copy, number)
    if unit.library:
        names = ",".join(str(number) for number in range(3, 3 + len(socks)))
        environment.update({"LD_PRELOAD": unit.library, "FAKE_LAUNCHD_SOCKETS": f"Listeners:{names}"})
    else:
        environment.update({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(socks))})
    os.chdir(unit.folder)
    for number, path in enumerate((os.devnull, *unit.logs)):
        os.dup2(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), number)
    os.closerange(3 + len(socks), 256)
    os.execve(unit.argv[0], unit.argv, environment)


def main(arguments: List[str]) -> int:
    """Supervise until SIGTERM."""
    how, path, *library = arguments
    unit, socks = read_plist(path, *library) if how == "plist" else read_units(path)
    running = [start(unit, socks)]

    def stop(*_: object) -> None:
        for pid in running:
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, stop)
    while True:
        _, status = os.waitpid(running[0], 0)
        running.clear()
        print(f"ended {status}", flush=True)
        if status == 0:
            select.select(socks, [], [])
        else:
            time.sleep(0.2)
        running.append(start(unit, socks))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
