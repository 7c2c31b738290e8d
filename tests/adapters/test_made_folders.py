"""The record of folders that installs had to make; what integrations do with it is tested with them."""

import contextlib
import json
import os
import tempfile
import threading
from functools import partial
from pathlib import Path
from typing import Callable, List

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import made_folders
from adapters.contract import AdapterError
from adapters.made_folders import MadeFolders, data_dir, opened
from tests.adapters.disk import die_at, in_parallel, refusal_to_nobody, tree_of


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home."""
    made = tmp_path / "home"
    made.mkdir()
    return made


def record(home: Path) -> Path:
    """Where the record lies by default."""
    return home / ".local" / "share" / "mdello" / "made-folders.json"


def put(home: Path, name: str) -> None:
    """Install a file of that name below the home."""
    with opened(home, data_dir(home, {})) as made:
        made.hold(home / name)
        (home / name).touch()


def take(home: Path, name: str) -> None:
    """Take it away again."""
    with opened(home, data_dir(home, {})) as made:
        with contextlib.suppress(OSError):
            (home / name).unlink()
        made.release(home / name)


def test_the_data_folder_is_where_xdg_says() -> None:
    """An empty or relative value is ignored."""
    home = Path("/home/dev")
    assert data_dir(home, {}) == home / ".local" / "share" / "mdello"
    assert data_dir(home, {"XDG_DATA_HOME": "/data"}) == Path("/data/mdello")
    for told in ("", "relative", "~/data"):
        assert data_dir(home, {"XDG_DATA_HOME": told}) == home / ".local" / "share" / "mdello"


def test_folders_are_private_and_written_down_with_the_places_in_them(home: Path) -> None:
    """The folders of the record itself too."""
    put(home, ".config/a/x")
    content = json.loads(record(home).read_text())
    names = [".config", ".config/a", ".local", ".local/share", ".local/share/mdello"]
    assert content["folders"] == [str(home / name) for name in names]
    assert content["places"] == [str(home / ".config/a/x")]
    assert all((home / name).stat().st_mode & 0o777 == 0o700 for name in names)
    assert record(home).stat().st_mode & 0o777 == 0o600


def test_nothing_is_written_when_nothing_had_to_be_made(home: Path) -> None:
    """Unless the caller wants its place to be known, or a folder above it is ours."""
    (home / "there").mkdir()
    put(home, "there/x")
    assert not record(home).exists()
    with opened(home, data_dir(home, {})) as made:
        made.hold(home / "there" / "y", always=True)
        assert made.places == [home / "there" / "y"]
    put(home, "new/x")
    put(home, "new/y")
    take(home, "new/x")
    assert (home / "new" / "y").exists() and record(home).exists()


def test_whoever_goes_last_removes_what_was_made_for_the_first(home: Path) -> None:
    """A shared parent stays as long as something of ours is in it, and then goes, with the record."""
    put(home, ".config/a/x")
    put(home, ".config/b/x")
    take(home, ".config/a/x")
    assert not (home / ".config" / "a").exists() and (home / ".config" / "b").exists()
    take(home, ".config/b/x")
    assert tree_of(home) == {}


def test_what_others_put_into_a_made_folder_stays(home: Path) -> None:
    """Then the folder is theirs; the record goes all the same."""
    put(home, ".config/a/x")
    (home / ".config" / "theirs").mkdir()
    (record(home).parent.parent / "other").touch()
    take(home, ".config/a/x")
    assert set(tree_of(home)) == {".config", ".config/theirs", ".local", ".local/share", ".local/share/other"}


def test_a_file_beside_the_record_stays(home: Path) -> None:
    """Nobody else has business there, but who knows."""
    put(home, ".config/a/x")
    (record(home).parent / "note").touch()
    take(home, ".config/a/x")
    assert set(tree_of(home)) == {".local", ".local/share", ".local/share/mdello", ".local/share/mdello/note"}


def test_a_place_that_somebody_deleted_does_not_hold_the_record(home: Path) -> None:
    """The next uninstall of anything notices."""
    put(home, "a/x")
    put(home, "b/x")
    (home / "a" / "x").unlink()
    take(home, "b/x")
    assert tree_of(home) == {}


def test_a_folder_wanted_for_itself_stays_while_it_is_empty(home: Path) -> None:
    """Until it is released; one that was there before is none of ours."""
    with opened(home, data_dir(home, {})) as made:
        made.hold_folder(home / "state" / "logs")
    put(home, "a/x")
    take(home, "a/x")
    assert (home / "state" / "logs").is_dir()
    with opened(home, data_dir(home, {})) as made:
        made.release(home / "state" / "logs")
    assert tree_of(home) == {}
    (home / "state").mkdir()
    with opened(home, data_dir(home, {})) as made:
        made.hold_folder(home / "state")
        made.release(home / "state")
    assert set(tree_of(home)) == {"state"}


def test_an_error_takes_back_what_was_made(home: Path) -> None:
    """What others had held before stays held."""
    put(home, "a/x")
    before = [(path, *told[:3]) for path, told in tree_of(home).items()]
    with pytest.raises(ValueError, match="no"), opened(home, data_dir(home, {})) as made:
        made.hold(home / "b" / "c" / "x")
        raise ValueError("no")
    assert [(path, *told[:3]) for path, told in tree_of(home).items()] == before


@pytest.mark.parametrize(
    "content",
    [
        b"{}",
        b'{"managedBy": "somebody", "folders": []}',
        b"",
        b"{",
        b"[]",
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_a_stranger_in_its_place_is_refused_and_spared(content: bytes, home: Path) -> None:
    """It does not say that it is ours, whatever it is."""
    record(home).parent.mkdir(parents=True)
    record(home).write_bytes(content)
    before = tree_of(home)
    with pytest.raises(AdapterError, match="not ours"), opened(home, data_dir(home, {})):
        pytest.fail("it was opened")
    record(home).unlink()
    record(home).symlink_to("elsewhere")
    with pytest.raises(AdapterError, match="not ours"), opened(home, data_dir(home, {})):
        pytest.fail("it was opened")
    assert set(tree_of(home)) == set(before)


def test_entries_of_odd_types_are_left_out(home: Path) -> None:
    """They stop nobody."""
    record(home).parent.mkdir(parents=True)
    odd: List[object] = [3, None, {"folders": 3}, ["a/b", 4, "/x\0", None, "/nowhere"]]
    for folders in odd:
        content = {"managedBy": "mdello-companion", "folders": folders, "places": folders}
        record(home).write_text(json.dumps(content))
        with opened(home, data_dir(home, {})) as made:
            assert made.places == ([Path("/nowhere")] if isinstance(folders, list) else [])
            made.hold(home / "a" / "x")
            made.release(home / "a" / "x")
        assert set(tree_of(home)) == {".local", ".local/share", ".local/share/mdello"}


def test_names_that_are_not_utf_8_are_kept(home: Path) -> None:
    """As the system spells them."""
    name = os.fsdecode(b"caf\xe9")
    try:
        (home / name).mkdir()
    except OSError:
        pytest.skip("this file system wants UTF-8")
    put(home, f"{name}/a/x")
    take(home, f"{name}/a/x")
    assert list(tree_of(home)) == [name]


def test_a_folder_that_another_program_makes_at_the_same_moment_is_not_ours(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays when we go."""
    put(home, "a/x")
    mkdir = os.mkdir

    def late(path: Path, mode: int = 0o777) -> None:
        if Path(path) == home / "b":
            mkdir(path, mode)
        mkdir(path, mode)

    with monkeypatch.context() as patched:
        patched.setattr(os, "mkdir", late)
        put(home, "b/c/x")
    take(home, "b/c/x")
    take(home, "a/x")
    assert set(tree_of(home)) == {"b"}


def test_a_parent_of_the_record_that_appears_at_the_same_moment_is_not_ours(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other program's folder is used, and stays."""
    rename = os.rename
    first = [True]

    def late(source: Path, target: Path) -> None:
        if first and Path(target) == home / ".local":
            first.clear()
            (home / ".local").mkdir()
            (home / ".local" / "theirs").touch()
        rename(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", late)
        put(home, "a/x")
    take(home, "a/x")
    assert set(tree_of(home)) == {".local", ".local/theirs"}


def test_a_read_only_record_is_told_before_anything_is_removed() -> None:
    """Who removes asks first; an empty record asks for nothing."""
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are private to this user.
        home = Path(place)
        home.chmod(0o755)

        def ask() -> None:
            try:
                MadeFolders(record(home)).demand_writable()
            except PermissionError as exc:
                raise AdapterError(str(exc)) from exc

        assert refusal_to_nobody(ask) == ""
        put(home, "a/x")
        for folder in (record(home).parent, *list(record(home).parents)[1:3]):
            folder.chmod(0o755)
        record(home).chmod(0o644)
        assert "Permission denied" in refusal_to_nobody(ask)


def test_only_one_process_works_at_a_time(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has waited for too long is told."""
    monkeypatch.setattr(made_folders, "LOCK_TIMEOUT_S", 0.05)
    refused = pytest.raises(AdapterError, match="Another install")
    with opened(home, data_dir(home, {})), refused, opened(home, data_dir(home, {})):
        pytest.fail("both were in")
    with opened(home, data_dir(home, {})):
        pass


def test_where_locks_do_not_work_it_goes_on(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some network file systems have none."""

    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("adapters.made_folders.fcntl.flock", refuse)
    put(home, "a/x")
    take(home, "a/x")
    monkeypatch.setattr(made_folders, "fcntl", None)
    put(home, "a/x")
    take(home, "a/x")
    assert tree_of(home) == {}


def test_without_a_home_the_nearest_folder_is_locked(tmp_path: Path) -> None:
    """It is made, as any folder that is missing, and goes again."""
    home = tmp_path / "no" / "home"
    put(home, "a/x")
    take(home, "a/x")
    assert list(tmp_path.iterdir()) == []


def test_many_at_once_spoil_nothing(home: Path) -> None:
    """Processes and threads that come and go; in the end the home is as before."""
    for _ in range(5):
        acts: List[Callable[[], object]] = []
        for name in ("a/x", "a/b/x", ".config/x/y", ".local/share/z"):
            acts += [partial(put, home, name), partial(take, home, name)]
        assert in_parallel(acts) == [0] * len(acts)
        threads = [threading.Thread(target=put, args=(home, name)) for name in ("a/x", "q/x")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name in ("a/x", "a/b/x", ".config/x/y", ".local/share/z", "q/x"):
            take(home, name)
        assert tree_of(home) == {}


@pytest.mark.parametrize("act", [put, take])
def test_a_kill_at_any_point_leaves_nothing_that_is_not_found_again(
    act: Callable[[Path, str], None], tmp_path: Path
) -> None:
    """The next one to come and go takes the rest along."""
    for count in range(200):
        home = tmp_path / str(count)
        home.mkdir()
        if act is take:
            put(home, ".config/b/x")
        finished = die_at(count, partial(act, home, ".config/b/x"))
        if count % 2:
            put(home, ".config/b/x")
        take(home, ".config/b/x")
        assert tree_of(home) == {}, count
        if finished:
            return
    pytest.fail("it never finished")


_PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("/".join)


@given(
    before=st.lists(_PATHS, max_size=4),
    steps=st.lists(st.tuples(st.booleans(), _PATHS), max_size=12),
)
def test_any_order_ends_where_it_began(
    before: List[str], steps: "List[tuple[bool, str]]", tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Folders that were there stay, all others go."""
    home = tmp_path_factory.mktemp("any")
    for name in before:
        (home / name).mkdir(parents=True, exist_ok=True)
    tree = tree_of(home)
    for puts, folder in steps:
        (put if puts else take)(home, f"{folder}/x")
    for _, folder in steps:
        take(home, f"{folder}/x")
    assert tree_of(home) == tree
