"""Where a companion writes that nobody watches."""

import subprocess
import sys
from pathlib import Path
from typing import List

from companion.service import logfiles
from tests.conftest import ROOT

PROGRAM = """
import os, subprocess, sys
from pathlib import Path
from companion.service import logfiles
problem = logfiles.write_there(Path(sys.argv[1]))
print("said", flush=True)
print("complained", problem, file=sys.stderr, flush=True)
subprocess.run(["sh", "-c", "echo child"])
print(sorted(os.listdir("/proc/self/fd"))[:4] if os.path.isdir("/proc/self/fd") else "", file=sys.stderr)
"""


def run(folder: Path) -> "subprocess.CompletedProcess[str]":
    """A process that says something on both streams."""
    command: List[str] = [sys.executable, "-c", PROGRAM, str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)


def test_both_streams_go_to_their_files(tmp_path: Path) -> None:
    """The folder is made; those of children go there too; a second process appends."""
    folder = tmp_path / "gone" / "state"
    for times in (1, 2):
        done = run(folder)
        assert (done.stdout, done.stderr) == ("", "")
        assert (folder / logfiles.OUTPUT).read_text() == "said\nchild\n" * times
        assert (folder / logfiles.ERRORS).read_text().count("complained None\n") == times
    assert (folder / logfiles.OUTPUT).stat().st_mode & 0o777 == 0o600


def test_a_folder_that_cannot_be_made_is_told_and_does_no_harm(tmp_path: Path) -> None:
    """What is said goes where it went before."""
    (tmp_path / "file").write_text("")
    done = run(tmp_path / "file" / "state")
    assert done.stdout == "said\nchild\n" and "No log is written in" in done.stderr
    folder = tmp_path / "state"
    (folder / logfiles.ERRORS).mkdir(parents=True)
    done = run(folder)
    assert done.stdout == "said\nchild\n" and "No log is written in" in done.stderr


def test_a_log_does_not_grow_for_ever(tmp_path: Path) -> None:
    """The one before is kept, once."""
    for number in range(3):
        (tmp_path / logfiles.OUTPUT).write_bytes(b"%d" % number * (logfiles.MOST_BYTES + 1))
        run(tmp_path)
        assert (tmp_path / logfiles.OUTPUT).read_text() == "said\nchild\n"
        kept = (tmp_path / (logfiles.OUTPUT + ".old")).read_bytes()
        assert kept == b"%d" % number * (logfiles.MOST_BYTES + 1)
    assert len(list(tmp_path.iterdir())) == 3
