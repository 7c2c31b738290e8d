"""Connects Pi: a link among its extensions, ``${PI_CODING_AGENT_DIR:-~/.pi/agent}/extensions``.

Pi loads every ``.js`` file and link to one from that folder; :mod:`adapters.pi.loading` knows the exceptions.
"""

from pathlib import Path
from typing import Mapping, Optional, Tuple

from adapters import placing
from adapters.client import link
from adapters.contract import AdapterError, Inspection, InstallContext, InstallReport
from adapters.pi import loading


def agent_dir(home: Path, environ: Mapping[str, str]) -> Path:
    """Pi's own folder. As in Pi, an empty value counts as unset and ``~`` is the home.

    AdapterError for a relative ``PI_CODING_AGENT_DIR``: it means another folder in every directory.
    """
    told = environ.get("PI_CODING_AGENT_DIR", "")
    if told == "~" or told.startswith("~/"):
        return home / told[2:]
    return placing.told_folder(environ, "PI_CODING_AGENT_DIR", home / ".pi" / "agent")


def presence(context: InstallContext) -> Optional[str]:
    """The program ``pi`` on PATH, else Pi's folder when more than our extension is in it."""
    program = context.which("pi")
    try:
        base = agent_dir(context.home, context.environ)
    except AdapterError:
        return program
    used = placing.holds_other(base, loading.EXTENSIONS) or placing.holds_other(
        base / loading.EXTENSIONS, link.LINK
    )
    return program or (str(base) if used else None)


def install(context: InstallContext) -> InstallReport:
    """Link our extension into Pi's folder; see :func:`adapters.client.link.install`."""
    return link.install(_CLIENT, context)


def uninstall(context: InstallContext) -> InstallReport:
    """The exact inverse; see :func:`adapters.client.link.uninstall`."""
    return link.uninstall(_CLIENT, context)


def inspect(context: InstallContext) -> Inspection:
    """How the extension stands on disk, and what keeps Pi from loading it. Never raises."""
    return link.inspect(_CLIENT, context)


def _load_dir(home: Path, environ: Mapping[str, str]) -> Path:
    return agent_dir(home, environ) / loading.EXTENSIONS


def _obstacles(load_dir: Path, context: InstallContext) -> Tuple[str, ...]:
    return loading.obstacles(load_dir / link.LINK, context.home)


_CLIENT = link.Client(
    agent="pi",
    noun="Pi extension",
    load_dir=_load_dir,
    afterwards="Say /reload in a running Pi",
    former="mdello-companion",
    obstacles=_obstacles,
)
