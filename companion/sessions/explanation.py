"""How a watched session is told to people and programs: in a list, and with all the evidence."""

from typing import Callable, Dict, Optional

from companion.core.clock import iso_utc
from companion.sessions.evidence import Evidence, Seen
from companion.sessions.verdict import decide
from companion.sessions.watched import Watched

Age = Callable[[Optional[float]], Optional[float]]
"""Unix seconds to seconds ago, with one decimal."""


def in_short(watched: Watched) -> Dict[str, object]:
    """The verdict on a session and where it is, without the evidence."""
    verdict = watched.verdict or decide(watched.evidence)
    shown: Dict[str, object] = {
        "harness": watched.harness,
        "sessionId": watched.session_id,
        "status": verdict.status.value,
        "rule": verdict.rule,
        "reason": verdict.reason,
        "sure": verdict.sure.value,
        "since": iso_utc(watched.since_s),
        "automated": watched.is_automated,
    }
    if watched.cwd:
        shown["cwd"] = watched.cwd
    if watched.project:
        shown["project"] = watched.project
    if watched.file is not None:
        shown["sessionFile"] = watched.file
    return shown


def in_full(watched: Watched) -> Dict[str, object]:
    """The same with what contradicts it, what is missing, and each piece of evidence with its age."""
    verdict = watched.verdict or decide(watched.evidence)
    return {
        **in_short(watched),
        "contradicts": list(verdict.contradicts),
        "missing": list(verdict.missing),
        "evidence": evidence_json(watched.evidence),
    }


def evidence_json(evidence: Evidence) -> Dict[str, object]:
    """Evidence under telling names. Ages are in seconds, None where a time is not known."""

    def age(at_s: Optional[float]) -> Optional[float]:
        return round(max(0.0, evidence.now_s - at_s), 1) if at_s is not None else None

    shown: Dict[str, object] = {
        "processes": [_process(each, age) for each in evidence.processes],
        "records": evidence.records.value,
    }
    event, tail = evidence.event, evidence.tail
    if event is not None:
        shown["event"] = {
            "name": event.name,
            "status": event.status.value,
            "paused": event.paused,
            "ageSeconds": age(event.at_s),
        }
    if tail is not None:
        shown["file"] = {"mark": tail.mark.value, "said": tail.said, "ageSeconds": age(tail.at_s)}
    return shown


def _process(seen: Seen, age: Age) -> Dict[str, object]:
    shown: Dict[str, object] = {
        "pid": seen.process.pid,
        "life": seen.life.value,
        "ageSeconds": age(seen.looked_at_s),
    }
    record = seen.record
    if record is not None:
        status = record.status.value if record.status is not None else None
        shown["record"] = {"status": status, "said": record.said, "ageSeconds": age(record.said_at_s)}
    return shown
