"""What in Claude Code's settings and environment keeps our hooks from running or from arriving.

Every rule here was read from, or tried with, Claude Code 2.1.332. The files are foreign: whatever
cannot be read is said, and the answer is then "cannot be told".
"""

import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, Mapping, Optional, Tuple
from urllib.parse import urlsplit

MANAGED_FOLDERS = (Path("/etc/claude-code"), Path("/Library/Application Support/ClaudeCode"))
"""Where an organisation's settings lie, on Linux and on macOS."""

# A settings file of hand-written size is some kilobytes. More than this is not one.
MAX_SETTINGS_BYTES = 8 * 1024 * 1024

PLUGIN_SOURCE = "skills-dir"
# In the order in which the program asks them; the first that is set wins.
_PROXY_VARIABLES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY")
_LOCAL = "settings.local.json"

Settings = Mapping[str, object]


@dataclass(frozen=True)
class Verdict:
    """Whether the plugin's events can be expected to arrive."""

    loaded: Optional[bool]
    """False: something keeps them away for certain; True: nothing was found that would; None:
    it depends on how a session is started, or something could not be read."""
    notes: Tuple[str, ...] = ()
    """Each names the file or variable and what to do about it."""


@dataclass(frozen=True)
class Source:
    """One settings file that could be read."""

    path: Path
    managed: bool
    """Whether it speaks for the organisation: some keys count only there."""
    settings: Settings


def examine(
    config_dir: Path,
    environ: Mapping[str, str],
    plugin: str,
    url: str,
    uses_http: bool,
    managed_folders: Tuple[Path, ...] = MANAGED_FOLDERS,
) -> Verdict:
    """The verdict over the plugin ``<plugin>@skills-dir`` that reports to ``url``. Never raises.

    ``uses_http``: whether it has http hooks; an URL allowlist and proxies concern only these.
    """
    sources, unreadable = read_sources(config_dir, managed_folders)
    blocks = [
        *_disabled(sources, f"{plugin}@{PLUGIN_SOURCE}"),
        *_no_hooks(sources, f"{plugin}@{PLUGIN_SOURCE}"),
        *_no_plugin_folders(sources),
        *(_url_not_allowed(sources, url) if uses_http else ()),
    ]
    doubts = [*(_proxy(sources, environ, url) if uses_http else ()), *unreadable]
    certain = [note for certain, note in blocks if certain]
    notes = certain + [note for certain, note in blocks if not certain] + doubts
    loaded = False if certain else (None if notes else True)
    return Verdict(loaded, tuple(notes))


def read_sources(config_dir: Path, managed_folders: Tuple[Path, ...]) -> Tuple[List[Source], List[str]]:
    """All settings files there are, the weakest first, and a line for each that cannot be read."""
    sources: List[Source] = []
    unreadable: List[str] = []
    for path, managed in _settings_files(config_dir, managed_folders):
        try:
            settings = _read(path)
        except FileNotFoundError:
            continue
        except NotADirectoryError:
            continue
        except (OSError, ValueError, RecursionError) as exc:
            reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
            unreadable.append(f"{path} could not be read ({reason}): it may keep the hooks away")
            continue
        sources.append(Source(path, managed, settings))
    return sources, unreadable


def _settings_files(config_dir: Path, managed_folders: Tuple[Path, ...]) -> Iterator[Tuple[Path, bool]]:
    yield config_dir / "settings.json", False
    yield config_dir / _LOCAL, False
    yield config_dir / "remote-settings.json", True  # The organisation's, fetched and cached.
    for folder in managed_folders:
        yield folder / "managed-settings.json", True
        try:
            names = sorted(os.listdir(folder / "managed-settings.d"))
        except OSError:
            continue
        for name in names:
            if name.endswith(".json") and not name.startswith("."):
                yield folder / "managed-settings.d" / name, True


def _read(path: Path) -> Settings:
    """One file's object. ValueError when it holds something else; OSError as it comes."""
    # Not blocking: a named pipe in that place must not hang us.
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("not a file")
        data = file.read(MAX_SETTINGS_BYTES + 1)
    if len(data) > MAX_SETTINGS_BYTES:
        raise ValueError("too large")
    if not data.strip():
        return {}
    try:
        content = json.loads(data.decode("utf-8-sig"))
    except ValueError as exc:
        raise ValueError("not JSON") from exc
    if not isinstance(content, dict):
        raise ValueError("no JSON object")
    return content


# Each of the following yields (certain, note). Certain: no session escapes it.


def _disabled(sources: List[Source], plugin_id: str) -> Iterator[Tuple[bool, str]]:
    decided = [
        (source, enabled[plugin_id])
        for source in sources
        for enabled in [source.settings.get("enabledPlugins")]
        if isinstance(enabled, dict) and isinstance(enabled.get(plugin_id), bool)
    ]
    general = [each for each in decided if each[0].path.name != _LOCAL]
    for source, value in decided:
        if value:
            continue
        if source.managed:
            yield True, f"{source.path}: your organisation has disabled the plugin {plugin_id}"
        elif source.path.name == _LOCAL:
            yield False, f"{source.path}: the plugin is disabled for sessions in that folder"
        else:
            # The strongest source that says anything decides, and this one is the weakest.
            overruled = general[-1][1]
            yield (
                not overruled,
                f"{source.path}: the plugin is disabled. Enable it: claude plugin enable {plugin_id}",
            )


def _no_hooks(sources: List[Source], plugin_id: str) -> Iterator[Tuple[bool, str]]:
    for source in sources:
        if source.settings.get("disableAllHooks") not in (None, False, "false"):
            yield (
                source.path.name != _LOCAL,
                f"{source.path}: disableAllHooks is set, so no hook runs. Remove it there",
            )
    allowed_by_name = any(
        source.managed and isinstance(enabled, dict) and enabled.get(plugin_id) is True
        for source in sources
        for enabled in [source.settings.get("enabledPlugins")]
    )
    for source in sources:
        if source.managed and source.settings.get("allowManagedHooksOnly") is True and not allowed_by_name:
            yield (
                True,
                f"{source.path}: allowManagedHooksOnly lets only your organisation's hooks run."
                " Past sessions can still be read: backfill",
            )


def _no_plugin_folders(sources: List[Source]) -> Iterator[Tuple[bool, str]]:
    """An organisation may list where plugins come from; a plugin folder is one such source."""
    for source in sources:
        if not source.managed:
            continue
        known = source.settings.get("strictKnownMarketplaces")
        if isinstance(known, list) and not _names_plugin_folders(known):
            yield True, f"{source.path}: strictKnownMarketplaces does not admit plugin folders"
        blocked = source.settings.get("blockedMarketplaces")
        if isinstance(blocked, list) and _names_plugin_folders(blocked):
            yield True, f"{source.path}: blockedMarketplaces keeps plugin folders out"


def _names_plugin_folders(marketplaces: List[object]) -> bool:
    return any(isinstance(each, dict) and each.get("source") == PLUGIN_SOURCE for each in marketplaces)


def _url_not_allowed(sources: List[Source], url: str) -> Iterator[Tuple[bool, str]]:
    """The lists of all files together are the allowlist; without any list everything is allowed."""
    lists = [
        (source, patterns)
        for source in sources
        for patterns in [source.settings.get("allowedHttpHookUrls")]
        if isinstance(patterns, list)
    ]
    if any(_matches(pattern, url) for _, patterns in lists for pattern in patterns):
        return
    origin = f"{urlsplit(url).scheme}://{urlsplit(url).netloc}"
    for source, _ in lists:
        yield (
            source.path.name != _LOCAL,
            f'{source.path}: allowedHttpHookUrls does not admit us. Add "{origin}/*" to it,'
            " or install with --transport command",
        )


def _matches(pattern: object, url: str) -> bool:
    """Whether ``pattern``, in which ``*`` stands for any text, fits the whole URL; linear in time."""
    if not isinstance(pattern, str):
        return False
    first, *rest = pattern.split("*")
    if not rest:
        return url == pattern
    at = len(first)
    for part in rest[:-1]:
        found = url.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return url.startswith(first) and url.endswith(rest[-1]) and len(url) - len(rest[-1]) >= at


def _proxy(sources: List[Source], environ: Mapping[str, str], url: str) -> Iterator[str]:
    """Hooks go to a proxy when one is named, and only ``NO_PROXY`` keeps loopback out of it."""
    told = dict(environ)
    for source in sources:
        block = source.settings.get("env")
        if isinstance(block, dict):
            told.update((name, value) for name, value in block.items() if isinstance(value, str))
    variable = next((name for name in _PROXY_VARIABLES if told.get(name)), None)
    exceptions = ",".join(filter(None, (told.get("no_proxy"), told.get("NO_PROXY"))))
    host = urlsplit(url).hostname or ""
    if variable is not None and not _spared(exceptions, host, urlsplit(url).port):
        yield (
            f"{variable} is set and NO_PROXY does not name {host}, so hooks would go to the proxy."
            f" Set NO_PROXY={host} where Claude Code starts, or install with --transport command"
        )


def _spared(exceptions: str, host: str, port: Optional[int]) -> bool:
    """Only literal names count: no address ranges, and ``localhost`` is another name."""
    entries = re.split(r"[,\s]+", exceptions.lower())
    return any(entry in ("*", host, f"{host}:{port}", f".{host}") for entry in entries)
