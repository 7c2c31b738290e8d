"""Listing the folders of others, as somebody who may not see everything."""

import os
from pathlib import Path
from typing import Any

from adapters.contract import ReadReport
from adapters.listing import entries_of, is_file, is_newer
from tests.another_user import as_nobody, as_root_only, open_to_all


def test_entries_stand_by_name(tmp_path: Path) -> None:
    """Whatever the order of the disk."""
    for name in ("b", "a", "c"):
        (tmp_path / name).touch()
    assert [entry.name for entry in entries_of(tmp_path, ReadReport())] == ["a", "b", "c"]


def test_a_folder_that_is_gone_hides_nothing(tmp_path: Path) -> None:
    """It is empty. But where the root is missing, the sessions may be elsewhere."""
    report = ReadReport()
    assert entries_of(tmp_path / "none", report) == []
    assert report == ReadReport()
    assert entries_of(tmp_path / "none", report, is_root=True) == []
    assert (report.skipped, report.incomplete) == (
        [(str(tmp_path / "none"), "No such file or directory")],
        True,
    )


def test_a_file_in_the_place_of_a_folder_is_told(tmp_path: Path) -> None:
    """Nobody knows what became of the sessions."""
    (tmp_path / "file").touch()
    report = ReadReport()
    assert entries_of(tmp_path / "file", report) == []
    assert (report.skipped, report.incomplete) == ([(str(tmp_path / "file"), "Not a directory")], True)


@as_root_only
def test_a_folder_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    """So is a file whose time may not be looked at."""
    (tmp_path / "shut").mkdir()
    (tmp_path / "blind").mkdir()
    (tmp_path / "blind" / "a.jsonl").touch()
    open_to_all(tmp_path)
    (tmp_path / "shut").chmod(0)
    (tmp_path / "blind").chmod(0o444)  # Names may be read, nothing else.

    def look() -> Any:
        report = ReadReport()
        entries_of(tmp_path / "shut", report)
        newer = [is_newer(entry, 0, report) for entry in entries_of(tmp_path / "blind", report)]
        return [newer, report.skipped, report.incomplete]

    denied = "Permission denied"
    places = [str(tmp_path / "shut"), str(tmp_path / "blind" / "a.jsonl")]
    assert as_nobody(look) == [[False], [[place, denied] for place in places], True]


def test_only_plain_files_of_the_name_count(tmp_path: Path) -> None:
    """No links, folders, pipes."""
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "b.txt").touch()
    (tmp_path / "c.jsonl").mkdir()
    (tmp_path / "d.jsonl").symlink_to("a.jsonl")
    os.mkfifo(tmp_path / "e.jsonl")
    entries = entries_of(tmp_path, ReadReport())
    assert [entry.name for entry in entries if is_file(entry, ".jsonl")] == ["a.jsonl"]


def test_newer_is_at_or_after(tmp_path: Path) -> None:
    """Times as they stand on the disk, in seconds."""
    (tmp_path / "a").touch()
    os.utime(tmp_path / "a", (100, 100))
    (entry,) = entries_of(tmp_path, ReadReport())
    assert [is_newer(entry, at, ReadReport()) for at in (99, 100, 100.5)] == [True, True, False]
