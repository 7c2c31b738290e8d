"""Connects Pi: a link among its extensions, ``${PI_CODING_AGENT_DIR:-~/.pi/agent}/extensions``.

Pi 1.6.0 loads every ``.js`` file and link to one from that folder, unless the folder has an index or
a manifest of its own, or its settings exclude the file.
"""

import fnmatch
import json
import os
from pathlib import Path
from typing import List, Mapping, Optional, Tuple

from adapters import placing
from adapters.client import link
from adapters.contract import AdapterError, Inspection, InstallContext, InstallReport

_EXTENSIONS = "extensions"
_INDEX = ("index.ts", "index.js")
_MAX_BYTES = 1024 * 1024


def agent_dir(home: Path, environ: Mapping[str, str]) -> Path:
    """Pi's own folder. As in Pi, an empty value counts as unset and ``~`` is the home.

    AdapterError for a relative ``PI_CODING_AGENT_DIR``: it means another folder in every directory.
    """
    told = environ.get("PI_CODING_AGENT_DIR", "")
    if told == "~" or told.startswith("~/"):
        return home / told[2:]
    if told and not os.path.isabs(told):
        raise AdapterError(f"PI_CODING_AGENT_DIR is {told!r}: it must be an absolute path")
    return Path(told) if told else home / ".pi" / "agent"


def presence(context: InstallContext) -> Optional[str]:
    """The program ``pi`` on PATH, else Pi's folder when more than our extension is in it."""
    program = context.which("pi")
    try:
        base = agent_dir(context.home, context.environ)
    except AdapterError:
        return program
    used = placing.holds_other(base, _EXTENSIONS) or placing.holds_other(base / _EXTENSIONS, link.LINK)
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
    return agent_dir(home, environ) / _EXTENSIONS


def _obstacles(load_dir: Path) -> Tuple[str, ...]:
    found = [
        f"{load_dir / name} is there, so Pi loads that and nothing else of the folder"
        for name in _INDEX
        if (load_dir / name).exists()
    ]
    manifest = _object(load_dir / "package.json").get("pi")
    if isinstance(manifest, dict) and manifest.get(_EXTENSIONS):
        found.append(f"{load_dir / 'package.json'} lists what Pi loads from the folder, and nothing else is")
    settings = load_dir.parent / "settings.json"
    excluded_by = _exclusion(_object(settings).get(_EXTENSIONS), load_dir / link.LINK)
    if excluded_by:
        found.append(f'{settings}: "{_EXTENSIONS}" has {json.dumps(excluded_by)}, which turns it off')
    return tuple(found)


def _exclusion(entries: object, path: Path) -> str:
    """The entry of Pi's settings that turns an extension off, or an empty string.

    ``!pattern`` excludes, ``+path`` includes all the same, ``-path`` excludes after all.
    """
    told: List[str] = [each for each in entries if isinstance(each, str)] if isinstance(entries, list) else []
    relative = f"{_EXTENSIONS}/{path.name}"

    def last(sign: str, patterns: bool) -> str:
        names = (relative, str(path), *((path.name,) if patterns else ()))
        for each in told:
            body = each[1:][2:] if each[1:].startswith("./") else each[1:]
            if each.startswith(sign) and (
                body in names or (patterns and any(fnmatch.fnmatchcase(name, body) for name in names))
            ):
                return each
        return ""

    return last("-", False) or ("" if last("+", False) else last("!", True))


def _object(path: Path) -> Mapping[str, object]:
    try:
        content = json.loads(placing.read_small(Path(os.path.realpath(path)), _MAX_BYTES))
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


_CLIENT = link.Client(
    agent="pi",
    noun="Pi extension",
    load_dir=_load_dir,
    afterwards="Say /reload in a running Pi",
    former="mdello-companion",
    obstacles=_obstacles,
)
