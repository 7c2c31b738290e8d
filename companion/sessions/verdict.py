"""What status a session has, and why: one pure function over one table.

No other code decides a status. Events are prompt but may be missing: none follows Esc, a refusal or
``kill -9``, and policies switch hooks off. What an agent keeps of its own processes is never missing while
they live, but may lag a little. So an event is believed for :data:`LAG_S`, from then on the agent's
own record, then the session's file; and before all of them, whether the process lives. What cannot be
known is never taken for no: the last word then stands, and the verdict says that it is not sure.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Callable, NamedTuple, Optional, Tuple

from adapters.contract import Mark, ProcessRecord, Status, Tail
from companion.sessions.evidence import FROM_LOG, Evidence, Records, Said

LAG_S = 1.0
"""An agent's record follows its events by at most so much, in seconds (0.02 to 0.2 were measured)."""
GRACE_S = 2.0
"""A process that said its end may live on for so long, in seconds."""
SHIFT_S = 3.0
"""Where a session's own agents work on, an idle record is no rest before it has lasted so long, in seconds:
when one of them ends, the agent is idle for an instant, then goes on by itself."""
UNLISTED_S = 60.0
"""A session that no record lists may have begun so many seconds ago at most."""
STALE_S = 12 * 60 * 60.0
"""After so many seconds without a word, and without a process to look at, nothing is sure."""

_AT_WORK = (Status.RUNNING, Status.WAITING_FOR_INPUT)


class Sure(str, Enum):
    """How sure a verdict is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    UNKNOWN = "unknown"
    """The status is the last that was heard of; nothing tells whether it still holds."""


@dataclass(frozen=True)
class Verdict:
    """A status, the rule that gave it, and what speaks against it."""

    status: Status
    rule: str
    """Name of the rule in the table."""
    reason: str
    """In a few words, for people."""
    sure: Sure
    contradicts: Tuple[str, ...] = ()
    """Evidence that says otherwise."""
    missing: Tuple[str, ...] = ()
    """What could have told more."""


class Rule(NamedTuple):
    """One row of the table."""

    name: str
    holds: Callable[[Evidence], bool]
    status: Callable[[Evidence], Status]
    sure: Callable[[Evidence], Sure]
    reason: str


def decide(evidence: Evidence) -> Verdict:
    """The verdict of the first rule that holds."""
    rule = next(each for each in RULES if each.holds(evidence))
    status = rule.status(evidence)
    return Verdict(
        status=status,
        rule=rule.name,
        reason=rule.reason,
        sure=rule.sure(evidence),
        contradicts=_contradictions(evidence, status),
        missing=_missing(evidence),
    )


# --- what rules ask


def _event(evidence: Evidence, *statuses: Status) -> bool:
    return evidence.event is not None and evidence.event.status in statuses


def _is_newer(at_s: Optional[float], event: Optional[Said]) -> bool:
    return event is None or (at_s is not None and at_s > event.at_s)


def _record(evidence: Evidence, *statuses: Status) -> bool:
    """Whether the agent's own record counts now, and says one of these."""
    record = evidence.record
    if record is None or record.status not in statuses:
        return False
    return _is_newer(record.said_at_s, evidence.event) or evidence.event_age_s > LAG_S


def _tail(evidence: Evidence, *marks: Mark) -> bool:
    """Whether the session's file counts (no record does) and ends, after the last event, in one of these."""
    tail = evidence.tail
    if tail is None or tail.mark not in marks or evidence.record is not None:
        return False
    return _is_newer(tail.at_s, evidence.event)


def _has_worked(evidence: Evidence) -> bool:
    """Whether the session, idle by its last event, has had something to do since: its end came alone."""
    tail = evidence.tail
    if tail is None or tail.mark is Mark.EMPTY or not _event(evidence, Status.IDLE):
        return False
    return _is_newer(tail.at_s, evidence.event)


def _unreported(evidence: Evidence) -> bool:
    """Whether nobody has reported since our start: an agent that does would tell its end by itself."""
    return evidence.event is None or evidence.event.name == FROM_LOG


def _paused(evidence: Evidence) -> bool:
    return evidence.event is not None and evidence.event.paused


def _is_shifting(evidence: Evidence) -> bool:
    record = evidence.record
    return record is not None and evidence.now_s - (record.said_at_s or 0.0) <= SHIFT_S


def _outlived(evidence: Evidence) -> bool:
    """Whether a process whose own record names the session lives on after its end was reported: it is open
    there too. That a process lives says nothing by itself: it may run other sessions."""
    return any(each.record is not None for each in evidence.live) and evidence.event_age_s > GRACE_S


def _gone(evidence: Evidence) -> bool:
    return evidence.is_gone and not _is_newer_event(evidence, evidence.gone_at_s)


def _left(evidence: Evidence) -> bool:
    left_at_s = evidence.left_at_s
    return left_at_s is not None and not evidence.processes and not _is_newer_event(evidence, left_at_s)


def _is_newer_event(evidence: Evidence, at_s: float) -> bool:
    return evidence.event is not None and evidence.event.at_s > at_s


# --- what rules answer


def _always(status: Status) -> Callable[[Evidence], Status]:
    return lambda evidence: status


def _said(evidence: Evidence) -> Status:
    assert evidence.event is not None
    return evidence.event.status


def _by_tail(evidence: Evidence) -> Status:
    """The status of a session of which only the file tells."""
    tail = evidence.tail
    if tail is None or tail.mark is Mark.EMPTY:
        return Status.IDLE
    if tail.mark is Mark.ASKING:
        return Status.WAITING_FOR_INPUT
    return Status.RUNNING if tail.mark is Mark.WORKING else Status.READY_FOR_REVIEW


def _rests(evidence: Evidence) -> Status:
    """An idle agent: had it something to do before?"""
    return (
        Status.IDLE if evidence.tail is None or evidence.tail.mark is Mark.EMPTY else Status.READY_FOR_REVIEW
    )


def _certain(evidence: Evidence) -> Sure:
    return Sure.CERTAIN


def _likely(evidence: Evidence) -> Sure:
    return Sure.LIKELY


def _unknown(evidence: Evidence) -> Sure:
    return Sure.UNKNOWN


def _if_alive(evidence: Evidence) -> Sure:
    return Sure.CERTAIN if evidence.live else Sure.LIKELY


def _while_it_lives(evidence: Evidence) -> Sure:
    if evidence.live or _event(evidence, Status.CLOSED):
        return Sure.CERTAIN
    return Sure.LIKELY if evidence.event_age_s <= STALE_S else Sure.UNKNOWN


RULES: Tuple[Rule, ...] = (
    Rule(
        "process_gone",
        lambda evidence: not _event(evidence, Status.CLOSED) and _gone(evidence),
        _always(Status.CLOSED),
        _certain,
        "its process has ended",
    ),
    Rule(
        "ended",
        lambda evidence: _event(evidence, Status.CLOSED) and not _outlived(evidence),
        _always(Status.CLOSED),
        _certain,
        "the agent said that it ended",
    ),
    Rule(
        "left",
        _left,
        _always(Status.CLOSED),
        _certain,
        "its process has gone on to another session",
    ),
    Rule(
        "record_waiting",
        lambda evidence: _record(evidence, Status.WAITING_FOR_INPUT),
        _always(Status.WAITING_FOR_INPUT),
        _if_alive,
        "its own record says that it waits for a person",
    ),
    Rule(
        "record_busy",
        lambda evidence: _record(evidence, Status.RUNNING),
        _always(Status.RUNNING),
        _if_alive,
        "its own record says that it is at work",
    ),
    Rule(
        "background",
        lambda evidence: (
            _record(evidence, Status.IDLE)
            and _is_shifting(evidence)
            and _paused(evidence)
            and _event(evidence, *_AT_WORK)
        ),
        _said,
        _likely,
        "its turn is over, but an agent that it started works on",
    ),
    Rule(
        "interrupted",
        lambda evidence: _record(evidence, Status.IDLE) and _event(evidence, *_AT_WORK),
        _always(Status.READY_FOR_REVIEW),
        _if_alive,
        "its own record says idle, and no end was reported: a person stopped it",
    ),
    Rule(
        "record_idle",
        lambda evidence: (
            _record(evidence, Status.IDLE)
            and (evidence.event is None or _event(evidence, Status.CLOSED) or _has_worked(evidence))
        ),
        _rests,
        _if_alive,
        "its own record says that it is idle",
    ),
    Rule(
        "file_interrupted",
        lambda evidence: _tail(evidence, Mark.INTERRUPTED) and _event(evidence, *_AT_WORK),
        _always(Status.READY_FOR_REVIEW),
        _certain,
        "its file ends with an interruption",
    ),
    Rule(
        "file_ended",
        lambda evidence: (
            _tail(evidence, Mark.ENDED) and _event(evidence, *_AT_WORK) and _unreported(evidence)
        ),
        _always(Status.READY_FOR_REVIEW),
        _likely,
        "its file ends with the end of a turn, which was not reported",
    ),
    Rule(
        "file_working",
        lambda evidence: (
            _tail(evidence, Mark.WORKING, Mark.ASKING)
            and _event(evidence, Status.IDLE, Status.READY_FOR_REVIEW)
            and _unreported(evidence)
            and bool(evidence.live)
        ),
        _by_tail,
        _likely,
        "its file goes on after the last event",
    ),
    Rule(
        "not_listed",
        lambda evidence: (
            _unreported(evidence)
            and evidence.event is not None
            and evidence.event_age_s > UNLISTED_S
            and evidence.records is Records.READ
            and not evidence.processes
        ),
        _always(Status.CLOSED),
        _likely,
        "its agent's records list no process of it, and nobody has reported it since we started",
    ),
    Rule(
        "event",
        lambda evidence: evidence.event is not None and not _event(evidence, Status.CLOSED),
        _said,
        _while_it_lives,
        "as the agent said last",
    ),
    Rule(
        "file",
        lambda evidence: evidence.tail is not None and bool(evidence.live),
        _by_tail,
        _likely,
        "nothing was reported; its file says so",
    ),
    Rule(
        "nothing_known",
        lambda evidence: True,
        lambda evidence: Status.IDLE if evidence.live else Status.CLOSED,
        _unknown,
        "nothing tells what it does",
    ),
)
"""Rules in their order: the first that holds decides. The last one always holds."""


# --- what else is said


def _contradictions(evidence: Evidence, status: Status) -> Tuple[str, ...]:
    found = []
    event, record, tail = evidence.event, evidence.record, evidence.tail
    if event is not None and event.status is not status:
        found.append(f"the last event ({event.name or 'unnamed'}) says {event.status.value}")
    if record is not None and record.status is not None and not _agree(record, status):
        found.append(f"the agent's record says {record.said or record.status.value}")
    if tail is not None and not _fits(tail, status):
        found.append(f"the session's file ends with {tail.said or tail.mark.value}")
    return tuple(found)


def _agree(record: ProcessRecord, status: Status) -> bool:
    rest = (Status.IDLE, Status.READY_FOR_REVIEW)
    return record.status is status or (record.status is Status.IDLE and status in rest)


def _fits(tail: Tail, status: Status) -> bool:
    fitting = {
        Mark.EMPTY: (Status.IDLE, Status.CLOSED),
        Mark.WORKING: (Status.RUNNING, Status.WAITING_FOR_INPUT, Status.CLOSED),
        Mark.ASKING: (Status.WAITING_FOR_INPUT, Status.CLOSED),
    }
    rest = (Status.IDLE, Status.READY_FOR_REVIEW, Status.CLOSED)
    return status in fitting.get(tail.mark, rest)


def _missing(evidence: Evidence) -> Tuple[str, ...]:
    found = []
    if evidence.event is None:
        found.append("no event was ever received")
    if not evidence.processes:
        found.append("no process is known")
    if evidence.records is Records.UNREADABLE:
        found.append("the agent's own records cannot be read")
    elif evidence.record is None and evidence.records is Records.READ:
        found.append("the agent keeps no record of it")
    if evidence.tail is None:
        found.append("its file says nothing, or is not known")
    return tuple(found)
