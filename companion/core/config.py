"""``companion.json``: boards and preferences, shared between the server and the command line.

The file is a JSON object in which we own four keys (``boards``, ``autofocus``,
``linkEnrichment``, ``webOrigin``); every other key and the order of keys survive each save. All
changes go through :meth:`ConfigFile.change`: lock, read again, change, replace.
"""

import glob
import json
import logging
import math
import os
import re
import threading
import time
from pathlib import Path
from typing import Callable, Dict, List, Optional, Tuple
from urllib.parse import urlsplit

from companion.core.errors import StorageError
from companion.core.files import ensure_private_dir, locked, write_atomically

_log = logging.getLogger(__name__)

JsonObject = Dict[str, object]

DEFAULT_WEB_ORIGIN = "https://subdavis.github.io"

# Characters that no host has; the brackets of an IPv6 address are gone by then.
_NO_HOST = re.compile(r"[\x00-\x20\x7f\"#%/<>?@\[\]\\^`{|}]")

_ASIDE = ".unreadable-"

_LEGACY_ENRICHMENT = ("githubLinkEnrichment", "jiraLinkEnrichment")


class ConfigFile:
    """The configuration as it stands on disk; re-read whenever the file has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._path = str(path)
        self._lock = threading.RLock()  # Guards the attributes below.
        self._read: JsonObject = {}
        self._stamp: Optional[Tuple[int, int, int, int]] = None
        self._unsaved = False  # whether memory holds a change that the disk does not have
        self.problem: Optional[str] = None
        """Why the file on disk could not be used, or None. Kept until it can be read again."""

    def read(self) -> JsonObject:
        """The whole object. A file that is missing or unusable (see ``problem``) is what was read last.

        That is nothing for who has just started; a running companion does not forget its boards
        because an editor is in the middle of a save, or a hand slipped.

        The caller must not change what it gets.
        """
        with self._lock:
            stamp = self._stat()
            if stamp is None or stamp != self._stamp:
                self._read = self._load()
                self._stamp = stamp
                self._unsaved = False
            return self._read

    def change(self, edit: Callable[[JsonObject], None]) -> JsonObject:
        """Apply ``edit`` to the newest content and save it. Returns the new content.

        Content that could not be parsed is kept beside as ``companion.json.unreadable-<time>``.
        StorageError when it cannot be saved; the change then holds in memory only.
        """
        with self._lock:
            try:
                ensure_private_dir(self.path.parent)
            except OSError as exc:
                self._change_in_memory(edit)
                raise self._cannot_save(exc) from exc
            with locked(self.path.parent):
                self._change_in_memory(edit)
                try:
                    if self.problem is not None:
                        self._set_aside()
                    write_atomically(self.path, _encode(self._read))
                except (OSError, RecursionError) as exc:
                    raise self._cannot_save(exc) from exc
                self._stamp = self._stat()
            self.problem = None
            self._unsaved = False
            return self._read

    def _cannot_save(self, exc: Exception) -> StorageError:
        reason = exc.strerror if isinstance(exc, OSError) else None
        return StorageError(f"Cannot save {self.path}: {reason or exc}")

    def _change_in_memory(self, edit: Callable[[JsonObject], None]) -> None:
        if not self._unsaved:
            # The stamp is not enough here: an inode number may come back within one tick.
            self._stamp = None
        content = dict(self.read())
        edit(content)
        self._read = content
        self._unsaved = True

    def _set_aside(self) -> None:
        aside = self.path.with_name(f"{self.path.name}{_ASIDE}{int(time.time())}")
        write_atomically(aside, self.path.read_bytes())
        _log.warning("%s; it is kept as %s", self.problem, aside)

    def set_aside(self) -> List[Path]:
        """Older contents that could not be parsed, oldest first."""
        return sorted(self.path.parent.glob(f"{glob.escape(self.path.name)}{_ASIDE}*"))

    def _stat(self) -> Optional[Tuple[int, int, int, int]]:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    def _load(self) -> JsonObject:
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            self.problem = None
            # Without a file (a home that cannot be written) what was changed in memory stands.
            return self._read
        except OSError as exc:
            self.problem = f"{self.path}: {exc.strerror or exc}"
            return self._read
        try:
            # A byte order mark, as some editors leave it, does no harm.
            text = raw.decode("utf-8-sig", errors="replace")
            content = json.loads(text, parse_constant=_refuse, parse_float=_finite)
        except (ValueError, RecursionError) as exc:
            self.problem = f"{self.path}: it is not JSON: {exc}"
            return self._read
        if not isinstance(content, dict):
            self.problem = f"{self.path}: it holds no JSON object"
            return self._read
        self.problem = None
        return _without_legacy_keys(content)


def _refuse(constant: str) -> object:
    """NaN and the infinities: Python would read and write them, no other JSON reader does."""
    raise ValueError(f"{constant} is no JSON value")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is too large a number")
    return number


def flag(config: JsonObject, key: str) -> bool:
    """A stored preference; only exactly ``true`` counts."""
    return config.get(key) is True


def web_origin(config: JsonObject) -> str:
    """The hosted web app's origin: scheme, host and port of ``webOrigin``, or the default.

    http and https only; a path is dropped; anything else falls back to the default.
    """
    value = config.get("webOrigin")
    origin = normal_origin(value) if isinstance(value, str) else None
    return origin or DEFAULT_WEB_ORIGIN


def normal_origin(url: str) -> Optional[str]:
    """Scheme, lower-cased host and non-default port of an http(s) URL, or None.

    The form is that of the ``Origin`` header: no path, no default port, no trailing slash, a
    name with other letters than English ones in its ``xn--`` spelling.
    """
    try:
        parts = urlsplit(url.strip().replace("\\", "/"))
        port = parts.port
        host = (parts.hostname or "").lower()
        if not host.isascii():
            host = host.encode("idna").decode("ascii")
    except ValueError:  # UnicodeError is one
        return None
    scheme = parts.scheme.lower()
    if scheme not in ("http", "https") or not host or _NO_HOST.search(host):
        return None
    if ":" in host:
        host = f"[{host}]"
    if port is None or port == {"http": 80, "https": 443}[scheme]:
        return f"{scheme}://{host}"
    return f"{scheme}://{host}:{port}"


def _without_legacy_keys(content: JsonObject) -> JsonObject:
    """Older companions stored two enrichment switches; together they become ``linkEnrichment``."""
    legacy = [content.pop(key, None) for key in _LEGACY_ENRICHMENT]
    if not isinstance(content.get("linkEnrichment"), bool) and any(
        isinstance(value, bool) for value in legacy
    ):
        content["linkEnrichment"] = any(value is True for value in legacy)
    return content


def _encode(content: JsonObject) -> bytes:
    text = json.dumps(content, indent=2, ensure_ascii=False)
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate, valid JSON as an escape only
        data = json.dumps(content, indent=2).encode("ascii")
    return data + b"\n"
