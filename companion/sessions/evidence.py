"""What can be seen of one session at one moment. Nothing here decides anything, or looks anywhere."""

from dataclasses import dataclass
from enum import Enum
from typing import Optional, Tuple

from adapters.contract import ProcessRecord, Status, Tail
from companion.core.processes import Life, Process

FROM_LOG = "log"
"""The name of what an earlier life of ours recorded; nobody has reported since."""


@dataclass(frozen=True)
class Said:
    """The last thing that the agent reported of a session, by a hook or a client."""

    status: Status
    at_s: float
    """When it came in, in Unix seconds."""
    name: str = ""
    """The event's name; ``report`` of a client, or :data:`FROM_LOG`."""
    paused: bool = False
    """The main thread had stopped, and what it had started went on."""


@dataclass(frozen=True)
class Seen:
    """A process in which the session runs, or ran."""

    process: Process
    life: Life
    looked_at_s: float
    """When its life was looked at; of a dead one, when it was first found dead. Unix seconds."""
    record: Optional[ProcessRecord] = None
    """What the agent itself keeps of it, if it does."""


class Records(str, Enum):
    """Whether the agent's own records of its processes can be read."""

    NONE = "none"
    """It keeps none, or not here."""
    READ = "read"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Evidence:
    """Everything about one session that a verdict may rest on."""

    now_s: float
    """Unix seconds."""
    event: Optional[Said] = None
    processes: Tuple[Seen, ...] = ()
    records: Records = Records.NONE
    tail: Optional[Tail] = None
    left_at_s: Optional[float] = None
    """When its process was first seen to run another session instead, in Unix seconds."""

    @property
    def live(self) -> Tuple[Seen, ...]:
        """The processes that live."""
        return tuple(each for each in self.processes if each.life is Life.ALIVE)

    @property
    def is_gone(self) -> bool:
        """Whether every process that was ever seen is dead; False when none was."""
        return bool(self.processes) and all(each.life is Life.DEAD for each in self.processes)

    @property
    def gone_at_s(self) -> float:
        """When the last of them was found dead, in Unix seconds; 0 without any."""
        return max((each.looked_at_s for each in self.processes), default=0.0)

    @property
    def record(self) -> Optional[ProcessRecord]:
        """The newest word of a process, not known to be dead, on what it does; or None."""
        told = [
            each.record for each in self.processes if each.life is not Life.DEAD and each.record is not None
        ]
        told = [record for record in told if record.status is not None]
        return max(told, key=lambda record: record.said_at_s or 0.0, default=None)

    @property
    def event_age_s(self) -> float:
        """Seconds since the last event; endless without one."""
        return max(0.0, self.now_s - self.event.at_s) if self.event is not None else float("inf")
