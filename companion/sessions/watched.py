"""One session under watch: everything that was seen of it."""

import os
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Dict, List, Optional, Set, Tuple

from adapters.contract import Adapter, ProcessRecord, Status, Tail
from companion.core.processes import Life, Process, ProcessTable
from companion.core.worktrees import repository_of
from companion.sessions.evidence import Evidence, Said, Seen
from companion.sessions.verdict import LAG_S, Verdict, decide

Stamp = Tuple[int, int, int]

CLOCK_SLACK_S = 1.0
"""A report may come while a look is under way, which has looked at the clock before; in seconds."""
SELDOM_S = 30.0
"""Pause between two looks at a session of which neither process nor record is known, in seconds."""


@dataclass
class Watched:
    """What is known of one session, and what the last look made of it."""

    harness: str
    session_id: str
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Guards what reports change: the seven below. The rest belongs to the one who looks."""
    event: Optional[Said] = None
    is_reported: bool = False
    """Whether anybody has told us of it since our start."""
    is_corrected: bool = False
    """Whether something else than the last report was recorded since."""
    file: Optional[str] = None
    """The session's file, as far as anybody said."""
    header: str = ""
    """What a client last said of its process: it need not be looked up again."""
    processes: Dict[Process, Optional[float]] = field(default_factory=dict)
    """Where it runs or ran; when that was found dead (Unix seconds), or None."""
    verdict: Optional[Verdict] = None

    project: Optional[str] = None
    """The repository in which it works, also from within a worktree; else the folder."""
    project_of: Optional[str] = None
    """The folder of which that was found out; it may have been removed since."""
    records: Dict[Process, ProcessRecord] = field(default_factory=dict)
    left_at_s: Optional[float] = None
    """When its process was first seen to run another session instead, in Unix seconds."""
    placed_file: Optional[str] = None
    """The file of which it was found out in whose folder it lies."""
    has_failed: bool = False
    """Whether a look at it came to nothing by a fault of ours."""
    searched: bool = False
    """Whether its file was searched for, when no report had named one."""
    tail: Optional[Tail] = None
    tail_stamp: Optional[Stamp] = None
    """The file as it was when its end was read."""
    evidence: Evidence = field(default_factory=lambda: Evidence(0.0))
    looked_at_s: float = 0.0
    """When the last look at it was, in Unix seconds."""
    looked_event: Optional[Said] = None
    """The last event at that moment."""
    since_s: float = 0.0
    """Since when the verdict's status holds, in Unix seconds."""
    found_paths: Set[str] = field(default_factory=set)
    """What its file was found to name, and was told."""
    cards_stamp: Optional[Stamp] = None
    """The file as it was when its cards were looked for."""
    next_read_s: float = 0.0
    """Not before this moment its cards are looked for again, in Unix seconds."""

    @property
    def session(self) -> Tuple[str, str]:
        """Harness and id."""
        return self.harness, self.session_id

    @property
    def cwd(self) -> Optional[str]:
        """Where it works now: by its file, which follows a change of folder, else by its process."""
        told = [self.tail.cwd if self.tail is not None else None]
        told += [record.cwd for record in self.records.values()]
        return next((each for each in told if each), None)

    @property
    def is_automated(self) -> bool:
        """Whether a program has started it, by the agent's own record."""
        return any(record.automated for record in self.records.values())

    def follow_folder(self) -> None:
        """Find out the project anew, if the session works in another folder by now."""
        cwd = self.cwd
        if cwd and cwd != self.project_of:
            self.project_of = cwd
            self.project = repository_of(cwd) or cwd

    @property
    def is_open(self) -> bool:
        """Whether there is anything left to find out."""
        if self.verdict is None or self.verdict.status is not Status.CLOSED:
            return True
        if any(self.processes.get(process) is None for process in self.records):
            return True
        return self.event is not self.looked_event

    @property
    def needs_file(self) -> bool:
        """Whether it runs, and does things that no event tells: its file has to."""
        if not self.records or self.event is None or not self.is_reported:
            return bool(self.records)
        if self.verdict is not None and self.verdict.status is not self.event.status:
            return True
        acted_at_s = max(record.said_at_s or 0.0 for record in self.records.values())
        return acted_at_s > self.event.at_s + LAG_S

    def is_due(self, now_s: float) -> bool:
        """Whether to look at it now; where there is nothing that could change by itself, seldom."""
        if not self.is_open:
            return False
        if self.event is not self.looked_event or self.left_at_s != self.evidence.left_at_s:
            return True
        if self.records or None in self.processes.values():
            return True
        return not 0.0 <= now_s - self.looked_at_s < SELDOM_S

    def look_at_processes(self, table: ProcessTable, now_s: float) -> Tuple[Seen, ...]:
        """How its processes are now; without the dead ones while another one lives. Under the lock."""
        seen: List[Seen] = []
        for process, gone_at_s in list(self.processes.items()):
            life = Life.DEAD if gone_at_s is not None else table.life(process)
            if life is Life.DEAD and gone_at_s is None:
                # Whatever was heard by now was heard before, however the clock was set meanwhile.
                heard_at_s = self.event.at_s if self.event is not None else 0.0
                gone_at_s = self.processes[process] = max(now_s, heard_at_s)
            seen.append(Seen(process, life, gone_at_s or now_s, self.records.get(process)))
        others = tuple(each for each in seen if each.life is not Life.DEAD)
        return others or tuple(seen)

    def look_at_file(self, adapter: Adapter) -> Optional[Tail]:
        """What the end of its file says now; read again only when the file has changed, and when it is
        needed: no record of the agent's tells, or no event says whether it has had something to do."""
        stamp = stamp_of(self.file)
        if stamp is None:
            return None
        told = any(record.status is not None for record in self.records.values())
        needed = not told or self.event is None or self.event.status in (Status.CLOSED, Status.IDLE)
        if needed and stamp != self.tail_stamp:
            try:
                self.tail = adapter.read_tail(Path(str(self.file)), self.session_id)
            except Exception:  # Foreign data. Whether the session lives is found out all the same.
                self.tail = None
            self.tail_stamp = stamp
        return self.tail

    def set_clock(self, now_s: float) -> None:
        """The clock may have been set back: nothing was heard later than now. Under the lock."""
        if self.event is not None and self.event.at_s > now_s + CLOCK_SLACK_S:
            self.event = replace(self.event, at_s=now_s)

    def hear(self, said: Said) -> None:
        """A report came: the verdict is its status until there is more to go by. Under the lock."""
        self.event = said
        self.is_reported, self.is_corrected = True, False
        self.judge(replace(self.evidence, now_s=said.at_s, event=said))

    def look(self, evidence: Evidence) -> Verdict:
        """The verdict on what a look has gathered. Under the lock."""
        self.looked_at_s, self.looked_event = evidence.now_s, evidence.event
        return self.judge(evidence)

    def judge(self, evidence: Evidence) -> Verdict:
        """The verdict on evidence, which becomes what is known. Under the lock."""
        before = self.verdict
        self.evidence = evidence
        self.verdict = decide(evidence)
        if before is None or before.status is not self.verdict.status:
            self.since_s = evidence.now_s
        return self.verdict


def stamp_of(path: Optional[str]) -> Optional[Stamp]:
    """What tells whether a file has changed; None when there is none."""
    if not path:
        return None
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
