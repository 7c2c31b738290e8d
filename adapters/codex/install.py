"""Connects Codex: a hooks file of our own, ``${CODEX_HOME:-~/.codex}/hooks.json``, and nothing else.

``config.toml`` is read for advice, never written, so the user's trust in our hooks stays the user's
own act. A hooks file that is not ours is not edited either: it is told what would have to be added.
"""

import contextlib
import os
from pathlib import Path
from typing import ContextManager, Mapping, Optional, Tuple

from adapters import hookcommand, made_folders, placing
from adapters.codex import hooksfile, policy
from adapters.codex.events import SUBSCRIBED
from adapters.contract import AdapterError, Inspection, InstallContext, InstallReport
from adapters.hookcommand import Poster
from adapters.made_folders import MadeFolders

_MAX_BYTES = 1024 * 1024


def config_dir(home: Path, environ: Mapping[str, str]) -> Path:
    """Codex's folder. Empty counts as unset, as it does there.

    AdapterError for a relative ``CODEX_HOME``: it means another folder in every directory.
    """
    return placing.told_folder(environ, "CODEX_HOME", home / ".codex")


def presence(context: InstallContext) -> Optional[str]:
    """The program ``codex`` on PATH, else Codex's folder when more than ours is in it."""
    program = context.which("codex")
    try:
        base = config_dir(context.home, context.environ)
    except AdapterError:
        return program
    return program or (str(base) if placing.holds_other(base, hooksfile.NAME) else None)


def install(context: InstallContext, requirements: Path = policy.REQUIREMENTS) -> InstallReport:
    """Put our hooks file in place, or bring it up to date. A second call changes nothing.

    AdapterError when a hooks file that is not ours stands there, or when it cannot be written.
    """
    shown = _shown(context)
    content = _content(context)
    try:
        place = placing.real_place(shown)
        _refuse_foreign(context, place, shown)
        with _record(context) as made:
            _refuse_foreign(context, place, shown)
            changed = _put(made, place, content)
        return _installed(context, place, shown, changed, requirements)
    except OSError as exc:
        raise AdapterError(f"Cannot install the Codex hooks: {exc.strerror or exc}", shown) from exc


def uninstall(context: InstallContext) -> InstallReport:
    """Remove our hooks file and those folders that :func:`install` had to make. AdapterError for what
    is not ours."""
    shown = _shown(context)
    try:
        place = placing.real_place(shown)
        with _record(context) as made:
            placing.sweep(place.parent)
            why = _why_foreign(place)
            if why is not None:
                raise AdapterError(f"Refusing to remove Codex hooks that are not ours ({why})", shown)
            if placing.kind_of(place) == "absent":
                made.release(place)  # An install may have been interrupted.
                return InstallReport(f"Removed Codex hooks: there were none at {shown}")
            placing.demand_writable(place)
            made.demand_writable()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(place)
            made.release(place)
    except OSError as exc:
        raise AdapterError(f"Cannot remove the Codex hooks: {exc.strerror or exc}", shown) from exc
    details = "What config.toml says of your trust in them is yours; without the file it means nothing"
    return InstallReport(f"Removed Codex hooks at {shown}", (details,), (), True)


def inspect(context: InstallContext, requirements: Path = policy.REQUIREMENTS) -> Inspection:
    """How the file stands on disk, and what keeps Codex from running it. Never raises."""
    try:
        shown = _shown(context)
    except AdapterError as exc:
        return Inspection("absent", "", None, (str(exc),))
    try:
        place = placing.real_place(shown)
        why = _why_foreign(place)
        if why is not None:
            return Inspection("foreign", str(shown), None, (f"{shown}: {why}",))
        if placing.kind_of(place) == "absent":
            return Inspection("absent", str(shown), None)
        is_right = _read(place) == _content(context)
    except (OSError, AdapterError) as exc:
        return Inspection("foreign", str(shown), None, (f"{shown}: {exc}",))
    verdict = _verdict(context, requirements)
    notes = () if is_right else (f"{shown} is not what this version writes",)
    state = "installed" if is_right else "outdated"
    return Inspection(
        state, str(shown), verdict.loaded, (*notes, *_which_home(context), *verdict.notes, *verdict.untrusted)
    )


def _shown(context: InstallContext) -> Path:
    return config_dir(context.home, context.environ) / hooksfile.NAME


def _record(context: InstallContext) -> ContextManager[MadeFolders]:
    return made_folders.opened(context.home, made_folders.data_dir(context.home, context.environ))


def _read(place: Path) -> bytes:
    return placing.read_small(place, _MAX_BYTES)


def _content(context: InstallContext) -> bytes:
    return hooksfile.content(context.endpoint, _poster(context))


def _poster(context: InstallContext) -> Poster:
    poster = hookcommand.poster(context, str(context.program))
    if poster.curl is None and not os.path.isfile(context.program):
        raise AdapterError("our own program cannot be found there, so no hook can run it", context.program)
    return poster


def _why_foreign(place: Path) -> Optional[str]:
    """What makes the thing in our place not ours; None when it is, or when nothing is there."""
    kind = placing.kind_of(place)
    if kind == "absent":
        return None
    if kind == "file":
        return hooksfile.why_foreign(_read(place))
    return f"it is a symbolic link to {os.readlink(place)}" if kind == "link" else "it is no plain file"


def _refuse_foreign(context: InstallContext, place: Path, shown: Path) -> None:
    why = _why_foreign(place)
    if why is not None:
        command = hooksfile.command(context.endpoint, _poster(context))
        raise AdapterError(
            f"Cannot replace Codex hooks that are not ours ({why}). Move the file away and install again, or"
            f" add a command hook by hand for each of {', '.join(SUBSCRIBED)}: {command}",
            shown,
        )


def _put(made: MadeFolders, place: Path, content: bytes) -> bool:
    """Write the file if it has to be; whether it had to. OSError as it comes."""
    placing.sweep(place.parent)
    if placing.kind_of(place) == "absent":
        made.hold(place)
        _put_new(place, content)
        return True
    if _read(place) == content:
        return False
    placing.put_file(place, content)  # Ours, as was just seen.
    return True


def _put_new(place: Path, content: bytes) -> None:
    """The file appears as a whole, and never in the place of one that came in between."""
    beside = place.with_name(placing.new_name())
    try:
        placing.write_new(beside, content)
        try:
            os.link(beside, place)
        except FileExistsError:
            raise
        except OSError:  # A disk without hard links.
            if placing.kind_of(place) != "absent":
                raise
            placing.put_file(place, content)
    finally:
        placing.delete(beside)
    placing.sync(place.parent)


def _verdict(context: InstallContext, requirements: Path) -> policy.Verdict:
    base = config_dir(context.home, context.environ)
    # Codex resolves the folder that CODEX_HOME names, and leaves its own as it is spelled.
    spelled = Path(os.path.realpath(base)) if context.environ.get("CODEX_HOME", "") else base
    return policy.examine(spelled / hooksfile.NAME, base / "config.toml", requirements)


def _which_home(context: InstallContext) -> Tuple[str, ...]:
    told = context.environ.get("CODEX_HOME", "")
    return (f"CODEX_HOME is {told}: only sessions started with it see these hooks",) if told else ()


def _installed(
    context: InstallContext, place: Path, shown: Path, changed: bool, requirements: Path
) -> InstallReport:
    """The report, from what the disk now says."""
    data = _read(place)
    if placing.kind_of(place) != "file" or hooksfile.why_foreign(data) is not None:
        raise AdapterError("was changed by another program at once", shown)
    events, commands = hooksfile.summary(data)
    details = [f"{'Wrote' if changed else 'Kept'} {shown}", f"Events: {', '.join(events)}"]
    details += [f"Each runs: {command}" for command in commands]
    details += _which_home(context)
    if changed:
        details.append("Start Codex anew")
    headline = f"Installed Codex hooks at {shown}"
    verdict = _verdict(context, requirements)
    details += verdict.untrusted
    return InstallReport(
        headline if changed else f"{headline} (nothing to change)", tuple(details), verdict.notes, changed
    )
