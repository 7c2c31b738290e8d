"""The setting: what is a job, what is none, and what is wrong with it."""

import json

import pytest

from companion.commands.assign import read_job
from companion.core.errors import CompanionError
from tests.companion.assignment.world import BOARD, World


def test_a_job_is_read(world: World) -> None:
    """All three keys, trimmed; owners once each; other extensions do not matter."""
    world.configure(schedule=" @hourly ", organizations=[" acme ", "acme", "other"], boardUuid=f" {BOARD} ")
    setting = world.setting()
    assert setting.expression == "@hourly" and setting.organizations == ("acme", "other")
    assert (setting.board_uuid, setting.folder) == (BOARD, str(world.board))


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"extensions": None},
        {"extensions": []},
        {"extensions": {}},
        {"extensions": {"github-assignment": None}},
    ],
)
def test_without_the_key_there_is_no_job(world: World, content: object) -> None:
    """Nor with ``null``; and nothing is wrong with that."""
    world.config.write_text(json.dumps(content))
    assert read_job(world.boards) is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"schedule": ""}, "schedule is no cron"),
        ({"schedule": "  "}, "schedule is no cron"),
        ({"schedule": 5}, "schedule is no cron"),
        ({"schedule": None}, "schedule is no cron"),
        ({"schedule": "every day"}, "five fields"),
        ({"schedule": "0 0 30 2 *"}, "never comes"),
        ({"organizations": None}, "no list"),
        ({"organizations": "acme"}, "no list"),
        ({"organizations": {}}, "no list"),
        ({"organizations": ["acme", ""]}, "no name"),
        ({"organizations": ["  "]}, "no name"),
        ({"organizations": [1]}, "no name"),
        ({"boardUuid": None}, "names no board"),
        ({"boardUuid": ""}, "names no board"),
        ({"boardUuid": 7}, "names no board"),
        ({"boardUuid": "somebody-else"}, "not that of a registered board"),
    ],
)
def test_what_is_wrong_is_told_with_the_key(world: World, changes: "dict[str, object]", reason: str) -> None:
    """Enough to find the place in the file."""
    world.configure(**changes)
    with pytest.raises(CompanionError, match=reason) as wrong:
        read_job(world.boards)
    assert 'extensions["github-assignment"]' in str(wrong.value)


@pytest.mark.parametrize("entry", [False, "yes", 3, []])
def test_an_entry_that_is_no_object_is_wrong(world: World, entry: object) -> None:
    """Not taken for none."""
    world.configure(entry)
    with pytest.raises(CompanionError, match="no JSON object"):
        read_job(world.boards)


def test_the_board_must_have_the_column(world: World) -> None:
    """By its exact name; a folder that is away, and a file that cannot be read, are told as such."""
    yml = world.board / "mdello.yml"
    yml.write_text(f"uuid: {BOARD}\ncolumns: [triage, Done]\n")
    with pytest.raises(CompanionError, match="no column Triage"):
        read_job(world.boards)
    yml.write_text("columns: [Triage\n")
    with pytest.raises(CompanionError, match=r"mdello\.yml"):
        read_job(world.boards)
    world.board.rename(world.home / "away")
    with pytest.raises(CompanionError, match="is not there"):
        read_job(world.boards)
