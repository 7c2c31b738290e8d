"""OpenCode's sessions of all versions, wherever they are, each once."""

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.contract import ReadReport
from adapters.opencode import history
from companion.history.scanner import needles_for
from tests.adapters.opencode.stores import (
    BOARD,
    DATABASES,
    NOW_MS,
    TREES,
    Made,
    cards,
    files_of,
    left_by,
    read,
    text,
    tool,
    unpack,
)
from tests.another_user import as_nobody, as_root_only, open_to_all
from tests.conftest import ROOT

HOME = Path("/home/dev")
DATA = "/home/dev/.local/share/opencode"
slow_read = runpy.run_path(str(ROOT / "tests/fixtures/opencode/slow_reader.py"))["read"]


@pytest.mark.parametrize(
    ("environ", "root"),
    [
        ({}, DATA),
        ({"XDG_DATA_HOME": "/srv/data"}, "/srv/data/opencode"),
        ({"XDG_DATA_HOME": "data"}, DATA),
        ({"XDG_DATA_HOME": "", "OPENCODE_DB": "", "OPENCODE_SESSIONS_DB": ""}, DATA),
        ({"OPENCODE_DB": "/srv/o.db"}, "/srv/o.db"),
        ({"OPENCODE_DB": "other.db"}, f"{DATA}/other.db"),
        ({"OPENCODE_DB": ":memory:"}, DATA),
        ({"OPENCODE_DB": "/srv/o.db", "OPENCODE_SESSIONS_DB": "/b/c.db"}, "/b/c.db"),
    ],
)
def test_root(environ: Dict[str, str], root: str) -> None:
    """The contract's variable, then OpenCode's own, as OpenCode reads it."""
    assert history.sessions_root(HOME, environ) == Path(root)


IDS = {
    "0.1.174": "ses_dd0cb4367ffexJCWY96q4T1IWm",
    "0.5.29": "ses_dd0cbd210ffemf5vgeh17in8lQ",
    "1.1.65": "ses_dd0cbc2a9ffeRcgRmG7JDmU8Pe",
    "1.2.1": "ses_dd0cb7ae2ffe3oRFhN2s6e5yhb",
    "1.14.34": "ses_dd0cb63ccffeQEw6tYicsm6GYd",
    "1.18.33": "ses_dd0cbae87ffePuJ6BqukmvUpW8",
}
CARDS = ["named.md", "written.md", "edit-me.md", "relative.md", "later.md", "by-child.md"]


@pytest.mark.parametrize("version", [*TREES, *DATABASES])
@pytest.mark.parametrize("needles", [(), needles_for([BOARD])], ids=["all", "board"])
def test_real_sessions(tmp_path: Path, version: str, needles: Any) -> None:
    """A prompt, writes, an edit, a read, a failed edit, a sub-agent that was told of a card and wrote
    another; continued with a second prompt. (0.1.174 could not talk to our model beyond the prompts.)"""
    left_by(version, tmp_path)
    before = files_of(tmp_path)
    (session,), report = read(tmp_path, needles)
    assert session.session_id == IDS[version]
    wanted = ["named.md", "later.md"] if version == "0.1.174" else CARDS
    assert list(session.card_paths) == [f"{BOARD}/{name}" for name in wanted]
    assert session.updated_at is not None and session.updated_at.startswith("2026-12-01T01:2")
    place = Path(session.session_file or "")
    assert place == tmp_path / "opencode.db" if version in DATABASES else place.stem == IDS[version]
    assert (report.damaged, report.unknown, report.skipped, report.incomplete) == (0, {}, [], False)
    assert report.records > 5 and report.share == 1.0
    assert files_of(tmp_path) == before


def test_all_stores_together(tmp_path: Path) -> None:
    """Left behind by one upgrade after another, and by a build of another channel."""
    for version in (*TREES, "1.18.33"):
        left_by(version, tmp_path)
    left_by("1.2.1", tmp_path / "dev")
    (tmp_path / "dev/opencode.db").rename(tmp_path / "opencode-my.dev_2.db")
    (tmp_path / "opencode.db.bak").write_bytes(b"no database")
    sessions, report = read(tmp_path)
    assert {session.session_id for session in sessions} == {
        IDS[version] for version in (*TREES, "1.18.33", "1.2.1")
    }
    assert [session.updated_at for session in sessions] == sorted(str(each.updated_at) for each in sessions)
    assert report.skipped == []


def json_copy(name: str, updated_ms: int, path: str) -> Dict[str, Any]:
    """A session in JSON files that named one path."""
    return {
        f"storage/session/hash/{name}.json": {"directory": "/p", "time": {"updated": updated_ms}},
        f"storage/message/{name}/m.json": {"role": "user", "time": {"created": 1}},
        "storage/part/m/p.json": text(path),
    }


@pytest.mark.parametrize(("behind_ms", "wanted"), [(-1, "json.md"), (0, "sql.md"), (1, "sql.md")])
def test_of_two_copies_the_newest_is_told_once(tmp_path: Path, behind_ms: int, wanted: str) -> None:
    """Nothing doubled, nothing mixed; of equal ones the database's."""
    made = Made(tmp_path / "opencode.db")
    made.session("s", NOW_MS)
    made.session("other", NOW_MS - 5000)
    made.message("s", text("/b/sql.md"))
    made.close()
    unpack(json_copy("s", NOW_MS - behind_ms, "/b/json.md"), tmp_path)
    (other, session), _ = read(tmp_path)
    assert (other.session_id, other.card_paths) == ("other", ())
    assert (session.session_id, cards(session)) == ("s", [wanted])
    assert str(session.session_file).endswith("opencode.db" if wanted == "sql.md" else "hash/s.json")


def test_window_is_that_of_the_sessions(tmp_path: Path) -> None:
    """To the millisecond, the edge included, in either store; what is older is not counted either."""
    made = Made(tmp_path / "opencode.db")
    for name, updated_ms in (("old", NOW_MS - 1), ("edge", NOW_MS), ("new", NOW_MS + 1)):
        made.session(name, updated_ms)
        made.message(name, text(f"/b/{name}.md"))
    made.close()
    unpack(json_copy("old-json", NOW_MS - 1, "/b/x.md"), tmp_path)
    os.utime(tmp_path / "storage/message/old-json", (1, 1))
    sessions, _ = read(tmp_path, newer_than_s=NOW_MS / 1000)
    assert [session.session_id for session in sessions] == ["edge", "new"]


def test_folder_of_the_message_then_of_the_session(tmp_path: Path) -> None:
    """A relative path that does not hold the board's name is found by either."""
    made = Made(tmp_path / "opencode.db")
    made.session("s", directory="/home/dev/board")
    made.message("s", tool("write", "one.md"), role="assistant")
    made.message("s", tool("write", "two.md"), role="assistant", path={"cwd": "/home/dev/board/sub"})
    made.message("s", tool("write", "../board/three.md"), role="assistant", path={"cwd": "/home/dev/x"})
    made.close()
    (session,), _ = read(tmp_path, needles_for(["/home/dev/board"]))
    wanted = ["/home/dev/board/one.md", "/home/dev/board/sub/two.md", "/home/dev/board/three.md"]
    assert list(session.card_paths) == wanted


def test_missing_stores(tmp_path: Path) -> None:
    """OpenCode was never here, or keeps its sessions elsewhere: told, and nothing is concluded."""
    for root in (tmp_path / "none", tmp_path / "opencode.db"):
        sessions, report = read(root)
        assert sessions == []
        assert report.skipped == [(str(root), "No such file or directory")]
        assert report.incomplete
    sessions, report = read(tmp_path)
    reason = "no database is there, and no session files of older versions"
    assert (sessions, report.skipped, report.incomplete) == ([], [(str(tmp_path), reason)], True)


def test_old_files_beside_a_named_database(tmp_path: Path) -> None:
    """They are read too, also when the database itself is missing."""
    left_by("1.1.65", tmp_path)
    (session,), report = read(tmp_path / "opencode.db")
    assert session.session_id == IDS["1.1.65"]
    assert report.skipped == [(str(tmp_path / "opencode.db"), "No such file or directory")]
    left_by("1.18.33", tmp_path)
    sessions, _ = read(tmp_path / "opencode.db")
    assert len(sessions) == 2


def test_database_that_cannot_be_read_hides_no_others(tmp_path: Path) -> None:
    """It is named, and so is the doubt about everything else."""
    left_by("1.1.65", tmp_path)
    (tmp_path / "opencode.db").write_bytes(b"something else entirely" * 100)
    (tmp_path / "opencode-odd.db").symlink_to(tmp_path / "gone")
    sessions, report = read(tmp_path)
    assert [session.session_id for session in sessions] == [IDS["1.1.65"]]
    assert report.skipped == [
        (str(tmp_path / "opencode.db"), "file is not a database"),
        (str(tmp_path / "opencode-odd.db"), "it is not there"),
    ]
    assert report.incomplete


def test_python_without_sqlite_says_so(tmp_path: Path) -> None:
    """Some builds have none; the JSON files are read all the same."""
    left_by("1.18.33", tmp_path)
    left_by("1.1.65", tmp_path)
    code = f"""
import json, sys
sys.modules["sqlite3"] = None
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from adapters.contract import ReadReport
from adapters.opencode import history
report = ReadReport()
sessions = list(history.read_sessions(Path({str(tmp_path)!r}), (), 0, report))
print(json.dumps([[each.session_id for each in sessions], report.skipped, report.incomplete]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    reason = "this Python has no sqlite3 module"
    assert json.loads(done.stdout) == [[IDS["1.1.65"]], [[str(tmp_path / "opencode.db"), reason]], True]


def test_sessions_without_a_record_are_an_alarm(tmp_path: Path) -> None:
    """Messages that moved to a place nobody here knows; a single session may just have begun."""
    made = Made(tmp_path / "opencode.db")
    made.session("s")
    assert read(tmp_path)[1].skipped == []
    made.session("t")
    made.close()
    sessions, report = read(tmp_path)
    assert len(sessions) == 2
    (skipped,) = report.skipped
    assert skipped == (str(tmp_path), "parsed 0 records of 2 sessions: none where messages are looked for")
    assert report.incomplete


def test_records_that_are_too_long_are_told(tmp_path: Path) -> None:
    """Not parsed, for that takes several times their size."""
    made = Made(tmp_path / "opencode.db")
    made.session("s")
    made.message("s", text("/b/a.md" + "x" * 5_000_000), text("/b/b.md"))
    made.close()
    (session,), report = read(tmp_path)
    assert cards(session) == ["b.md"]
    assert report.skipped == [(str(tmp_path), "1 records are too long to be read")]


def test_share_grows_session_by_session(tmp_path: Path) -> None:
    """What a progress bar needs for one file with everything in it."""
    made = Made(tmp_path / "opencode.db")
    for number in range(4):
        made.session(f"s{number}")
        made.message(f"s{number}", text("hello"))
    made.close()
    report = ReadReport()
    shares = [report.share for _ in history.read_sessions(tmp_path, (), 0, report)]
    assert shares == [0.25, 0.5, 0.75, 1.0]


def test_left_unfinished_the_database_is_closed(tmp_path: Path) -> None:
    """Whoever stops asking leaves no file open."""
    left_by("1.18.33", tmp_path)
    asking = history.read_sessions(tmp_path, (), 0, ReadReport())
    next(asking)
    held = [link for link in open_files() if str(tmp_path) in link]
    asking.close()  # type: ignore[attr-defined]
    assert not [link for link in open_files() if str(tmp_path) in link]
    assert held or not Path("/proc/self/fd").exists()


def open_files() -> List[str]:
    """The files that this process has open, where the system tells."""
    folder = Path("/proc/self/fd")
    found = []
    for entry in folder.iterdir() if folder.exists() else ():
        try:
            found.append(os.readlink(entry))
        except OSError:
            continue
    return found


# --- against a reader that parses every row ------------------------------------------------------------

BOARDS = ["/home/dev/board", "/srv/B\u00fccher/\u770b\u677f", "/x/kb"]
FOLDERS = [
    *BOARDS,
    "/home/dev//board",
    "/home/x/../dev/board",
    "/home/dev/boards",
    "/srv/Bu\u0308cher/\u770b\u677f",
]
NAMES = ["card.md", "a b.md", "it.MD", "\u00fc.md", "card.txt", ".md", 'q"x.md', "\U0001f600.md"]
sampled = st.sampled_from
paths = st.builds("{}/{}".format, sampled(FOLDERS), sampled(NAMES))
relative = st.builds("{}{}".format, sampled(["", "board/", "../board/", "sub/../", "kb/"]), sampled(NAMES))
words = st.lists(sampled(["look at ", "\n", '"']) | paths | st.text(max_size=8), max_size=5).map("".join)
text_parts = st.fixed_dictionaries(
    {"type": sampled(["text", "text", "reasoning", "new", 5]), "text": words},
    optional={"synthetic": sampled([True, False]), "time": st.just({"start": 1})},
)
tool_parts = st.builds(
    tool,
    sampled(["edit", "write", "write", "read", 5]),
    paths | relative | sampled([5, None]),
    sampled(["completed", "completed", "error", "running", None]),
)
parts = (
    text_parts | tool_parts | sampled([{"snapshot": "/home/dev/board/x.md", "type": "step-start"}, {}, []])
)


@st.composite
def stored(draw: Any) -> Any:
    """A part as text, in some order and spelling, or damaged."""
    part = draw(parts)
    if isinstance(part, dict) and draw(st.booleans()):
        part = {name: part[name] for name in draw(st.permutations(list(part)))}
    separators = draw(sampled([(",", ":"), (", ", ": "), (" , ", " : ")]))
    line = json.dumps(part, ensure_ascii=draw(st.booleans()), separators=separators)
    spelling = draw(st.integers(0, 9))
    if spelling == 0:
        line = line.replace("/", "\\/")
    if spelling == 1:
        line = line.replace("/", draw(sampled(["\\u002f", "\\u002F"])))
    if spelling == 2:
        line = re.sub(r"\\u[0-9a-f]{4}", lambda found: "\\u" + found[0][2:].upper(), line)
    if spelling == 3:
        line = line[: draw(st.integers(0, len(line)))]
    return line.encode("utf-8", errors="replace").decode("utf-8")


talks = st.tuples(
    sampled(["user", "user", "assistant", 5]),
    sampled([None, "/home/dev/board", "/srv/B\u00fccher", ""]),
    st.lists(stored(), max_size=4),
)
sessions_of = st.lists(
    st.tuples(
        sampled([None, None, "s0", "s1", "s2", "gone"]),
        sampled(["/home/dev/board", "/home/dev", "/srv/B\u00fccher", "/x/kb"]),
        st.lists(talks, max_size=3),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=150)
@given(content=sessions_of, boards=sampled([BOARDS[:1], BOARDS[1:2], BOARDS[2:], BOARDS]))
def test_same_as_parsing_every_row(
    tmp_path_factory: pytest.TempPathFactory, content: Any, boards: List[str]
) -> None:
    """Escapes, orders, damage, sub-agents of sub-agents: the cards on the boards agree."""
    path = tmp_path_factory.getbasetemp() / "generated.db"
    for name in ("generated.db", "generated.db-wal", "generated.db-shm"):
        path.with_name(name).unlink(missing_ok=True)
    made = Made(path)
    made.connection.execute("PRAGMA synchronous = OFF")
    for number, (parent, directory, messages) in enumerate(content):
        made.session(f"s{number}", parent=parent, directory=directory)
        for role, cwd, stored_parts in messages:
            made.message(
                f"s{number}", *stored_parts, role=role, **({} if cwd is None else {"path": {"cwd": cwd}})
            )
    made.close()
    wanted = slow_read(path)
    fast, _ = read(path, needles_for(boards))
    everything, _ = read(path)
    assert {each.session_id: on_boards(each.card_paths, boards) for each in fast} == {
        name: on_boards(paths, boards) for name, paths in wanted.items()
    }
    assert {each.session_id: sorted(each.card_paths) for each in everything} == {
        name: sorted(paths) for name, paths in wanted.items()
    }


def on_boards(paths: Any, boards: List[str]) -> List[str]:
    """The paths of cards that lie directly in one of the folders, sorted."""
    at_boards = [path for path in paths if os.path.dirname(os.path.normpath(path)) in boards]
    return sorted(path for path in at_boards if path.endswith(".md"))


@as_root_only
def test_old_stores_that_may_not_be_looked_at_are_told(tmp_path: Path) -> None:
    """Sessions may be in there: of every folder on the way to one, and of what shows whether it went on."""
    left_by("0.5.29", tmp_path / "a")
    left_by("1.1.65", tmp_path / "b")
    open_to_all(tmp_path)
    project = next((tmp_path / "a" / "project").iterdir())
    for place in (
        *(tmp_path / "a" / "project", project, project / "storage", project / "storage/session/info"),
        *(
            project / "storage/session/message",
            tmp_path / "b/storage/session",
            tmp_path / "b/storage/message",
        ),
    ):
        place.chmod(0o000)
        root = tmp_path / place.relative_to(tmp_path).parts[0]

        def act(root: Path = root) -> Any:
            report = read(root)[1]
            return [[Path(path).name for path, _ in report.skipped], report.incomplete]

        named, incomplete = as_nobody(act)
        place.chmod(0o755)
        assert incomplete and named, place


def test_a_database_cut_short_is_told(tmp_path: Path) -> None:
    """Wherever it ends: what is found is all, or it is said that it may not be."""
    whole = (left_by("1.18.33", tmp_path / "whole") / "opencode.db").read_bytes()
    (session,), _ = read(tmp_path / "whole")
    told = 0
    for size in range(0, len(whole), 4096):
        for end in (size, size + 1000):
            (tmp_path / "opencode.db").write_bytes(whole[:end])
            sessions, report = read(tmp_path / "opencode.db")
            assert report.incomplete or cards(sessions[0]) == cards(session), end
            told += report.incomplete
    assert told > 10
