"""Where Pi's sessions are looked for, and what real versions left there."""

import json
import os
from pathlib import Path
from typing import Any, Dict, List

import pytest

from adapters.contract import ReadReport
from adapters.pi import history
from companion.history.scanner import needles_for
from tests.another_user import as_nobody, as_root_only, open_to_all
from tests.conftest import ROOT

FIXTURES = ROOT / "tests/fixtures/pi/history"
BOARD = "/home/dev/project/board"
HOME = Path("/home/dev")


def session(path: Path, text: str = "see /b/a.md", session_id: str = "s", age_s: float = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    entries = [
        {"type": "session", "version": 3, "id": session_id, "timestamp": "2026-01-01T00:00:00.000Z"},
        {
            "type": "message",
            "timestamp": "2026-01-02T00:00:00.000Z",
            "message": {"role": "user", "content": text},
        },
    ]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    os.utime(path, (1_000_000 - age_s, 1_000_000 - age_s))
    return path


@pytest.mark.parametrize(
    ("environ", "root"),
    [
        ({}, "/home/dev/.pi/agent/sessions"),
        ({"PI_CODING_AGENT_DIR": "/srv/pi"}, "/srv/pi/sessions"),
        ({"PI_CODING_AGENT_DIR": "~/pi"}, "/home/dev/pi/sessions"),
        ({"PI_CODING_AGENT_DIR": "~"}, "/home/dev/sessions"),
        ({"PI_CODING_AGENT_DIR": "/srv/pi", "PI_CODING_AGENT_SESSION_DIR": "~/s"}, "/home/dev/s"),
        ({"PI_CODING_AGENT_SESSION_DIR": "/s", "PI_SESSIONS_DIR": "/other"}, "/other"),
        ({"PI_CODING_AGENT_SESSION_DIR": "", "PI_SESSIONS_DIR": "", "PI_CODING_AGENT_DIR": ""}, None),
    ],
)
def test_root(environ: Dict[str, str], root: str) -> None:
    """The contract's variable, then Pi's own, as Pi reads them; empty ones are unset."""
    assert history.sessions_root(HOME, environ) == Path(root or "/home/dev/.pi/agent/sessions")


def test_files_in_order_within_the_window(tmp_path: Path) -> None:
    """At any depth, a folder's files before its folders; links and other names are left alone."""
    at = [
        session(tmp_path / name) for name in ("--b--/1.jsonl", "--b--/x/0.jsonl", "--a--/2.jsonl", "9.jsonl")
    ]
    session(tmp_path / "--b--/old.jsonl", age_s=11)
    session(tmp_path / "elsewhere.txt")
    (tmp_path / "link.jsonl").symlink_to(at[0])
    (tmp_path / "linked").symlink_to(tmp_path / "--b--")
    os.mkfifo(tmp_path / "pipe.jsonl")
    report = ReadReport()
    files = list(history.session_files(tmp_path, 1_000_000 - 10, report))
    assert [str(path.relative_to(tmp_path)) for path in files] == [
        *("9.jsonl", "--a--/2.jsonl", "--b--/1.jsonl", "--b--/x/0.jsonl")
    ]
    assert (report.skipped, report.incomplete) == ([], False)


def test_missing_root_is_told(tmp_path: Path) -> None:
    """Pi was never here, or it keeps its sessions elsewhere."""
    report = ReadReport()
    assert list(history.session_files(tmp_path / "none", 0, report)) == []
    assert report.skipped == [(str(tmp_path / "none"), "No such file or directory")]
    assert report.incomplete


@as_root_only
def test_what_may_not_be_read_is_told(tmp_path: Path) -> None:
    """A folder and a file of somebody else's: there may be sessions that nobody can see."""
    session(tmp_path / "open/1.jsonl")
    session(tmp_path / "open/2.jsonl").chmod(0)
    session(tmp_path / "shut/3.jsonl")
    open_to_all(tmp_path)
    (tmp_path / "shut").chmod(0)

    def read() -> Any:
        report = ReadReport()
        files = list(history.session_files(tmp_path, 0, report))
        found = [history.read_session(path, (), None, report) for path in files]
        return [[each.session_id for each in found], report.incomplete, report.skipped]

    assert as_nobody(read) == [
        ["s", ""],
        True,
        [
            [str(tmp_path / "shut"), "Permission denied"],
            [str(tmp_path / "open/2.jsonl"), "Permission denied"],
        ],
    ]


def test_file_without_a_header_is_counted_and_named(tmp_path: Path) -> None:
    """Scanned, never matched, not silent; whose it was nobody knows."""
    path = session(tmp_path / "1.jsonl", session_id="")
    report = ReadReport()
    (found,) = history.read_sessions(path, (), 0, report)
    assert (found.session_id, found.session_file) == ("", str(path))
    assert report.skipped == [(str(path), "no session header, so it is not known whose session it is")]
    assert report.incomplete


def test_file_that_is_gone_or_none(tmp_path: Path) -> None:
    """No session; told, and nothing may be concluded from it."""
    for path in (tmp_path / "gone.jsonl", Path("/a\0b"), tmp_path):
        report = ReadReport()
        assert history.read_session(path, (), None, report).session_file is None
        assert len(report.skipped) == 1
        assert report.incomplete


def test_unknown_entries_and_damaged_lines_stop_nothing(tmp_path: Path) -> None:
    """What is understood counts; the rest is counted."""
    path = session(tmp_path / "1.jsonl")
    with path.open("ab") as file:
        file.write(b'{"type":"hologram"}\n{"type":"message","message":{"role":"user","content":"/b/torn')
    report = ReadReport()
    found = history.read_session(path, (), None, report)
    assert found.card_paths == ("/b/a.md",)
    assert (report.records, report.damaged, report.unknown) == (3, 1, {"hologram": 1})


CARDS = ["named.md", "later.md", "written.md", "edit-me.md", "relative.md"]
VERSIONS = {
    "0.30.2": ("0a953657-46d7-42f0-8ec7-2a94f4b3fefa", "2026-12-01T01:24:32.092Z"),
    "0.31.1": ("80c8bca0-8ec4-4554-b4c4-71365b329f94", "2026-12-01T01:24:30.023Z"),
    "0.73.1": ("01a22f34-19ca-7693-b92a-f274d5b05696", "2026-12-01T01:24:35.060Z"),
    "1.6.0": ("01a22f34-2235-70cb-a950-820fa8badf99", "2026-12-01T01:24:36.488Z"),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("needles", [(), needles_for([BOARD])], ids=["all", "board"])
def test_real_sessions(version: str, needles: List[bytes]) -> None:
    """A prompt, two writes, an edit, a read, a listing, a failed edit; continued with a second prompt.

    0.30 wrote a header without a version and entries without ids, 0.31 version 2, the others version 3.
    """
    report = ReadReport()
    found = history.read_session(FIXTURES / f"{version}.jsonl", tuple(needles), None, report)
    assert (found.session_id, found.updated_at) == VERSIONS[version]
    assert list(found.card_paths) == [f"{BOARD}/{name}" for name in CARDS]
    assert (report.damaged, report.unknown, report.skipped) == (0, {}, [])


def test_fork_goes_on_with_what_it_was_forked_from() -> None:
    """Its file begins with a copy, and its work is on those cards too; the first session stays as it is."""
    found = history.read_session(FIXTURES / "1.6.0-fork.jsonl", (), None, ReadReport())
    assert found.session_id == "01a22f34-2747-729c-9b4b-4ff6122cb79f"
    assert [path.rpartition("/")[2] for path in found.card_paths] == [*CARDS[:2], "forked.md", *CARDS[2:]]


def test_calls_of_scripts_that_pi_did_not_keep_are_told(tmp_path: Path) -> None:
    """Pi leaves out long arguments, and all calls of one script behind the 256th: such an edit cannot
    be found again, so what is known of it must stay. Other tools, and what failed, are no loss."""
    edit = {"name": "write", "status": "ok", "argumentsBytes": 9_000}
    few = [
        {**edit, "id": "s/1"},
        {**edit, "id": "s/2", "name": "bash"},
        {**edit, "id": "s/3", "status": "error"},
    ]
    many = [{"id": f"t/{number}", "name": "read", "status": "ok", "arguments": {}} for number in range(256)]
    for calls, complete, lost in ((few, False, 1), (few[1:], False, 0), (many, False, 1), (many, True, 0)):
        record = {"calls": calls, "complete": complete}
        path = session(tmp_path / "1.jsonl")
        message = {"role": "toolResult", "toolCallId": "s", "toolName": "codemode", "nestedCalls": record}
        with path.open("a") as file:
            file.write(json.dumps({"type": "message", "message": message}, separators=(",", ":")) + "\n")
        report = ReadReport()
        assert history.read_session(path, (b"/board",), None, report).session_id == "s"
        assert report.skipped == [(str(path), "1 calls of scripts that Pi did not keep in full")] * lost
        assert report.incomplete == bool(lost)
