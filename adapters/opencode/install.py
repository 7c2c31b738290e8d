"""Connects OpenCode: a link among its plugins, ``${XDG_CONFIG_HOME:-~/.config}/opencode/plugins``.

``opencode.json`` is not touched: what lies in that folder loads by itself. OpenCode keeps files of
its own there (``package.json``, ``node_modules``, ``.gitignore``); they are not ours and stay.
"""

import os
from pathlib import Path
from typing import Mapping, Optional, Tuple

from adapters import placing
from adapters.client import link
from adapters.contract import Inspection, InstallContext, InstallReport

_PLUGINS = "plugins"
# As OpenCode 1.18.33 reads switches; ``--pure`` sets the same one.
_TRUE = ("1", "true", "yes", "on", "y")


def presence(context: InstallContext) -> Optional[str]:
    """The program ``opencode`` on PATH or where its installer puts it, else a folder of its own."""
    program = context.which("opencode") or context.which(str(context.home / ".opencode/bin/opencode"))
    config = _config_dir(context.home, context.environ)
    data = _xdg(context.environ, "XDG_DATA_HOME", context.home / ".local" / "share") / "opencode"
    used = placing.holds_other(config, _PLUGINS) or placing.holds_other(config / _PLUGINS, link.LINK)
    return program or (str(config) if used else None) or (str(data) if data.is_dir() else None)


def install(context: InstallContext) -> InstallReport:
    """Link our plugin into OpenCode's folder; see :func:`adapters.client.link.install`."""
    return link.install(_CLIENT, context)


def uninstall(context: InstallContext) -> InstallReport:
    """The exact inverse; see :func:`adapters.client.link.uninstall`."""
    return link.uninstall(_CLIENT, context)


def inspect(context: InstallContext) -> Inspection:
    """How the plugin stands on disk. Never raises."""
    return link.inspect(_CLIENT, context)


def _config_dir(home: Path, environ: Mapping[str, str]) -> Path:
    return _xdg(environ, "XDG_CONFIG_HOME", home / ".config") / "opencode"


def _load_dir(home: Path, environ: Mapping[str, str]) -> Path:
    return _config_dir(home, environ) / _PLUGINS


def _xdg(environ: Mapping[str, str], name: str, default: Path) -> Path:
    """As XDG has it, an empty or relative value is ignored."""
    told = environ.get(name, "")
    return Path(told) if os.path.isabs(told) else default


def _obstacles(load_dir: Path, context: InstallContext) -> Tuple[str, ...]:
    """What the environment at hand says; a session may be started from another one."""
    found = []
    pure = context.environ.get("OPENCODE_PURE", "")
    if pure in _TRUE:
        found.append(f"OPENCODE_PURE is {pure}: sessions started with it load no plugins")
    base = context.environ.get("XDG_CONFIG_HOME", "")
    if base and not os.path.isabs(base):
        found.append(f"XDG_CONFIG_HOME is {base!r}, below which OpenCode looks in every directory anew")
    return tuple(found)


_CLIENT = link.Client(
    agent="opencode",
    noun="OpenCode extension",
    load_dir=_load_dir,
    afterwards="Restart OpenCode: it loads plugins only when it starts",
    obstacles=_obstacles,
)
