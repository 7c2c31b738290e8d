"""OpenCode's SQLite database, read without leaving a trace beside it.

It is in WAL mode. A reader of such a database makes the two files ``-wal`` and ``-shm`` when they are
missing, even one that opens it read-only, and fails where it cannot. So:

- both are there (a running OpenCode, or one that was killed): read-only, and so is the shared memory;
- there is no ``-wal``, or an empty one that nobody uses: nobody has it open, the file holds everything
  and is opened as immutable. Should OpenCode start meanwhile, a ``-wal`` appears before anything is
  written; that is looked for behind each session, which is then read again the first way;
- there is a ``-wal`` with content and no ``-shm``: not readable without making one. That is said.

The tables have gained columns and indexes since 1.2, never lost any that matter here.
"""

import os
import sqlite3
import urllib.parse
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, TypeVar

from adapters.opencode.messages import (
    Found,
    Place,
    Sieve,
    Writer,
    edited,
    inner_parts,
    said,
    time_ms,
    writer_of,
)
from adapters.opencode.sessions import Head, Unreadable

BUSY_TIMEOUT_S = 1.0
"""How long another program's lock is waited for."""

# Byte 19 of the header: what is needed to read the file. 2 stands for a write-ahead log.
_WAL_AT = 19
_WAL = b"\x02"

LATEST = 8
"""So many messages are looked at to tell in what state a session is: prompts may have piled up."""
_LONGEST_CHARS = 1024 * 1024  # of a message or a part that is looked at for it
_MOST_PARTS = 32

_T = TypeVar("_T")
_NOBODY = Writer(is_user=False, cwd=None, created_ms=0.0)


class Latest(NamedTuple):
    """The end of one session, as it is stored."""

    directory: Optional[str]
    """The folder in which the session works."""
    updated_ms: float
    messages: List[Tuple[str, bytes]]
    """Id and JSON of the newest ones, newest first; at most :data:`LATEST`. Empty for a huge one."""
    parts: List[Tuple[str, bytes]]
    """Id of the message and JSON of those parts of them that hold one of the words asked for."""


class Database:
    """One database; it is opened with the first question and to be closed."""

    def __init__(self, path: Path, sieve: Sieve) -> None:
        self.path = str(path)
        self._real = os.path.realpath(path)  # beside which SQLite looks for the other files
        self._sieve = sieve
        self._connection: Optional[sqlite3.Connection] = None
        self._immutable = False
        self._columns: Dict[str, Set[str]] = {}

    def close(self) -> None:
        """May be called twice."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def heads(self) -> List[Head]:
        """All sessions. Unreadable for a damaged or locked file and for tables never seen."""
        return self._ask(self._heads)

    def collect(self, head: Head, with_text: bool, found: Found) -> None:
        """See :meth:`adapters.opencode.sessions.Store.collect`."""
        met = self._ask(lambda: self._collect(head, with_text))
        for place, paths in met:
            found.add(place, paths)

    def latest(self, session_id: str, words: Sequence[str]) -> Optional[Latest]:
        """The end of a session, told by few rows; None when it is not here. Unreadable as :meth:`heads`."""
        return self._ask(lambda: self._latest(session_id, words))

    # --- opening ---------------------------------------------------------------------------------

    def _ask(self, question: Callable[[], _T]) -> _T:
        """The answer, by a second try if somebody began to write while the first was looked for."""
        try:
            self._open()
            try:
                answer = question()
                if not (self._immutable and self._is_live()):
                    return answer
            except sqlite3.Error:
                if not (self._immutable and self._is_live()):
                    raise
            self.close()
            self._open()
            return question()
        except (sqlite3.Error, OSError) as exc:
            raise Unreadable(_reason(exc)) from exc

    def _open(self) -> None:
        if self._connection is not None:
            return
        for last, options in self._ways():
            self._immutable = "immutable" in options
            try:
                self._connection = self._connect(options)
                self._learn()
                return
            except sqlite3.Error:
                self.close()
                if last:
                    raise
            except Unreadable:
                self.close()
                raise

    def _ways(self) -> Iterator[Tuple[bool, str]]:
        """(whether it is the last, options) of each way in which the file may be opened."""
        if not os.path.isfile(self._real):  # A named pipe would be waited for.
            raise Unreadable("it is no regular file" if os.path.lexists(self._real) else "it is not there")
        with Path(self._real).open("rb") as file:
            is_wal = file.read(_WAL_AT + 1)[_WAL_AT:] == _WAL
        if not is_wal:
            yield True, ""
        elif not self._is_live():
            yield True, "&immutable=1"
        elif os.path.exists(self._real + "-shm"):
            yield False, "&readonly_shm=1"
            yield True, ""  # when what is in the shared memory cannot be trusted
        else:
            raise Unreadable(
                "what was written last is in a -wal file without its -shm file; "
                "start OpenCode once, and end it"
            )

    def _connect(self, options: str) -> sqlite3.Connection:
        uri = f"file:{urllib.parse.quote(os.fsencode(self._real))}?mode=ro{options}"
        connection = sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        connection.text_factory = bytes
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA temp_store = MEMORY")
        return connection

    def _is_live(self) -> bool:
        """Whether a write-ahead log may hold something, now or soon."""
        try:
            return os.stat(self._real + "-wal").st_size > 0 or os.path.exists(self._real + "-shm")
        except FileNotFoundError:
            return False

    # --- asking ----------------------------------------------------------------------------------

    def _rows(self, sql: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        assert self._connection is not None
        return self._connection.execute(sql, values)

    def _learn(self) -> None:
        """Which tables and columns there are. Unreadable when they are not those of a known version."""
        tables = [
            _text(name) for (name,) in self._rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        for table in ("session", "message", "part", "session_message"):
            if table in tables:
                rows = self._rows(f"PRAGMA table_info({table})")
                self._columns[table] = {_text(row[1]) for row in rows}
        told = {"id", "time_updated"} <= self._columns.get("session", set())
        if not told or not (self._has_parts or self._has_messages):
            raise Unreadable(f"tables of an unknown version: {', '.join(sorted(tables)[:30]) or 'none'}")

    @property
    def _has_parts(self) -> bool:
        message, part = self._columns.get("message", set()), self._columns.get("part", set())
        return {"id", "session_id", "data"} <= message and {"id", "message_id", "data"} <= part

    @property
    def _has_messages(self) -> bool:
        return {"id", "session_id", "type", "data"} <= self._columns.get("session_message", set())

    def _heads(self) -> List[Head]:
        names = ("id", "parent_id", "directory", "time_updated")
        there = self._columns["session"]
        asked = ", ".join(name if name in there else "NULL" for name in names)
        heads = []
        for session_id, parent_id, directory, updated in self._rows(f"SELECT {asked} FROM session"):
            if _text(session_id):
                ids, folder = (_text(session_id), _text(parent_id)), _text(directory) or None
                heads.append(Head(*ids, folder, time_ms(updated), self.path))
        return heads

    def _collect(self, head: Head, with_text: bool) -> "List[Tuple[Place, Tuple[str, ...]]]":
        met: List[Tuple[Place, Tuple[str, ...]]] = []
        if self._has_parts:
            where = "session_id = ?"
            if "session_id" not in self._columns["part"]:
                where = "message_id IN (SELECT id FROM message WHERE session_id = ?)"
            sql = f"SELECT message_id, id, data FROM part WHERE {where}"
            for message_id, part_id, data in self._rows(sql, (head.session_id,)):
                part = self._sieve.part(data)
                if part is not None:
                    writer = self._writer(message_id)
                    place = (writer.created_ms, _text(message_id), _text(part_id))
                    if with_text and writer.is_user:
                        met.append((place, said(part)))
                    met.append((place, edited(part, writer.cwd or head.directory)))
        if self._has_messages:
            sql = "SELECT id, type, data FROM session_message WHERE session_id = ?"
            for message_id, kind, data in self._rows(sql, (head.session_id,)):
                message = self._sieve.whole(data) or {}
                place = (writer_of(message).created_ms, _text(message_id), "")
                if with_text and _text(kind) == "user":
                    met.append((place, said({**message, "type": "text"})))
                for part in inner_parts(message):
                    met.append((place, edited(part, head.directory)))
        return met

    def _latest(self, session_id: str, words: Sequence[str]) -> Optional[Latest]:
        directory = "directory" if "directory" in self._columns["session"] else "NULL"
        sql = f"SELECT {directory}, time_updated FROM session WHERE id = ?"
        session = self._rows(sql, (session_id,)).fetchone()
        if session is None:
            return None
        messages: List[Tuple[str, bytes]] = []
        parts: List[Tuple[str, bytes]] = []
        if self._has_parts:
            order = "time_created DESC, " if "time_created" in self._columns["message"] else ""
            ids = f"SELECT id FROM message WHERE session_id = ? ORDER BY {order}id DESC LIMIT {LATEST}"
            newest = [row[0] for row in self._rows(ids, (session_id,))]
            short = f"length(data) <= {_LONGEST_CHARS}"
            for message_id in newest:
                sql = f"SELECT CASE WHEN {short} THEN data END FROM message WHERE id = CAST(? AS TEXT)"
                messages += [(_text(message_id), _bytes(data)) for (data,) in self._rows(sql, (message_id,))]
                held = " OR ".join("instr(data, ?)" for _ in words) or "0"
                sql = f"SELECT data FROM part WHERE message_id = CAST(? AS TEXT) AND {short} AND ({held})"
                rows = self._rows(f"{sql} ORDER BY id DESC LIMIT {_MOST_PARTS}", (message_id, *words))
                parts += [(_text(message_id), _bytes(data)) for (data,) in rows]
        return Latest(_text(session[0]) or None, time_ms(session[1]), messages, parts)

    def _writer(self, message_id: object) -> Writer:
        row = self._rows("SELECT data FROM message WHERE id = CAST(? AS TEXT)", (message_id,)).fetchone()
        message = None if row is None else self._sieve.message(row[0])
        return _NOBODY if message is None else writer_of(message)


def _text(value: object) -> str:
    """A text column as text; empty for anything else."""
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else ""


def _bytes(value: object) -> bytes:
    """A text column as it is stored; empty for anything else."""
    return value if isinstance(value, bytes) else b""


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
