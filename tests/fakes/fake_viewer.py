"""Small ``gh`` and ``jira`` that know one command each, ``... view``, and misbehave when told to.

In a test, ``FakeViewer(folder, "gh")`` makes the program (``path``). It is strict about its
arguments, notes each call, and tells how many of its kind (of one folder) ran beside it. What it
answers may be changed while others call it.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List, NamedTuple

_STEP_S = 0.005
_PULL = "isDraft,number,state,statusCheckRollup,title"
_ISSUE = "number,state,title"


class _Call(NamedTuple):
    arguments: List[str]
    beside: int


class FakeViewer:
    """The program's files, and what stands in them."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        (folder / "running").mkdir(parents=True, exist_ok=True)
        self.path = folder / name
        """The program."""
        # Found by PATH too; its own environment may be empty.
        self.path.write_text(
            f'#!/bin/sh\nexec "{sys.executable}" -S -E "{__file__}" "{folder}" {name} "$@"\n'
        )
        self.path.chmod(0o755)
        self._answers: Dict[str, Dict[str, object]] = {}
        self.answer("*")

    def answer(self, thing: str, **how: object) -> None:
        """How to answer about a URL or key from now on; ``*`` is all that have no answer of their own.

        ``fields={...}`` differ from the usual ones; ``text="..."`` or ``hex="..."`` is printed
        instead; ``stderr``, ``exit``; ``wait=True``: only after :meth:`go_on`; ``hang=True``;
        ``flood=True``: without end; ``child=True``: leaves a child behind that holds the pipes.
        """
        self._answers[thing] = how
        beside = self.folder / f"{self.name}.new"
        beside.write_text(json.dumps(self._answers))
        beside.replace(self.folder / f"{self.name}.json")

    def go_on(self, thing: str = "*") -> None:
        """Let those that wait with this thing answer; ``*``: all."""
        (self.folder / _mark(thing)).write_text("")

    def calls(self) -> List[List[str]]:
        """The arguments of every call so far, in the order in which they began."""
        return [call.arguments for call in self._log()]

    def things(self) -> List[str]:
        """The URLs or keys of all calls so far."""
        return [call[2] for call in self.calls()]

    def most_at_once(self) -> int:
        """How many ran at the same time at most, the other programs of this folder included."""
        return max((call.beside for call in self._log()), default=0)

    def alive(self) -> List[int]:
        """Processes that run now, of all programs of this folder, and their children."""
        return [int(path.name) for path in (self.folder / "running").iterdir() if _lives(int(path.name))]

    def _log(self) -> List[_Call]:
        try:
            lines = (self.folder / f"{self.name}.calls").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [_Call(**json.loads(line)) for line in lines]


def pull(number: int) -> str:
    """A link to a pull request."""
    return f"https://github.com/acme/shop/pull/{number}"


def issue(number: int) -> str:
    """A link to an issue."""
    return f"https://github.com/acme/shop/issues/{number}"


def ticket(number: int) -> str:
    """A link to Jira."""
    return f"https://acme.atlassian.net/browse/SHOP-{number}"


def _mark(thing: str) -> str:
    return "go-all" if thing == "*" else "go-" + re.sub(r"\W", "-", thing)


def _lives(pid: int) -> bool:
    try:
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], stdout=subprocess.PIPE).stdout
    except OSError:
        return False
    return bool(state.strip()) and not state.startswith(b"Z")


def _main(folder: Path, name: str, arguments: List[str]) -> int:
    running = folder / "running" / str(os.getpid())
    running.write_text("")
    beside = len(list((folder / "running").iterdir()))
    with (folder / f"{name}.calls").open("a") as calls:
        calls.write(json.dumps({"arguments": arguments, "beside": beside}) + "\n")
    try:
        return _answer(folder, name, arguments)
    finally:
        running.unlink()


def _answer(folder: Path, name: str, arguments: List[str]) -> int:
    if not _understood(name, arguments):
        print(f"unknown command {arguments}", file=sys.stderr)
        return 1
    thing = arguments[2]
    answers = json.loads((folder / f"{name}.json").read_text())
    how = answers.get(thing, answers["*"])
    while how.get("hang") or (how.get("wait") and not _told_to_go_on(folder, thing)):
        time.sleep(_STEP_S)
    while how.get("flood"):
        sys.stdout.write("x" * 65536)
    if how.get("child"):
        child = subprocess.Popen(["sleep", "600"])
        (folder / "running" / str(child.pid)).write_text("")
    sys.stderr.write(how.get("stderr", ""))
    sys.stdout.flush()
    sys.stdout.buffer.write(_printed(name, arguments, how))
    sys.stdout.flush()
    return int(how.get("exit", 0))


def _told_to_go_on(folder: Path, thing: str) -> bool:
    return (folder / _mark("*")).exists() or (folder / _mark(thing)).exists()


def _understood(name: str, arguments: List[str]) -> bool:
    if name == "jira":
        return arguments[:2] == ["issue", "view"] and arguments[3:] == ["--raw"]
    wanted = {"pr": ["--json", _PULL], "issue": ["--json", _ISSUE]}
    return arguments[1:2] == ["view"] and arguments[3:] == wanted.get(arguments[0])


def _printed(name: str, arguments: List[str], how: Dict[str, object]) -> bytes:
    if "text" in how:
        return str(how["text"]).encode()
    if "hex" in how:
        return bytes.fromhex(str(how["hex"]))
    thing = arguments[2]
    fields: Dict[str, object] = {}
    if name == "jira":
        about = {"summary": f"About {thing}", "status": {"name": "To do", "id": "3"}, "labels": []}
        fields = {"id": "10001", "key": thing, "fields": about}
    else:
        number = re.findall("[0-9]+", thing)
        fields = {"number": int(number[0]), "state": "OPEN", "title": f"About {thing}"}
        if arguments[0] == "pr":
            fields.update(isDraft=False, statusCheckRollup=[])
    fields.update(how.get("fields", {}))  # type: ignore[call-overload]
    return json.dumps(fields).encode()


if __name__ == "__main__":
    raise SystemExit(_main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
