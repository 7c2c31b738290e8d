"""Reads the records that agents keep of their own processes: of each folder only what has changed."""

import os
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from adapters.contract import Adapter, AdapterError, ProcessRecord
from companion.core.processes import Process
from companion.sessions.evidence import Records
from companion.sessions.index import Session

MAX_RECORDS = 1_000
"""Agents that are killed leave their records; of a folder with more the newest count, and that is said."""
MAX_PROBLEMS = 20
MAX_FOLDERS = 16
"""Of one agent: a person has a few profiles."""

_Stamp = Tuple[int, int, int]


class Found(NamedTuple):
    """One record, and the process that it is about."""

    session: Session
    process: Process
    record: ProcessRecord


class _Folder:
    """One agent's folder. What was read stays as long as the file's stamp does."""

    def __init__(self, adapter: Adapter, root: Path) -> None:
        self.state = Records.NONE
        self.problems: Dict[str, str] = {}
        self.understood = 0
        self._adapter = adapter
        self._root = root
        self._known: Dict[str, Tuple[_Stamp, Optional[ProcessRecord]]] = {}

    def read(self) -> List[ProcessRecord]:
        """Every record there is now. Never raises."""
        self.problems = {}
        try:
            with os.scandir(self._root) as entries:
                names = [entry.name for entry in entries]
        except FileNotFoundError:
            self.state, self._known = Records.NONE, {}
            return []
        except OSError as exc:
            self.state, self._known = Records.UNREADABLE, {}
            self.problems[str(self._root)] = exc.strerror or str(exc)
            return []
        if len(names) > MAX_RECORDS:
            self.problems[str(self._root)] = f"{len(names)} files, of which the newest {MAX_RECORDS} are read"
            names = sorted(names, key=self._changed_at, reverse=True)[:MAX_RECORDS]
        self.state = Records.READ
        self._known = {name: self._look(name) for name in names}
        found = [record for _, record in self._known.values() if record is not None]
        self.understood = len(found)
        return found

    def _changed_at(self, name: str) -> float:
        try:
            return os.stat(self._root / name).st_mtime
        except OSError:
            return 0.0

    def _look(self, name: str) -> Tuple[_Stamp, Optional[ProcessRecord]]:
        path = self._root / name
        try:
            at = os.stat(path)
            stamp = (at.st_ino, at.st_size, at.st_mtime_ns)
            known = self._known.get(name)
            if known is not None and known[0] == stamp:
                return known
            return stamp, self._adapter.read_record(path)
        except FileNotFoundError:
            pass
        except Exception as exc:  # Foreign data, perhaps being written just now: read again at the next look.
            if len(self.problems) < MAX_PROBLEMS:
                reason = exc.reason if isinstance(exc, AdapterError) else getattr(exc, "strerror", None)
                self.problems[str(path)] = reason or str(exc) or type(exc).__name__
        return (0, 0, 0), None


class RecordReader:
    """The records of all agents, in all their folders. Not safe for threads: one looks at a time.

    Args:
        adapters: harness name to adapter.
        home, environ: where the agents are told to keep them.
    """

    def __init__(self, adapters: Mapping[str, Adapter], home: Path, environ: Mapping[str, str]) -> None:
        self._folders: Dict[str, Dict[Path, _Folder]] = {}
        for name, adapter in adapters.items():
            root = adapter.records_root(home, environ)
            if root is not None:
                self.add(name, adapter, root)

    def add(self, harness: str, adapter: Adapter, root: Path) -> None:
        """Read this folder of an agent too. One that is known already, or one too many, changes nothing."""
        folders = self._folders.setdefault(harness, {})
        if root not in folders and len(folders) < MAX_FOLDERS:
            folders[root] = _Folder(adapter, root)

    def read(self) -> List[Found]:
        """Every record there is now, in no order. Never raises."""
        return [
            Found(
                (harness, record.session_id),
                Process(record.pid, record.begun or "", record.domain or ""),
                record,
            )
            for harness, folders in self._folders.items()
            for folder in folders.values()
            for record in folder.read()
        ]

    def state(self, harness: str) -> Records:
        """Whether all of an agent's records could be read at the last look."""
        states = {folder.state for folder in self._folders.get(harness, {}).values()}
        for state in (Records.UNREADABLE, Records.READ):
            if state in states:
                return state
        return Records.NONE

    def facts(self) -> Dict[str, Dict[str, object]]:
        """By harness: ``state``, ``records`` (how many were understood) and ``problems`` (by path)."""
        return {
            harness: {
                "state": self.state(harness).value,
                "records": sum(folder.understood for folder in folders.values()),
                "problems": {
                    path: reason for folder in folders.values() for path, reason in folder.problems.items()
                },
            }
            for harness, folders in self._folders.items()
        }
