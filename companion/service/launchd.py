"""macOS: a launch agent of launchd, which holds the port and hands its sockets in.

launchd opens the log files itself, and makes their folder again when it is gone.
"""

import shlex
import time
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Tuple

from adapters import placing
from adapters.contract import AdapterError, Inspection, InstallContext, InstallReport
from companion.core.errors import ProgramFailed
from companion.core.programs import Programs
from companion.service import judgement, logfiles, migration, owned
from companion.service import plan as plans
from companion.service.plan import Plan
from companion.service.sockets import LABEL, SOCKETS

TIMEOUT_S = 20.0
LOOK_TIMEOUT_S = 5.0

# bootout returns before the old job is gone; until then bootstrap fails (5, 36 or 37), for less
# than a second or two. Each pause in seconds.
_PAUSES_S = (0.5, 1.0, 2.0)

Properties = Dict[str, object]


def plist_path(context: InstallContext) -> Path:
    """Where launchd finds the agents of this user."""
    return context.home / "Library" / "LaunchAgents" / f"{LABEL}.plist"


def properties(plan: Plan) -> Properties:
    """What the plist says."""
    state = plan.settings.state_dir
    socket = {"SockServiceName": str(plan.port), "SockType": "stream", "SockPassive": True}
    return {
        "Label": LABEL,
        "ProgramArguments": [plan.interpreter, plan.program],
        "WorkingDirectory": str(plan.settings.home),
        "EnvironmentVariables": dict(plan.environment),
        "RunAtLoad": True,
        "KeepAlive": True,
        "StandardOutPath": str(state / logfiles.OUTPUT),
        "StandardErrorPath": str(state / logfiles.ERRORS),
        "Sockets": {
            SOCKETS: [
                {**socket, "SockFamily": "IPv4", "SockNodeName": "127.0.0.1"},
                {**socket, "SockFamily": "IPv6", "SockNodeName": "::1"},
            ]
        },
    }


def rendered(plan: Plan) -> bytes:
    """The plist's bytes. AdapterError for a path that XML cannot hold."""
    import plistlib  # noqa: PLC0415 - an XML parser, which a server must not wait for

    try:
        return plistlib.dumps(properties(plan), sort_keys=False)
    except (ValueError, TypeError) as exc:  # A control character, or half a surrogate.
        raise AdapterError(f"launchd can start nothing with such a path: {exc}") from exc


class Launchctl:
    """``launchctl`` for one user's session. What fails is told by ``problem``."""

    def __init__(self, context: InstallContext, uid: int, timeout_s: float = TIMEOUT_S) -> None:
        self._program = context.which("launchctl") or "/bin/launchctl"
        self._programs = Programs(context.environ)
        self._timeout_s = timeout_s
        self.domain = f"gui/{uid}"
        self.problem: Optional[str] = None
        """Why the last call did not work, or None."""

    def __call__(self, *arguments: str) -> bool:
        """Whether it worked."""
        try:
            self._programs.run([self._program, *arguments], self._timeout_s)
        except ProgramFailed as exc:
            self.problem = str(exc)
            return False
        self.problem = None
        return True


def install(context: InstallContext, uid: int, pauses_s: Tuple[float, ...] = _PAUSES_S) -> InstallReport:
    """Write the plist and start it. A second call changes nothing on disk, and restarts.

    A ``launchctl`` that fails or hangs is told; the file stays. AdapterError when something that is
    not ours stands there, or when the file cannot be written.
    """
    plan = plans.make(context)
    wanted = rendered(plan)
    path = plist_path(context)
    _refuse(_look(path), path, "Cannot replace unmanaged")
    launchctl = Launchctl(context, uid)
    launchctl("bootout", launchctl.domain, str(path))  # Fails when it is not there.
    moved = migration.migrate(plan.settings)
    changed = owned.put(context, {path: wanted}, {}, folders=[plan.settings.state_dir])
    warnings = list(moved.left)
    if not _bootstrapped(launchctl, path, pauses_s):
        start = f"launchctl bootstrap {launchctl.domain} {shlex.quote(str(path))}"
        warnings.append(
            f"{launchctl.problem}. The companion starts at your next login. To start it now, in a terminal of"
            f" your desktop: {start} (after launchctl enable {launchctl.domain}/{LABEL}, if it was disabled)"
        )
    details = [f"{'Wrote' if changed else 'Kept'} {path}", *judgement.told(plan), *moved.done]
    headline = f"Installed the companion's service at {path}"
    return InstallReport(
        headline if changed or moved.done else f"{headline} (nothing to change)",
        tuple(details),
        tuple(warnings),
        bool(changed or moved.done),
    )


def uninstall(context: InstallContext, uid: int) -> InstallReport:
    """Stop the companion and remove the plist and the folders made for it.

    AdapterError for what is not ours.
    """
    path = plist_path(context)
    found = _look(path)
    _refuse(found, path, "Refusing to remove unmanaged")
    launchctl = Launchctl(context, uid)
    launchctl("bootout", launchctl.domain, str(path))  # Fails when it is not there.
    removed, _ = owned.take_away(context, [path], [plans.settings_of(context).state_dir])
    if not removed:
        return InstallReport(f"Removed the companion's service: there was none at {path}")
    return InstallReport(f"Removed the companion's service at {path}", (f"Deleted {path}",), (), True)


def inspect(context: InstallContext, uid: int) -> Inspection:
    """How the plist stands on disk, and whether launchd knows it. Never raises."""
    path = plist_path(context)
    try:
        found = _look(path)
        if found == "":
            return Inspection("absent", str(path), None)
        if isinstance(found, str):
            return Inspection("foreign", str(path), None, (found,))
        wrong = _wrong(context, path, found)
    except (OSError, AdapterError) as exc:
        return Inspection("foreign", str(path), None, (f"{path}: {exc}",))
    launchctl = Launchctl(context, uid, LOOK_TIMEOUT_S)
    loaded = launchctl("print", f"{launchctl.domain}/{LABEL}")
    notes = () if loaded else (f"launchd does not know it: {launchctl.problem}",)
    return Inspection("outdated" if wrong else "installed", str(path), loaded, (*wrong, *notes))


def _bootstrapped(launchctl: Launchctl, path: Path, pauses_s: Tuple[float, ...]) -> bool:
    for pause_s in (*pauses_s, None):
        if launchctl("bootstrap", launchctl.domain, str(path)):
            return True
        if pause_s is None or "did not end" in (launchctl.problem or ""):
            return False
        time.sleep(pause_s)
    return False


def _look(path: Path) -> "Properties | str":
    """What the plist says; empty text when there is none, else why it is not ours. OSError."""
    import plistlib  # noqa: PLC0415 - an XML parser, which a server must not wait for

    place = placing.real_place(path)
    kind = placing.kind_of(place)
    if kind == "absent":
        return ""
    if kind != "file":
        return f"it is a {kind}, not a plain file"
    try:
        told = plistlib.loads(placing.read_small(place, owned.MOST_BYTES))
    except Exception as exc:  # Foreign data: plistlib raises whatever its parsers do.
        return f"it cannot be read as a property list: {exc}"
    if not isinstance(told, dict) or told.get("Label") != LABEL:
        return f"its label is not {LABEL}"
    return told


def _refuse(found: "Properties | str", path: Path, refusal: str) -> None:
    if isinstance(found, str) and found:
        raise AdapterError(f"{refusal} launch agent ({found}). Move it away first", path)


def _wrong(context: InstallContext, path: Path, found: Properties) -> List[str]:
    command = found.get("ProgramArguments")
    told = found.get("EnvironmentVariables")
    environment: Mapping[object, object] = told if isinstance(told, dict) else {}
    verdict = judgement.judge(
        context,
        [str(each) for each in command] if isinstance(command, list) else [],
        [(str(name), str(value)) for name, value in environment.items()],
    )
    notes = [f"{path}: {note}" for note in verdict.wrong]
    if not notes and found != properties(verdict.plan):
        notes.append(f"{path} is not what this version writes")
    return notes
