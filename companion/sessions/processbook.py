"""Which processes sessions run in, kept across restarts: what lived when we ended may be dead by now."""

import contextlib
from collections.abc import Mapping as AnyMapping
from json.encoder import encode_basestring
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional

from companion.core.errors import StorageError
from companion.core.processes import Process
from companion.sessions.index import Session
from companion.sessions.journal import Journal
from companion.sessions.lines import text_bytes

MAX_LINES = 4_000
"""A log with more is rewritten with what is still wanted."""


class Known(NamedTuple):
    """A process in which a session was seen to run."""

    harness: str
    session_id: str
    process: Process


class ProcessBook:
    """The log of processes. Not safe for threads: its owner's lock guards it.

    Args:
        path: the log.
    """

    def __init__(self, path: Path) -> None:
        self._journal: Journal[Known] = Journal(path, parse=_parse, encode=_line, key=lambda each: each)

    @property
    def problem(self) -> Optional[str]:
        """Why the log could not be read or written, or None."""
        return self._journal.problem

    def load(self, is_wanted: Callable[[Session], bool]) -> Dict[Session, List[Process]]:
        """The processes of the sessions that are still wanted, oldest first; the log forgets the others.

        An unreadable log is empty, with ``problem``.
        """
        found: Dict[Session, Dict[Process, None]] = {}
        try:
            known = self._journal.read()
        except StorageError:
            return {}
        for each in known:
            session = (each.harness, each.session_id)
            if is_wanted(session):
                found.setdefault(session, {})[each.process] = None
        kept = {session: list(processes) for session, processes in found.items()}
        if self._journal.lines > sum(map(len, kept.values())):
            self.shorten(kept)
        return kept

    def note(self, session: Session, process: Process) -> None:
        """Remember that a session runs there."""
        self._journal.append(Known(*session, process))

    @property
    def is_overgrown(self) -> bool:
        """Whether the log deserves :meth:`shorten`."""
        return self._journal.lines > MAX_LINES and not self._journal.unsaved

    def shorten(self, kept: Dict[Session, List[Process]]) -> None:
        """Leave only these in the log; as it was when that cannot be written."""
        lines = [Known(*session, process) for session, processes in kept.items() for process in processes]
        with contextlib.suppress(StorageError):
            self._journal.rewrite(lines)

    def close(self) -> None:
        """Save what is unsaved and let go of the log."""
        self._journal.close()


def _line(each: Known) -> bytes:
    quote = encode_basestring
    process = each.process
    domain = f',"domain":{quote(process.domain)}' if process.domain else ""
    return text_bytes(
        f'{{"harness":{quote(each.harness)},"sessionId":{quote(each.session_id)},"pid":{process.pid}'
        f',"begun":{quote(process.begun)}{domain}}}'
    )


def _parse(record: object) -> Known:
    """ValueError for what is no record of ours."""
    if not isinstance(record, AnyMapping):
        raise ValueError("not an object")
    harness, session_id, pid = record.get("harness"), record.get("sessionId"), record.get("pid")
    begun, domain = record.get("begun"), record.get("domain", "")
    if not (isinstance(harness, str) and harness and isinstance(session_id, str) and session_id):
        raise ValueError("harness or sessionId")
    if type(pid) is not int or not isinstance(begun, str) or not isinstance(domain, str):
        raise ValueError("pid, begun or domain")
    return Known(harness, session_id, Process(pid, begun, domain))
