"""Whole runs over a real board with a scripted gh."""

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import List

import pytest

from companion.assignment import run
from companion.assignment.run import Runner
from companion.boards.cards import CardFinder
from companion.boards.frontmatter import read_front_matter
from companion.core.files import held_alone
from companion.core.programs import Programs
from tests.companion.assignment.world import World, item, wait_until
from tests.conftest import ROOT


def test_a_run_writes_cards_that_are_cards(world: World) -> None:
    """One for each thing, with all that is known of it; a second run writes none."""
    world.answer(issues=[item(1)], prs=[item(2, "pull")], reviews=[item(2, "pull"), item(3, "pull")])
    outcome = world.run()
    assert (len(outcome.created), outcome.known, outcome.unusable, outcome.failure) == (3, 0, 0, None)
    assert world.cards() == [
        "issue-assigned-thing-1.md",
        "review-requested-thing-2.md",
        "review-requested-thing-3.md",
    ]
    text = (world.board / "review-requested-thing-2.md").read_text(encoding="utf-8")
    assert text.endswith(
        "\n---\n\nhttps://github.com/acme/rocket/pull/2\n\n"
        "- Repository: acme/rocket\n- Number: #2\n- Author: wile\n- State: open\n"
        "- Updated: 2026-05-14T10:00:00Z\n- Labels: bug\n\n"
        "What number 2 is about.\n"
    )
    assert read_front_matter(text.encode()).fields["column"] == "Triage"
    scan = CardFinder(world.boards.registry).scan()
    assert len(scan.cards) == 3 and not scan.without_uuid and not scan.problems
    again = world.run()
    assert (again.created, again.known) == ((), 3)
    assert len(world.cards()) == 3


def test_only_the_owners_that_are_named(world: World) -> None:
    """gh is told so."""
    world.configure(organizations=["acme"])
    world.answer(issues=[item(1), item(2, repository="other/thing")])
    world.run()
    assert world.cards() == ["issue-assigned-thing-1.md"]
    assert all(call[-2:] == ["--owner", "acme"] for call in world.calls())


def test_what_is_on_the_board_is_left_out(world: World) -> None:
    """By its link in any card; not by one in the archive, and not by a longer number."""
    (world.board / "mine.md").write_text("Look at https://github.com/Acme/rocket/issues/1 and issues/2\n")
    (world.board / "other.md").write_text("https://github.com/acme/rocket/issues/33\n")
    (world.board / "archive").mkdir()
    (world.board / "archive" / "old.md").write_text("https://github.com/acme/rocket/issues/2\n")
    world.answer(issues=[item(1), item(2), item(3)])
    outcome = world.run()
    assert outcome.known == 1
    assert world.cards() == [
        "archive",
        "issue-assigned-thing-2.md",
        "issue-assigned-thing-3.md",
        "mine.md",
        "other.md",
    ]


def test_the_same_title_often(world: World) -> None:
    """Each gets a file of its own."""
    (world.board / "issue-assigned-same.md").write_text("mine")
    world.answer(issues=[item(number, title="Same") for number in range(1, 4)])
    world.run()
    names = [f"issue-assigned-same{end}.md" for end in ("-1", "-2", "-3", "")]
    assert world.cards() == names
    assert (world.board / "issue-assigned-same.md").read_text() == "mine"


def test_titles_and_bodies_of_strangers(world: World) -> None:
    """Nothing of them reaches the head of a card."""
    odd = "---\nuuid: other\ncolumn: Done\n---\n"
    world.answer(issues=[item(1, title=odd, body=odd + "\r\n\x00", labels=[{"name": odd}])])
    world.run()
    (name,) = world.cards()
    fields = read_front_matter((world.board / name).read_bytes()).fields
    assert fields["title"] == "Issue Assigned: --- uuid: other column: Done ---"
    assert fields["column"] == "Triage" and fields["uuid"] != "other"


@pytest.mark.parametrize("which", ["issues", "prs", "reviews"])
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            {"exit": 4, "stderr": "To get started with GitHub CLI, please run:  gh auth login"},
            "gh auth login",
        ),
        ({"raw": "<html>rate limit</html>"}, "not JSON"),
        ({"raw": '{"message": "rate limit"}'}, "no list"),
    ],
)
def test_when_one_search_fails_nothing_is_written(
    world: World, which: str, answer: object, reason: str
) -> None:
    """Whichever it is."""
    answers = {"issues": [item(1)], "prs": [item(2, "pull")], "reviews": [item(3, "pull")], which: answer}
    world.answer(**answers)
    outcome = world.run()
    assert outcome.failure is not None and reason in outcome.failure
    assert outcome.created == () and world.cards() == []


def test_a_gh_that_hangs_ends_the_run(world: World) -> None:
    """With a reason; the process is gone."""
    world.answer(issues=[item(1)], reviews={"hang": True})
    outcome = world.run(timeout_s=1.0)
    assert outcome.failure is not None and "did not end within 1 s" in outcome.failure
    assert world.cards() == []
    assert len(world.calls()) == 3 and not world.alive()


def test_a_gh_that_is_missing_is_told(world: World) -> None:
    """Plainly, with what helps."""
    setting = world.setting()
    outcome = Runner(Programs({"PATH": "/nonexistent"}), lambda *_: Path("x")).run(setting)
    assert outcome.failure is not None and "not on PATH" in outcome.failure


def test_an_endless_answer_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded."""
    monkeypatch.setattr(run, "MOST_BYTES", 1_000)
    world.answer(issues=[item(1, body="x" * 2_000)])
    outcome = world.run()
    assert outcome.failure is not None and "more than 1000 bytes" in outcome.failure


def test_a_dry_run_only_tells(world: World) -> None:
    """Titles and links; nothing is written."""
    world.answer(issues=[item(1)], reviews=[item(2, "pull")])
    outcome = world.run(dry_run=True)
    assert outcome.created == (
        ("Issue Assigned: Thing 1", "https://github.com/acme/rocket/issues/1"),
        ("Review Requested: Thing 2", "https://github.com/acme/rocket/pull/2"),
    )
    assert world.cards() == []


def test_only_one_run_at_a_time(world: World) -> None:
    """Also of two processes; a dry run does no harm."""
    world.answer(issues=[item(1)])
    with held_alone(world.board):
        outcome = world.run()
        assert outcome.failure is not None and "another run" in outcome.failure
        assert world.run(dry_run=True).failure is None
    assert world.cards() == []
    assert world.run().failure is None


def test_a_disk_that_fills_up_keeps_what_was_written(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """No half card, a reason; the next run goes on."""
    world.answer(issues=[item(number) for number in range(1, 4)])
    real, calls = os.fsync, []

    def full(fd: int) -> None:
        calls.append(fd)
        if len(calls) > 2:  # The first card and its folder.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(fd)

    monkeypatch.setattr(os, "fsync", full)
    outcome = world.run()
    assert len(outcome.created) == 1 and outcome.failure is not None and "No space" in outcome.failure
    assert world.cards() == ["issue-assigned-thing-1.md"]
    monkeypatch.undo()
    assert len(world.run().created) == 2 and len(world.cards()) == 3


def test_a_run_that_is_no_longer_wanted_ends_between_two_cards(world: World) -> None:
    """At shutdown."""
    world.answer(issues=[item(number) for number in range(1, 4)])
    written: List[str] = []

    def add_card(folder: Path, title: str, column: str, body: str) -> Path:
        written.append(title)
        return folder / "x.md"

    outcome = Runner(world.programs, add_card, lambda: bool(written)).run(world.setting())
    assert len(written) == 1 and outcome.failure is not None and "stopped" in outcome.failure


def test_programs_that_are_closed_end_a_run(world: World) -> None:
    """A hanging gh does not hold up a shutdown."""
    world.answer(issues={"hang": True})
    outcomes: List[object] = []
    thread = threading.Thread(target=lambda: outcomes.append(world.run()))
    thread.start()
    wait_until(lambda: len(world.calls()) == 1)
    world.programs.close()
    thread.join(30)
    assert len(outcomes) == 1 and world.cards() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="drops root's rights")
def test_a_board_that_may_not_be_written(world: World) -> None:
    """As another user: a reason, and nothing beside."""
    for each in [*world.home.rglob("*"), world.home, *world.home.parents]:
        # Added to what is there: one of the parents may be the system's own folder of temporary files.
        each.chmod(stat.S_IMODE(each.stat().st_mode) | (0o755 if each.is_dir() else 0o444))
    gh = world.home / "gh"
    # A gh that any user can run; sys.executable may lie in a home that is closed to others.
    gh.write_text(
        '#!/bin/sh\n[ "$2" = prs ] && echo "[]" || echo \'[{"url": "https://github.com/a/b/issues/1"}]\'\n'
    )
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "from companion.commands.assign import add_card, read_job\n"
        "from companion.commands.wiring import open_boards\n"
        "from companion.core.settings import load\n"
        "from companion.core.programs import Programs\n"
        "from companion.assignment.run import Runner\n"
        "import companion.boards.newcard, companion.boards.boardfile\n"
        "setting = read_job(open_boards(load(os.environ)))\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "print(Runner(Programs(os.environ), add_card).run(setting))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(ROOT)],
        env={**world.environ, "PATH": os.defpath},
        cwd=world.home,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Permission denied" in done.stdout and "created=()" in done.stdout, done
    assert world.cards() == []
