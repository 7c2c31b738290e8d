"""Start at login: the companion as a service of whatever starts services on this machine.

launchd on macOS, the systemd user manager on Linux; where neither is, the lines for a shell profile
are told and nothing is written.
"""

import os
import sys
from typing import Optional

from adapters.contract import AdapterError, Inspection, InstallContext, InstallReport
from companion.service import launchd, owned, profile, systemd
from companion.service import plan as plans

NAME = "service"
"""The word on the command line."""
TITLE = "Start at login"
"""For people."""

_NOWHERE = "neither launchd nor systemd is here"


def presence(context: InstallContext, platform: str = sys.platform) -> Optional[str]:
    """The program that speaks with the service manager, or None when there is none. Never raises."""
    if platform == "darwin":
        return context.which("launchctl") or "/bin/launchctl"
    return context.which("systemctl") if platform.startswith("linux") else None


def install(context: InstallContext, platform: str = sys.platform) -> InstallReport:
    """Start the companion at every login, and now. A second call changes nothing, and restarts it.

    Files of the first companions (``~/.mdello``) are moved to their new places. Without a service
    manager nothing is written; the report then says what to add to a shell profile. AdapterError
    when refused.
    """
    try:
        if platform == "darwin":
            return launchd.install(context, os.getuid())
        if presence(context, platform):
            return systemd.install(context)
    except OSError as exc:
        raise AdapterError(f"Cannot install the companion's service: {_reason(exc)}") from exc
    lines = profile.lines(plans.make(context))
    return InstallReport(
        f"Nothing was installed: {_NOWHERE}. To start the companion at login, add this to {profile.FILE}:",
        tuple(lines),
    )


def uninstall(context: InstallContext, platform: str = sys.platform) -> InstallReport:
    """Stop the companion, and undo exactly what :func:`install` did. AdapterError for what is not ours."""
    try:
        if platform == "darwin":
            return launchd.uninstall(context, os.getuid())
        if _has_units(context, platform):
            return systemd.uninstall(context)
        owned.take_away(context, ())  # Folders that an install made before it was killed.
    except OSError as exc:
        raise AdapterError(f"Cannot remove the companion's service: {_reason(exc)}") from exc
    return InstallReport(
        f"Removed the companion's service: {_NOWHERE}, so none was installed (what you added to"
        f" {profile.FILE} by hand is still there)"
    )


def inspect(context: InstallContext, platform: str = sys.platform) -> Inspection:
    """How the service stands on disk, and whether it runs where that can be told. Never raises."""
    if platform == "darwin":
        return launchd.inspect(context, os.getuid())
    try:
        if _has_units(context, platform):
            return systemd.inspect(context)
    except OSError as exc:
        return Inspection("foreign", str(systemd.unit_dir(context)), None, (str(exc),))
    return Inspection("absent", profile.FILE, None, (_NOWHERE,))


def _has_units(context: InstallContext, platform: str) -> bool:
    """Whether systemd is or was here: what it was given can be removed without it."""
    return bool(presence(context, platform)) or (platform.startswith("linux") and systemd.stands(context))


def _reason(exc: OSError) -> str:
    """For people, who know the folder, but not our temporary names in it."""
    words, at = exc.strerror or str(exc), str(exc.filename or "")
    return words if at in words else f"{words}: {os.path.dirname(at)}"
