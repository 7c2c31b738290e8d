"""The content of our plugin folder: manifest, hooks and a link to the program. Pure: no disk.

The hooks are generated from the same event table that translates their payloads.
"""

import json
from dataclasses import dataclass
from typing import Dict, Iterable, List, Mapping, Optional, Tuple

from adapters import hookcommand
from adapters.claude.events import SUBSCRIBED, Transport
from adapters.claude.folder import Item
from adapters.hookcommand import Poster

PLUGIN = "mdello-companion"
"""Name of the plugin and of its folder."""
MANAGED_BY = "mdello-companion"
"""``metadata.managedBy`` of a manifest that is ours; the name alone proves nothing."""
MANIFEST = ".claude-plugin/plugin.json"
HOOKS = "hooks/hooks.json"
LINK = "mdello.pyz"
HARNESS = "claude"
HOOK_PATH = f"/hooks/{HARNESS}"

HTTP = Transport.HTTP.value
COMMAND = Transport.COMMAND.value

# How long the agent waits for one hook, in seconds. Always said, because it would wait 600.
TIMEOUT_S = 2
_CREATED = "createdFolders"
_INDENT = 2


@dataclass(frozen=True)
class Summary:
    """What a hooks file says, as far as it can be understood."""

    transports: Mapping[str, str]
    """Event to ``http`` or ``command``."""
    targets: Tuple[str, ...]
    """URLs of http hooks and commands, each once, in order."""


def items(
    version: str,
    endpoint: str,
    transport: str,
    poster: Poster,
    program: str,
) -> Tuple[Item, ...]:
    """Everything in the folder; the manifest, by which the folder is known as ours, comes first."""
    return (
        Item(MANIFEST, _manifest(version)),
        Item(LINK, link=program),
        Item(HOOKS, _hooks(endpoint, transport, poster)),
    )


def marker(manifest: bytes) -> Optional[int]:
    """None when this is not our manifest; never raises.

    Else how many parent folders an older version had made, of which now
    :mod:`adapters.made_folders` keeps the record.
    """
    try:
        content = json.loads(manifest)
    except (ValueError, RecursionError):
        return None
    metadata = content.get("metadata") if isinstance(content, dict) else None
    if not isinstance(metadata, dict) or metadata.get("managedBy") != MANAGED_BY:
        return None
    created = metadata.get(_CREATED)
    return created if type(created) is int and 0 <= created < 100 else 0


def summarise(hooks: bytes) -> Summary:
    """What a hooks file subscribes to. Empty for one that cannot be understood; never raises."""
    try:
        content = json.loads(hooks)
    except (ValueError, RecursionError):
        content = None
    events = content.get("hooks") if isinstance(content, dict) else None
    transports: Dict[str, str] = {}
    targets: List[str] = []
    for event, groups in events.items() if isinstance(events, dict) else ():
        for hook in _entries(groups):
            transports[event] = HTTP if hook.get("type") == HTTP else COMMAND
            target = hook.get("url") or hook.get("command")
            if isinstance(target, str):
                targets.append(target)
    return Summary(transports, tuple(dict.fromkeys(targets)))


def hook_url(endpoint: str) -> str:
    """Where all hooks report to."""
    return endpoint.rstrip("/") + HOOK_PATH


def _entries(groups: object) -> Iterable[Mapping[str, object]]:
    for group in groups if isinstance(groups, list) else ():
        hooks = group.get("hooks") if isinstance(group, dict) else None
        for hook in hooks if isinstance(hooks, list) else ():
            if isinstance(hook, dict):
                yield hook


def _manifest(version: str) -> bytes:
    return _json(
        {
            "name": PLUGIN,
            "version": version,
            "description": "Tells mdello, on this machine, which session works on which Markdown card.",
            "author": {"name": "mdello"},
            "metadata": {"managedBy": MANAGED_BY},
        }
    )


def _hooks(endpoint: str, transport: str, poster: Poster) -> bytes:
    url = hook_url(endpoint)
    command = hookcommand.line(url, HARNESS, poster)
    events: Dict[str, object] = {}
    for each in SUBSCRIBED:
        group: Dict[str, object] = {} if each.matcher is None else {"matcher": each.matcher}
        hook: Dict[str, object]
        if each.transport is Transport.COMMAND or transport == COMMAND:
            # Never "async": the agent ends such a command with itself, so the last tool call or Stop
            # may be lost (and with it, in 2.1.197, the session's end), and on a busy machine they
            # overtake each other: a tool call after its Stop would leave the card running.
            hook = {"type": COMMAND, "command": command, "timeout": TIMEOUT_S}
        else:
            hook = {"type": HTTP, "url": url, "timeout": TIMEOUT_S}
        events[each.name] = [{**group, "hooks": [hook]}]
    return _json({"hooks": events})


def _json(content: object) -> bytes:
    return (json.dumps(content, indent=_INDENT, ensure_ascii=False) + "\n").encode("utf-8")
