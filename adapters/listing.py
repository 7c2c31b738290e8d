"""Lists folders in which agents keep their sessions; what cannot be listed is told."""

import os
from pathlib import Path
from typing import List

from adapters.contract import ReadReport


def entries_of(folder: Path, report: ReadReport, is_root: bool = False) -> "List[os.DirEntry[str]]":
    """What is in a folder, by name. One that is gone is empty; the root that is not there is told, for
    the sessions may be elsewhere."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError as exc:
        if is_root:  # Below it, it was removed meanwhile.
            report.unread(folder, exc)
    except OSError as exc:
        report.unread(folder, exc)
    return []


def is_file(entry: "os.DirEntry[str]", suffix: str) -> bool:
    """Whether an entry is a regular file of that name, and no link to one."""
    return entry.name.endswith(suffix) and entry.is_file(follow_symlinks=False)


def is_newer(entry: "os.DirEntry[str]", newer_than_s: float, report: ReadReport) -> bool:
    """Whether a file was changed at or after a Unix time in seconds."""
    try:
        return entry.stat(follow_symlinks=False).st_mtime >= newer_than_s
    except OSError as exc:
        report.unread(entry.path, exc)
        return False
