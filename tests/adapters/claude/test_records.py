"""The files in which Claude Code keeps its running processes."""

import json
import os
from pathlib import Path
from typing import Any, Dict, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.claude import records
from adapters.contract import AdapterError, ProcessRecord, Status
from tests.another_user import as_nobody, as_root_only, open_to_all

RECORD: Dict[str, Any] = {
    "pid": 1429,
    "sessionId": "00000000-0000-4000-8000-000000000001",
    "cwd": "/home/dev/project",
    "startedAt": 1796073979177,
    "procStart": "688604",
    "version": "2.1.332",
    "kind": "interactive",
    "entrypoint": "cli",
    "name": "project-f5",
    "nameSource": "derived",
    "pidDomain": "linux:0123456789abcdef:pid:[4026531836]",
    "messagingSocketPath": "/tmp/cc-socks/1429.sock",
    "status": "waiting",
    "waitingFor": "permission prompt",
    "updatedAt": 1796073984999,
    "statusUpdatedAt": 1796073984934,
}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def write(folder: Path, content: object, name: str = "1429.json") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def read(folder: Path, **changed: object) -> ProcessRecord:
    """A record as it is written, but for some members; None removes one."""
    content = {key: value for key, value in {**RECORD, **changed}.items() if value is not None}
    record = records.read_record(write(folder, content))
    assert record is not None
    return record


def test_the_folder_is_beside_the_transcripts(tmp_path: Path) -> None:
    """In Claude Code's own folder; an override of the transcripts' place does not move it."""
    assert records.records_root(tmp_path, {}) == tmp_path / ".claude/sessions"
    assert records.records_root(tmp_path, {"CLAUDE_CONFIG_DIR": ""}) == tmp_path / ".claude/sessions"
    assert records.records_root(tmp_path, {"CLAUDE_CONFIG_DIR": "/srv/c"}) == Path("/srv/c/sessions")
    assert records.records_root(tmp_path, {"CLAUDE_SESSIONS_DIR": "/x"}) == tmp_path / ".claude/sessions"


def test_a_record_is_read(tmp_path: Path) -> None:
    """Everything in it that is of use."""
    assert read(tmp_path) == ProcessRecord(
        session_id="00000000-0000-4000-8000-000000000001",
        pid=1429,
        begun="688604",
        domain="pid:[4026531836]",
        status=Status.WAITING_FOR_INPUT,
        said="waiting: permission prompt",
        said_at_s=1796073984.934,
        cwd="/home/dev/project",
        automated=False,
    )


def test_a_record_may_have_little_in_it(tmp_path: Path) -> None:
    """As it is written first, and as old versions wrote it."""
    path = write(tmp_path, {"sessionId": "s"})
    assert records.read_record(path) == ProcessRecord(session_id="s", pid=1429)


@pytest.mark.parametrize(
    ("changed", "status", "said"),
    [
        ({"status": "busy"}, Status.RUNNING, "busy"),
        ({"status": "idle", "waitingFor": None}, Status.IDLE, "idle"),
        ({"status": "shell"}, Status.IDLE, "idle, with a background shell"),
        ({"waitingFor": None}, Status.WAITING_FOR_INPUT, "waiting"),
        ({"waitingFor": "input needed"}, Status.WAITING_FOR_INPUT, "waiting: input needed"),
        ({"waitingFor": "dialog open"}, None, "waiting: dialog open"),
        ({"waitingFor": "sandbox request"}, Status.WAITING_FOR_INPUT, "waiting: sandbox request"),
        ({"waitingFor": 7}, Status.WAITING_FOR_INPUT, "waiting"),
        ({"status": None}, None, ""),
        ({"status": ""}, None, ""),
        ({"status": ["busy"]}, None, ""),
        ({"status": "dreaming"}, None, "'dreaming', a status that is not known"),
        ({"status": "a\x1b[2Jb\n"}, None, "'a?[2Jb?', a status that is not known"),
        ({"status": "x" * 5000}, None, f"'{'x' * 64}', a status that is not known"),
    ],
)
def test_statuses(tmp_path: Path, changed: Dict[str, Any], status: Optional[Status], said: str) -> None:
    """Four words are known; any other is told, cut and printable."""
    record = read(tmp_path, **changed)
    assert (record.status, record.said) == (status, said)


@pytest.mark.parametrize(
    ("changed", "seconds"),
    [
        ({"statusUpdatedAt": None}, 1796073984.999),
        ({"statusUpdatedAt": True}, 1796073984.999),
        ({"statusUpdatedAt": "now"}, 1796073984.999),
        ({"statusUpdatedAt": float("nan")}, 1796073984.999),
        ({"statusUpdatedAt": -5}, 1796073984.999),
        ({"statusUpdatedAt": 10**300}, 1796073984.999),
        ({"statusUpdatedAt": 1500.5}, 1.5005),
        ({"statusUpdatedAt": None, "updatedAt": None}, None),
    ],
)
def test_times(tmp_path: Path, changed: Dict[str, Any], seconds: Optional[float]) -> None:
    """That of the status, else that of the record."""
    assert read(tmp_path, **changed).said_at_s == seconds


@pytest.mark.parametrize(
    ("key", "value", "name", "expected"),
    [
        ("procStart", 688604, "begun", "688604"),
        ("procStart", "Tue Dec  1 12:00:00 2026", "begun", "Tue Dec  1 12:00:00 2026"),
        ("procStart", True, "begun", None),
        ("procStart", -1, "begun", None),
        ("procStart", [1], "begun", None),
        ("pidDomain", "pid:[7]", "domain", "pid:[7]"),
        ("pidDomain", "linux:host", "domain", None),
        ("pidDomain", 7, "domain", None),
        ("cwd", "", "cwd", None),
        ("cwd", "/a\0b", "cwd", None),
        ("cwd", {}, "cwd", None),
        ("entrypoint", "sdk-cli", "automated", True),
        ("entrypoint", "sdk-py", "automated", True),
        ("entrypoint", "claude-vscode", "automated", False),
        ("entrypoint", 1, "automated", False),
    ],
)
def test_members(tmp_path: Path, key: str, value: object, name: str, expected: object) -> None:
    """Each is believed when it has the right form, and only then."""
    assert getattr(read(tmp_path, **{key: value}), name) == expected


@pytest.mark.parametrize("session_id", [None, "", 7, ["s"], "x" * 5000, "\ud800"])
def test_without_a_session_it_is_no_record(tmp_path: Path, session_id: object) -> None:
    """A process that has none yet is not of interest."""
    content = {**RECORD, "sessionId": session_id}
    assert records.read_record(write(tmp_path, content)) is None


@pytest.mark.parametrize(
    "name",
    [
        *("pid-1429.json", "1429.0123abcd.key", "1429.key", "1429.json.tmp", "01429.json", "0.json"),
        *("1429.json\n", "99999999999.json", "4294967296.json", "\u0661.json", "x.json"),
    ],
)
def test_other_files_are_not_even_opened(tmp_path: Path, name: str) -> None:
    """Keys are secrets; records of old versions say nothing true any more. None is there, in fact."""
    assert records.read_record(tmp_path / name) is None


@pytest.mark.parametrize("content", [b"", b"\n", b"\0\0\0"])
def test_an_empty_file_is_no_record_yet(tmp_path: Path, content: bytes) -> None:
    """It is about to be written."""
    assert records.read_record(write(tmp_path, content)) is None


@pytest.mark.parametrize(
    "content",
    [b'{"pid":1429,"sess', b"[]", b"7", b"\xff", b"[" * 60000, b'{"a":"%s"}' % (b"x" * 65536)]
    + [json.dumps({**RECORD, "pid": pid}).encode() for pid in (1430, "1429", True, 1429.0, None)],
)
def test_what_is_not_understood_is_told(tmp_path: Path, content: bytes) -> None:
    """With the file; the process may be alive all the same."""
    path = write(tmp_path, content)
    with pytest.raises(AdapterError) as told:
        records.read_record(path)
    assert told.value.path == path


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Nor is a folder read."""
    os.mkfifo(tmp_path / "7.json")
    (tmp_path / "8.json").mkdir()
    for name in ("7.json", "8.json"):
        with pytest.raises((AdapterError, OSError)):
            records.read_record(tmp_path / name)


@as_root_only
def test_a_file_that_may_not_be_read_is_an_os_error(tmp_path: Path) -> None:
    """As one that is gone, or whose folder cannot be."""
    path = write(tmp_path, RECORD)
    open_to_all(tmp_path)
    path.chmod(0)

    def kind() -> str:
        try:
            records.read_record(path)
        except OSError as exc:
            return type(exc).__name__
        return ""

    assert as_nobody(kind) == "PermissionError"
    for gone in (tmp_path / "1.json", tmp_path / "a\0b" / "1.json"):
        with pytest.raises(OSError):
            records.read_record(gone)


@given(key=st.sampled_from(sorted(RECORD)), value=JSON)
def test_no_value_surprises(key: str, value: object, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever stands in a member: a record of the right types, none, or what cannot be understood."""
    path = write(tmp_path_factory.mktemp("r"), {**RECORD, key: value})
    try:
        record = records.read_record(path)
    except AdapterError:
        assert key == "pid"
        return
    if record is None:
        assert key == "sessionId"
        return
    assert record.pid == 1429 and isinstance(record.session_id, str) and record.session_id
    for text in (record.begun, record.domain, record.cwd, record.said):
        assert text is None or isinstance(text, str)
    assert record.said.isprintable() and len(record.said) < 200
    assert record.said_at_s is None or 0 < record.said_at_s < 2**40
    assert isinstance(record.automated, bool)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("/home/dev/.claude/projects/-p/s.jsonl", "/home/dev/.claude"),
        ("/profiles/client/projects/-p/s.jsonl", "/profiles/client"),
        ("/elsewhere/-p/s.jsonl", None),
        ("projects/-p/s.jsonl", None),
        ("/s.jsonl", None),
    ],
)
def test_the_folder_in_which_a_transcript_lies(file: str, expected: Optional[str]) -> None:
    """By the names below it; what lies nowhere in particular tells nothing."""
    found = records.folders_of(Path(file))
    assert found == ((Path(expected) / "projects", Path(expected) / "sessions") if expected else None)
