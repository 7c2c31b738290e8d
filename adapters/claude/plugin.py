"""The content of our plugin folder: manifest, hooks and a link to the program. Pure: no disk.

The hooks are generated from the same event table that translates their payloads.
"""

import json
import re
import shlex
from dataclasses import dataclass
from typing import Dict, Iterable, List, Mapping, Optional, Tuple

from adapters.claude.events import SUBSCRIBED, Transport
from adapters.claude.folder import Item
from adapters.contract import AdapterError

PLUGIN = "mdello-companion"
"""Name of the plugin and of its folder."""
MANAGED_BY = "mdello-companion"
"""``metadata.managedBy`` of a manifest that is ours; the name alone proves nothing."""
MANIFEST = ".claude-plugin/plugin.json"
HOOKS = "hooks/hooks.json"
LINK = "mdello.pyz"
HOOK_PATH = "/hooks/claude"
PROCESS_HEADER = "Mdello-Process"
"""Of a command hook's request: the number of the agent's process."""

HTTP = Transport.HTTP.value
COMMAND = Transport.COMMAND.value

# How long the agent waits for one hook, in seconds. Always said, because it would wait 600.
TIMEOUT_S = 2
# A command gives up by itself before that. At session end all hooks of a plugin together get about
# 1.5 s; one that is cancelled then prints an error line in spite of ``|| true``.
POST_LIMIT_S = 1

_CREATED = "createdFolders"
_INDENT = 2


@dataclass(frozen=True)
class Poster:
    """What a command hook runs to send its standard input to us."""

    curl: Optional[str]
    """Absolute path, or None: then our own file does it."""
    interpreter: str
    program: str
    """Absolute path of our own file, through the link in the plugin folder."""


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
    command = _command(url, poster)
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


def _command(url: str, poster: Poster) -> str:
    """One shell line: silent, short, and a success whatever happens.

    Plain words, quotes and ``|| true`` only, which every shell understands. The shell's parent is the agent's
    own process, so that its end will be seen even when nobody tells of it; a shell that does not know
    ``$PPID`` (fish) says nothing there.
    """
    if poster.curl is not None:
        # -q: no ~/.curlrc, which might add a proxy or a Referer. Expect: curl would otherwise
        # announce a body above 1 MB and wait for leave to send it.
        words = [poster.curl, "-q", "-s", "--noproxy", "*", "--max-time", str(POST_LIMIT_S), "-X", "POST"]
        words += ["-H", "Content-Type: application/json", "-H", "Expect:", "--data-binary", "@-", url]
        process = f'-H "{PROCESS_HEADER}: $PPID"'
    else:
        # -E -S: no PYTHON* variables and no site-packages; it starts in half the time and cannot
        # import a stranger's module.
        words = [poster.interpreter, "-E", "-S", poster.program, "hook-post", "claude", _port(url)]
        process = '"$PPID"'
    line = " ".join(shlex.quote(word) for word in words) + f" {process} >/dev/null 2>&1 || true"
    try:
        line.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise AdapterError(
            f"{line.encode('utf-8', 'backslashreplace').decode()!r} is not UTF-8, which JSON cannot hold:"
            " install curl, or choose another path"
        ) from exc
    return line


def _port(url: str) -> str:
    found = re.match(r"http://[^/]*:([0-9]+)/", url)
    return found[1] if found else "80"


def _json(content: object) -> bytes:
    return (json.dumps(content, indent=_INDENT, ensure_ascii=False) + "\n").encode("utf-8")
