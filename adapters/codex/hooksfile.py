"""The content of Codex's hooks file as we write it, and whether one is ours. Pure: no disk.

Codex refuses a hooks file with other members at its top than ``description`` and ``hooks``, so the
former says whose it is. Trust belongs to a hook's definition: what need not change must not, so neither
our version nor anything of the moment stands in it.
"""

import json
from typing import Dict, Iterator, List, Optional, Tuple

from adapters import hookcommand
from adapters.codex.events import SUBSCRIBED
from adapters.hookcommand import Poster

NAME = "hooks.json"
"""Of the file in Codex's folder: there is no other place that needs no change of ``config.toml``."""
HARNESS = "codex"
HOOK_PATH = f"/hooks/{HARNESS}"

_OWNER = "mdello-companion: tells mdello, on this machine, which session works on which Markdown card."
# How long Codex waits for one hook, in seconds (at most 3 at a session's end); ours gives up before.
_TIMEOUT_S = 2


def content(endpoint: str, poster: Poster) -> bytes:
    """The whole file: one hook per event. AdapterError for a path that JSON cannot hold."""
    hook = {"type": "command", "command": command(endpoint, poster), "timeout": _TIMEOUT_S}
    events = {event: [{"hooks": [hook]}] for event in SUBSCRIBED}
    return _json({"description": _OWNER, "hooks": events})


def command(endpoint: str, poster: Poster) -> str:
    """The shell line of every hook. AdapterError as above."""
    return hookcommand.line(endpoint.rstrip("/") + HOOK_PATH, HARNESS, poster)


def why_foreign(data: bytes) -> Optional[str]:
    """What makes a hooks file not ours, or not ours alone; None for one that is. Never raises."""
    try:
        file = json.loads(data)
    except (ValueError, RecursionError):
        return "it is not JSON"
    if not isinstance(file, dict) or file.get("description") != _OWNER:
        return "its description does not say that it is ours"
    if set(file) != {"description", "hooks"} or not all(map(_is_ours, _commands(file.get("hooks")))):
        return "it holds hooks of others too"
    return None


def summary(data: bytes) -> Tuple[List[str], List[str]]:
    """(events, commands) of a hooks file of ours, each once, in order; never raises."""
    try:
        file = json.loads(data)
    except (ValueError, RecursionError):
        return [], []
    hooks = file.get("hooks") if isinstance(file, dict) else None
    commands = dict.fromkeys(each for each in _commands(hooks) if isinstance(each, str))
    return list(hooks) if isinstance(hooks, dict) else [], list(commands)


def _commands(hooks: object) -> Iterator[object]:
    """The command of each hook; None for what is no command hook."""
    for groups in hooks.values() if isinstance(hooks, dict) else [None]:
        for group in groups if isinstance(groups, list) else [None]:
            listed = group.get("hooks") if isinstance(group, dict) else None
            for hook in listed if isinstance(listed, list) else [None]:
                yield hook.get("command") if isinstance(hook, dict) else None


def _is_ours(line: object) -> bool:
    return isinstance(line, str) and (f"{HOOK_PATH} " in line or f" hook-post {HARNESS} " in line)


def _json(value: Dict[str, object]) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8")
