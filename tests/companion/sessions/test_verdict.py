"""The table of verdicts: evidence on the left, status and rule on the right."""

from typing import List, NamedTuple, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract import Mark, ProcessRecord, Status, Tail
from companion.core.processes import Life, Process
from companion.sessions.evidence import FROM_LOG, Evidence, Records, Said, Seen
from companion.sessions.verdict import GRACE_S, LAG_S, RULES, SHIFT_S, STALE_S, UNLISTED_S, Sure, decide

NOW = 1_770_000_000.0
IDLE, RUNNING, WAITING, READY, CLOSED = (
    Status.IDLE,
    Status.RUNNING,
    Status.WAITING_FOR_INPUT,
    Status.READY_FOR_REVIEW,
    Status.CLOSED,
)


def said(status: Status, age_s: float = 60.0, name: str = "Event", paused: bool = False) -> Said:
    """An event of so many seconds ago."""
    return Said(status, NOW - age_s, name, paused)


def process(
    life: Life = Life.ALIVE,
    record: Optional[Status] = None,
    age_s: float = 30.0,
    looked_age_s: float = 0.0,
    pid: int = 100,
    keeps: bool = True,
) -> Seen:
    """A process; ``record`` is the status in the agent's own record, of so many seconds ago."""
    kept = ProcessRecord("s", pid, status=record, said="", said_at_s=NOW - age_s) if keeps else None
    return Seen(Process(pid, "1"), life, NOW - looked_age_s, kept)


def tail(mark: Mark, age_s: float = 30.0) -> Tail:
    """The end of a file, written so many seconds ago."""
    return Tail(mark, NOW - age_s)


def seen(
    *processes: Seen,
    event: Optional[Said] = None,
    tail: Optional[Tail] = None,
    left_at_s: Optional[float] = None,
) -> Evidence:
    """Evidence at this moment."""
    records = Records.READ if any(each.record is not None for each in processes) else Records.NONE
    return Evidence(NOW, event, processes, records, tail, left_at_s)


class Case(NamedTuple):
    """One row."""

    name: str
    evidence: Evidence
    status: Status
    rule: str
    sure: Sure = Sure.CERTAIN


ALIVE = process(keeps=False)
DEAD = process(Life.DEAD, keeps=False)

CASES: List[Case] = [
    # Whether it lives comes first.
    Case("killed in mid-turn", seen(DEAD, event=said(RUNNING)), CLOSED, "process_gone"),
    Case("killed while a dialog was open", seen(DEAD, event=said(WAITING)), CLOSED, "process_gone"),
    Case(
        "its record outlives it",
        seen(process(Life.DEAD, RUNNING), event=said(RUNNING)),
        CLOSED,
        "process_gone",
    ),
    Case("dead, and nobody ever reported", seen(process(Life.DEAD, IDLE)), CLOSED, "process_gone"),
    Case(
        "resumed in a process that nobody knows yet",
        seen(process(Life.DEAD, keeps=False, looked_age_s=9), event=said(IDLE, 5)),
        IDLE,
        "event",
        Sure.LIKELY,
    ),
    Case("one of two processes is dead", seen(ALIVE, event=said(RUNNING)), RUNNING, "event"),
    Case(
        "nobody can tell whether it lives",
        seen(process(Life.UNKNOWN, keeps=False), event=said(RUNNING)),
        RUNNING,
        "event",
        Sure.LIKELY,
    ),
    Case(
        "nothing heard for days, and no process known",
        seen(event=said(RUNNING, STALE_S + 1)),
        RUNNING,
        "event",
        Sure.UNKNOWN,
    ),
    Case("a silent one that lives", seen(ALIVE, event=said(RUNNING, STALE_S + 1)), RUNNING, "event"),
    # The end.
    Case("it said its end", seen(event=said(CLOSED)), CLOSED, "ended"),
    Case("it said its end and ends", seen(process(record=IDLE), event=said(CLOSED, 1)), CLOSED, "ended"),
    Case(
        "it ended, and its process runs other sessions",
        seen(ALIVE, event=said(CLOSED, 600), tail=tail(Mark.ENDED, 700)),
        CLOSED,
        "ended",
    ),
    Case("it ended, and is dead now", seen(DEAD, event=said(CLOSED)), CLOSED, "ended"),
    Case(
        "it ended in one terminal and goes on in another",
        seen(process(record=IDLE), event=said(CLOSED, GRACE_S + 1), tail=tail(Mark.ENDED)),
        READY,
        "record_idle",
    ),
    Case(
        "cleared: its process runs another session",
        seen(left_at_s=NOW - 1, event=said(READY)),
        CLOSED,
        "left",
    ),
    Case("and resumed since", seen(left_at_s=NOW - 9, event=said(IDLE, 5)), IDLE, "event", Sure.LIKELY),
    # The agent's own record.
    Case("busy, as reported", seen(process(record=RUNNING), event=said(RUNNING)), RUNNING, "record_busy"),
    Case("Esc", seen(process(record=IDLE), event=said(RUNNING)), READY, "interrupted"),
    Case("a refused permission", seen(process(record=IDLE), event=said(WAITING)), READY, "interrupted"),
    Case("idle, as reported", seen(process(record=IDLE), event=said(READY)), READY, "event"),
    Case("idle since its start", seen(process(record=IDLE), event=said(IDLE)), IDLE, "event"),
    Case(
        "a permission nobody reported",
        seen(process(record=WAITING), event=said(RUNNING)),
        WAITING,
        "record_waiting",
    ),
    Case(
        "a permission was granted, and the tool runs on",
        seen(process(record=RUNNING), event=said(WAITING)),
        RUNNING,
        "record_busy",
    ),
    Case(
        "a queued prompt runs without an event, and the record was never idle",
        seen(process(record=RUNNING, age_s=300), event=said(READY, LAG_S + 1)),
        RUNNING,
        "record_busy",
    ),
    Case(
        "a busy record of a long turn, never rewritten",
        seen(process(record=RUNNING, age_s=14 * 60), event=said(RUNNING, 14 * 60)),
        RUNNING,
        "record_busy",
    ),
    Case(
        "the record lags behind a prompt",
        seen(process(record=IDLE, age_s=60), event=said(RUNNING, 0.1)),
        RUNNING,
        "event",
    ),
    Case(
        "the record lags behind the end of a turn",
        seen(process(record=RUNNING, age_s=60), event=said(READY, 0.1)),
        READY,
        "event",
    ),
    Case(
        "a background agent is back, and the session goes on in a moment",
        seen(process(record=IDLE, age_s=SHIFT_S), event=said(RUNNING, paused=True)),
        RUNNING,
        "background",
        Sure.LIKELY,
    ),
    Case(
        "a background agent asks, and the record does not tell",
        seen(process(record=IDLE, age_s=1), event=said(WAITING, paused=True)),
        WAITING,
        "background",
        Sure.LIKELY,
    ),
    Case(
        "a background agent works on",
        seen(process(record=RUNNING), event=said(RUNNING, paused=True)),
        RUNNING,
        "record_busy",
    ),
    Case(
        "the person ended what worked in the background",
        seen(process(record=IDLE, age_s=SHIFT_S + 1), event=said(RUNNING, paused=True)),
        READY,
        "interrupted",
    ),
    Case(
        "two terminals, the newer word counts",
        seen(
            process(record=IDLE, age_s=50),
            process(record=WAITING, age_s=20, pid=101),
            event=said(RUNNING),
        ),
        WAITING,
        "record_waiting",
    ),
    Case(
        "a record from a container",
        seen(process(Life.UNKNOWN, RUNNING)),
        RUNNING,
        "record_busy",
        Sure.LIKELY,
    ),
    Case("a record without a status", seen(process(), event=said(RUNNING)), RUNNING, "event"),
    # Hooks are switched off: nobody reports.
    Case("no hooks: busy", seen(process(record=RUNNING)), RUNNING, "record_busy"),
    Case("no hooks: a dialog", seen(process(record=WAITING)), WAITING, "record_waiting"),
    Case("no hooks: fresh", seen(process(record=IDLE)), IDLE, "record_idle"),
    Case("no hooks: done", seen(process(record=IDLE), tail=tail(Mark.ENDED)), READY, "record_idle"),
    Case("no hooks: Esc", seen(process(record=IDLE), tail=tail(Mark.INTERRUPTED)), READY, "record_idle"),
    Case(
        "no hooks, a record without a status",
        seen(process(), tail=tail(Mark.WORKING)),
        RUNNING,
        "file",
        Sure.LIKELY,
    ),
    Case(
        "no hooks, and a file without a word", seen(ALIVE, tail=tail(Mark.EMPTY)), IDLE, "file", Sure.LIKELY
    ),
    Case("no hooks, an open question", seen(ALIVE, tail=tail(Mark.ASKING)), WAITING, "file", Sure.LIKELY),
    Case("it lives, and that is all", seen(ALIVE), IDLE, "nothing_known", Sure.UNKNOWN),
    Case("nothing at all", seen(), CLOSED, "nothing_known", Sure.UNKNOWN),
    Case(
        "some hooks only: its start was told, its work was not",
        seen(process(record=IDLE, age_s=5), event=said(IDLE), tail=tail(Mark.ENDED, 6)),
        READY,
        "record_idle",
    ),
    Case(
        "resumed, and nothing said since",
        seen(process(record=IDLE, age_s=5), event=said(IDLE), tail=tail(Mark.ENDED, 600)),
        IDLE,
        "event",
    ),
    # The session's file, where there is no record.
    Case(
        "Esc, told by the file",
        seen(ALIVE, event=said(RUNNING), tail=tail(Mark.INTERRUPTED)),
        READY,
        "file_interrupted",
    ),
    Case(
        "an interruption before the last prompt",
        seen(ALIVE, event=said(RUNNING, 10), tail=tail(Mark.INTERRUPTED, 30)),
        RUNNING,
        "event",
    ),
    Case(
        "finished while we were away",
        seen(ALIVE, event=said(RUNNING, name=FROM_LOG), tail=tail(Mark.ENDED)),
        READY,
        "file_ended",
        Sure.LIKELY,
    ),
    Case(
        "an answer in the middle of a turn is no end while somebody reports",
        seen(ALIVE, event=said(RUNNING), tail=tail(Mark.ENDED)),
        RUNNING,
        "event",
    ),
    Case(
        "went on while we were away",
        seen(ALIVE, event=said(READY, name=FROM_LOG), tail=tail(Mark.WORKING)),
        RUNNING,
        "file_working",
        Sure.LIKELY,
    ),
    Case(
        "open in the log of an earlier life, and no process of it to be found",
        Evidence(NOW, said(RUNNING, UNLISTED_S + 1, FROM_LOG), records=Records.READ),
        CLOSED,
        "not_listed",
        Sure.LIKELY,
    ),
    Case(
        "the same, but it has reported since",
        Evidence(NOW, said(RUNNING, UNLISTED_S + 1), records=Records.READ),
        RUNNING,
        "event",
        Sure.LIKELY,
    ),
    Case(
        "the same, but the records cannot be read",
        Evidence(NOW, said(RUNNING, UNLISTED_S + 1, FROM_LOG), records=Records.UNREADABLE),
        RUNNING,
        "event",
        Sure.LIKELY,
    ),
    Case(
        "a file that goes on, of which nobody knows whether it lives",
        seen(event=said(READY, name=FROM_LOG), tail=tail(Mark.WORKING)),
        READY,
        "event",
        Sure.LIKELY,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_table(case: Case) -> None:
    """Status, rule, and how sure."""
    verdict = decide(case.evidence)
    assert (verdict.status, verdict.rule, verdict.sure) == (case.status, case.rule, case.sure)
    assert verdict.reason


def test_every_rule_has_a_row_and_a_name_of_its_own() -> None:
    """A rule that no row reaches would be untested, or out of reach."""
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert {case.rule for case in CASES} == set(names)


def test_what_speaks_against_a_verdict_is_named() -> None:
    """Whoever wonders sees what else was seen."""
    record = ProcessRecord("s", 100, status=IDLE, said="idle", said_at_s=NOW - 30)
    alive = Seen(Process(100, "1"), Life.ALIVE, NOW, record)
    verdict = decide(
        seen(alive, event=said(RUNNING, name="PreToolUse"), tail=Tail(Mark.WORKING, NOW, "a call"))
    )
    assert verdict.rule == "interrupted"
    assert verdict.contradicts == (
        "the last event (PreToolUse) says running",
        "the session's file ends with a call",
    )
    waits = decide(seen(process(record=RUNNING, age_s=60), event=said(WAITING, 0.5)))
    assert waits.contradicts == ("the agent's record says running",)
    assert decide(seen(process(record=RUNNING), event=said(RUNNING))).contradicts == ()


def test_what_is_missing_is_named() -> None:
    """And nothing else."""
    assert decide(seen()).missing == (
        "no event was ever received",
        "no process is known",
        "its file says nothing, or is not known",
    )
    blind = Evidence(NOW, said(RUNNING), (ALIVE,), Records.UNREADABLE, tail(Mark.WORKING))
    assert decide(blind).missing == ("the agent's own records cannot be read",)
    without = Evidence(NOW, said(RUNNING), (ALIVE,), Records.READ, tail(Mark.WORKING))
    assert decide(without).missing == ("the agent keeps no record of it",)


_processes = st.lists(
    st.builds(
        process,
        life=st.sampled_from(list(Life)),
        record=st.sampled_from([None, IDLE, RUNNING, WAITING]),
        age_s=st.floats(0.001, 1e6),
        looked_age_s=st.floats(0.001, 99),
        keeps=st.booleans(),
    ),
    max_size=3,
)
_tails = st.none() | st.builds(tail, st.sampled_from(list(Mark)), st.floats(0.001, 1e6))


@given(
    _processes, _tails, st.sampled_from(list(Status)), st.booleans(), st.none() | st.floats(NOW - 99, NOW - 1)
)
def test_a_fresh_report_decides(
    processes: List[Seen], end: Optional[Tail], status: Status, paused: bool, left_at_s: Optional[float]
) -> None:
    """So reports may be recorded as they come: whatever was seen before, the verdict is what they say."""
    event = Said(status, NOW, "Event", paused)
    assert decide(seen(*processes, event=event, tail=end, left_at_s=left_at_s)).status is status


@given(_processes, _tails, st.none() | st.builds(said, st.sampled_from(list(Status)), st.floats(0, 1e6)))
def test_there_is_always_a_verdict(processes: List[Seen], end: Optional[Tail], event: Optional[Said]) -> None:
    """And nothing but a dead process, an end, or no process at all closes a session."""
    verdict = decide(seen(*processes, event=event, tail=end))
    if verdict.status is CLOSED:
        assert verdict.rule in ("process_gone", "ended", "nothing_known", "not_listed")
    if verdict.rule == "process_gone":
        assert processes and all(each.life is Life.DEAD for each in processes)
