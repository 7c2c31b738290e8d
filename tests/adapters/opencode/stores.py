"""Stores of OpenCode to read: those that real versions left, and small ones made to measure."""

import json
import sqlite3
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from adapters.contract import PastSession, ReadReport
from adapters.opencode import history
from tests.conftest import ROOT

FIXTURES = ROOT / "tests/fixtures/opencode/history"
BOARD = "/home/dev/project/board"
DATABASES = ("1.2.1", "1.14.34", "1.18.33")
TREES = ("0.1.174", "0.5.29", "1.1.65")

SCHEMA = """
CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text NOT NULL, time_created integer,
    time_updated integer NOT NULL);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer,
    data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
    data text NOT NULL);
CREATE INDEX part_session_idx ON part (session_id);
"""

NOW_MS = 1_796_088_000_000


def left_by(version: str, data: Path, board: str = BOARD, later_ms: int = 0) -> Path:
    """The data folder as that version left it, the database closed in an orderly way.

    With another board than the real one, and later than it really was, where that matters.
    """
    data.mkdir(parents=True, exist_ok=True)
    if version in TREES:
        tree = json.loads((FIXTURES / f"{version}.json").read_text(encoding="utf-8").replace(BOARD, board))
        for name, content in tree.items():
            if "updated" in content.get("time", {}) and "/message/" not in name:
                content["time"]["updated"] += later_ms
        return unpack(tree, data)
    connection = connect(data / "opencode.db")
    connection.executescript((FIXTURES / f"{version}.sql").read_text(encoding="utf-8").replace(BOARD, board))
    connection.execute("UPDATE session SET time_updated = time_updated + ?", (later_ms,))
    connection.close()
    return data


def unpack(tree: Dict[str, Any], data: Path) -> Path:
    """Write a tree of JSON files: path within the data folder to content."""
    for name, content in tree.items():
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return data


def connect(path: Path) -> sqlite3.Connection:
    """As OpenCode opens it: with a write-ahead log, each statement a transaction."""
    connection = sqlite3.connect(str(path), isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    return connection


class Made:
    """A database of today's layout, with the columns that matter."""

    def __init__(self, path: Path, schema: str = SCHEMA) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.connection = connect(path)
        self.connection.executescript(schema)
        self._count = 0

    def session(
        self,
        name: str,
        updated_ms: int = NOW_MS,
        parent: Optional[str] = None,
        directory: str = "/home/dev/p",
    ) -> None:
        values = (name, parent, directory, updated_ms)
        self.connection.execute(
            "INSERT INTO session (id, parent_id, directory, time_updated) VALUES (?, ?, ?, ?)", values
        )

    def message(self, session: str, *parts: Any, role: str = "user", **more: Any) -> str:
        """A message with parts; a part that is no dict is stored as it is. Its id."""
        self._count += 1
        name = f"msg_{self._count:04}"
        data = {"role": role, "time": {"created": NOW_MS + self._count}, **more}
        columns = "(id, session_id, time_created, data)"
        self.connection.execute(
            f"INSERT INTO message {columns} VALUES (?, ?, 0, ?)", (name, session, json.dumps(data))
        )
        for number, part in enumerate(parts):
            stored = json.dumps(part) if isinstance(part, dict) else part
            values = (f"prt_{self._count:04}_{number}", name, session, stored)
            self.connection.execute(
                "INSERT INTO part (id, message_id, session_id, data) VALUES (?, ?, ?, ?)", values
            )
        return name

    def close(self) -> Path:
        self.connection.close()
        return self.path


def text(words: Any, **more: Any) -> Dict[str, Any]:
    """A text part."""
    return {"type": "text", "text": words, **more}


def tool(name: Any, path: Any, status: Any = "completed") -> Dict[str, Any]:
    """A tool part."""
    return {
        "type": "tool",
        "tool": name,
        "callID": "c",
        "state": {"status": status, "input": {"filePath": path}},
    }


def read(
    root: Path, needles: Tuple[bytes, ...] = (), newer_than_s: float = 0
) -> Tuple[List[PastSession], ReadReport]:
    """All that is told of a store."""
    report = ReadReport()
    found = [
        session
        for path in history.session_files(root, newer_than_s, report)
        for session in history.read_sessions(path, needles, newer_than_s, report)
    ]
    return found, report


def cards(session: PastSession) -> List[str]:
    """The file names of a session's candidates."""
    return [path.rpartition("/")[2] for path in session.card_paths]


def files_of(folder: Path) -> Dict[str, Tuple[int, int]]:
    """Size and modification time of everything below a folder."""
    return {
        str(path): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in folder.rglob("*")
        if not path.is_dir()
    }
