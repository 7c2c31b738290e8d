"""What a route may touch, handed in by whoever wires the program."""

from dataclasses import dataclass
from typing import Callable, Dict, Mapping, Optional

from adapters.contract import Adapter
from companion.boards.registry import BoardRegistry
from companion.core.config import ConfigFile
from companion.core.hub import Hub
from companion.core.programs import Programs
from companion.core.settings import Settings
from companion.enrich.lookups import Lookups
from companion.sessions.clients import Clients
from companion.sessions.intake import HookIntake
from companion.sessions.ledger import Ledger
from companion.sessions.watcher import Watcher


@dataclass(frozen=True)
class Services:
    """The program's parts, as the web floor sees them. All are safe to use from several threads."""

    settings: Settings
    config: ConfigFile
    registry: BoardRegistry
    ledger: Ledger
    intake: HookIntake
    adapters: Mapping[str, Adapter]
    """Harness name to adapter: the names that ``/hooks/<harness>`` knows."""
    clients: Clients
    """Counts the reports of those that have no hooks, but a client."""
    watcher: Watcher
    """Everything that is known of sessions beyond their cards."""
    hub: Hub
    programs: Programs
    """Outside programs (gh, jira, herdr); those that are missing too."""
    lookups: Lookups
    """Titles and states of links."""
    focus: Callable[[str, str, Optional[str]], None]
    """Brings the terminal of a session (harness, id, file) to the front. Conflict, NotFound or
    ProgramFailed when it cannot."""
    health: Callable[[], Dict[str, object]]
    """The body of ``/health``; holds no secret and no prompt."""
