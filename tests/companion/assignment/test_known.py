"""What is on a board already."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from companion.assignment import known
from companion.assignment.known import links_in
from companion.core.errors import AssignmentFailed
from tests.another_user import open_to_all
from tests.conftest import ROOT


def link(number: int) -> str:
    """An issue's."""
    return f"https://github.com/acme/rocket/issues/{number}"


def numbers(folder: Path) -> "list[int]":
    """Of the issues that are linked to."""
    return sorted(int(each.rpartition("/")[2]) for each in links_in(str(folder)))


def test_only_the_boards_own_markdown_files_count(tmp_path: Path) -> None:
    """Cards and files that are none; not the archive, other files, folders or pipes."""
    (tmp_path / "a.md").write_text(f"---\nuuid: a\n---\nSee {link(1)}, and [this]({link(2)}#issuecomment-9).")
    (tmp_path / ".hidden.md").write_text(link(3))
    (tmp_path / "no-card.md").write_bytes(b"\xff\xfe " + link(4).encode())
    (tmp_path / "there").write_text(link(5))
    (tmp_path / "linked.md").symlink_to(tmp_path / "there")
    (tmp_path / "notes.txt").write_text(link(6))
    (tmp_path / "UPPER.MD").write_text(link(7))
    (tmp_path / "archive" / "2026-05").mkdir(parents=True)
    (tmp_path / "archive" / "2026-05" / "b.md").write_text(link(8))
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "dangling.md").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.md")
    assert numbers(tmp_path) == [1, 2, 3, 4, 5]


def test_a_longer_number_is_another_issue(tmp_path: Path) -> None:
    """12 does not hold 1."""
    (tmp_path / "a.md").write_text(link(12))
    assert numbers(tmp_path) == [12]


def test_links_across_the_pieces_of_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is cut."""
    monkeypatch.setattr(known, "_PIECE_BYTES", 64)
    (tmp_path / "a.md").write_text(
        "".join("é" * (number % 70) + link(number) + " " for number in range(1000, 1200))
    )
    assert numbers(tmp_path) == list(range(1000, 1200))


def test_a_folder_that_is_away_is_an_error(tmp_path: Path) -> None:
    """Not an empty board."""
    with pytest.raises(AssignmentFailed, match="No such file"):
        links_in(str(tmp_path / "away"))


@pytest.mark.skipif(os.geteuid() != 0, reason="drops root's rights")
def test_a_card_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """Its issue would be put on the board again and again."""
    secret = tmp_path / "secret.md"
    secret.write_text(link(1))
    secret.chmod(0o600)
    open_to_all(tmp_path)
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "from companion.assignment.known import links_in\n"
        "os.setgid(65534); os.setuid(65534); links_in(sys.argv[2])\n"
    )
    command = [sys.executable, "-c", code, str(ROOT), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "Permission denied" in done.stderr and "secret.md" in done.stderr
