"""Where OpenCode keeps its sessions, and which cards the past ones worked on.

A database, and beside it what older versions left: see :mod:`adapters.opencode.database` and
:mod:`adapters.opencode.storage`. All of it is one store for us, in which each session stands once.
"""

import os
import re
import stat
from contextlib import ExitStack
from pathlib import Path
from typing import Iterator, List, Mapping, Tuple

from adapters.bytesearch import Needles
from adapters.contract import PastSession, ReadReport
from adapters.listing import entries_of
from adapters.opencode.messages import Sieve
from adapters.opencode.sessions import Index, read_family
from adapters.opencode.storage import Storage

DATABASE = "opencode.db"
# Builds of another channel than the released one keep a database of their own.
_DATABASES = re.compile(r"opencode(?:-[A-Za-z0-9._-]+)?\.db")


def sessions_root(home: Path, environ: Mapping[str, str]) -> Path:
    """A database or the folder that holds it.

    ``OPENCODE_SESSIONS_DB``, else ``OPENCODE_DB``, which the program itself reads (a name within its
    data folder, or an absolute path), else the data folder. Empty values are unset.
    """
    override = environ.get("OPENCODE_SESSIONS_DB", "")
    if override:
        return Path(override)
    base = environ.get("XDG_DATA_HOME", "")
    data = (Path(base) if os.path.isabs(base) else home / ".local" / "share") / "opencode"
    named = environ.get("OPENCODE_DB", "")
    return data / named if named and named != ":memory:" else data


def session_files(root: Path, newer_than_s: float, report: ReadReport) -> Iterator[Path]:
    """The root, once: which of its sessions are new stands inside."""
    try:
        os.stat(root)
    except OSError as exc:
        report.unread(root, exc)
        if root.suffix != ".db" or not storages(root.parent, ReadReport()):
            return
    yield root


def read_sessions(
    path: Path, needles: Tuple[bytes, ...], newer_than_s: float, report: ReadReport
) -> Iterator[PastSession]:
    """Every session of the store that changed at or after a time, the oldest first. Never raises."""
    folder = path if os.path.isdir(path) else path.parent
    sieve = Sieve(Needles(needles), report)
    with ExitStack() as open_until_read:
        index = Index(report)
        bases, trees = databases(path), storages(folder, report)
        if not bases and not trees:
            report.unread(path, "no database is there, and no session files of older versions")
        for name in bases:
            _add_database(name, sieve, index, open_until_read, report)
        for storage in trees:
            index.add(Storage(storage, sieve, newer_than_s, report))
        families = index.families(newer_than_s * 1000)
        records = report.records
        for number, family in enumerate(families, 1):
            session = read_family(family, report)
            report.share = number / len(families)
            yield session
        if len(families) > 1 and report.records == records:  # A single one may have just begun.
            reason = f"parsed 0 records of {len(families)} sessions: none where messages are looked for"
            report.unread(path, reason)
    if sieve.too_long:
        report.unread(path, f"{sieve.too_long} records are too long to be read")


def _add_database(
    path: Path, sieve: Sieve, index: Index, open_until_read: ExitStack, report: ReadReport
) -> None:
    try:
        from adapters.opencode.database import Database  # noqa: PLC0415 - not every Python has SQLite
    except ImportError:
        report.unread(path, "this Python has no sqlite3 module")
        return
    database = Database(path, sieve)
    open_until_read.callback(database.close)
    index.add(database)


def databases(path: Path) -> List[Path]:
    """The named one; of a folder all, that of the released program first."""
    if not os.path.isdir(path):
        return [path] if os.path.lexists(path) else []
    try:
        names = sorted(name for name in os.listdir(path) if _DATABASES.fullmatch(name))
    except OSError:
        names = [DATABASE]  # Asking it will tell why.
    return [path / name for name in sorted(names, key=lambda name: name != DATABASE)]


def storages(folder: Path, report: ReadReport) -> List[Path]:
    """Trees of JSON files in a data folder, the newer layout first."""
    projects = [Path(entry.path) for entry in entries_of(folder / "project", report)]
    found = [base / "storage" for base in (folder, *projects)]
    return [path for path in found if _is_folder(path, report)]


def _is_folder(path: Path, report: ReadReport) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as exc:
        report.unread(path, exc)
        return False
