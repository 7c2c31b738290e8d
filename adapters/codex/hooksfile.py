"""The content of Codex's hooks file as we write it, and whether one is ours. Pure: no disk.

Codex refuses a hooks file with other members at its top than ``description`` and ``hooks``, so the
former says whose it is. Trust belongs to a hook's definition: what need not change must not, so neither
our version nor anything of the moment stands in it.
"""

import json
import re
import shlex
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Tuple

from adapters.codex.events import SUBSCRIBED
from adapters.contract import AdapterError

NAME = "hooks.json"
"""Of the file in Codex's folder: there is no other place that needs no change of ``config.toml``."""
HOOK_PATH = "/hooks/codex"

_OWNER = "mdello-companion: tells mdello, on this machine, which session works on which Markdown card."
# How long Codex waits for one hook, in seconds (at most 3 at a session's end); ours gives up before.
_TIMEOUT_S = 2
_POST_LIMIT_S = 1


@dataclass(frozen=True)
class Poster:
    """What a hook runs to send its standard input to us."""

    curl: Optional[str]
    """Absolute path, or None: then our own file does it."""
    interpreter: str
    program: str
    """Absolute path of our own file."""


def content(endpoint: str, poster: Poster) -> bytes:
    """The whole file: one hook per event. AdapterError for a path that JSON cannot hold."""
    hook = {"type": "command", "command": command(endpoint, poster), "timeout": _TIMEOUT_S}
    events = {event: [{"hooks": [hook]}] for event in SUBSCRIBED}
    return _json({"description": _OWNER, "hooks": events})


def command(endpoint: str, poster: Poster) -> str:
    """One shell line: silent, short, and a success whatever happens. Its parent is Codex's process."""
    url = endpoint.rstrip("/") + HOOK_PATH
    if poster.curl is not None:
        # -q: no ~/.curlrc. Expect: curl would otherwise ask for leave to send a large body.
        words = [poster.curl, "-q", "-s", "--noproxy", "*", "--max-time", str(_POST_LIMIT_S), "-X", "POST"]
        words += ["-H", "Content-Type: application/json", "-H", "Expect:", "--data-binary", "@-", url]
        process = '-H "Mdello-Process: $PPID"'
    else:
        port = re.match(r"http://[^/]*:([0-9]+)/", url)
        words = [
            poster.interpreter,
            "-E",
            "-S",
            poster.program,
            "hook-post",
            "codex",
            port[1] if port else "80",
        ]
        process = '"$PPID"'
    line = " ".join(shlex.quote(word) for word in words) + f" {process} >/dev/null 2>&1 || true"
    try:
        line.encode("utf-8")
    except UnicodeEncodeError as exc:
        shown = line.encode("utf-8", "backslashreplace").decode()
        raise AdapterError(f"{shown!r} is not UTF-8: install curl, or choose another path") from exc
    return line


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
    return isinstance(line, str) and (f"{HOOK_PATH} " in line or " hook-post codex " in line)


def _json(value: Dict[str, object]) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8")
