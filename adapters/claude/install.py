"""Connects Claude Code: one plugin folder of ours among its skills, and nothing else.

A folder with a manifest below ``${CLAUDE_CONFIG_DIR:-~/.claude}/skills`` loads by itself as
``<name>@skills-dir`` at the next session. Settings files are read for advice, never written.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ContextManager, Iterable, List, Mapping, Optional, Tuple

from adapters import hookcommand, made_folders, placing
from adapters.claude import folder, plugin, policy
from adapters.claude.events import SUBSCRIBED, Transport
from adapters.claude.folder import Item
from adapters.contract import AdapterError, Inspection, InstallContext, InstallReport
from adapters.made_folders import MadeFolders

# A manifest of ours has some 400 bytes; more than this is not worth looking into.
_MAX_MANIFEST_BYTES = 256 * 1024
# Another install or uninstall may run at the same moment: look again and go on.
_ATTEMPTS = 5


@dataclass(frozen=True)
class _Found:
    """What stands in the plugin folder's place."""

    state: str
    """``absent``, ``ours`` or ``foreign``."""
    why: str = ""
    """For a foreign one: what makes it so."""
    created: int = 0
    """For one of an older version: how many parents were made along with it."""
    transport: str = plugin.HTTP
    """For one of ours: how turn events travel."""


def config_dir(home: Path, environ: Mapping[str, str]) -> Path:
    """Claude Code's folder. Empty counts as unset, as it does there.

    AdapterError for a relative ``CLAUDE_CONFIG_DIR``: it means another folder in every directory.
    """
    return placing.told_folder(environ, "CLAUDE_CONFIG_DIR", home / ".claude")


def presence(context: InstallContext) -> Optional[str]:
    """The program ``claude`` on PATH, else Claude Code's folder when more than ours is in it."""
    program = context.which("claude")
    try:
        base = config_dir(context.home, context.environ)
    except AdapterError:
        return program
    return program or (str(base) if placing.holds_other(base, "skills") else None)


def install(
    context: InstallContext, managed_folders: Tuple[Path, ...] = policy.MANAGED_FOLDERS
) -> InstallReport:
    """Put the plugin folder in place, or bring ours up to date. A second call changes nothing.

    AdapterError when something that is not ours stands there, or when it cannot be written.
    """
    base = config_dir(context.home, context.environ)
    shown = _plugin_dir(base)
    if not os.path.isabs(context.program) or not os.path.isfile(context.program):
        raise AdapterError("our own program cannot be found there, so it cannot be linked", context.program)
    try:
        place = placing.real_place(shown)
        _refuse_foreign(_look(place), shown)
        with _record(context) as made:
            changed = _place(context, made, place, shown)
            return _installed(context, base, place, changed, managed_folders)
    except OSError as exc:
        raise AdapterError(f"Cannot install the Claude plugin: {exc.strerror or exc}", shown) from exc


def uninstall(context: InstallContext) -> InstallReport:
    """Remove the plugin folder and those parents that :func:`install` had to make.

    Files that people put into our folder stay, and are named. AdapterError for what is not ours.
    """
    shown = _plugin_dir(config_dir(context.home, context.environ))
    try:
        place = placing.real_place(shown)
        with _record(context) as made:
            for _ in range(_ATTEMPTS):
                try:
                    return _removed(made, place, shown)
                except FileNotFoundError:
                    continue  # Somebody else removes it at this moment.
        raise AdapterError("keeps changing while it is being removed", shown)
    except OSError as exc:
        raise AdapterError(f"Cannot remove the Claude plugin: {exc.strerror or exc}", shown) from exc


def inspect(
    context: InstallContext, managed_folders: Tuple[Path, ...] = policy.MANAGED_FOLDERS
) -> Inspection:
    """How the plugin stands on disk and what in the settings is against it. Never raises."""
    try:
        base = config_dir(context.home, context.environ)
    except AdapterError as exc:
        return Inspection("absent", "", None, (str(exc),))
    shown = _plugin_dir(base)
    try:
        place = placing.real_place(shown)
        found = _look(place)
        if found.state != "ours":
            return Inspection(found.state, str(shown), None, (found.why,) if found.why else ())
        wrong = _wrong(context, place, shown, found)
    except (OSError, AdapterError) as exc:
        return Inspection("foreign", str(shown), None, (f"{shown}: {exc}",))
    verdict = _verdict(context, base, found.transport, managed_folders)
    notes = (*wrong, *_which_home(context), *verdict.notes)
    return Inspection("outdated" if wrong else "installed", str(shown), verdict.loaded, notes)


def _plugin_dir(base: Path) -> Path:
    return base / "skills" / plugin.PLUGIN


def _record(context: InstallContext) -> ContextManager[MadeFolders]:
    return made_folders.opened(context.home, made_folders.data_dir(context.home, context.environ))


def _refuse_foreign(found: _Found, shown: Path) -> None:
    if found.state == "foreign":
        raise AdapterError(
            f"Cannot replace unmanaged Claude plugin ({found.why}). Move it away, then install again", shown
        )


def _place(context: InstallContext, made: MadeFolders, place: Path, shown: Path) -> List[str]:
    """Write what has to be written; the paths that changed. OSError as it comes."""
    lost: Optional[OSError] = None
    for _ in range(_ATTEMPTS):
        found = _look(place)
        _refuse_foreign(found, shown)
        folder.sweep(place, _NAMES)
        try:
            if found.state == "ours":
                _adopt(made, place, found)
                return folder.update(place, _items(context, shown, found))
            made.hold(place)
            folder.put_new(place, _items(context, shown, found))
            return [item.path for item in _NAMES]
        except (FileExistsError, FileNotFoundError) as exc:
            lost = exc  # Another install or uninstall came in between.
    if isinstance(lost, FileNotFoundError):
        raise lost  # No race: nothing can be made there.
    raise AdapterError("keeps changing while it is being written", shown)


def _adopt(made: MadeFolders, place: Path, found: _Found) -> None:
    """Take over the record that an older version kept in the manifest."""
    if found.created:
        made.adopt(place, list(place.parents)[: found.created])


def _look(place: Path) -> _Found:
    """What stands there. OSError when that cannot be told."""
    kind = placing.kind_of(place)
    if kind == "absent":
        return _Found("absent")
    if kind == "link":
        return _Found("foreign", f"it is a symbolic link to {os.readlink(place)}")
    if kind != "folder":
        return _Found("foreign", "it is not a folder")
    created = _marker(place)
    if created is None:
        return _Found("foreign", f"{plugin.MANIFEST} in it does not say that it is ours")
    wrong = folder.misplaced(place, _NAMES)
    if wrong is not None:
        return _Found("foreign", wrong)
    return _Found("ours", created=created, transport=_transport(_read(place / plugin.HOOKS)))


# Paths and kinds only, where the content does not matter.
_NAMES = (Item(plugin.MANIFEST), Item(plugin.LINK, link=""), Item(plugin.HOOKS))


def _marker(place: Path) -> Optional[int]:
    if placing.kind_of((place / plugin.MANIFEST).parent) != "folder":
        return None
    return plugin.marker(_read(place / plugin.MANIFEST))


def _read(path: Path) -> bytes:
    return placing.read_small(path, _MAX_MANIFEST_BYTES)


def _transport(hooks: bytes) -> str:
    """How turn events travel according to an installed hooks file."""
    transports = plugin.summarise(hooks).transports
    turns = [each.name for each in SUBSCRIBED if each.transport is Transport.HTTP]
    by_command = any(transports.get(event) == plugin.COMMAND for event in turns)
    return plugin.COMMAND if by_command else plugin.HTTP


def _items(context: InstallContext, shown: Path, found: _Found) -> Tuple[Item, ...]:
    program = context.program
    if shown in program.parents:  # Started through our own link, which must not point to itself.
        program = Path(os.path.realpath(program))
    return plugin.items(
        context.version,
        context.endpoint,
        context.transport or found.transport,
        hookcommand.poster(context, str(shown / plugin.LINK)),
        str(program),
    )


def _wrong(context: InstallContext, place: Path, shown: Path, found: _Found) -> Tuple[str, ...]:
    """What differs from what this program would write, keeping the installed transport."""
    as_installed = replace(context, transport=found.transport)
    differing = folder.differing(place, _items(as_installed, shown, found))
    notes = [f"{shown / path} is not what this version writes" for path in differing]
    if plugin.LINK in differing and not (place / plugin.LINK).exists():
        target = _target(place)
        notes.append(
            f"{shown / plugin.LINK} points to {target}, which is gone" if target else "the link is gone"
        )
    return tuple(notes)


def _target(place: Path) -> str:
    try:
        return os.readlink(place / plugin.LINK)
    except OSError:
        return ""


def _verdict(
    context: InstallContext, base: Path, transport: str, managed_folders: Tuple[Path, ...]
) -> policy.Verdict:
    url = plugin.hook_url(context.endpoint)
    uses_http = transport == plugin.HTTP
    return policy.examine(base, context.environ, plugin.PLUGIN, url, uses_http, managed_folders)


def _which_home(context: InstallContext) -> Tuple[str, ...]:
    told = context.environ.get("CLAUDE_CONFIG_DIR", "")
    if not told:
        return ()
    return (f"CLAUDE_CONFIG_DIR is {told}: only sessions started with it see this plugin",)


def _installed(
    context: InstallContext,
    base: Path,
    place: Path,
    changed: List[str],
    managed_folders: Tuple[Path, ...],
) -> InstallReport:
    """The report, from what the disk now says."""
    found = _look(place)
    if found.state != "ours":
        raise AdapterError("was changed by another program at once", place)
    hooks = plugin.summarise(_read(place / plugin.HOOKS))
    details = [f"{_done(path, changed)} {path}" for path in (plugin.MANIFEST, plugin.HOOKS)]
    details.append(f"{_done(plugin.LINK, changed)} {plugin.LINK} -> {_target(place)}")
    for transport in (plugin.HTTP, plugin.COMMAND):
        events = [event for event, used in hooks.transports.items() if used == transport]
        if events:
            details.append(f"Events by {transport}: {', '.join(events)}")
    details += [f"To: {target}" for target in hooks.targets]
    details += _which_home(context)
    if changed:
        details.append("Start Claude Code anew, or say /reload-plugins in a running session")
    verdict = _verdict(context, base, found.transport, managed_folders)
    headline = f"Installed Claude plugin at {_plugin_dir(base)}"
    return InstallReport(
        headline if changed else f"{headline} (nothing to change)",
        tuple(details),
        verdict.notes,
        bool(changed),
    )


def _done(path: str, changed: Iterable[str]) -> str:
    return "Wrote" if path in changed else "Kept"


def _removed(made: MadeFolders, place: Path, shown: Path) -> InstallReport:
    found = _look(place)
    if found.state == "foreign":
        raise AdapterError(f"Refusing to remove unmanaged Claude plugin ({found.why})", shown)
    folder.sweep(place, _NAMES)
    if found.state == "absent":
        made.release(place)  # An install may have been interrupted.
        return InstallReport(f"Removed Claude plugin: there was none at {shown}")
    made.demand_writable()
    _adopt(made, place, found)
    kept = folder.take_away(place, _NAMES)
    made.release(place)
    details = ["Running sessions go on reporting until they end, which does no harm"]
    warnings = tuple(f"Not ours, so left in place: {shown / name}" for name in kept)
    return InstallReport(f"Removed Claude plugin at {shown}", tuple(details), warnings, True)
