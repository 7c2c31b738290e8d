"""Our own files: can they be read and written, and what stands in them?"""

import os
from pathlib import Path
from typing import Dict, List, Tuple

from companion.commands.checks.finding import Finding, ok, unknown, wrong
from companion.core.errors import StorageError
from companion.core.settings import Settings
from companion.sessions.association import Association
from companion.sessions.journal import association_journal
from companion.sessions.pending import read_links

SECTION = "Files"


def check(settings: Settings) -> Tuple[List[Finding], Dict[str, str]]:
    """Findings, and for each harness the time of its newest record. Nothing is written."""
    found, records = _associations(settings.data_path)
    found += _links(settings.pending_path)
    found += _hook_states(settings.hook_state_path)
    found += _writable(settings.state_dir)
    found += _lockable(settings.state_dir)
    newest: Dict[str, str] = {}
    for record in records:
        newest[record.harness] = max(record.updated_at, newest.get(record.harness, ""))
    return found, newest


def _associations(path: Path) -> Tuple[List[Finding], List[Association]]:
    journal = association_journal(path)
    if not os.path.lexists(path):
        return [ok(SECTION, f"{path}: not there yet, made at the first association")], []
    try:
        records = journal.read()
    except StorageError as exc:
        return [wrong(SECTION, str(exc), "Give it back its permissions, or move it away")], []
    finally:
        journal.close()
    found = [ok(SECTION, f"{path}: {len(records)} {'record' if len(records) == 1 else 'records'}")]
    if journal.damaged:
        text = f"{path}: {journal.damaged} damaged lines are skipped"
        found.append(unknown(SECTION, text, "They go away when the companion next compacts the log"))
    return found, records


def _links(path: Path) -> List[Finding]:
    try:
        links = read_links(path)
    except StorageError as exc:
        return [wrong(SECTION, str(exc), "Give it back its permissions, or move it away")]
    found = []
    for link in links:
        text = (
            f"{link.path} has no uuid; {link.harness} session {link.session_id} ({link.status.value})"
            " will be linked to it once it has one"
        )
        hint = (
            "When the session has settled: mdello.pyz board repair"
            if link.mid_turn
            else "mdello.pyz board repair"
        )
        found.append(unknown(SECTION, text, hint))
    return found


def _hook_states(path: Path) -> List[Finding]:
    if not os.path.lexists(path):
        return []
    try:
        path.open("rb").close()
    except OSError as exc:
        return [wrong(SECTION, f"Cannot read {path}: {exc.strerror or exc}", "Give it back its permissions")]
    return [ok(SECTION, f"{path}: readable")]


def _lockable(folder: Path) -> List[Finding]:
    """Told only where our processes cannot keep out of each other's way (some network disks)."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows
        return []
    try:
        opened = os.open(_nearest(folder), os.O_RDONLY)
    except OSError:  # That it cannot be used is told by others.
        return []
    try:
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:  # Somebody holds it: it works.
        pass
    except OSError as exc:
        text = f"{folder}: locks do not work there ({exc.strerror or exc})"
        return [unknown(SECTION, text, "Run one install, backfill or repair at a time")]
    finally:
        os.close(opened)
    return []


def _nearest(folder: Path) -> Path:
    """A folder, or the nearest parent that exists."""
    return next((each for each in (folder, *folder.parents) if os.path.exists(each)), folder)


def _writable(folder: Path) -> List[Finding]:
    """Whether records will survive a restart; the nearest existing parent counts."""
    nearest = _nearest(folder)
    if os.access(nearest, os.W_OK | os.X_OK) and nearest.is_dir():
        return [ok(SECTION, f"{folder}: can be written")]
    text = f"{folder} cannot be written: associations are kept in memory only"
    return [wrong(SECTION, text, "Set XDG_STATE_HOME or MDELLO_COMPANION_DATA to a folder of yours")]
