"""Where Codex's rollouts are looked for, and what real runs left there."""

import os
import shutil
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from adapters.codex import history
from adapters.contract import PastSession, ReadReport
from tests.adapters.codex.records import ID, TIME, call, changed, item, meta, patch, rollout, said
from tests.adapters.codex.test_unpacked import packed
from tests.another_user import as_nobody, as_root_only, open_to_all
from tests.conftest import ROOT

FIXTURES = ROOT / "tests/fixtures/codex/home"
CARDS = "/home/dev/project/cards"
KID = ID[:-2] + "aa"
FORK = ID[:-2] + "bb"
needs_zstd = pytest.mark.skipif(shutil.which("zstd") is None, reason="no zstd")


def read(root: Path, *needles: bytes) -> "tuple[List[PastSession], ReadReport]":
    """All sessions of a folder of Codex's."""
    report = ReadReport()
    files = list(history.session_files(root, 0, report))
    return [one for file in files for one in history.read_sessions(file, needles, 0, report)], report


@pytest.mark.parametrize(
    ("environ", "root"),
    [
        ({}, "/home/dev/.codex"),
        ({"CODEX_HOME": ""}, "/home/dev/.codex"),
        ({"CODEX_HOME": "/srv/c"}, "/srv/c"),
    ],
)
def test_root(environ: Dict[str, str], root: str) -> None:
    """Codex's own variable; an empty one is unset."""
    assert history.sessions_root(Path("/home/dev"), environ) == Path(root)


def test_real_sessions(tmp_path: Path) -> None:
    """A run with a sub-agent and a failing patch, one that was archived, and its fork."""
    sessions, report = read(FIXTURES)
    found = {one.session_id[:13]: one.card_paths for one in sessions}
    assert found == {
        "01a22e0d-1f05": (f"{CARDS}/a.md", f"{CARDS}/b.md"),
        "01a231bf-2ea4": (f"{CARDS}/a.md", f"{CARDS}/n.md", f"{CARDS}/kid.md"),
        "01a231bf-3237": (f"{CARDS}/asked.md", f"{CARDS}/n.md", f"{CARDS}/moved.md"),
        "01a231bf-3cfd": (f"{CARDS}/forked.md", f"{CARDS}/asked.md", f"{CARDS}/n.md", f"{CARDS}/moved.md"),
    }
    assert report.skipped == [(str(FIXTURES), "1 sub-agent logs: no sessions of their own")]
    assert (report.unknown, report.damaged, report.incomplete) == ({}, 0, False)
    for one in sessions:
        assert history.session_file(FIXTURES, one.session_id) == Path(one.session_file or "")


@pytest.mark.parametrize(
    ("version", "names", "logs"),
    [
        ("0.60.1", "a custom", 0),
        ("0.120.0", "a custom heredoc cards/incd kid", 1),
        ("0.144.0", "a heredoc cards/incd kid", 1),
    ],
)
def test_sessions_of_older_versions(version: str, names: str, logs: int) -> None:
    """Patches by a tool and as here-documents, those that failed, and a sub-agent's."""
    root = FIXTURES.with_name(version)
    (session,), report = read(root)
    assert session.card_paths == tuple(
        f"{CARDS}/{name}.md".replace("/cards/cards", "/cards") for name in names.split()
    )
    assert (report.unknown, report.damaged, report.incomplete, len(report.skipped)) == ({}, 0, False, logs)


@needs_zstd
def test_compressed_sessions(tmp_path: Path) -> None:
    """The same sessions, cards and times; those of sub-agents are named one by one."""
    plain, _ = read(FIXTURES)
    shutil.copytree(FIXTURES, tmp_path / "codex")
    for file in (tmp_path / "codex").rglob("rollout-*.jsonl"):
        packed(file)
    sessions, report = read(tmp_path / "codex")
    assert [(one.session_id, one.card_paths, one.updated_at) for one in sessions if one.session_file] == [
        (one.session_id, one.card_paths, one.updated_at) for one in plain
    ]
    assert [reason for _, reason in report.skipped] == ["sub-agent log: no session of its own"]
    assert history.session_file(tmp_path / "codex", plain[0].session_id) is None


@needs_zstd
def test_a_plain_file_beside_its_compressed_one_counts(tmp_path: Path) -> None:
    """Codex is about to go on with it."""
    file = rollout(tmp_path, meta(), said("see /b/old.md"))
    packed(file)
    rollout(tmp_path, meta(), said("see /b/new.md"))
    (session,), _ = read(tmp_path)
    assert session.card_paths == ("/b/new.md",)


def test_what_cannot_be_unpacked_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be concluded from its absence."""
    file = tmp_path / "sessions" / "rollout-x.jsonl.zst"
    file.parent.mkdir()
    file.write_bytes(b"no zstd")
    (session,), report = read(tmp_path)
    assert (session.session_id, session.session_file) == ("", None)
    assert report.incomplete and report.skipped[0][0] == str(file)


def test_files_in_order_within_the_window(tmp_path: Path) -> None:
    """By their own time, whatever the day of their folder; links and other names are left alone."""
    resumed = rollout(tmp_path, meta("a"), thread="a", day="2026/01/02")
    rollout(tmp_path, meta("b"), thread="b", age_s=11)
    new = rollout(tmp_path, meta("c"), thread="c")
    (new.parent / "rollout-link.jsonl").symlink_to(new)
    (new.parent / "other.jsonl").write_text("{}")
    (new.parent / "rollout-x.json").write_text("{}")
    archived = tmp_path / "archived_sessions" / "rollout-d.jsonl"
    archived.parent.mkdir()
    archived.write_text("")
    os.utime(archived, (1_000_000, 1_000_000))
    report = ReadReport()
    found = list(history.session_files(tmp_path, 999_990, report))
    assert (found, report.skipped) == ([resumed, new, archived], [])


def test_missing_and_unreadable_folders(tmp_path: Path) -> None:
    """Sessions that are not there are told, archived ones need not be; a locked folder is told."""
    _, report = read(tmp_path)
    assert report.incomplete and [path for path, _ in report.skipped] == [str(tmp_path / "sessions")]
    file = rollout(tmp_path, meta())
    assert not read(tmp_path)[1].incomplete
    file.parent.chmod(0)
    as_root_only()
    open_to_all(tmp_path)
    try:
        skipped = as_nobody(lambda: read(tmp_path)[1].skipped)
    finally:
        file.parent.chmod(0o755)
    assert [path for path, _ in skipped] == [str(file.parent)]


def test_files_without_a_header_are_named(tmp_path: Path) -> None:
    """It is not known whose session it is; and what is no file at all."""
    file = rollout(tmp_path, said("see /b/a.md"))
    (session,), report = read(tmp_path)
    assert (session.session_id, session.card_paths) == ("", ("/b/a.md",))
    assert report.incomplete and "no header" in report.skipped[0][1]
    report = ReadReport()
    for path in (tmp_path / "none", Path("/x\0y"), file.parent):
        assert history.read_session(path, (), None, report) == PastSession("", None, None, ())
    assert len(report.skipped) == 3


def test_damage_is_counted_at_its_place(tmp_path: Path) -> None:
    """A torn last line takes nothing from the rest."""
    file = rollout(tmp_path, meta(), said("see /b/a.md"))
    file.write_text(file.read_text() + '{"timestamp":"20')
    (session,), report = read(tmp_path)
    assert session == PastSession(ID, str(file), TIME, ("/b/a.md",))
    assert (report.damaged_in, report.incomplete) == ({str(file): 1}, False)


def sent(thread: str) -> object:
    return item("SubAgentActivity", kind="started", agent_thread_id=thread)


def test_sub_agents_of_sub_agents(tmp_path: Path) -> None:
    """Their edits count, their tasks do not; circles and logs that are gone do no harm."""
    inner = KID[:-1] + "c"
    rollout(tmp_path, meta(), said("see /b/a.md"), sent(KID), sent(KID), sent("gone"), sent(ID))
    log = (meta(KID, thread_source="subagent"), said("see /b/no.md"), changed("/b/kid.md"))
    rollout(tmp_path, *log, sent(inner), sent(ID), thread=KID, day="2026/12/02")
    rollout(tmp_path, meta(inner, parent_thread_id=KID), changed("/b/inner.md"), thread=inner)
    (session,), report = read(tmp_path)
    assert session.card_paths == ("/b/a.md", "/b/kid.md", "/b/inner.md")
    assert report.skipped == [(str(tmp_path), "2 sub-agent logs: no sessions of their own")]


def test_a_fork_has_what_it_continues(tmp_path: Path) -> None:
    """Up to the place where it branched off, and no further."""
    first = rollout(tmp_path, meta(), said("see /b/a.md"))
    size = first.stat().st_size
    rollout(tmp_path, meta(), said("see /b/a.md"), said("see /b/later.md"))
    base = {"thread_id": ID, "end_byte_offset": size}
    file = rollout(tmp_path, meta(FORK, history_base=base), said("see /b/fork.md"), thread=FORK)
    report = ReadReport()
    assert history.read_session(file, (), None, report).card_paths == ("/b/fork.md", "/b/a.md")
    outside = file.rename(tmp_path / file.name)
    assert history.read_session(outside, (), None, report).card_paths == ("/b/fork.md",)
    assert not report.skipped


def test_needles_and_the_folder_of_who_asks(tmp_path: Path) -> None:
    """Texts without a board's name are passed over; an entry's own folder comes before the given one."""
    file = rollout(tmp_path, said("see /board/a.md"), said("see /other/b.md"))
    assert history.read_session(file, (b"/board/",), None, ReadReport()).card_paths == ("/board/a.md",)
    output = {"type": "function_call_output", "call_id": "c1", "output": "Exit code: 0"}
    rollout(tmp_path, call({"command": patch("a.md")}), {"type": "response_item", "payload": output})
    assert history.read_session(file, (b"/q/",), "/q", ReadReport()).card_paths == ("/q/a.md",)


@pytest.mark.parametrize("thread", ["", "../x", "a/b", "\0", "none", ID])
def test_ids_without_a_file(thread: str, tmp_path: Path) -> None:
    """None, whatever they are."""
    rollout(tmp_path, meta("other"), thread="other")
    assert history.session_file(tmp_path, thread) is None


def test_the_file_of_a_session(tmp_path: Path) -> None:
    """By an id of any kind; of several the newest."""
    files: List[Tuple[str, Path]] = [(name, rollout(tmp_path, meta(name), thread=name)) for name in ("a", ID)]
    for name, file in files:
        assert history.session_file(tmp_path, name) == file
    newer = tmp_path / "archived_sessions" / files[1][1].name
    newer.parent.mkdir()
    newer.write_text("")
    assert history.session_file(tmp_path, ID) == newer
