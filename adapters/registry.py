"""The registry of agents: one literal dict, name to module.

Adding an agent is one module (or a small package) beside this file and one line here. Nothing
outside the agent's own package may test for its name. (Not in the package's front, so that who only
needs the contract's words does not load every agent.)
"""

from typing import Dict

from adapters import claude, codex, opencode, pi
from adapters.contract import Adapter

ADAPTERS: Dict[str, Adapter] = {
    "pi": pi,
    "opencode": opencode,
    "claude": claude,
    "codex": codex,
}
"""Harness name, as it stands in associations and in ``/hooks/<name>``, to the agent's module.
In the order in which they are installed."""
