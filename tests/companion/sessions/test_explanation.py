"""How a session is told: every piece of evidence under its name, with its age."""

from adapters.contract import Mark, ProcessRecord, Status, Tail
from companion.core.processes import Life, Process
from companion.sessions.evidence import Evidence, Records, Said, Seen
from companion.sessions.explanation import evidence_json, in_full, in_short
from companion.sessions.watched import Watched

NOW = 1_770_000_000.0


def everything() -> Watched:
    """A session of which all is known."""
    process = Process(4242, "77")
    record = ProcessRecord(
        "s", 4242, status=Status.IDLE, said="idle", said_at_s=NOW - 5, cwd="/home/dev", automated=True
    )
    watched = Watched("claude", "s", file="/home/dev/s.jsonl", records={process: record}, project="/home")
    watched.tail = Tail(Mark.WORKING, NOW - 7, "a prompt")
    watched.judge(
        Evidence(
            NOW,
            Said(Status.RUNNING, NOW - 6.04, "PreToolUse", True),
            (Seen(process, Life.ALIVE, NOW - 0.5, record),),
            Records.READ,
            watched.tail,
        )
    )
    return watched


def test_in_short() -> None:
    """The verdict and the place."""
    assert in_short(everything()) == {
        "harness": "claude",
        "sessionId": "s",
        "status": "ready_for_review",
        "rule": "interrupted",
        "reason": "its own record says idle, and no end was reported: a person stopped it",
        "sure": "certain",
        "since": "2026-02-02T02:40:00.000Z",
        "automated": True,
        "cwd": "/home/dev",
        "project": "/home",
        "sessionFile": "/home/dev/s.jsonl",
    }


def test_in_full() -> None:
    """All of it, and what speaks against the verdict."""
    told = in_full(everything())
    assert told["contradicts"] == [
        "the last event (PreToolUse) says running",
        "the session's file ends with a prompt",
    ]
    assert told["missing"] == []
    assert told["evidence"] == {
        "processes": [
            {
                "pid": 4242,
                "life": "alive",
                "ageSeconds": 0.5,
                "record": {"status": "idle", "said": "idle", "ageSeconds": 5.0},
            }
        ],
        "records": "read",
        "event": {"name": "PreToolUse", "status": "running", "paused": True, "ageSeconds": 6.0},
        "file": {"mark": "working", "said": "a prompt", "ageSeconds": 7.0},
    }


def test_what_is_not_known_has_no_key() -> None:
    """Nor is a time made up."""
    assert evidence_json(Evidence(NOW)) == {"processes": [], "records": "none"}
    told = evidence_json(Evidence(NOW, tail=Tail(Mark.EMPTY)))
    assert told["file"] == {"mark": "empty", "said": "", "ageSeconds": None}
    silent = Seen(Process(4242), Life.UNKNOWN, NOW, ProcessRecord("s", 4242))
    told = evidence_json(Evidence(NOW, processes=(silent,)))
    assert told["processes"] == [
        {
            "pid": 4242,
            "life": "unknown",
            "ageSeconds": 0.0,
            "record": {"status": None, "said": "", "ageSeconds": None},
        }
    ]
    assert in_full(Watched("pi", "s"))["rule"] == "nothing_known"
