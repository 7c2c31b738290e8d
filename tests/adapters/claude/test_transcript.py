"""Finding transcripts, and the cards and the time of the sessions that they tell of."""

import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

import pytest

from adapters.claude import transcript
from adapters.contract import PastSession, ReadReport
from tests.another_user import as_nobody, as_root_only, open_to_all

ROOT = Path(__file__).resolve().parents[3]
TRANSCRIPTS = ROOT / "tests/fixtures/claude/transcripts"
BOARD = "/home/dev/board"
NEEDLES = (b"/board", b'"board')
slow_read = runpy.run_path(str(TRANSCRIPTS.parent / "slow_reader.py"))["read"]


def read(
    path: Path, needles: Tuple[bytes, ...] = NEEDLES, cwd: Optional[str] = None
) -> Tuple[PastSession, ReadReport]:
    report = ReadReport()
    return transcript.read_session(path, needles, cwd, report), report


def cards(session: PastSession) -> List[str]:
    return [path[len(BOARD) + 1 :] for path in session.card_paths if path.startswith(BOARD)]


def write(path: Path, *entries: object) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def prompt(text: object, **more: object) -> Dict[str, object]:
    return {"type": "user", "sessionId": "s", "message": {"role": "user", "content": text}, **more}


def call(path: object, name: str = "Write", call_id: object = "c1", **more: object) -> Dict[str, object]:
    block = {"type": "tool_use", "id": call_id, "name": name, "input": {"file_path": path}}
    return {"type": "assistant", "message": {"role": "assistant", "content": [block]}, **more}


def result(call_id: object = "c1", **more: object) -> Dict[str, object]:
    block = {"type": "tool_result", "tool_use_id": call_id, **more}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


# --- what counts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("needles", [NEEDLES, (), (b"/a", b"/b", b"/c", b"/board")])
def test_only_user_texts_and_successful_edits_count(needles: Tuple[bytes, ...]) -> None:
    """Of a transcript full of paths, the few that the user named or that were edited are found."""
    session, report = read(TRANSCRIPTS / "ordinary.jsonl", needles)
    assert cards(session) == [
        "asked-for.md",
        "written.md",
        "edited-relative.md",
        "multi-edited.md",
        "slash-command.md",
        "pasted block.md",
    ]
    assert session.session_id == "5a000000-0000-4000-8000-000000000001"
    assert session.session_file == str(TRANSCRIPTS / "ordinary.jsonl")
    assert session.updated_at == "2026-11-20T10:00:37.259Z"
    assert (report.damaged, report.unknown, report.skipped) == (0, {}, [])
    assert report.records == len((TRANSCRIPTS / "ordinary.jsonl").read_text().splitlines())


def test_entries_above_a_compaction_count_its_summary_does_not() -> None:
    """A compacted file keeps its older entries."""
    session, _ = read(TRANSCRIPTS / "compacted.jsonl")
    assert cards(session) == ["before-compaction.md", "after-compaction.md"]


def test_copied_history_of_a_fork_counts() -> None:
    """A fork has its own id and the cards of the session it was forked from."""
    session, _ = read(TRANSCRIPTS / "fork.jsonl")
    assert session.session_id == "5a000000-0000-4000-8000-000000000003"
    assert cards(session) == ["before-compaction.md", "after-compaction.md", "in-fork.md"]


def test_edits_of_sub_agents_belong_to_their_session(tmp_path: Path) -> None:
    """What a sub-agent edited counts for the session that sent it, what it was told does not."""
    session_id = "5a000000-0000-4000-8000-000000000004"
    path = tmp_path / f"{session_id}.jsonl"
    shutil.copy(TRANSCRIPTS / "with-agent.jsonl", path)
    before, _ = read(path)
    assert cards(before) == []
    logs = tmp_path / session_id / "subagents"
    logs.mkdir(parents=True)
    shutil.copy(TRANSCRIPTS / "agent-a1b2.jsonl", logs)
    session, report = read(path)
    assert cards(session) == ["edited-by-agent.md"]
    assert session.session_id == session_id
    assert session.updated_at == before.updated_at
    assert report.skipped == []


def test_log_of_a_sub_agent_is_no_session(tmp_path: Path) -> None:
    """A side chain under an ordinary name is told by its first entry, and reported."""
    path = tmp_path / "5a000000.jsonl"
    shutil.copy(TRANSCRIPTS / "agent-a1b2.jsonl", path)
    session, report = read(path)
    assert session == PastSession("", None, None, ())
    assert report.skipped == [(str(path), "sub-agent log: no session of its own")]


def test_damaged_lines_are_skipped_and_counted() -> None:
    """Welded, torn and alien lines cost only themselves; odd but valid ones nothing at all."""
    session, report = read(TRANSCRIPTS / "damaged.jsonl")
    assert cards(session) == ["whole.md", "later.md"]
    assert report.damaged == 4
    assert report.records == 8
    assert session.session_id == "5a000000-0000-4000-8000-000000000005"


def test_half_written_last_line_is_tolerated(tmp_path: Path) -> None:
    """Cut anywhere, a file gives the cards of its whole lines."""
    content = (TRANSCRIPTS / "compacted.jsonl").read_bytes()
    path = tmp_path / "cut.jsonl"
    for size in range(0, len(content), 37):
        path.write_bytes(content[:size])
        session, _ = read(path)
        assert cards(session) == [card[len(BOARD) + 1 :] for card in slow_read(path)[2]]


def test_missing_transcript_has_no_cards(tmp_path: Path) -> None:
    """The program names a file that it has not written yet."""
    session, report = read(tmp_path / "none.jsonl")
    assert session == PastSession("", None, None, ())
    assert report.skipped == [(str(tmp_path / "none.jsonl"), "No such file or directory")]


def test_an_empty_transcript_is_told(tmp_path: Path) -> None:
    """Whose it was nobody knows."""
    path = tmp_path / "t.jsonl"
    path.touch()
    session, report = read(path)
    assert (session.session_id, report.skipped, report.incomplete) == ("", [(str(path), "it is empty")], True)


def test_call_without_result_adds_nothing(tmp_path: Path) -> None:
    """An interrupted edit did not happen."""
    session, _ = read(write(tmp_path / "t.jsonl", prompt("hello"), call(BOARD + "/a.md")))
    assert session.card_paths == ()


def test_result_in_front_of_its_call_adds_nothing(tmp_path: Path) -> None:
    """Only a result that follows its call answers it."""
    session, _ = read(write(tmp_path / "t.jsonl", prompt("hello"), result(), call(BOARD + "/a.md")))
    assert session.card_paths == ()


@pytest.mark.parametrize("is_error", [False, None, "true", 1])
def test_only_true_is_an_error(tmp_path: Path, is_error: object) -> None:
    """A result is a failure when ``is_error`` is exactly true."""
    path = write(tmp_path / "t.jsonl", prompt("hello"), call(BOARD + "/a.md"), result(is_error=is_error))
    assert cards(read(path)[0]) == ["a.md"]


def test_result_that_names_no_path_is_found_by_its_id(tmp_path: Path) -> None:
    """A result line without any path in it is looked at, for its call is waited for."""
    entries = [prompt("hello"), call("a.md", cwd=BOARD), result("other"), result("c1", content="done")]
    assert cards(read(write(tmp_path / "t.jsonl", *entries))[0]) == ["a.md"]


def test_id_with_escapes_is_matched(tmp_path: Path) -> None:
    """An id that JSON spells with escapes still matches."""
    entries = [prompt("hello"), call(BOARD + "/a.md", call_id='ü"1'), result('ü"1', content="done")]
    assert cards(read(write(tmp_path / "t.jsonl", *entries))[0]) == ["a.md"]


@pytest.mark.parametrize(
    ("path", "entry_cwd", "cwd", "found"),
    [
        ("a.md", BOARD, None, ["a.md"]),
        ("board/a.md", "/home/dev", None, ["a.md"]),
        ("../a.md", BOARD + "/sub", None, ["a.md"]),
        ("a.md", BOARD, "/elsewhere", ["a.md"]),
        ("a.md", None, BOARD, ["a.md"]),
        ("a.md", 5, BOARD, ["a.md"]),
        ("a.md", None, None, []),
        (5, BOARD, None, []),
        ("a.txt", BOARD, None, []),
    ],
)
def test_relative_path_is_joined_to_the_folder_of_its_entry(
    tmp_path: Path, path: object, entry_cwd: object, cwd: Optional[str], found: List[str]
) -> None:
    """An entry's own folder comes first, then the one that was handed in."""
    lines = [prompt("hello"), call(path, cwd=entry_cwd), result()]
    assert cards(read(write(tmp_path / "t.jsonl", *lines), cwd=cwd)[0]) == found


@pytest.mark.parametrize(
    "entry",
    [
        None,
        "text",
        5,
        [],
        {},
        {"message": None},
        {"message": "text"},
        {"message": {"role": "user"}},
        {"message": {"role": "user", "content": [None, 5, "x", {"type": "text"}, {"type": "tool_use"}]}},
        {"message": {"role": 5, "content": {"a": 1}}, "origin": "human", "timestamp": 5, "sessionId": []},
        {"message": {"content": [{"type": "tool_use", "id": [], "name": {}, "input": "x"}]}},
        {"message": {"content": [{"type": "tool_result", "tool_use_id": {}}]}},
        {"message": {"content": [{"type": ["text"], "text": 5}]}, "cwd": {}},
    ],
)
def test_odd_entries_are_tolerated(tmp_path: Path, entry: object) -> None:
    """Whatever JSON a line holds, the lines around it are read."""
    path = write(tmp_path / "t.jsonl", entry, prompt(BOARD + "/a.md"), entry)
    session, report = read(path, ())
    assert cards(session) == ["a.md"]
    assert report.damaged == 0


def test_entry_without_type_counts_by_its_role(tmp_path: Path) -> None:
    """The contract knows no entry types."""
    entry = {"message": {"role": "user", "content": f"see {BOARD}/a.md"}, "session_id": "s"}
    session, _ = read(write(tmp_path / "t.jsonl", entry))
    assert (session.session_id, cards(session)) == ("s", ["a.md"])


def test_session_id_is_the_first_one_that_is_not_empty(tmp_path: Path) -> None:
    """Both spellings of the key; later ids are another session's copied entries."""
    entries = [{"sessionId": ""}, {"sessionId": 5, "session_id": "one"}, {"sessionId": "two"}]
    assert read(write(tmp_path / "t.jsonl", *entries))[0].session_id == "one"


def test_greatest_timestamp_dates_the_session(tmp_path: Path) -> None:
    """Wherever it stands in the file, but not those within other things."""
    entries = [
        prompt("x", timestamp="2026-01-02T00:00:00.000Z"),
        prompt("x", timestamp="2026-01-03T00:00:00.000Z"),
        {"type": "file-history-snapshot", "snapshot": {"timestamp": "2027-01-01T00:00:00.000Z"}},
        prompt('"timestamp":"2028-01-01T00:00:00.000Z"', timestamp="2026-01-01T00:00:00.000Z"),
    ]
    path = write(tmp_path / "t.jsonl", *entries)
    assert read(path)[0].updated_at == "2026-01-03T00:00:00.000Z"


def test_unknown_types_are_counted(tmp_path: Path) -> None:
    """A new version's entries are seen, not fatal; their number of names is bounded."""
    entries: List[Dict[str, object]] = [{"type": f"new-{number}", "n": 1} for number in range(300)]
    _, report = read(write(tmp_path / "t.jsonl", prompt("hello"), *entries, {"type": "new-1"}))
    assert len(report.unknown) == 100
    assert report.unknown["new-1"] == 2


def test_line_of_a_megabyte_is_read(tmp_path: Path) -> None:
    """Long lines are ordinary: a Write carries its file."""
    entry: Dict[str, Any] = call(BOARD + "/a.md")
    entry["message"]["content"][0]["input"]["content"] = "text \n" * 200_000
    path = write(tmp_path / "t.jsonl", prompt("hello"), entry, result(content="x" * 1_000_000))
    assert cards(read(path)[0]) == ["a.md"]


def test_line_too_long_to_hold_is_read_without_its_huge_strings(tmp_path: Path) -> None:
    """A card in a line of many megabytes is found, and what cannot be read is told."""
    entry: Dict[str, Any] = call(BOARD + "/a.md", timestamp="2026-01-02T00:00:00.000Z")
    entry["message"]["content"][0]["input"]["content"] = 'say "x"\n' * 1_000_000
    far: Dict[str, Any] = prompt("x", details={"numbers": list(range(600_000))}, also=BOARD + "/x.md")
    noise = {"type": "api-request", "timestamp": "2026-01-01T00:00:00.000Z", "params": "x" * 5_000_000}
    path = write(tmp_path / "t.jsonl", prompt("hello"), noise, entry, result(), far)
    session, report = read(path)
    assert cards(session) == ["a.md"]
    assert session.updated_at == "2026-01-02T00:00:00.000Z"
    assert (report.skipped, report.incomplete) == ([(str(path), "1 lines are too long to be read")], True)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Of 300 MB, a hole in the middle of them, both ends are read with 100 MB to work in."""
    path = tmp_path / "t.jsonl"
    with path.open("wb") as file:
        file.write((json.dumps(prompt(f"see {BOARD}/first.md")) + "\n").encode())
        file.seek(300 * 1024 * 1024)
        file.write(("\n" + json.dumps(prompt(f"see {BOARD}/last.md")) + "\n").encode())
    code = (
        "import resource, sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path\n"
        "from adapters.claude import transcript\n"
        "from adapters.contract import ReadReport\n"
        "used = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()\n"
        "limit = used + 100 * 1024 * 1024\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
        "report = ReadReport()\n"
        "session = transcript.read_session(Path(sys.argv[1]), (b'/board',), None, report)\n"
        "print(*session.card_paths, len(report.skipped))\n"
    )
    if not Path("/proc/self/statm").exists():
        pytest.skip("this system does not tell how much memory a process uses")
    command = [sys.executable, "-c", code, str(path), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == f"{BOARD}/first.md {BOARD}/last.md 1\n", done.stderr


def test_pipe_as_transcript_is_refused_at_once(tmp_path: Path) -> None:
    """A path in a payload is foreign: reading it must not hang."""
    path = tmp_path / "t.jsonl"
    os.mkfifo(path)
    session, report = read(path)
    assert session.session_file is None
    assert report.skipped == [(str(path), "not a regular file")]


def test_impossible_paths_are_left_out(tmp_path: Path) -> None:
    """NULs and half surrogates can stand in JSON but in no file name."""
    texts = [f"{BOARD}/a\0.md", f"{BOARD}/\ud800.md", f"{BOARD}/good.md"]
    path = write(tmp_path / "t.jsonl", *(prompt(text) for text in texts), call(texts[1]), result())
    assert cards(read(path)[0]) == ["good.md"]


# --- where the files are -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "root"),
    [
        ({}, "/h/.claude/projects"),
        ({"CLAUDE_CONFIG_DIR": "", "CLAUDE_SESSIONS_DIR": ""}, "/h/.claude/projects"),
        ({"CLAUDE_CONFIG_DIR": "/other"}, "/other/projects"),
        ({"CLAUDE_CONFIG_DIR": "/other", "CLAUDE_SESSIONS_DIR": "/s"}, "/s"),
    ],
)
def test_root_of_the_sessions(environ: Mapping[str, str], root: str) -> None:
    """Our own variable, else the program's, else its default."""
    assert transcript.sessions_root(Path("/h"), environ) == Path(root)


def make_tree(root: Path) -> None:
    for name in ("b/one.jsonl", "a/two.jsonl", "a/deep/er/three.jsonl", "a/notes.txt", "top.jsonl"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("{}\n")
    for name in ("a/two/subagents/agent-1.jsonl", "a/two/subagents/x/agent-2.jsonl", "a/agent-3.jsonl"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("{}\n")


def test_session_files_in_stable_order_without_links_and_logs(tmp_path: Path) -> None:
    """Recursive; sub-agents' logs are counted; links to files and folders are not followed."""
    root = tmp_path / "projects"
    make_tree(root)
    (root / "a/linked.jsonl").symlink_to(root / "top.jsonl")
    (root / "linked").symlink_to(root / "a")
    (root / "loop").symlink_to(root)
    os.mkfifo(root / "pipe.jsonl")
    (root / "folder.jsonl").mkdir()
    report = ReadReport()
    found = [str(path.relative_to(root)) for path in transcript.session_files(root, 0, report)]
    assert found == ["top.jsonl", "a/two.jsonl", "a/deep/er/three.jsonl", "b/one.jsonl"]
    assert report.skipped == [(str(root), "3 sub-agent logs: no sessions of their own")]


def test_root_may_be_a_link(tmp_path: Path) -> None:
    """People keep the program's folder elsewhere."""
    make_tree(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert len(list(transcript.session_files(tmp_path / "link", 0, ReadReport()))) == 4


def test_window_includes_its_edge(tmp_path: Path) -> None:
    """A file changed exactly at the cutoff counts, an older one does not."""
    for name, changed in (("old.jsonl", 999), ("edge.jsonl", 1000), ("new.jsonl", 1001)):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (changed, changed))
    found = transcript.session_files(tmp_path, 1000, ReadReport())
    assert [path.name for path in found] == ["edge.jsonl", "new.jsonl"]


def test_missing_root_is_said(tmp_path: Path) -> None:
    """The agent never ran here, or it keeps its sessions elsewhere: told, and nothing is concluded."""
    report = ReadReport()
    assert list(transcript.session_files(tmp_path / "none", 0, report)) == []
    assert report.skipped == [(str(tmp_path / "none"), "No such file or directory")]
    assert report.incomplete


@as_root_only
def test_what_may_not_be_read_is_told(tmp_path: Path) -> None:
    """What belongs to somebody else is skipped and named, the rest is read: there may be more."""
    for name in ("a", "one/subagents", "two/subagents"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("one.jsonl", "top.jsonl", "two.jsonl", "two/subagents/agent-x.jsonl"):
        write(tmp_path / name, prompt("hello"))
    open_to_all(tmp_path)
    shut = ["a", "one/subagents", "top.jsonl", "two/subagents/agent-x.jsonl"]
    for name in shut:
        (tmp_path / name).chmod(0)

    def read_all() -> Any:
        told: List[List[object]] = []
        for path in transcript.session_files(tmp_path, 0, ReadReport()):
            report = ReadReport()
            found = transcript.read_session(path, (), None, report)
            told.append([path.name, found.session_id, report.skipped, report.incomplete])
        listed = ReadReport()
        list(transcript.session_files(tmp_path, 0, listed))
        return [listed.incomplete, listed.skipped[0], told]

    denied = [[str(tmp_path / name), "Permission denied"] for name in shut]
    assert as_nobody(read_all) == [
        True,
        denied[0],
        [
            ["one.jsonl", "s", [denied[1]], True],
            ["top.jsonl", "", [denied[2]], True],
            ["two.jsonl", "s", [denied[3]], True],
        ],
    ]


def test_many_logs_are_counted_but_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tens of thousands of sub-agents' logs beside one session cost one listing of their folder."""
    (tmp_path / "p/s/subagents").mkdir(parents=True)
    (tmp_path / "p/s.jsonl").write_text("{}\n")
    for number in range(20_000):
        os.close(os.open(tmp_path / f"p/s/subagents/agent-{number}.jsonl", os.O_CREAT | os.O_WRONLY))
    monkeypatch.setattr(os, "open", None)
    monkeypatch.setattr(os, "stat", None)
    report = ReadReport()
    assert len(list(transcript.session_files(tmp_path, 0, report))) == 1
    assert report.skipped == [(str(tmp_path), "20000 sub-agent logs: no sessions of their own")]


def test_folders_nested_without_end_are_walked(tmp_path: Path) -> None:
    """Depth costs no recursion."""
    deep = tmp_path
    for _ in range(600):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "s.jsonl").write_text("{}\n")
    assert len(list(transcript.session_files(tmp_path, 0, ReadReport()))) == 1


def test_a_name_that_no_file_can_have_is_said() -> None:
    """A payload may name anything as its transcript; a NUL in it is no reason to fail."""
    report = ReadReport()
    session = transcript.read_session(Path("/tmp/a\0b.jsonl"), (), None, report)
    assert session.session_id == "" and session.card_paths == ()
    assert len(report.skipped) == 1
