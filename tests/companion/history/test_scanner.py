"""Past sessions of one agent within the window, and the names by which boards are searched for."""

import json
import os
import unicodedata
from pathlib import Path
from typing import Iterator, List, Tuple, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import claude
from adapters.contract import Adapter, PastSession, ReadReport
from companion.history.scanner import WINDOW_S, Progress, needles_for, scan

NOW_S = 1_800_000_000.0


def transcript(path: Path, session: str, text: str, age_s: float = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    message = {"role": "user", "content": text}
    path.write_text(json.dumps({"type": "user", "sessionId": session, "message": message}) + "\n")
    os.utime(path, (NOW_S - age_s, NOW_S - age_s))


def test_sessions_of_the_window_in_the_order_of_their_files(tmp_path: Path) -> None:
    """Thirty days to the second, the edge included."""
    assert WINDOW_S == 30 * 24 * 60 * 60
    transcript(tmp_path / "a/one.jsonl", "one", "see /home/dev/board/a.md")
    transcript(tmp_path / "b/two.jsonl", "two", "nothing", WINDOW_S)
    transcript(tmp_path / "b/old.jsonl", "old", "see /home/dev/board/a.md", WINDOW_S + 1)
    found = scan(claude, tmp_path, needles_for(["/home/dev/board"]), NOW_S)
    assert [(each.session_id, each.card_paths) for each in found.sessions] == [
        ("one", ("/home/dev/board/a.md",)),
        ("two", ()),
    ]
    assert found.report.records == 2


def test_missing_store_has_no_sessions_and_is_told(tmp_path: Path) -> None:
    """An agent that is not installed is no error."""
    found = scan(claude, tmp_path / "none", (), NOW_S)
    assert found.sessions == []
    assert found.report.skipped == [(str(tmp_path / "none"), "No such file or directory")]


def test_logs_of_sub_agents_are_not_scanned_sessions(tmp_path: Path) -> None:
    """Neither those beside a session nor a side chain under another name."""
    transcript(tmp_path / "s.jsonl", "s", "hello")
    transcript(tmp_path / "s/subagents/agent-1.jsonl", "s", "hello")
    side = {
        "type": "user",
        "isSidechain": True,
        "sessionId": "s",
        "message": {"role": "user", "content": "x"},
    }
    (tmp_path / "side.jsonl").write_text(json.dumps(side) + "\n")
    os.utime(tmp_path / "side.jsonl", (NOW_S, NOW_S))
    found = scan(claude, tmp_path, (), NOW_S)
    assert [each.session_id for each in found.sessions] == ["s"]
    assert sorted(path for path, _ in found.report.skipped) == [str(tmp_path), str(tmp_path / "side.jsonl")]


def test_progress_counts_files_and_bytes(tmp_path: Path) -> None:
    """From nothing to everything, once per file."""
    transcript(tmp_path / "a.jsonl", "a", "x")
    transcript(tmp_path / "b.jsonl", "b", "x")
    size = (tmp_path / "a.jsonl").stat().st_size
    seen: List[Progress] = []
    scan(claude, tmp_path, (), NOW_S, seen.append)
    assert seen == [Progress(number, 2, number * size, 2 * size, number) for number in range(3)]


def test_progress_within_a_file_of_many_sessions(tmp_path: Path) -> None:
    """A reader that tells its share moves the bar session by session; one without id is not lost."""
    (tmp_path / "store").write_bytes(b"x" * 1000)
    agent = ManySessions(tmp_path / "store", 4)
    seen: List[Progress] = []
    found = scan(cast(Adapter, agent), tmp_path, (), NOW_S, seen.append)
    assert [each.session_id for each in found.sessions] == ["0", "1", "2", "3"]
    assert agent.asked_since == NOW_S - WINDOW_S
    assert [(each.files, each.size_bytes, each.sessions) for each in seen] == [
        *((0, 0, 0), (0, 250, 1), (0, 500, 2), (0, 750, 3), (0, 1000, 4)),
        (1, 1000, 4),
    ]


class ManySessions:
    """An agent with one store for everything."""

    def __init__(self, store: Path, count: int) -> None:
        self.store, self.count = store, count
        self.asked_since = 0.0

    def session_files(self, root: Path, newer_than_s: float, report: ReadReport) -> Iterator[Path]:
        yield self.store

    def read_sessions(
        self, path: Path, needles: Tuple[bytes, ...], newer_than_s: float, report: ReadReport
    ) -> Iterator[PastSession]:
        self.asked_since = newer_than_s
        for number in range(self.count):
            report.share = (number + 1) / self.count
            yield PastSession(str(number), str(path), None, ())


@pytest.mark.parametrize(
    ("folder", "needles"),
    [
        ("/home/dev/board", (b"/board", b"\\u002fboard", b"\\u002Fboard", b'"board')),
        ("/home/dev/my board/", (b"/my board", b"\\u002fmy board", b"\\u002Fmy board", b'"my board')),
        ("/x/caf\u00e9-notes", (b"-notes",)),
        ("/x/cafe\u0301-notes", (b"-notes",)),
        ("/x/R&D plans", (b"D plans",)),
        ("/x/\u770b\u677f", ("\u770b\u677f".encode(), b"\\u770b\\u677f", b"\\u770B\\u677F")),
        ("/x/\U0001f600", ("\U0001f600".encode(), b"\\ud83d\\ude00", b"\\uD83D\\uDE00")),
        ("/", ()),
        ('/x/"', ()),
    ],
)
def test_needles_of_a_folder(folder: str, needles: object) -> None:
    """The longest part of its name that every writer spells alike, else the name in all spellings."""
    assert needles_for([folder]) == needles


def test_short_name_is_looked_for_as_a_whole_component() -> None:
    """Two letters stand everywhere; between separators they are rare."""
    needles = needles_for(["/x/kb"])
    assert b"/kb/" in needles
    assert b'/kb"' in needles
    assert b"kb" not in needles


def test_name_that_cannot_be_searched_for_makes_everything_interesting() -> None:
    """One such board among others is enough."""
    assert needles_for(["/home/dev/board", '/x/"']) == ()
    assert needles_for([]) == ()


def test_real_name_of_a_linked_board_is_looked_for_too(tmp_path: Path) -> None:
    """A session may have used either name."""
    (tmp_path / "real-board").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "real-board")
    needles = needles_for([str(tmp_path / "linked")])
    assert b"/linked" in needles
    assert b"/real-board" in needles


names = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(name=names.filter(lambda name: name not in (".", "..")), composed=st.booleans())
def test_every_spelling_of_a_card_holds_a_needle(name: str, composed: bool) -> None:
    """Whatever the name and the writer, a line with the path is found."""
    needles = needles_for([f"/home/dev/{name}"])
    written = unicodedata.normalize("NFC" if composed else "NFD", name)
    for ascii_only in (False, True):
        text = json.dumps({"text": f"see /home/dev/{written}/card.md"}, ensure_ascii=ascii_only)
        for line in (text, text.replace("/", "\\/"), text.replace("/", "\\u002f")):
            data = line.encode("utf-8")
            assert not needles or any(needle in data for needle in needles)
