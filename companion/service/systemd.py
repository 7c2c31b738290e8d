"""Linux: a service and a socket unit of the systemd user manager.

The socket unit holds the port from login on, so that it always answers: while the companion is
(re)started, whoever calls waits in the socket.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from adapters import placing
from adapters.contract import AdapterError, Inspection, InstallContext, InstallReport
from companion.service import judgement, migration, owned, profile, unitfile, units
from companion.service import plan as plans
from companion.service.plan import Plan
from companion.service.units import LINKS, MARK, SERVICE, SOCKET
from companion.service.usermanager import UserManager

# A look must not keep doctor waiting.
_LOOK_TIMEOUT_S = 5.0

_NO_MANAGER = (
    "No systemd user manager answers ({problem}). The files are in place: the companion starts at your"
    " next login, if a user manager starts then. Until then: mdello.pyz serve. Where there never is one"
    f" (in a container), add to {profile.FILE}:"
)


@dataclass(frozen=True)
class _Found:
    """What stands in our places."""

    units: Dict[str, str]
    """Name to text of those that are there."""
    links: List[Path]
    """Those that are there."""
    foreign: Optional[Tuple[Path, str]] = None
    """Something that is not ours, and what makes it so."""


def unit_dir(context: InstallContext) -> Path:
    """Where the user manager looks for the units of this user."""
    config = plans.base_folder(context.environ, "XDG_CONFIG_HOME", context.home / ".config")
    return config / "systemd" / "user"


def install(context: InstallContext) -> InstallReport:
    """Write and enable the units, and start them. A second call changes nothing on disk, and restarts.

    A manager that is missing, fails or hangs is told; the files stay. AdapterError when something
    that is not ours stands there, or when the files cannot be written.
    """
    plan = plans.make(context)
    folder = unit_dir(context)
    wanted = units.texts(plan)
    before = _look(folder)
    _refuse(before, "Cannot replace unmanaged")
    manager = UserManager(context)
    answers = manager.answers()
    if before.units and (before.units.get(SOCKET) != wanted[SOCKET] or migration.pending(plan.settings)):
        manager.ask("daemon-reload")
        manager.ask("stop", SOCKET, SERVICE)
    moved = migration.migrate(plan.settings)
    changed = owned.put(
        context,
        {folder / name: text.encode("utf-8") for name, text in wanted.items()},
        {folder / wants / name: str(folder / name) for wants, name in LINKS},
    )
    manager.ask("daemon-reload")
    manager.reset(SERVICE, SOCKET)
    manager.ask("start", SOCKET)
    manager.ask("restart", SERVICE)
    states = manager.states(SERVICE, SOCKET)
    details = [f"{'Wrote' if path in changed else 'Kept'} {path}" for path in _paths(folder)]
    details += [*judgement.told(plan), *moved.done, *(f"{unit} is {state}" for unit, state in states.items())]
    warnings = [*moved.left, *_complaints(plan, manager, answers)]
    headline = f"Installed the companion's service at {folder / SERVICE}"
    return InstallReport(
        headline if changed or moved.done else f"{headline} (nothing to change)",
        tuple(details),
        tuple(warnings),
        bool(changed or moved.done),
    )


def uninstall(context: InstallContext) -> InstallReport:
    """Stop the companion and remove units, links and the folders made for them.

    AdapterError for what is not ours. A manager that does not answer is told.
    """
    folder = unit_dir(context)
    found = _look(folder)
    _refuse(found, "Refusing to remove unmanaged")
    if not found.units and not found.links:
        owned.take_away(context, _paths(folder))  # What an install that was killed has left.
        return InstallReport(f"Removed the companion's service: there was none at {folder / SERVICE}")
    manager = UserManager(context)
    manager.ask("daemon-reload")
    manager.ask("stop", SOCKET, SERVICE)
    removed, _ = owned.take_away(context, [*reversed(_paths(folder))])
    manager.ask("daemon-reload")
    warnings: Tuple[str, ...] = ()
    manager.reset(SERVICE, SOCKET)
    if manager.problem is not None:
        warnings = (f"{manager.problem}. A companion that it has started goes on until you log out",)
    details = tuple(f"Deleted {path}" for path in removed)
    return InstallReport(f"Removed the companion's service at {folder / SERVICE}", details, warnings, True)


def inspect(context: InstallContext) -> Inspection:
    """How the units stand on disk, and whether they run as far as the manager tells. Never raises."""
    folder = unit_dir(context)
    shown = str(folder / SERVICE)
    try:
        found = _look(folder)
        if found.foreign is not None:
            return Inspection("foreign", str(found.foreign[0]), None, (found.foreign[1],))
        if not found.units and not found.links:
            return Inspection("absent", shown, None)
        wrong = _wrong(context, folder, found)
    except (OSError, AdapterError) as exc:
        return Inspection("foreign", shown, None, (f"{shown}: {exc}",))
    loaded, notes = _running(UserManager(context, _LOOK_TIMEOUT_S))
    return Inspection("outdated" if wrong else "installed", shown, loaded, (*wrong, *notes))


def stands(context: InstallContext) -> bool:
    """Whether anything of ours is there, so that it can be removed without systemd as well."""
    found = _look(unit_dir(context))
    return bool(found.units or found.links)


def _paths(folder: Path) -> List[Path]:
    return [folder / SERVICE, folder / SOCKET, *(folder / wants / name for wants, name in LINKS)]


def _look(folder: Path) -> _Found:
    """OSError when it cannot be told."""
    found: Dict[str, str] = {}
    for name in (SERVICE, SOCKET):
        place = placing.real_place(folder / name)
        kind = placing.kind_of(place)
        if kind == "absent":
            continue
        text = placing.read_small(place, owned.MOST_BYTES).decode("utf-8", errors="replace")
        if kind != "file" or not text.startswith(MARK):
            why = "it does not begin with our mark" if kind == "file" else f"it is a {kind}, not a plain file"
            return _Found({}, [], (folder / name, why))
        found[name] = text
    links: List[Path] = []
    for wants, name in LINKS:
        place = placing.real_place(folder / wants / name)
        kind = placing.kind_of(place)
        if kind == "absent":
            continue
        if kind != "link":
            return _Found({}, [], (folder / wants / name, f"it is a {kind}, not a link"))
        target = os.readlink(place)
        if placing.real_place(place.parent / target) != placing.real_place(folder / name):
            return _Found({}, [], (folder / wants / name, f"it is a link to {target}"))
        links.append(folder / wants / name)
    return _Found(found, links)


def _refuse(found: _Found, refusal: str) -> None:
    if found.foreign is not None:
        path, why = found.foreign
        raise AdapterError(f"{refusal} unit ({why}). Move it away first", path)


def _wrong(context: InstallContext, folder: Path, found: _Found) -> List[str]:
    notes = [f"{folder / name} is missing" for name in (SERVICE, SOCKET) if name not in found.units]
    links = [folder / wants / name for wants, name in LINKS]
    notes += [f"it is not enabled: {path} is missing" for path in links if path not in found.links]
    text = found.units.get(SERVICE)
    if text is None:
        return notes
    words = unitfile.command_in(text)
    verdict = judgement.judge(context, words[:2], unitfile.environment_in(text))
    notes += [f"{folder / SERVICE}: {note}" for note in verdict.wrong]
    if not verdict.wrong:
        wanted = units.texts(verdict.plan)
        notes += [
            f"{folder / name} is not what this version writes"
            for name, told in found.units.items()
            if told != wanted[name]
        ]
    return notes


def _running(manager: UserManager) -> Tuple[Optional[bool], List[str]]:
    states = manager.states(SERVICE, SOCKET)
    if SERVICE not in states or SOCKET not in states:
        return None, [f"whether it runs cannot be told: {manager.problem or 'systemctl does not say'}"]
    bad = [f"{unit} is {state}" for unit, state in states.items() if state not in ("active", "activating")]
    # A service that is at rest is started by the next one who calls.
    return states[SOCKET] == "active" and states[SERVICE] != "failed", bad


def _complaints(plan: Plan, manager: UserManager, answers: bool) -> List[str]:
    """What keeps the companion from being started."""
    if manager.problem is None:
        return []
    if not answers:
        return [f"{_NO_MANAGER.format(problem=manager.problem)} {profile.lines(plan)[-1]}"]
    if "not found" in manager.problem:
        return [f"{manager.problem}. Is XDG_CONFIG_HOME set in this shell, but not for systemd?"]
    return [
        f"{manager.problem}. If a companion that was started by hand holds port {plan.port}, end it;"
        f" then: systemctl --user start {SOCKET} {SERVICE}"
    ]
