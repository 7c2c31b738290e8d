"""Whether Codex will run our hooks: what the user has trusted, and what an administrator allows.

Read from ``config.toml`` and ``requirements.toml`` as text, line by line, for Python 3.9 has no TOML
parser; a spelling that this does not understand is left out, so the answer may be "cannot be told".
Policies from the cloud or from a device management do not stand in any of these files.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from adapters import placing
from adapters.codex.events import SUBSCRIBED

REQUIREMENTS = Path("/etc/codex/requirements.toml")
"""What an administrator demands of every user of this machine."""

_MAX_BYTES = 4 * 1024 * 1024
_SECTION = re.compile(r"\s*\[+\s*(.+?)\s*\]+\s*(?:#.*)?")
_SETTING = re.compile(r"\s*([A-Za-z0-9_.\-]+)\s*=\s*(.*?)\s*")


@dataclass(frozen=True)
class Verdict:
    """What stands against our hooks."""

    loaded: Optional[bool]
    """False: none of them will run; None: that cannot be told."""
    notes: Tuple[str, ...] = ()
    """Reasons, each naming its file."""
    untrusted: Tuple[str, ...] = ()
    """One line on the trust that is missing, as it is at first."""


def examine(hooks: Path, config: Path, requirements: Path = REQUIREMENTS) -> Verdict:
    """What the files say about a hooks file of ours; ``hooks`` as Codex spells its path. Never raises."""
    demanded, settings = settings_of(requirements), settings_of(config)
    if demanded.get("allow_managed_hooks_only", "").startswith("true"):
        return Verdict(False, (f"{requirements}: allow_managed_hooks_only keeps Codex from running them",))
    for file, values in ((requirements, demanded), (config, settings)):
        for name in ("features.hooks", "features.codex_hooks"):
            if values.get(name, "").startswith("false"):
                return Verdict(False, (f"{file}: {name} = false keeps Codex from running any hook",))
    notes = []
    if any(name.startswith("hooks.") and not name.startswith("hooks.state") for name in settings):
        notes.append(
            f"{config} has hooks too: both run, and Codex says at its start that it would rather not"
        )
    missing = [event for event in SUBSCRIBED if not _is_trusted(settings, hooks, event)]
    if not missing:
        return Verdict(None, tuple(notes))
    some = len(missing) < len(SUBSCRIBED)
    which = f" for {', '.join(missing)}" if some else ""
    told = f"{config} does not say that you trust our hooks{which}: {TRUST}"
    return Verdict(None if some else False, tuple(notes), (told,))


TRUST = "Codex skips a hook until you trust it. Say /hooks in Codex, look at ours, and trust them"
"""What the user has to do, once and after each change; we never do it in their place."""


def settings_of(path: Path) -> Dict[str, str]:
    """Settings of a TOML file, ``section.name`` to the text behind the equals sign. Never raises."""
    text = placing.read_small(path, _MAX_BYTES).decode("utf-8", errors="replace")
    found: Dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        head = _SECTION.fullmatch(line)
        setting = None if head else _SETTING.fullmatch(line)
        if head:
            section = f"{head[1]}."
        elif setting:
            found[section + setting[1]] = setting[2]
    return found


def _is_trusted(settings: Dict[str, str], hooks: Path, event: str) -> bool:
    return any(
        settings.get(f"{section}.trusted_hash")
        and not settings.get(f"{section}.enabled", "").startswith("false")
        for section in _sections(hooks, event)
    )


def _sections(hooks: Path, event: str) -> List[str]:
    """How the section of a hook's state may be spelled."""
    name = re.sub("(?<!^)([A-Z])", r"_\1", event).lower()
    key = f"{hooks}:{name}:0:0"
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    return [f'hooks.state."{escaped}"', f"hooks.state.'{key}'"]
