"""The JSON files in which OpenCode kept sessions before it had a database.

Two layouts, each with a file per session, message and part; a file's own name is its id::

    storage/session/PROJECT/SESSION.json             from 0.6 to 1.1
    storage/message/SESSION/MESSAGE.json
    storage/part/MESSAGE/PART.json

    project/NAME/storage/session/info/SESSION.json   before that
    project/NAME/storage/session/message/SESSION/MESSAGE.json
    project/NAME/storage/session/part/SESSION/MESSAGE/PART.json

Before 0.3 parts stood within their message. Each time OpenCode moved on, it copied and left the old
files in place. Links are not followed.
"""

import os
from pathlib import Path
from typing import List, Optional, Tuple

from adapters.contract import ReadReport
from adapters.listing import entries_of, is_file
from adapters.opencode.messages import (
    LONGEST_BYTES,
    Found,
    Record,
    Sieve,
    edited,
    inner_parts,
    said,
    time_ms,
    writer_of,
)
from adapters.opencode.sessions import Head

_SUFFIX = ".json"


class Storage:
    """One tree of either layout."""

    def __init__(self, path: Path, sieve: Sieve, newer_than_s: float, report: ReadReport) -> None:
        """``path``: a folder ``storage``, of the data folder or of a project in it."""
        self.path = str(path)
        per_project = os.path.isdir(path / "session" / "info")
        self._infos = path / "session"
        self._base = path / "session" if per_project else path
        self._per_project = per_project
        self._sieve = sieve
        self._newer_than_s = newer_than_s
        self._report = report

    def heads(self) -> List[Head]:
        """All sessions; files that cannot be read stand in the report."""
        heads = []
        folders = [self._infos / "info"] if self._per_project else self._folders(self._infos)
        for folder in folders:
            for entry in self._files(folder):
                head = self._head(entry)
                if head is not None:
                    heads.append(head)
        return heads

    def collect(self, head: Head, with_text: bool, found: Found) -> None:
        """See :meth:`adapters.opencode.sessions.Store.collect`."""
        for entry in self._files(self._base / "message" / head.session_id):
            data = self._read(entry.path)
            message_id = entry.name[: -len(_SUFFIX)]
            parts = self._parts(head.session_id, message_id)
            message = self._sieve.message(data) if parts or _holds_parts(data) else None
            if message is None:
                self._report.records += data is not None
                continue
            inner = ((f"{number:06}", part) for number, part in enumerate(inner_parts(message)))
            writer = writer_of(message)
            for part_id, part in (*inner, *parts):
                place = (writer.created_ms, message_id, part_id)
                if with_text and writer.is_user:
                    found.add(place, said(part))
                found.add(place, edited(part, writer.cwd or head.directory))

    def _head(self, entry: "os.DirEntry[str]") -> Optional[Head]:
        with self._report.damage_in(entry.path):
            info = self._sieve.message(self._read(entry.path) or b"")
        if info is None:
            self._report.unread(entry.path, "not a session's record")
            return None
        session_id = entry.name[: -len(_SUFFIX)]
        parent, directory, time = info.get("parentID"), info.get("directory"), info.get("time")
        times = [time.get(name) for name in ("created", "updated")] if isinstance(time, dict) else []
        times += [self._last_message_ms(session_id)]
        return Head(
            session_id=session_id,
            parent_id=parent if isinstance(parent, str) else "",
            directory=directory if isinstance(directory, str) and directory else None,
            updated_ms=max(map(time_ms, times)),
            file=entry.path,
        )

    def _last_message_ms(self, session_id: str) -> float:
        """The oldest versions did not note in the session that it went on."""
        folder = self._base / "message" / session_id
        try:
            if folder.stat().st_mtime < self._newer_than_s:
                return 0.0
        except FileNotFoundError:
            return 0.0
        except OSError as exc:
            self._report.unread(folder, exc)
            return 0.0
        entries = self._files(folder)
        message = self._sieve.message(self._read(entries[-1].path)) if entries else None
        return 0.0 if message is None else writer_of(message).created_ms

    def _parts(self, session_id: str, message_id: str) -> List[Tuple[str, Record]]:
        """(id, part) of those parts of a message that may lead to a card."""
        between = [session_id] if self._per_project else []
        useful = []
        for entry in self._files(self._base.joinpath("part", *between, message_id)):
            part = self._sieve.part(self._read(entry.path))
            if part is not None:
                useful.append((entry.name[: -len(_SUFFIX)], part))
        return useful

    def _read(self, path: str) -> Optional[bytes]:
        """A file's content; None when it cannot be read, or is longer than any that is parsed."""
        try:
            with Path(path).open("rb") as file:
                data = file.read(LONGEST_BYTES + 1)
        except OSError as exc:
            self._report.unread(path, exc)
            return None
        if len(data) > LONGEST_BYTES:
            self._report.unread(path, "too long to be read")
            return None
        return data

    def _files(self, folder: Path) -> "List[os.DirEntry[str]]":
        """JSON files of a folder by name; ids grow with time."""
        return [entry for entry in entries_of(folder, self._report) if is_file(entry, _SUFFIX)]

    def _folders(self, folder: Path) -> List[Path]:
        return [
            Path(entry.path)
            for entry in entries_of(folder, self._report)
            if entry.is_dir(follow_symlinks=False)
        ]


def _holds_parts(data: Optional[bytes]) -> bool:
    return data is not None and b'"parts"' in data
