"""Codex's rollouts: where they are, and which cards a past session worked on.

A thread appends to the file of the day on which it began, however late it is resumed. Sub-agents have
rollouts of their own beside it: no sessions; what they edited counts for the session that sent them. A
fork keeps no copy of what was before it, but names the thread and the place where it branched off.
"""

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Iterator, List, Mapping, Optional, Tuple

from adapters.bytesearch import Needles
from adapters.codex.reading import Reading
from adapters.codex.rollout import RolloutCards
from adapters.codex.unpacked import SUFFIX, unpacked
from adapters.contract import PastSession, ReadReport
from adapters.fileend import FileEnd, newest_file, object_of
from adapters.jsonl import LineFile
from adapters.listing import entries_of, is_file, is_newer

SESSIONS = "sessions"
ARCHIVED = "archived_sessions"

PREFIX, PLAIN = "rollout-", ".jsonl"

# Forks of forks, and sub-agents of sub-agents: more are not followed.
_MAX_THREADS = 500
_UUID7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_NOTHING = PastSession("", None, None, ())


def sessions_root(home: Path, environ: Mapping[str, str]) -> Path:
    """Codex's folder, which holds those of the current and of the archived sessions."""
    told = environ.get("CODEX_HOME", "")
    return Path(told) if told else home / ".codex"


def session_files(root: Path, newer_than_s: float, report: ReadReport) -> Iterator[Path]:
    """Rollouts changed at or after ``newer_than_s``, by name. Those of sub-agents are told as a number."""
    logs = 0
    for folder in (root / SESSIONS, root / ARCHIVED):
        for path in _rollouts(folder, newer_than_s, report):
            if path.suffix != SUFFIX and _is_subagent(path):
                logs += 1  # Read with the session that it belongs to.
            else:
                yield path
    if logs:
        report.skipped.append((str(root), f"{logs} sub-agent logs: no sessions of their own"))


def session_file(root: Path, session_id: str) -> Optional[Path]:
    """The rollout of a thread, the newest of several; None when there is none that is not compressed."""
    found = [path for path in _files_of(root, session_id) if path.suffix != SUFFIX]
    return newest_file(found)


def read_session(
    path: Path, needles: Tuple[bytes, ...], cwd: Optional[str], report: ReadReport
) -> PastSession:
    """One session; see :meth:`adapters.contract.Adapter.read_session`. Never raises."""
    try:
        reading = _read(path, Needles(needles), RolloutCards(cwd), report)
    except (OSError, ValueError) as exc:  # ValueError: a name with a NUL.
        report.unread(path, exc)
        return _NOTHING
    cards = reading.cards
    if cards.is_subagent:
        report.skipped.append((str(path), "sub-agent log: no session of its own"))
        return _NOTHING
    if not cards.thread:
        report.unread(path, "no header, so it is not known whose session it is")
    found = dict.fromkeys(cards.found())
    for other in _others(path, cards, Needles(needles), report):
        found.update(dict.fromkeys(other.found()))
    return PastSession(cards.thread, str(path), reading.newest.value, tuple(found))


def read_sessions(
    path: Path, needles: Tuple[bytes, ...], newer_than_s: float, report: ReadReport
) -> Iterator[PastSession]:
    """The one session of a file, whose time was looked at by :func:`session_files`."""
    yield read_session(path, needles, None, report)


def _read(
    path: Path, needles: Needles, cards: RolloutCards, report: ReadReport, most_bytes: Optional[int] = None
) -> Reading:
    reading = Reading(needles, cards, report)
    with unpacked(path) as plain, LineFile(plain) as file, report.damage_in(path):
        file.path = path
        file.size_bytes = min(file.size_bytes, file.size_bytes if most_bytes is None else most_bytes)
        reading.read(file)
    return reading


def _others(path: Path, cards: RolloutCards, needles: Needles, report: ReadReport) -> Iterator[RolloutCards]:
    """What other threads add: those that a fork continues, and sub-agents. Ones that are gone are not."""
    root = next((folder.parent for folder in path.parents if folder.name in (SESSIONS, ARCHIVED)), None)
    seen, left = {cards.thread}, [(cards, True)]
    while left and root is not None and len(seen) < _MAX_THREADS:
        thread, said = left.pop()
        wanted: List[Tuple[str, Optional[int], bool]] = [(agent, None, False) for agent in thread.agents]
        if thread.base is not None:
            wanted.append((thread.base.thread, thread.base.size_bytes, said))
        for name, most_bytes, with_text in wanted:
            file = None if name in seen else next(iter(_files_of(root, name)), None)
            seen.add(name)
            if file is None:
                continue
            other = RolloutCards(None, with_text)
            try:
                # Their records are counted with their own sessions.
                quiet = ReadReport()
                _read(file, needles, other, quiet, most_bytes)
            except OSError as exc:
                report.unread(file, exc)
                continue
            left.append((other, with_text))
            yield other


def _rollouts(folder: Path, newer_than_s: float, report: ReadReport) -> Iterator[Path]:
    folders = [folder]
    while folders:
        at = folders.pop()
        below, entries = [], entries_of(at, report, is_root=at == folder and at.name == SESSIONS)
        names = {entry.name for entry in entries}
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                below.append(Path(entry.path))
            elif not entry.name.startswith(PREFIX):
                continue
            # While Codex unpacks one to go on with it both are there; the plain one counts.
            elif is_file(entry, PLAIN + SUFFIX) and entry.name[: -len(SUFFIX)] not in names:
                if is_newer(entry, newer_than_s, report):
                    yield Path(entry.path)
            elif is_file(entry, PLAIN) and is_newer(entry, newer_than_s, report):
                yield Path(entry.path)
        folders += reversed(below)


def _is_subagent(path: Path) -> bool:
    """Whether the header says so. A file that cannot be read is left to who reads it."""
    cards = RolloutCards(None)
    try:
        with FileEnd(path) as file:
            cards.take(object_of(file.first_line()) or {})
    except OSError:
        return False
    return cards.is_subagent


def _files_of(root: Path, thread: str) -> List[Path]:
    """Rollouts of a thread, a plain one first. Its id tells the day on which it began."""
    if not thread or "/" in thread or "\0" in thread:
        return []
    day = _day(thread)
    if day is None:
        found = [path for path in _all(root) if _names(path.name, thread)]
    else:
        days = [day + timedelta(days=shift) for shift in (0, -1, 1)]  # The folder has the local date.
        folders = [root / SESSIONS / f"{each:%Y}" / f"{each:%m}" / f"{each:%d}" for each in days]
        found = _within([*folders, root / ARCHIVED], thread)
    return sorted(found, key=lambda path: path.suffix == SUFFIX)


def _within(folders: List[Path], thread: str) -> List[Path]:
    entries = (entry for folder in folders for entry in entries_of(folder, ReadReport()))
    return [Path(each.path) for each in entries if _names(each.name, thread) and is_file(each, "")]


def _names(name: str, thread: str) -> bool:
    return name.startswith(PREFIX) and name.endswith((f"-{thread}{PLAIN}", f"-{thread}{PLAIN}{SUFFIX}"))


def _all(root: Path) -> Iterator[Path]:
    for folder in (root / SESSIONS, root / ARCHIVED):
        yield from _rollouts(folder, 0, ReadReport())


def _day(thread: str) -> Optional[datetime]:
    """When an id of the kind that begins with its time was made; None for any other."""
    found = _UUID7.fullmatch(thread)
    try:
        return datetime.fromtimestamp(int(found[1] + found[2], 16) / 1000) if found else None
    except (OverflowError, OSError, ValueError):
        return None
