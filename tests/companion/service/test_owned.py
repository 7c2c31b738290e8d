"""Our files among those of a service manager."""

import os
from pathlib import Path
from typing import List

import pytest

from adapters import placing
from companion.service import owned
from tests.adapters.disk import die_at, refusal_to_nobody, times_of
from tests.another_user import NOBODY
from tests.companion.service.conftest import World

FILE = "Library/deep/file"
LINK = ".config/wants/link"
STATE = ".local/state/mdello"


def put(world: World, data: bytes = b"ours", target: str = "../file") -> List[Path]:
    """A file, a link and a folder."""
    return owned.put(
        world.context(), {world.home / FILE: data}, {world.home / LINK: target}, [world.home / STATE]
    )


def take(world: World) -> List[Path]:
    """All of it."""
    paths = [world.home / LINK, world.home / FILE]
    return owned.take_away(world.context(), paths, [world.home / STATE])[0]


@pytest.mark.parametrize("inhabited", [False, True])
def test_taking_away_is_the_inverse(world: World, inhabited: bool) -> None:
    """Twice, whatever else is there; the second time nothing is touched."""
    before = world.inhabit() if inhabited else world.tree()
    for _ in range(2):
        assert put(world) == [world.home / FILE, world.home / LINK]
        assert (world.home / FILE).read_bytes() == b"ours" and os.readlink(world.home / LINK) == "../file"
        assert (world.home / STATE).is_dir()
        times = times_of(world.home)
        assert put(world) == [] and times_of(world.home) == times
        assert take(world) == [world.home / LINK, world.home / FILE]
        assert world.tree() == before
        assert take(world) == [] and world.tree() == before


def test_what_changed_is_replaced(world: World) -> None:
    """Only that."""
    put(world)
    assert put(world, data=b"newer") == [world.home / FILE]
    assert put(world, b"newer", target="elsewhere") == [world.home / LINK]
    assert os.readlink(world.home / LINK) == "elsewhere"


def test_a_folder_with_something_in_it_stays(world: World) -> None:
    """A companion has run and written there."""
    put(world)
    (world.home / STATE / "companion.jsonl").write_text("")
    paths = [world.home / LINK, world.home / FILE]
    _, kept = owned.take_away(world.context(), paths, [world.home / STATE])
    assert kept == [world.home / STATE]
    assert (world.home / STATE / "companion.jsonl").exists() and not (world.home / "Library").exists()


def test_a_failure_takes_back_what_was_new(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full at the second step."""
    before = world.inhabit()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(placing, "put_link", full)
    with pytest.raises(OSError, match="No space"):
        put(world)
    assert world.tree() == before


def test_a_death_at_any_point_can_be_undone(world: World) -> None:
    """Taking away finds all that was made, however far it came."""
    before = world.inhabit()
    for count in range(200):
        through = die_at(count, lambda: put(world))
        take(world)
        assert world.tree() == before, count
        if through:
            return
    pytest.fail("it never got through")


def test_nothing_is_taken_away_when_a_part_cannot_be(world: World, tmp_path: Path) -> None:
    """A folder that is read-only by now."""
    put(world)
    if os.getuid() == 0:
        for path in (tmp_path, *tmp_path.rglob("*")):
            os.lchown(path, NOBODY, NOBODY)
        for parent in tmp_path.parents:
            if not parent.stat().st_mode & 0o001:
                parent.chmod(parent.stat().st_mode | 0o011)
    (world.home / FILE).parent.chmod(0o500)
    before = world.tree()

    def act() -> None:
        try:
            take(world)
        except PermissionError as exc:
            print(exc, file=(tmp_path / "said").open("w"))

    refusal_to_nobody(act)
    assert "Permission denied" in (tmp_path / "said").read_text()
    assert world.tree() == before
