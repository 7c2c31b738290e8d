"""The log: appending, reading what others left, failing disks, compaction, crashes."""

import json
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Callable, Hashable, Iterable, Iterator, List, Optional

import pytest

from adapters.contract import Status
from companion.core.errors import StorageError
from companion.sessions import journal as journal_module
from companion.sessions.association import Association
from companion.sessions.journal import Journal, association_journal
from companion.sessions.lines import KEEP_NEWEST, compacted, json_bytes
from tests.another_user import open_to_all

REPOSITORY = Path(__file__).parents[3]


def record(number: int, session: str = "s", status: Status = Status.IDLE) -> Association:
    """An association of its own card."""
    return Association(
        card_path=f"/b/c{number}.md",
        harness="pi",
        session_id=session,
        status=status,
        updated_at="2026-01-01T00:00:00.000Z",
        board_uuid="b",
        card_uuid=f"c{number}",
    )


@pytest.fixture
def log(tmp_path: Path) -> Iterator["Journal[Association]"]:
    """A journal in a folder that does not exist yet."""
    made = association_journal(tmp_path / "state" / "companion.jsonl")
    yield made
    made.close()


def cards(path: Path) -> List[str]:
    """The cards that a fresh reader finds."""
    return [each.card_uuid for each in association_journal(path).read()]


def test_the_first_append_makes_folder_and_file_for_us_alone(log: "Journal[Association]") -> None:
    """Folder 0700, file 0600, one line with LF, keys in the contract's order."""
    assert log.append(record(1))
    assert stat.S_IMODE(os.stat(log.path.parent).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(log.path).st_mode) == 0o600
    line = log.path.read_bytes()
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert list(json.loads(line)) == [
        "boardUuid",
        "cardUuid",
        "cardPath",
        "harness",
        "sessionId",
        "status",
        "updatedAt",
    ]


def test_reading_makes_nothing(log: "Journal[Association]") -> None:
    """A missing file is empty, and stays missing."""
    assert log.read() == []
    log.close()
    assert not log.path.parent.exists()


def test_opening_touches_the_file_and_ends_a_torn_line(log: "Journal[Association]") -> None:
    """After start-up the file exists and ends in LF."""
    assert log.open()
    assert log.path.read_bytes() == b""
    log.close()
    log.path.write_bytes(b'{"torn')
    assert log.open()
    assert log.path.read_bytes() == b'{"torn\n'


def test_odd_lines_are_skipped_and_counted(log: "Journal[Association]") -> None:
    """CRLF and blank lines are fine; junk, torn, invalid and non-UTF-8 lines cost only themselves."""
    good = json.dumps(record(1).to_json()).encode()
    log.path.parent.mkdir()
    log.path.write_bytes(
        b"\r\n".join(
            [
                good,
                b"",
                b"   ",
                b"not json",
                b"null",
                b'{"status":"idle"}',
                b"[" * 100_000,
                good.replace(b"pi", b"\xff\xfe"),
                good.replace(b"idle", b"busy"),
                good.replace(b"idle", b"active"),
            ]
        )
    )
    found = log.read()
    assert [(each.harness, each.status) for each in found] == [
        ("pi", Status.IDLE),
        ("\ufffd\ufffd", Status.IDLE),
        ("pi", Status.IDLE),
    ]
    assert (log.lines, log.damaged) == (3, 5)


def test_a_tail_torn_at_any_byte_costs_at_most_its_own_record(tmp_path: Path) -> None:
    """Cut at every offset: earlier records and those that follow are all there."""
    line = json_bytes(record(2).to_json()) + b"\n"
    first = json_bytes(record(1).to_json()) + b"\n"
    for cut in range(len(line) + 1):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(first + line[:cut])
        log = association_journal(path)
        assert log.append(record(3))
        log.close()
        whole = cut >= len(line) - 1  # Only the LF is missing: the record is complete.
        assert cards(path) == (["c1", "c2", "c3"] if whole else ["c1", "c3"])


def test_eight_writers_lose_nothing(log: "Journal[Association]") -> None:
    """Lines of several threads never mix."""

    def write(writer: int) -> None:
        for number in range(100):
            assert log.append(record(writer * 1000 + number))

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(cards(log.path)) == sorted(f"c{w * 1000 + n}" for w in range(8) for n in range(100))
    assert log.lines == 800


def test_two_journals_on_one_file_lose_nothing(log: "Journal[Association]") -> None:
    """A second program that appends to the same file is noticed, and both write whole lines."""
    other = association_journal(log.path)
    for number in range(50):
        assert (log if number % 2 else other).append(record(number))
    assert cards(log.path) == [f"c{number}" for number in range(50)]
    assert log.grown and not log.replaced
    log.read()
    assert not log.grown
    other.close()


@pytest.mark.parametrize("deed", ["delete", "truncate", "replace"])
def test_a_file_changed_by_others_is_opened_again(log: "Journal[Association]", deed: str) -> None:
    """Deleted, emptied or replaced under us: the next append lands in the file of that name."""
    log.append(record(1))
    assert not log.touched()
    if deed == "delete":
        log.path.unlink()
    elif deed == "truncate":
        os.truncate(log.path, 0)
    else:
        new = log.path.with_name("new")
        new.write_bytes(b"")
        os.replace(new, log.path)
    assert log.touched()
    assert log.append(record(2))
    assert log.replaced
    assert cards(log.path) == ["c2"]


def test_a_rewrite_is_one_step_and_keeps_a_symlink(tmp_path: Path) -> None:
    """The link stays, its target has the new content, nothing is left beside it."""
    target = tmp_path / "dotfiles" / "log"
    target.parent.mkdir()
    target.write_bytes(b"junk\n")
    link = tmp_path / "companion.jsonl"
    link.symlink_to(target)
    log = association_journal(link)
    log.append(record(1))
    log.rewrite([record(2), record(3)])
    log.append(record(4))
    log.close()
    assert link.is_symlink()
    assert cards(target) == ["c2", "c3", "c4"]
    assert os.listdir(target.parent) == ["log"]
    log.rewrite([])
    assert target.read_bytes() == b""


def test_dropping_takes_the_doomed_and_the_junk_and_copies_the_rest(log: "Journal[Association]") -> None:
    """Unread lines stay as they are; an escaped spelling, CRLF and unsaved records are seen through."""
    log.path.parent.mkdir()
    lines = [json_bytes(record(number % 3, session=f"s{number}").to_json()) for number in range(6)]
    escaped = lines[0].replace(b'"c0"', b'"\\u00630"')
    log.path.write_bytes(b"\n".join([*lines, escaped, b"junk", b'{"torn', b'{"a":1}', lines[1] + b"\r", b""]))
    assert log.drop(lambda each: each.card_uuid == "c0", ["c0"]) == 3
    assert log.lines == 6  # The stranger's object looks whole and was not read.
    log.append(record(7))
    assert cards(log.path) == ["c1", "c2", "c1", "c2", "c1", "c7"]
    assert b"junk" not in log.path.read_bytes() and b"torn" not in log.path.read_bytes()
    assert log.drop(lambda each: False, []) == 0
    assert log.lines == 6 and b'{"a":1}' not in log.path.read_bytes()


def test_dropping_from_a_missing_log_makes_an_empty_one(log: "Journal[Association]") -> None:
    """As a rewrite does."""
    assert log.drop(lambda each: True, ["x"]) == 0
    assert log.path.read_bytes() == b""


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A pipe does not hang us, and a device is never renamed away."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/null"), tmp_path):
        log = association_journal(path)
        with pytest.raises(StorageError):
            log.read()
        assert not log.append(record(1))
        assert log.problem is not None and str(path) in log.problem
        with pytest.raises(StorageError):
            log.rewrite([])
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_without_a_home_records_wait_in_memory(tmp_path: Path) -> None:
    """Nothing raises; what waits is read back; a rewrite replaces it; a disk that comes back gets it."""
    (tmp_path / "home").write_text("a file where the folder should be")
    log = association_journal(tmp_path / "home" / "mdello" / "companion.jsonl")
    assert not log.append(record(1)) and not log.append(record(2))
    assert log.unsaved == 2 and log.problem is not None
    assert [each.card_uuid for each in log.read()] == ["c1", "c2"]
    log.rewrite([record(2)])
    assert log.unsaved == 1
    assert not log.flush()
    (tmp_path / "home").unlink()
    assert log.flush()
    assert log.unsaved == 0
    assert log.problem is None
    assert cards(log.path) == ["c2"]
    log.close()


def test_unsaved_records_are_written_before_the_next_one(
    log: "Journal[Association]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Order survives a time without disk."""
    log.append(record(1))
    with monkeypatch.context() as broken:
        broken.setattr(os, "write", _raise_enospc)
        assert not log.append(record(2))
        assert not log.append(record(3))
    assert log.append(record(4))
    assert cards(log.path) == ["c1", "c2", "c3", "c4"]


def _raise_enospc(fd: int, data: bytes) -> int:
    raise OSError(28, "No space left on device")


def test_unsaved_records_do_not_grow_for_ever(
    log: "Journal[Association]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that stays full costs history, never the last state of a key."""
    monkeypatch.setattr(os, "write", _raise_enospc)
    log.append(record(0))
    for _ in range(3 * KEEP_NEWEST):
        log.append(record(1, status=Status.RUNNING))
    assert log.unsaved <= 2 * KEEP_NEWEST + 1
    monkeypatch.undo()
    log.append(record(1, status=Status.CLOSED))
    found = {each.card_uuid: each.status for each in association_journal(log.path).read()}
    assert found == {"c0": Status.IDLE, "c1": Status.CLOSED}


def test_a_half_written_line_is_taken_back(tmp_path: Path) -> None:
    """With the disk full in the middle of a record the file stays whole, and the record comes later."""
    log = association_journal(tmp_path / "log")
    log.append(record(1))
    size = log.path.stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, before[1]))
    try:
        assert not log.append(record(2))
        assert log.path.stat().st_size == size
        assert log.problem is not None
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert log.append(record(3))
    assert not log.replaced
    assert cards(log.path) == ["c1", "c2", "c3"]
    log.close()


def test_a_failed_rewrite_leaves_the_old_file(
    log: "Journal[Association]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller is told, the log is as before, and appending goes on."""
    log.append(record(1))

    def refuse(path: Path, data: bytes) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(journal_module, "write_atomically", refuse)
    with pytest.raises(StorageError, match="Read-only file system"):
        log.rewrite([])
    log.append(record(2))
    assert cards(log.path) == ["c1", "c2"]


def test_a_folder_that_may_not_be_entered_is_no_missing_file(tmp_path: Path) -> None:
    """As another user: a log that is hidden from us is neither read as empty nor forgotten."""
    hidden = tmp_path / "state"
    log = association_journal(hidden / "log")
    log.append(record(1))
    log.close()
    hidden.chmod(0o000)
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from companion.core.errors import StorageError\n"
        "from companion.sessions.journal import association_journal\n"
        "log = association_journal(Path(sys.argv[1]))\n"
        "for deed in (log.read, lambda: log.rewrite([])):\n"
        "    try:\n"
        "        deed()\n"
        "    except StorageError as exc:\n"
        "        print(exc)\n"
    )
    open_to_all(tmp_path)
    done = _as_nobody(code, str(log.path))
    hidden.chmod(0o700)
    assert done.count("Permission denied") == 2, done


def _as_nobody(code: str, *arguments: str) -> str:
    drop = "import os\nif os.getuid() == 0:\n    os.setgid(65534); os.setuid(65534)\n"
    # Imported as root, because the repository itself may be closed to others.
    preload = "import companion.sessions.journal\n"
    done = subprocess.run(
        [sys.executable, "-c", preload + drop + code, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.stdout + done.stderr


def test_compaction_keeps_state_and_appends_made_meanwhile(
    log: "Journal[Association]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old history goes, the last event of each key stays, and a racing append is carried over."""
    for number in range(50):
        log.append(record(number % 5, status=Status.RUNNING if number % 2 else Status.IDLE))
    log.path.open("ab").write(b"junk\n")
    log.read()
    wanted = {each.key: each for each in log.read()}

    def slow_compacted(
        records: Iterable[Association], key: Callable[[Association], Hashable]
    ) -> List[Association]:
        kept = compacted(records, key, 3)
        log.append(record(99))
        return kept

    monkeypatch.setattr(journal_module, "compacted", slow_compacted)
    assert log.compact()
    left = association_journal(log.path).read()
    assert left[-1] == record(99)
    assert {each.key: each for each in left[:-1]} == wanted
    assert len(left) == log.lines == 6
    assert b"junk" not in log.path.read_bytes()


def test_compaction_gives_way_to_a_rewrite(
    log: "Journal[Association]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was forgotten while a compaction was under way does not come back."""
    log.append(record(1))
    log.append(record(2))

    def slow_compacted(records: object, key: object) -> List[Association]:
        log.rewrite([record(2)])
        return [record(1), record(2)]

    monkeypatch.setattr(journal_module, "compacted", slow_compacted)
    assert not log.compact()
    assert cards(log.path) == ["c2"]


def test_nobody_waits_for_the_disk_while_the_log_is_compacted(
    log: "Journal[Association]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Appends and looks during an fsync that takes its time come through, and none is lost."""
    for number in range(20):
        log.append(record(number))
    syncing, go_on = threading.Event(), threading.Event()

    def slow(fd: int) -> None:
        syncing.set()
        assert go_on.wait(30)

    monkeypatch.setattr(os, "fsync", slow)
    done: List[bool] = []
    compaction = threading.Thread(target=lambda: done.append(log.compact()))
    compaction.start()
    assert syncing.wait(30)
    assert log.append(record(99)) and not log.touched() and log.lines == 21
    go_on.set()
    compaction.join(30)
    assert done == [True]
    assert log.append(record(100))
    assert cards(log.path) == [*(f"c{number}" for number in range(20)), "c99", "c100"]
    assert os.listdir(log.path.parent) == [log.path.name]


def test_compaction_keeps_in_mind_that_somebody_else_has_appended(log: "Journal[Association]") -> None:
    """What a second program wrote is in the file; whoever holds records in memory must still hear of it."""
    log.append(record(1))
    other = association_journal(log.path)
    other.append(record(2))
    other.close()
    assert log.compact()
    assert log.touched() and log.grown
    assert cards(log.path) == ["c1", "c2"]


@pytest.mark.parametrize("deed", ["delete", "truncate", "replace", "read anew"])
def test_a_mark_is_void_when_the_file_is_another_one(log: "Journal[Association]", deed: str) -> None:
    """Whoever deleted or emptied it meanwhile has the last word; a reading of ours changes nothing."""
    log.append(record(1))
    mark = log.mark()
    assert mark is not None
    if deed == "delete":
        log.path.unlink()
    elif deed == "truncate":
        os.truncate(log.path, 0)
    elif deed == "replace":
        log.rewrite([record(5)])
    log.read()
    log.append(record(2))
    log.append(record(3))
    assert log.rewrite_before(mark, [record(9)]) is (deed == "read anew")
    left = {"replace": ["c5"], "read anew": ["c9"]}.get(deed, [])
    assert cards(log.path) == [*left, "c2", "c3"]
    assert os.listdir(log.path.parent) == [log.path.name]


def test_no_mark_is_given_while_records_are_unsaved(
    log: "Journal[Association]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their place in the file is not known yet."""
    log.append(record(1))
    mark = log.mark()
    with monkeypatch.context() as broken:
        broken.setattr(os, "write", _raise_enospc)
        log.append(record(2))
        assert log.mark() is None
        assert mark is not None and not log.rewrite_before(mark, [record(1)])
        assert log.problem is not None
    assert log.rewrite_before(mark, [record(1)])
    assert log.append(record(3))
    assert cards(log.path) == ["c1", "c2", "c3"]


def test_writers_lose_nothing_to_compactions_and_rewrites(
    log: "Journal[Association]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many threads append while others compact and rewrite without a pause."""
    monkeypatch.setattr(journal_module, "compacted", lambda records, key: compacted(records, key, 3))
    stop = threading.Event()

    def write(writer: int) -> None:
        for number in range(200):
            assert log.append(record(writer * 1000 + number))

    def compact() -> None:
        while not stop.is_set():
            log.compact()

    def rewrite() -> None:
        while not stop.is_set():
            log.drop(lambda each: False, [])
            time.sleep(0.003)

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    others = [threading.Thread(target=each) for each in (compact, compact, rewrite)]
    for thread in [*others, *writers]:
        thread.start()
    for thread in writers:
        thread.join(60)
    stop.set()
    for thread in others:
        thread.join(60)
    assert sorted(cards(log.path)) == sorted(f"c{w * 1000 + n}" for w in range(4) for n in range(200))
    assert os.listdir(log.path.parent) == [log.path.name]


_CRASHING_WRITER = """
import random, sys, threading
from pathlib import Path
from adapters.contract import Status
from companion.sessions.association import Association
from companion.sessions.journal import association_journal

log = association_journal(Path(sys.argv[1]))
dice = random.Random(int(sys.argv[2]))

def compact():
    while True:
        log.compact()

threading.Thread(target=compact, daemon=True).start()
for number in range(200):
    name, session = "c%d" % number, "s" * dice.randint(1, 3000)
    log.append(Association("/b/%s.md" % name, "pi", session, Status.IDLE, "t", "b", name))
    if dice.random() < 0.05:
        log.rewrite(log.read())
    sys.stdout.write("%d\\n" % number)
    sys.stdout.flush()
"""


@pytest.mark.parametrize("seed", range(6))
def test_kill_minus_nine_loses_no_acknowledged_record(tmp_path: Path, seed: int) -> None:
    """A child is killed in the middle of 200 writes: all that it acknowledged is in a whole log."""
    path = tmp_path / "log"
    child = subprocess.Popen(
        [sys.executable, "-c", _CRASHING_WRITER, str(path), str(seed)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    acknowledged: Optional[int] = None
    for line in child.stdout:
        acknowledged = int(line)
        if acknowledged >= 20 + seed * 30:
            time.sleep(0.0003 * seed)
            child.send_signal(signal.SIGKILL)
            break
    acknowledged = max([int(line) for line in child.stdout.read().split()] or [acknowledged or 0])
    child.stdout.close()
    child.wait(timeout=30)
    log = association_journal(path)
    log.append(record(999))
    log.close()
    found = cards(path)
    assert set(found) >= {f"c{number}" for number in range(acknowledged + 1)} | {"c999"}
    assert association_journal(path).read() and log.damaged == 0
