"""The registry of integrations: all that can be installed, in the order in which it is done.

One table drives ``install``, ``uninstall``, ``doctor``, ``help`` and the tests. An agent is in it by
standing in the registry of agents; nothing else has a name of its own here but the service.
"""

import sys
from typing import Dict, List

from adapters.contract import Integration
from companion.core.errors import UsageError

SERVICE = "service"
"""Starts the companion at login; the only integration that is no agent."""
MACOS = "macos"
"""The contract's name for the service, on macOS."""


def integrations() -> Dict[str, Integration]:
    """Name to integration: the service, then the agents that can be connected."""
    from adapters.defaults import no_install
    from adapters.registry import ADAPTERS
    from companion.service import integration as service

    return {
        SERVICE: service,
        **{name: agent for name, agent in ADAPTERS.items() if agent.install is not no_install},
    }


def on_macos() -> bool:
    """Whether this is a Mac."""
    return sys.platform == "darwin"


def words() -> List[str]:
    """The words for all integrations on the command line; ``macos`` stands for the service too."""
    return [SERVICE, MACOS, *(name for name in integrations() if name != SERVICE)]


def named(word: str) -> str:
    """The name of the integration that a word of :func:`words` means. UsageError for ``macos`` elsewhere."""
    if word != MACOS:
        return word
    if not on_macos():
        raise UsageError(f"{MACOS} requires macOS. Here the companion is started at login by: {SERVICE}")
    return SERVICE


def at_once() -> List[str]:
    """What ``install`` alone is about: the agents, and on macOS, by the contract, the service first."""
    return [name for name in integrations() if name != SERVICE or on_macos()]
