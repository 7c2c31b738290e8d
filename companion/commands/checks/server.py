"""Who holds the port: nobody, our companion, another user's, or a stranger?"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import List, Mapping, Optional

from companion.commands.checks.finding import Finding, ok, unknown, wrong
from companion.core import archive
from companion.core.errors import CompanionUnreachable
from companion.web import client

SECTION = "Companion"
PROBE_TIMEOUT_S = 2.0
REQUEST_TIMEOUT_S = 5.0

Health = Mapping[str, object]

_OTHER_PORT = "Choose another port with MDELLO_COMPANION_PORT, and install the agents again with it"


@dataclass(frozen=True)
class Served:
    """What was learned about the port."""

    findings: List[Finding]
    health: Optional[Health]
    """The body of our companion's ``/health``; None when ours does not answer there."""


def check(port: int, path: Path, version: str) -> Served:
    """Ask the port. ``path`` and ``version`` are this program's, to compare with the one that serves."""
    holder = client.probe(port, PROBE_TIMEOUT_S)
    if holder is client.Holder.FREE:
        text = f"Port {port} is free: the companion is not running"
        return Served([unknown(SECTION, text, "Start it: mdello.pyz serve")], None)
    if holder is client.Holder.OTHER_USER:
        text = f"Port {port} is held by the companion of another user of this machine"
        return Served([wrong(SECTION, text, _OTHER_PORT)], None)
    if holder is client.Holder.FOREIGN:
        text = f"Port {port} is held by another program, which does not answer as a companion"
        hint = (
            f"See who it is: lsof -nP -iTCP:{port} -sTCP:LISTEN. A companion that hangs has to be ended, and"
            f" started anew. Something else: {_OTHER_PORT}"
        )
        return Served([wrong(SECTION, text, hint)], None)
    try:
        health = client.get_json(port, "/health", REQUEST_TIMEOUT_S)
    except CompanionUnreachable as exc:
        return Served([wrong(SECTION, str(exc), "Restart the companion")], None)
    if not isinstance(health, dict):
        return Served([wrong(SECTION, f"Port {port} gives no usable account of itself")], None)
    return Served(_ours(port, health, path, version), health)


def _ours(port: int, health: Health, path: Path, version: str) -> List[Finding]:
    text = (
        f"Running on port {port}: version {health.get('version')}, pid {health.get('pid')},"
        f" Python {health.get('python')}, up {_duration(health.get('uptimeSeconds'))}"
    )
    outdated = _outdated(health, path, version)
    found = [
        wrong(SECTION, f"{text}; {outdated}", "Restart the companion") if outdated else ok(SECTION, text)
    ]
    problems = health.get("problems")
    for problem in problems if isinstance(problems, list) else []:
        # A replaced file has been told already.
        if not (outdated and "was replaced" in str(problem)):
            found.append(wrong(SECTION, str(problem)))
    notes = health.get("notes")
    found += [unknown(SECTION, str(note)) for note in notes] if isinstance(notes, list) else []
    return found


def _outdated(health: Health, path: Path, version: str) -> str:
    """Why the one that runs is not this program, or an empty string."""
    if health.get("version") != version:
        return f"this program is version {version}"
    served = health.get("archive")
    served = served if isinstance(served, dict) else {}
    if served.get("replaced") is True:
        return "its file was replaced since it started"
    other = served.get("path")
    if isinstance(other, str) and not _same_program(Path(other), path):
        return f"it runs from another file, {other}"
    return ""


def _same_program(one: Path, other: Path) -> bool:
    """Whether both are one file, or two copies of one release. A doubt counts as the same."""
    try:
        if os.path.samefile(one, other):
            return True
        return one.is_file() and other.is_file() and archive.sha256(one) == archive.sha256(other)
    except OSError:
        return True


def _duration(seconds: object) -> str:
    """``12 s``, ``3 min``, ``5 h``, ``2 days``."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        return "for an unknown time"
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def ago(seconds: float) -> str:
    """``12 s ago`` and so on; ``just now`` for a clock that went back."""
    return "just now" if seconds < 1 else f"{_duration(seconds)} ago"
