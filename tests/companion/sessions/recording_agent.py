"""An agent that keeps records of its processes and files of its sessions, as simple as they can be."""

import json
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Tuple, cast

from adapters.contract import (
    Adapter,
    AdapterError,
    Mark,
    PastSession,
    ProcessRecord,
    ReadReport,
    Status,
    Tail,
)
from companion.core.processes import ProcessTable


class RecordingAgent:
    """``records/<pid>.json`` holds a record's fields; ``sessions/<id>`` a mark, a time, and cards."""

    NAME = "fake"

    def __init__(self, home: Path) -> None:
        self.home = home
        self.read: List[str] = []
        """Names of the files that were read, in order."""
        for name in ("records", "sessions"):
            (home / name).mkdir(parents=True)

    def as_adapter(self) -> Adapter:
        """What the watcher takes."""
        return cast(Adapter, self)

    # What a test writes

    def keep(
        self, pid: int, session_id: str, status: Optional[Status], at_s: float, **others: object
    ) -> Path:
        """Write a process's record; with the start time of a process that lives."""
        found = ProcessTable().find(pid)
        others.setdefault("begun", found.begun if found is not None else "1")
        path = self.home / "records" / f"{pid}.json"
        word = status.value if status is not None else None
        fields: Dict[str, object] = {"session": session_id, "pid": pid, "status": word, "at": at_s, **others}
        path.write_text(json.dumps(fields))
        return path

    def write(self, session_id: str, mark: Mark, at_s: float, *cards: str) -> Path:
        """Write a session's file."""
        path = self.home / "sessions" / session_id
        path.write_text(json.dumps({"mark": mark.value, "at": at_s, "cards": cards, "cwd": "/home/dev/tree"}))
        return path

    # What an adapter answers

    def records_root(self, home: Path, environ: Mapping[str, str]) -> Optional[Path]:
        """The folder of records."""
        return self.home / "records"

    def folders_of(self, session_file: Path) -> Optional[Tuple[Path, Path]]:
        """Both lie beside each other."""
        root = session_file.parent
        return (root, root.parent / "records") if root.name == "sessions" else None

    def read_record(self, path: Path) -> Optional[ProcessRecord]:
        """The record in a file; AdapterError for what is no JSON."""
        self.read.append(path.name)
        if path.suffix != ".json":
            return None
        try:
            fields = json.loads(path.read_text())
        except ValueError as exc:
            raise AdapterError("not JSON", path) from exc
        return ProcessRecord(
            session_id=fields["session"],
            pid=fields["pid"],
            begun=fields.get("begun"),
            domain=fields.get("domain"),
            status=Status(fields["status"]) if fields["status"] else None,
            said=fields["status"] or "",
            said_at_s=fields["at"],
            cwd="/home/dev",
        )

    def sessions_root(self, home: Path, environ: Mapping[str, str]) -> Path:
        """The folder of sessions."""
        return self.home / "sessions"

    def session_file(self, root: Path, session_id: str) -> Optional[Path]:
        """The file of the session's name."""
        path = root / session_id
        return path if path.exists() else None

    def read_tail(self, path: Path, session_id: str) -> Optional[Tail]:
        """The mark in a file."""
        self.read.append(path.name)
        fields = json.loads(path.read_text())
        return Tail(Mark(fields["mark"]), fields["at"], fields["mark"], fields["cwd"])

    def read_session(
        self, path: Path, needles: Tuple[bytes, ...], cwd: Optional[str], report: ReadReport
    ) -> PastSession:
        """The cards in a file."""
        return PastSession(path.name, str(path), None, tuple(json.loads(path.read_text())["cards"]))
