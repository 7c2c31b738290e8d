"""What follows from evidence at once."""

from adapters.contract import ProcessRecord, Status
from companion.core.processes import Life, Process
from companion.sessions.evidence import Evidence, Said, Seen

NOW = 1_770_000_000.0


def seen(pid: int, life: Life, at_s: float = NOW, status: object = None) -> Seen:
    """A process; with a record when there is a status."""
    record = ProcessRecord("s", pid, status=status, said_at_s=at_s) if isinstance(status, Status) else None
    return Seen(Process(pid), life, at_s, record)


def test_it_is_gone_when_all_that_was_seen_is_dead() -> None:
    """What cannot be told is not dead; nothing seen is nothing gone."""
    dead, later = seen(2, Life.DEAD, NOW - 5), seen(3, Life.DEAD, NOW - 1)
    assert Evidence(NOW, processes=(dead, later)).is_gone
    assert Evidence(NOW, processes=(dead, later)).gone_at_s == NOW - 1
    assert not Evidence(NOW, processes=(dead, seen(4, Life.UNKNOWN))).is_gone
    assert not Evidence(NOW, processes=(dead, seen(4, Life.ALIVE))).is_gone
    assert not Evidence(NOW).is_gone and Evidence(NOW).gone_at_s == 0.0


def test_the_newest_record_of_one_that_may_live_counts() -> None:
    """Not that of a dead one, nor one without a status."""
    old, new = seen(2, Life.ALIVE, NOW - 5, Status.IDLE), seen(3, Life.UNKNOWN, NOW - 1, Status.RUNNING)
    dead, silent = seen(4, Life.DEAD, NOW, Status.WAITING_FOR_INPUT), seen(5, Life.ALIVE)
    assert Evidence(NOW, processes=(old, new, dead, silent)).record is new.record
    assert Evidence(NOW, processes=(dead, silent)).record is None
    assert Evidence(NOW, processes=(old, silent)).live == (old, silent)


def test_the_age_of_an_event() -> None:
    """Never negative, though a clock was set back; endless without one."""
    assert Evidence(NOW, Said(Status.IDLE, NOW - 3)).event_age_s == 3.0
    assert Evidence(NOW, Said(Status.IDLE, NOW + 3)).event_age_s == 0.0
    assert Evidence(NOW).event_age_s == float("inf")
