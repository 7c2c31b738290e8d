"""Files of the first companions find their new places."""

import os
from pathlib import Path
from typing import Dict

import pytest

from companion.core import files
from companion.core.settings import Settings
from companion.service import migration
from companion.service import plan as plans
from tests.adapters.disk import die_at, tree_of
from tests.companion.service.conftest import World

CONTENT = {
    "companion.json": b'{"boards": []}\n',
    "companion.jsonl": b"{}\n" * 1000,
    "companion.log": b"\xff log\n",
    "companion-error.log": b"",
}


@pytest.fixture
def settings(world: World) -> Settings:
    """Where things go."""
    return plans.settings_of(world.context())


def legacy(settings: Settings, content: Dict[str, bytes]) -> Path:
    """The old folder with these files."""
    folder = settings.home / ".mdello"
    folder.mkdir(exist_ok=True)
    for name, data in content.items():
        (folder / name).write_bytes(data)
    return folder


def targets(settings: Settings) -> Dict[str, Path]:
    """Where each file goes."""
    state = settings.home / ".local" / "state" / "mdello"
    return {
        "companion.json": settings.home / ".config" / "mdello" / "companion.json",
        **{name: state / name for name in CONTENT if name != "companion.json"},
    }


def test_all_four_move_and_the_folder_goes(settings: Settings) -> None:
    """Byte for byte, for this user alone, and told."""
    folder = legacy(settings, CONTENT)
    assert migration.pending(settings)
    moved = migration.migrate(settings)
    assert moved.left == () and len(moved.done) == 4
    assert moved.done[0] == f"Moved {folder / 'companion.json'} to {targets(settings)['companion.json']}"
    for name, target in targets(settings).items():
        assert target.read_bytes() == CONTENT[name] and target.stat().st_mode & 0o777 == 0o600
    assert not folder.exists() and not migration.pending(settings)


def test_nothing_to_move_is_nothing_said(settings: Settings) -> None:
    """The usual case; no folder is made."""
    assert migration.migrate(settings) == migration.Moved()
    assert list(settings.home.iterdir()) == []


def test_an_existing_new_file_keeps_the_old_one(settings: Settings) -> None:
    """The contract's case: the other three move, the folder stays because of the one."""
    folder = legacy(settings, CONTENT)
    new = targets(settings)["companion.json"]
    new.parent.mkdir(parents=True)
    new.write_bytes(b"mine")
    moved = migration.migrate(settings)
    assert len(moved.done) == 3 and moved.left == (
        f"{folder / 'companion.json'} stays where it is: there is a {new} already",
    )
    assert new.read_bytes() == b"mine"
    assert tree_of(folder).keys() == {"companion.json"}
    new.unlink()
    assert len(migration.migrate(settings).done) == 1 and not folder.exists()


def test_foreign_files_keep_the_folder(settings: Settings) -> None:
    """Whatever else is in there is not ours to judge."""
    folder = legacy(settings, {**CONTENT, "notes.txt": b"x"})
    migration.migrate(settings)
    assert tree_of(folder).keys() == {"notes.txt"}


def test_what_is_no_file_stays(settings: Settings) -> None:
    """A folder of that name, a link that leads nowhere; a link to a file is followed."""
    folder = legacy(settings, {})
    (folder / "companion.json").mkdir()
    (folder / "companion.log").symlink_to("nowhere")
    (settings.home / "dotfile").write_bytes(b"kept")
    (folder / "companion.jsonl").symlink_to(settings.home / "dotfile")
    moved = migration.migrate(settings)
    assert len(moved.done) == 1 and len(moved.left) == 2
    assert all("it is not a plain file" in line for line in moved.left)
    assert targets(settings)["companion.jsonl"].read_bytes() == b"kept"
    assert (settings.home / "dotfile").read_bytes() == b"kept"


def test_a_file_that_appears_at_the_last_moment_wins(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A companion that was just started writes its own."""
    folder = legacy(settings, {"companion.json": b"old"})
    new = targets(settings)["companion.json"]
    sync = files.Replacement.sync

    def meanwhile(replacement: files.Replacement) -> None:
        sync(replacement)
        new.write_bytes(b"new")

    monkeypatch.setattr(files.Replacement, "sync", meanwhile)
    assert len(migration.migrate(settings).left) == 1
    assert new.read_bytes() == b"new" and (folder / "companion.json").read_bytes() == b"old"
    assert [path.name for path in new.parent.iterdir()] == ["companion.json"]


def test_a_disk_that_refuses_leaves_everything(settings: Settings) -> None:
    """A file where a folder should be."""
    folder = legacy(settings, CONTENT)
    (settings.home / ".config").write_bytes(b"")
    moved = migration.migrate(settings)
    assert len(moved.done) == 3 and "cannot be moved to" in moved.left[0]
    assert (folder / "companion.json").read_bytes() == CONTENT["companion.json"]


def test_a_death_at_any_point_loses_nothing(settings: Settings) -> None:
    """Every file is whole in one of its two places, and the next install finishes."""
    for count in range(200):
        legacy(settings, CONTENT)
        through = die_at(count, lambda: migration.migrate(settings))
        for name, target in targets(settings).items():
            places = [settings.home / ".mdello" / name, target]
            assert any(path.exists() and path.read_bytes() == CONTENT[name] for path in places)
            assert all(path.read_bytes() == CONTENT[name] for path in places if path.exists())
        migration.migrate(settings)
        assert all(target.read_bytes() == CONTENT[name] for name, target in targets(settings).items())
        for target in targets(settings).values():
            os.unlink(target)
        if through:
            return
    pytest.fail("it never got through")
