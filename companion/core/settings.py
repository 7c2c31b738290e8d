"""What this process was told: environment variables and XDG folders, checked once.

Empty values count as unset. A value that cannot be used is refused with one clear line
(:class:`SettingsError`); nothing is guessed.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Optional

from companion.core.errors import SettingsError

DEFAULT_PORT = 51618

# No home at all (HOME unset and no passwd entry, as in some containers): a folder that does not
# exist, by Debian's convention. Reads find nothing, writes fail and are reported.
NO_HOME = "/nonexistent"


@dataclass(frozen=True)
class Settings:
    """Where things are and how the companion was asked to behave."""

    home: Path
    port: int
    """TCP port on 127.0.0.1, 1 to 65535."""
    config_path: Path
    """``companion.json``: boards and the stored preferences."""
    data_path: Path
    """``companion.jsonl``: the log of associations."""
    debug: bool
    """Whether ``DEBUG`` is exactly ``1``."""
    environ: Mapping[str, str]
    """The environment as given, for adapters (CLAUDE_CONFIG_DIR and the like)."""

    @property
    def state_dir(self) -> Path:
        """The folder of ``companion.jsonl`` and of our other state files."""
        return self.data_path.parent

    @property
    def pending_path(self) -> Path:
        """Links to cards that have no uuid yet."""
        return self.data_path.with_name(self.data_path.stem + "-pending.jsonl")

    @property
    def hook_state_path(self) -> Path:
        """What adapters remember of their sessions."""
        return self.data_path.with_name(self.data_path.stem + "-hooks.jsonl")

    @property
    def process_path(self) -> Path:
        """The processes in which sessions run."""
        return self.data_path.with_name(self.data_path.stem + "-processes.jsonl")

    @property
    def endpoint(self) -> str:
        """The companion's base URL, without a trailing slash."""
        return f"http://127.0.0.1:{self.port}"


def load(environ: Mapping[str, str]) -> Settings:
    """Settings from an environment. SettingsError names the variable and what it may hold."""
    home = Path(_home(environ))
    return Settings(
        home=home,
        port=_port(environ),
        config_path=_file(environ, "MDELLO_COMPANION_CONFIG")
        or _xdg(environ, "XDG_CONFIG_HOME", home / ".config") / "mdello" / "companion.json",
        data_path=_file(environ, "MDELLO_COMPANION_DATA")
        or _xdg(environ, "XDG_STATE_HOME", home / ".local" / "state") / "mdello" / "companion.jsonl",
        debug=environ.get("DEBUG") == "1",
        environ=environ,
    )


def _home(environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "")
    if os.path.isabs(home):
        return home
    try:
        import pwd  # noqa: PLC0415 - absent on Windows, and rarely needed

        return pwd.getpwuid(os.getuid()).pw_dir or NO_HOME
    except (ImportError, KeyError):
        return NO_HOME


def _port(environ: Mapping[str, str]) -> int:
    text = environ.get("MDELLO_COMPANION_PORT", "").strip()
    if not text:
        return DEFAULT_PORT
    if text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535:
        return int(text)
    raise SettingsError(f"MDELLO_COMPANION_PORT is {text!r}: it must be a number from 1 to 65535.")


def _file(environ: Mapping[str, str], name: str) -> Optional[Path]:
    text = environ.get(name, "")
    if not text:
        return None
    if "\0" in text or text.endswith(os.sep) or os.path.isdir(text):
        raise SettingsError(f"{name} is {text!r}: it must name a file, not a folder.")
    return Path(os.path.abspath(text))


def _xdg(environ: Mapping[str, str], name: str, default: Path) -> Path:
    """XDG base directory specification: a relative or empty value is to be ignored."""
    text = environ.get(name, "")
    return Path(text) if os.path.isabs(text) else default
