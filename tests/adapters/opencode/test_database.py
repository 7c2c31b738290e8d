"""The database is read whatever state it is in, nothing is left beside it, and what cannot be is said."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

from adapters.bytesearch import Needles
from adapters.contract import ReadReport
from adapters.opencode import database
from adapters.opencode.database import Database
from adapters.opencode.messages import Found, Sieve
from adapters.opencode.sessions import Unreadable
from tests.adapters.opencode.stores import SCHEMA, Made, connect, files_of, left_by, text, tool
from tests.another_user import as_nobody, as_root_only, open_to_all


def listed(path: Path) -> List[str]:
    """The ids of all sessions, by a reader of its own."""
    reader = Database(path, Sieve(Needles(()), ReadReport()))
    try:
        return [head.session_id for head in reader.heads()]
    finally:
        reader.close()


def collected(reader: Database, name: str = "s", with_text: bool = True) -> List[str]:
    """The candidates of one session."""
    found = Found()
    (head,) = [head for head in reader.heads() if head.session_id == name]
    reader.collect(head, with_text, found)
    return list(found.candidates())


def why_not(path: Path) -> str:
    with pytest.raises(Unreadable) as told:
        listed(path)
    return str(told.value)


def insert(name: str) -> str:
    return f"INSERT INTO session (id, directory, time_updated) VALUES ('{name}', '/', 1)"


WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
connection.executescript(sys.argv[2])
print("ready", flush=True)
for line in sys.stdin:
    connection.execute(line)
    print("done", flush=True)
"""
Live = Callable[[Path], Callable[..., None]]


@pytest.fixture
def live() -> Iterator[Live]:
    """Starts a program that keeps a database open, and answers with what makes it write.

    A process of its own: within one, SQLite shares more than two programs do.
    """
    with ExitStack() as running:

        def start(path: Path) -> Callable[..., None]:
            command = [sys.executable, "-c", WRITER, str(path), SCHEMA]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            running.enter_context(process)
            assert process.stdin is not None and process.stdout is not None
            assert process.stdout.readline() == "ready\n"

            def write(*statements: str) -> None:
                assert process.stdin is not None and process.stdout is not None
                for statement in statements:
                    print(statement, file=process.stdin, flush=True)
                    assert process.stdout.readline() == "done\n"

            return write

        yield start


def left(folder: Path, state: str) -> Path:
    """A database with one session, in one of the states in which OpenCode leaves it."""
    made = Made(folder / "its" / "opencode.db")
    made.session("s")
    if state == "closed":
        return made.close()
    killed = folder / "killed"
    shutil.copytree(made.path.parent, killed)
    made.close()
    if state == "killed, no -shm":
        (killed / "opencode.db-shm").unlink()
    if state == "copied without its log":
        (killed / "opencode.db-wal").unlink()
        (killed / "opencode.db-shm").unlink()
    return killed / "opencode.db"


# --- the states in which it may be found -------------------------------------------------------------


def test_live_writer_is_read_up_to_its_last_commit(tmp_path: Path, live: Live) -> None:
    """What is only in the log counts, what is not committed does not; the writer is not disturbed."""
    path = tmp_path / "opencode.db"
    writer = live(path)
    writer(insert("committed"))
    writer("BEGIN IMMEDIATE", insert("not committed"))
    before = files_of(tmp_path)
    assert before[f"{path}-wal"][0] > 0
    assert listed(path) == ["committed"]
    assert files_of(tmp_path) == before
    writer("COMMIT")
    assert listed(path) == ["committed", "not committed"]


def test_log_that_was_begun_anew_is_read(tmp_path: Path, live: Live) -> None:
    """After checkpoints, with an empty log and a full one, and a shared memory that says nothing."""
    path = tmp_path / "opencode.db"
    writer = live(path)
    for name in ("a", "b", "c"):
        writer(insert(name), "PRAGMA wal_checkpoint(TRUNCATE)")
        assert listed(path)[-1] == name
    writer(insert("d"))
    assert listed(path) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("state", ["closed", "killed"])
def test_nothing_is_left_beside_a_database_at_rest(tmp_path: Path, state: str) -> None:
    """A plain reader would make the log and the shared memory that are missing, and leave them."""
    path = left(tmp_path, state)
    before = files_of(tmp_path)
    assert listed(path) == ["s"]
    assert files_of(tmp_path) == before


@as_root_only
@pytest.mark.parametrize("state", ["closed", "killed"])
@pytest.mark.parametrize("mode", [0o555, 0o777])
def test_another_users_database_is_read(tmp_path: Path, state: str, mode: int) -> None:
    """In a folder that cannot be written, and in one that could be and is not."""
    path = left(tmp_path, state)
    open_to_all(path.parent)
    path.parent.chmod(mode)
    before = files_of(tmp_path)
    assert as_nobody(lambda: listed(path)) == ["s"]
    assert files_of(tmp_path) == before


@as_root_only
@pytest.mark.parametrize("mode", [0o555, 0o777])
def test_another_users_live_database_is_read(tmp_path: Path, live: Live, mode: int) -> None:
    """The shared memory is opened for reading only."""
    path = tmp_path / "opencode.db"
    live(path)(insert("s"))
    open_to_all(tmp_path)
    tmp_path.chmod(mode)
    before = files_of(tmp_path)
    assert as_nobody(lambda: listed(path)) == ["s"]
    assert files_of(tmp_path) == before


@as_root_only
def test_database_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    """By the words of the system."""
    path = left(tmp_path, "closed")
    open_to_all(path.parent)
    path.chmod(0o600)
    assert as_nobody(lambda: why_not(path)) == "Permission denied"


def test_log_without_shared_memory_is_told(tmp_path: Path) -> None:
    """To read it the missing file would have to be made; the database alone would lack what is new."""
    path = left(tmp_path, "killed, no -shm")
    before = files_of(tmp_path)
    assert "-wal" in why_not(path)
    assert files_of(tmp_path) == before


def test_database_without_its_log_holds_what_was_saved(tmp_path: Path) -> None:
    """Here nothing was: no table is known."""
    assert why_not(left(tmp_path, "copied without its log")).startswith("tables of an unknown version")


def test_opencode_that_starts_meanwhile_is_noticed(tmp_path: Path) -> None:
    """A file that was at rest is opened as immutable; rows of the log are seen all the same."""
    path = left(tmp_path, "closed")
    reader = Database(path, Sieve(Needles(()), ReadReport()))
    assert [head.session_id for head in reader.heads()] == ["s"]
    writer = connect(path)
    writer.execute("INSERT INTO session (id, directory, time_updated) VALUES ('new', '/', 1)")
    writer.execute("PRAGMA wal_checkpoint(FULL)")
    assert [head.session_id for head in reader.heads()] == ["s", "new"]
    writer.execute("INSERT INTO session (id, directory, time_updated) VALUES ('newer', '/', 1)")
    assert [head.session_id for head in reader.heads()] == ["s", "new", "newer"]
    reader.close()
    reader.close()
    writer.close()


def test_page_torn_by_a_start_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while somebody begins to write is no damage."""
    path = left(tmp_path, "closed")
    reader = Database(path, Sieve(Needles(()), ReadReport()))
    reader.heads()
    writer = connect(path)
    real, asked = reader._heads, []

    def torn() -> Any:
        asked.append(1)
        if len(asked) == 1:
            raise sqlite3.DatabaseError("database disk image is malformed")
        return real()

    monkeypatch.setattr(reader, "_heads", torn)
    assert [head.session_id for head in reader.heads()] == ["s"]
    writer.close()
    assert len(asked) == 2


def test_rollback_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no log is possible (a network's file system) OpenCode falls back to it; a lock is waited for."""
    path = tmp_path / "opencode.db"
    connection = sqlite3.connect(str(path), isolation_level=None)
    connection.executescript(SCHEMA)
    connection.execute("INSERT INTO session (id, directory, time_updated) VALUES ('s', '/', 1)")
    before = files_of(tmp_path)
    assert listed(path) == ["s"]
    assert files_of(tmp_path) == before
    connection.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.01)
    assert why_not(path) == "database is locked"


@pytest.mark.parametrize("name", ["a b.db", "100%25 #1?mode=rwc&x.db", "\u00fc\u770b.db", "it's.db"])
def test_any_name(tmp_path: Path, name: str) -> None:
    """A name is no part of the address that opens it; nor does a link hide the files beside the target."""
    made = Made(tmp_path / "x" / name)
    made.session("s")
    (tmp_path / "link.db").symlink_to(made.path)
    assert listed(made.path) == listed(tmp_path / "link.db") == ["s"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.db", "x"]


@pytest.mark.parametrize("state", ["closed", "killed", "rollback"])
def test_nothing_can_be_written_through_our_connection(tmp_path: Path, state: str) -> None:
    """Whichever way it was opened."""
    path = left(tmp_path, state) if state != "rollback" else tmp_path / "opencode.db"
    if state == "rollback":
        with closing(sqlite3.connect(str(path))) as connection:
            connection.executescript(SCHEMA)
    asked = Database(path, Sieve(Needles(()), ReadReport()))
    asked.heads()
    assert asked._connection is not None
    with closing(asked), pytest.raises(sqlite3.OperationalError, match="readonly"):
        asked._connection.execute("DELETE FROM session")


# --- damage, and generations ---------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"SQLite", b"no database at all, " * 100])
def test_no_database(tmp_path: Path, content: bytes) -> None:
    """An empty file has no tables; others are no database."""
    (tmp_path / "opencode.db").write_bytes(content)
    assert why_not(tmp_path / "opencode.db") in (
        "tables of an unknown version: none",
        "file is not a database",
    )


def test_damaged_pages(tmp_path: Path) -> None:
    """An error, never a crash; what could be read stays readable."""
    made = Made(tmp_path / "opencode.db")
    made.session("s")
    for number in range(300):
        made.message("s", text(f"see /b/{number}.md " + "x" * 2000))
    path = made.close()
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xff" * 8192)
    reader = Database(path, Sieve(Needles(()), ReadReport()))
    with pytest.raises(Unreadable, match="malformed"):
        collected(reader)
    assert [head.session_id for head in reader.heads()] == ["s"]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("CREATE TABLE talk (id text)", "tables of an unknown version: talk"),
        (SCHEMA.replace("part", "fragment"), "tables of an unknown version: fragment, message, session"),
        (SCHEMA.replace("time_updated", "changed"), "tables of an unknown version: message, part, session"),
        (SCHEMA.replace("data text", "body text"), "tables of an unknown version: message, part, session"),
    ],
)
def test_unknown_generations_are_named(tmp_path: Path, schema: str, words: str) -> None:
    """Tables that were renamed, columns that are gone: said with what is there instead."""
    assert why_not(Made(tmp_path / "opencode.db", schema).close()) == words


def test_missing_columns_that_can_be_done_without(tmp_path: Path) -> None:
    """No parents, no folder, parts that name only their message."""
    schema = """
        CREATE TABLE session (id text, time_updated integer);
        CREATE TABLE message (id text, session_id text, data text);
        CREATE TABLE part (id text, message_id text, data text);
        INSERT INTO session VALUES ('s', 5), (NULL, 5), (x'', 5), ('t', 'soon');
        INSERT INTO message VALUES ('m', 's', '{"role":"user"}');
        INSERT INTO part VALUES ('p', 'm', '{"type":"text","text":"/b/a.md"}');
    """
    reader = Database(Made(tmp_path / "opencode.db", schema).close(), Sieve(Needles(()), ReadReport()))
    assert [(head.session_id, head.updated_ms) for head in reader.heads()] == [("s", 5.0), ("t", 0.0)]
    assert collected(reader) == ["/b/a.md"]
    reader.close()


def test_messages_of_the_generation_to_come(tmp_path: Path) -> None:
    """Since 1.14 there is a table for whole messages; it is read beside the others."""
    schema = (
        SCHEMA + "CREATE TABLE session_message (id text, session_id text, type text, seq integer, data text);"
    )
    made = Made(tmp_path / "opencode.db", schema)
    made.session("s", directory="/home/dev/board")
    call = {"type": "tool", "name": "write", "state": {"status": "completed", "input": {"path": "new.md"}}}
    rows: List[Any] = [
        ("1", "user", {"text": "see /b/said.md", "time": {"created": 1}}),
        ("2", "assistant", {"content": [{"type": "text", "text": "/b/no.md"}, call], "time": {"created": 2}}),
        ("3", "synthetic", {"text": "/b/no.md"}),
        ("4", "system", {"text": "/b/no.md"}),
        ("5", "user", "not an object"),
    ]
    for name, kind, data in rows:
        made.connection.execute(
            "INSERT INTO session_message VALUES (?, 's', ?, 1, ?)", (name, kind, json.dumps(data))
        )
    reader = Database(made.close(), Sieve(Needles(()), ReadReport()))
    assert collected(reader) == ["/b/said.md", "/home/dev/board/new.md"]
    assert collected(reader, with_text=False) == ["/home/dev/board/new.md"]
    reader.close()


def test_rows_with_values_of_any_type(tmp_path: Path) -> None:
    """NULLs, numbers, bytes that are no text, text that is no JSON: counted, and the rest is read."""
    made = Made(tmp_path / "opencode.db", SCHEMA.replace("text NOT NULL", "text"))
    made.session("s")
    made.message(
        "s", text("/b/a.md"), None, 5, b"\xff\xfe.md", "oops.md", '"text.md"', tool("edit", "/b/e.md")
    )
    execute = made.connection.execute
    execute('INSERT INTO part VALUES (NULL, NULL, \'s\', \'{"type":"text","text":"/b/lost.md"}\')')
    execute("INSERT INTO part VALUES ('x', 'gone', 's', '{\"type\":\"text\",\"text\":\"/b/lost.md\"}')")
    execute("INSERT INTO message VALUES ('broken', 's', 0, 'oops'), ('none', 's', 0, NULL)")
    execute("INSERT INTO part VALUES ('y', 'broken', 's', '{\"type\":\"text\",\"text\":\"/b/lost.md\"}')")
    execute("INSERT INTO part VALUES ('z', 'none', 's', '{\"type\":\"text\",\"text\":\"/b/lost.md\"}')")
    report = ReadReport()
    reader = Database(made.close(), Sieve(Needles(()), report))
    assert collected(reader) == ["/b/a.md", "/b/e.md"]
    assert report.damaged == 5
    reader.close()


def test_order_is_that_of_the_messages(tmp_path: Path) -> None:
    """Not that of the rows."""
    made = Made(tmp_path / "opencode.db")
    made.session("s")
    late = made.message("s", text("/b/3.md"))
    made.connection.execute("UPDATE message SET data = replace(data, '\"created\": 17', '\"created\": 18')")
    made.message("s", text("/b/1.md"), tool("write", "/b/2.md"))
    assert late == "msg_0001"
    reader = Database(made.close(), Sieve(Needles(()), ReadReport()))
    assert collected(reader) == ["/b/1.md", "/b/2.md", "/b/3.md"]
    reader.close()


@pytest.mark.parametrize("version", ["1.2.1", "1.14.34", "1.18.33"])
def test_sessions_of_a_real_database_are_found_by_an_index(tmp_path: Path, version: str) -> None:
    """So that the cost is that of the sessions of a month, not of everything."""
    path = left_by(version, tmp_path) / "opencode.db"
    asked: List[str] = []
    reader = Database(path, Sieve(Needles(()), ReadReport()))
    (head, *_) = reader.heads()
    assert reader._connection is not None
    reader._connection.set_trace_callback(asked.append)
    reader.collect(head, True, Found())
    reader._connection.set_trace_callback(None)
    for sql in asked:
        plan = " ".join(str(row[3]) for row in reader._connection.execute(f"EXPLAIN QUERY PLAN {sql}"))
        assert "SEARCH" in plan, sql
        assert "SCAN" not in plan, sql
    reader.close()
    assert os.listdir(tmp_path) == ["opencode.db"]
