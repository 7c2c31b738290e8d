"""The JSON files of older versions, in both layouts."""

import os
from pathlib import Path
from typing import Any, Dict, List

import pytest

from adapters.bytesearch import Needles
from adapters.contract import ReadReport
from adapters.opencode.messages import LONGEST_BYTES, Found, Sieve
from adapters.opencode.sessions import Head
from adapters.opencode.storage import Storage
from tests.adapters.opencode.stores import text, tool, unpack
from tests.another_user import as_nobody, as_root_only, open_to_all

USER = {"role": "user", "time": {"created": 5_000}}
TREE: Dict[str, Any] = {
    "storage/session/hash/s.json": {"directory": "/home/dev/p", "time": {"created": 1_000, "updated": 9_000}},
    "storage/message/s/m1.json": USER,
    "storage/part/m1/p1.json": text("see /b/a.md"),
    "storage/part/m1/p2.json": text("/b/no.md", synthetic=True),
    "storage/message/s/m2.json": {
        "role": "assistant",
        "time": {"created": 5_001},
        "path": {"cwd": "/home/dev/board"},
    },
    "storage/part/m2/p3.json": tool("write", "w.md"),
    "storage/part/m2/p4.json": tool("edit", "/b/failed.md", "error"),
}
OLDER: Dict[str, Any] = {
    "project/p/storage/session/info/s.json": {"time": {"created": 1_000, "updated": 2_000}},
    "project/p/storage/session/message/s/m1.json": USER,
    "project/p/storage/session/part/s/m1/p1.json": text("see /b/a.md"),
    "project/p/storage/session/message/s/m2.json": {
        "role": "assistant",
        "time": {"created": 5_001},
        "path": {"cwd": "/home/dev/board"},
    },
    "project/p/storage/session/part/s/m2/p3.json": tool("write", "w.md"),
}


def storage(path: Path, report: ReadReport, newer_than_s: float = 0) -> Storage:
    return Storage(path, Sieve(Needles(()), report), newer_than_s, report)


def read(path: Path, report: ReadReport, with_text: bool = True) -> List[str]:
    """The candidates of the only session."""
    store = storage(path, report)
    (head,) = store.heads()
    found = Found()
    store.collect(head, with_text, found)
    return list(found.candidates())


@pytest.mark.parametrize("tree", [TREE, OLDER])
def test_both_layouts(tmp_path: Path, tree: Dict[str, Any]) -> None:
    """The user's words, and edits against the folder that the message tells."""
    unpack(tree, tmp_path)
    path = tmp_path / next(iter(tree)).partition("/session/")[0]
    report = ReadReport()
    assert read(path, report) == ["/b/a.md", "/home/dev/board/w.md"]
    assert (report.damaged, report.unknown, report.skipped) == (0, {}, [])
    assert read(path, ReadReport(), with_text=False) == ["/home/dev/board/w.md"]


def test_head(tmp_path: Path) -> None:
    """The id is the file's name, for copies kept the old one inside; the session's own file is named."""
    tree = {**TREE, "storage/session/hash/s.json": {**TREE["storage/session/hash/s.json"], "id": "other"}}
    unpack({**tree, "storage/session/hash/kid.json": {"parentID": "s", "directory": ""}}, tmp_path)
    heads = storage(tmp_path / "storage", ReadReport()).heads()
    folder = tmp_path / "storage/session/hash"
    assert heads == [
        Head("kid", "s", None, 0.0, str(folder / "kid.json")),
        Head("s", "", "/home/dev/p", 9_000.0, str(folder / "s.json")),
    ]


def test_session_that_went_on_without_noting_it(tmp_path: Path) -> None:
    """The oldest versions wrote only the message; that is looked at unless its folder is old as well."""
    unpack(OLDER, tmp_path)
    path = tmp_path / "project/p/storage"
    assert [head.updated_ms for head in storage(path, ReadReport()).heads()] == [5_001.0]
    os.utime(path / "session/message/s", (100, 100))
    assert [head.updated_ms for head in storage(path, ReadReport(), 101).heads()] == [2_000.0]


def test_damage_is_counted_named_and_no_end(tmp_path: Path) -> None:
    """Torn files, other things than objects, files too long; links and other names are left alone."""
    unpack(
        {
            **TREE,
            "storage/session/hash/torn.json": '{"time": {',
            "storage/session/hash/list.json": "[]",
            "storage/message/s/m0.json": "oops",
            "storage/part/m0/p.json": text("/b/lost.md"),
            "storage/part/m1/p0.json": '{"type":"text","text":"/b/torn.md',
            "storage/part/m1/p9.json": '{"type":"text","text":"/b/long.md' + "x" * LONGEST_BYTES + '"}',
            "storage/part/m1/.p5.json.tmp": text("/b/no.md"),
        },
        tmp_path,
    )
    (tmp_path / "storage/part/m1/p6.json").symlink_to(tmp_path / "storage/part/m0/p.json")
    (tmp_path / "storage/part/m1/p7.json").mkdir()
    os.mkfifo(tmp_path / "storage/part/m1/p8.json")
    report = ReadReport()
    store = storage(tmp_path / "storage", report)
    heads = store.heads()
    assert [head.session_id for head in heads] == ["s"]
    found = Found()
    store.collect(heads[0], True, found)
    assert found.candidates() == ("/b/a.md", "/home/dev/board/w.md")
    folder = tmp_path / "storage"
    assert sorted(report.skipped) == [
        (str(folder / "part/m1/p9.json"), "too long to be read"),
        (str(folder / "session/hash/list.json"), "not a session's record"),
        (str(folder / "session/hash/torn.json"), "not a session's record"),
    ]
    assert report.incomplete
    assert report.damaged == 4
    heads_damaged = {str(folder / "session/hash/torn.json"): 1}
    assert report.damaged_in == heads_damaged


@as_root_only
def test_session_of_which_nobody_sees_whether_it_went_on_is_told(tmp_path: Path) -> None:
    """It may be new: its messages are somebody else's."""
    unpack(TREE, tmp_path)
    open_to_all(tmp_path)
    (tmp_path / "storage/message").chmod(0)

    def act() -> Any:
        report = ReadReport()
        heads = storage(tmp_path / "storage", report, 101).heads()
        return [[head.updated_ms for head in heads], report.skipped, report.incomplete]

    messages = str(tmp_path / "storage/message/s")
    assert as_nobody(act) == [[9_000.0], [[messages, "Permission denied"]], True]


@as_root_only
def test_what_may_not_be_read_is_told(tmp_path: Path) -> None:
    """A file and a folder of somebody else's."""
    unpack(TREE, tmp_path)
    open_to_all(tmp_path)
    (tmp_path / "storage/part/m1/p1.json").chmod(0)
    (tmp_path / "storage/part/m2").chmod(0)

    def act() -> Any:
        report = ReadReport()
        return [read(tmp_path / "storage", report), report.skipped, report.incomplete]

    assert as_nobody(act) == [
        [],
        [
            [str(tmp_path / "storage/part/m1/p1.json"), "Permission denied"],
            [str(tmp_path / "storage/part/m2"), "Permission denied"],
        ],
        True,
    ]


def test_nothing_there(tmp_path: Path) -> None:
    """A folder without sessions, as later versions keep one for other things."""
    report = ReadReport()
    (tmp_path / "session_diff").mkdir()
    assert storage(tmp_path, report).heads() == []
    assert storage(tmp_path / "none", report).heads() == []
    assert report == ReadReport()
