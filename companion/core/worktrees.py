"""Which repository a folder belongs to, also from within one of its worktrees.

A worktree has a file ``.git`` that names its own part of the repository; there ``commondir`` names the
repository's (gitrepository-layout(5)). Nothing of git is run.
"""

import os
from pathlib import Path
from typing import Optional

_MAX_BYTES = 4096
_MAX_DEPTH = 64


def repository_of(folder: str) -> Optional[str]:
    """The main folder of the repository that holds ``folder`` (absolute); None when none does, or it
    cannot be read. Never raises."""
    if not os.path.isabs(folder):
        return None
    for _ in range(_MAX_DEPTH):
        inside = os.path.join(folder, ".git")
        try:
            if os.path.isdir(inside):
                return folder
            if os.path.isfile(inside):
                return _main_folder(inside)
        except (OSError, ValueError):
            return None
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return None


def _main_folder(git_file: str) -> Optional[str]:
    first = _read(git_file)
    if not first.startswith("gitdir:"):
        return None
    here = os.path.dirname(git_file)
    part = os.path.normpath(os.path.join(here, first[len("gitdir:") :].strip()))
    try:
        common = _read(os.path.join(part, "commondir"))
    except FileNotFoundError:
        return here  # A submodule: a repository of its own.
    return os.path.dirname(os.path.normpath(os.path.join(part, common)))


def _read(path: str) -> str:
    with Path(path).open("rb") as file:
        return file.read(_MAX_BYTES).decode("utf-8", "surrogateescape").strip()
