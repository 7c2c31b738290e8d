"""Puts the parts together: the one place where boards, sessions and the web meet."""

import os
import secrets
import time
from dataclasses import dataclass
from typing import Mapping

from companion.boards.cards import CardFinder
from companion.boards.registry import BoardRegistry
from companion.core.config import ConfigFile
from companion.core.settings import Settings


@dataclass(frozen=True)
class Boards:
    """What a command needs to know about boards and cards."""

    config: ConfigFile
    registry: BoardRegistry
    finder: CardFinder


def open_boards(settings: Settings) -> Boards:
    """Boards as ``companion.json`` names them. Nothing is read before it is asked for."""
    config = ConfigFile(settings.config_path)
    registry = BoardRegistry(config, time.time, _working_directory(settings.environ))
    return Boards(config, registry, CardFinder(registry))


def _working_directory(environ: Mapping[str, str]) -> str:
    """The current folder; the root when ours was removed under us."""
    try:
        return os.getcwd()
    except OSError:
        return environ.get("PWD") or "/"


def new_instance() -> str:
    """A name for this process's life, for event ids."""
    return secrets.token_hex(4)
