"""Boards are registered as the contract says, and each path has at most one owner."""

import unicodedata
from pathlib import Path
from typing import List

import pytest

from companion.boards import registry as registry_module
from companion.boards.registry import normal_path
from companion.core.errors import BoardError, NotFound, StorageError
from tests.companion.boards.conftest import AsNobody, Boards

NFC, NFD = (unicodedata.normalize(form, "Küche 한글") for form in ("NFC", "NFD"))


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("/a/b", "/a/b"),
        ("/a/b/", "/a/b"),
        ("/a//b/./c/..", "/a/b"),
        ("//a/b", "/a/b"),
        ("///a", "/a"),
        ("/../a", "/a"),
        ("b/c", "/cwd/b/c"),
        ("../b", "/b"),
        ("", "/cwd"),
        ("~/b", "/cwd/~/b"),
        ("/A/é", "/A/é"),
        ("//", "/"),
    ],
)
def test_paths_are_normalised_by_their_letters_only(path: str, normal: str) -> None:
    """No links, no home, no case, no Unicode."""
    assert normal_path(path, "/cwd") == normal


def test_a_registration_is_trimmed_made_absolute_and_saved(boards: Boards) -> None:
    """The folder need not exist; the time is ours."""
    board = boards.registry.register("\u00a0 u-1\ufeff", "  some/./board/ ")
    assert (board.uuid, board.path) == ("u-1", str(boards.home / "some" / "board"))
    assert board.updated_at == "2026-01-02T03:04:05.250Z"
    assert boards.config.read() == {
        "boards": [{"uuid": "u-1", "path": board.path, "updatedAt": "2026-01-02T03:04:05.250Z"}]
    }


@pytest.mark.parametrize(
    ("uuid", "path"),
    [("", "/a"), (" ", "/a"), ("u", ""), ("u", "\u00a0"), ("u", "/a\0b"), ("u", "/\ud800"), ("\ud800", "/a")],
)
def test_a_registration_needs_uuid_and_path(boards: Boards, uuid: str, path: str) -> None:
    """Text that no file could hold is no better than none."""
    with pytest.raises(BoardError):
        boards.registry.register(uuid, path)
    assert boards.registry.boards() == []


def test_the_same_uuid_or_the_same_path_gives_way_and_the_new_one_comes_last(boards: Boards) -> None:
    """A moved board leaves its old path unowned."""
    for uuid, path in [("u1", "/a"), ("u2", "/b"), ("u3", "/c"), ("u1", "/a2"), ("u4", "/b/")]:
        boards.registry.register(uuid, path)
    assert [(board.uuid, board.path) for board in boards.registry.boards()] == [
        ("u3", "/c"),
        ("u1", "/a2"),
        ("u4", "/b"),
    ]
    assert boards.registry.owner_of("/a/x.md") is None


def test_both_collisions_at_once_leave_one_board(boards: Boards) -> None:
    """One entry with the uuid, another with the path."""
    boards.registry.register("u1", "/a")
    boards.registry.register("u2", "/b")
    boards.registry.register("u1", "/b")
    assert [(board.uuid, board.path) for board in boards.registry.boards()] == [("u1", "/b")]


def test_entries_that_are_no_boards_are_skipped_counted_and_kept(boards: Boards) -> None:
    """Somebody may still repair them by hand; unknown keys of valid ones stay too."""
    good = {"uuid": "u", "path": "/a/", "updatedAt": "x", "note": "mine"}
    bad: List[object] = [
        None,
        1,
        "x",
        [],
        {},
        {**good, "uuid": ""},
        {**good, "path": 1},
        {**good, "updatedAt": None},
    ]
    bad += [{**good, "path": "/\ud800"}]
    boards.write_config({"boards": [*bad, good], "other": 1})
    assert boards.paths() == ["/a"]
    assert boards.registry.invalid_entries == len(bad)
    boards.registry.register("v", "/b")
    assert boards.paths() == ["/a", "/b"]
    saved = boards.config.read()
    assert saved["other"] == 1
    assert saved["boards"][: len(bad) + 1] == [*bad, good]  # type: ignore[index]


@pytest.mark.parametrize("value", ["x", 1, {}, True])
def test_boards_that_are_no_list_count_as_one_bad_entry(boards: Boards, value: object) -> None:
    """And as no boards."""
    boards.write_config({"boards": value})
    assert (boards.paths(), boards.registry.invalid_entries) == ([], 1)


def test_a_changed_file_is_heard_at_once(boards: Boards) -> None:
    """Another terminal's ``board add`` needs no restart."""
    boards.registry.register("u", "/a")
    boards.write_config({"boards": [{"uuid": "v", "path": "/b", "updatedAt": "x"}]})
    assert boards.paths() == ["/b"]
    assert boards.registry.owner_of("/b/x.md") is not None


def test_unknown_keys_survive_a_registration(boards: Boards) -> None:
    """In their order."""
    boards.write_config({"z": 1, "boards": [], "a": {"b": 2}})
    boards.registry.register("u", "/a")
    assert list(boards.config.read()) == ["z", "boards", "a"]


@pytest.mark.parametrize(
    ("path", "owned"),
    [
        ("/b/x.md", "/b/x.md"),
        ("/b/.hidden.md", "/b/.hidden.md"),
        ("/b/x.md/", "/b/x.md"),
        ("/b/sub/../x.md", "/b/x.md"),
        ("/b/UP.MD", "/b/UP.MD"),
        ("/b/no suffix", "/b/no suffix"),
        ("/b/archive/x.md", None),
        ("/b/..dots.md", None),
        ("/b/back\\slash.md", None),
        ("/b", None),
        ("/b/", None),
        ("/bx/x.md", None),
        ("/B/x.md", None),
        ("/x.md", None),
        ("", None),
        ("/b/x\0.md", None),
        ("/b/\ud800.md", None),
        ("/b/nested/x.md", "/b/nested/x.md"),
    ],
)
def test_only_direct_children_are_owned(boards: Boards, path: str, owned: object) -> None:
    """The contract's rule with its consequences; a nested board owns what is in it."""
    boards.registry.register("nested", "/b/nested")
    boards.registry.register("u", "/b")
    found = boards.registry.owner_of(path)
    assert (found[1] if found else None) == owned
    if found is not None:
        assert found[0].uuid == ("nested" if "nested" in path else "u")


def test_the_first_of_two_boards_on_one_path_owns_it(boards: Boards) -> None:
    """Only an edit by hand can bring that about."""
    entries = [{"uuid": uuid, "path": path, "updatedAt": ""} for uuid, path in [("u", "/a"), ("v", "/a/")]]
    boards.write_config({"boards": entries})
    owner = boards.registry.owner_of("/a/x.md")
    assert owner is not None and owner[0].uuid == "u"


def test_a_board_of_the_root_owns_its_files(boards: Boards) -> None:
    """Odd, but nothing forbids it."""
    boards.registry.register("u", "/")
    owner = boards.registry.owner_of("/x.md")
    assert owner is not None and owner[1] == "/x.md"


def test_a_relative_path_starts_at_the_working_directory(boards: Boards) -> None:
    """That of the companion."""
    boards.board("board")
    owner = boards.registry.owner_of("board/x.md")
    assert owner is not None and owner[1] == str(boards.home / "board" / "x.md")


def test_the_real_folder_of_a_symlinked_board_is_the_board(boards: Boards) -> None:
    """Agents name either; the path is given under the registered name."""
    real = boards.home / "real" / "board"
    real.mkdir(parents=True)
    (boards.home / "link").symlink_to(boards.home / "real")
    boards.registry.register("u", str(boards.home / "link" / "board"))
    owner = boards.registry.owner_of(str(real / "x.md"))
    assert owner is not None
    assert owner[1] == str(boards.home / "link" / "board" / "x.md")


def test_a_link_to_a_registered_folder_is_the_board_too(boards: Boards) -> None:
    """The other way round."""
    folder = boards.board("board")
    (boards.home / "link").symlink_to(folder)
    owner = boards.registry.owner_of(str(boards.home / "link" / "x.md"))
    assert owner is not None and owner[1] == str(folder / "x.md")
    other = boards.home / "other"
    other.mkdir()
    assert boards.registry.owner_of(str(other / "x.md")) is None


@pytest.mark.parametrize(("registered", "asked"), [(NFC, NFD), (NFD, NFC)])
def test_a_board_is_found_under_either_unicode_form(boards: Boards, registered: str, asked: str) -> None:
    """Of its own folder's name; the registered spelling is the one on disk."""
    folder = boards.board(f"{registered}/board", "u")
    owner = boards.registry.owner_of(str(boards.home / asked / "board" / "x.md"))
    assert owner is not None and owner[1] == str(folder / "x.md")


def test_two_boards_whose_names_differ_in_form_only_stay_apart(boards: Boards) -> None:
    """Where the disk keeps both, the exact name counts."""
    for form in (NFC, NFD):
        boards.board(form)
    for form in (NFC, NFD):
        owner = boards.registry.owner_of(str(boards.home / form / "x.md"))
        assert owner is not None and owner[0].uuid == form


def test_a_remembered_owner_is_forgotten_with_its_registration(boards: Boards) -> None:
    """Asked again and again, under any spelling, while boards come, move and go."""
    path = "/boards//one/./a.md"
    assert boards.registry.owner_of(path) is None
    for uuid in ("first", "second"):
        board = boards.registry.register(uuid, "/boards/one")
        for _ in range(2):
            assert boards.registry.owner_of(path) == (board, "/boards/one/a.md")
    boards.registry.register("second", "/boards/two")
    assert boards.registry.owner_of(path) is None
    assert boards.registry.owner_of("/boards/two/a.md") is not None
    boards.registry.remove("second")
    assert boards.registry.owner_of("/boards/two/a.md") is None


def test_an_owner_that_only_the_disk_tells_is_asked_of_it_every_time(boards: Boards) -> None:
    """A link to a board's folder may point elsewhere the next moment."""
    (boards.home / "board").mkdir()
    (boards.home / "link").symlink_to("board")
    board = boards.registry.register("u", str(boards.home / "board"))
    path = str(boards.home / "link" / "a.md")
    assert boards.registry.owner_of(path) == (board, str(boards.home / "board" / "a.md"))
    (boards.home / "link").unlink()
    assert boards.registry.owner_of(path) is None


def test_remembered_owners_are_bounded(boards: Boards, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt full of paths changes no answer."""
    monkeypatch.setattr(registry_module, "_MAX_OWNERS", 10)
    board = boards.registry.register("u", "/b")
    for _ in range(2):
        for number in range(35):
            assert boards.registry.owner_of(f"/b/{number}.md") == (board, f"/b/{number}.md")


def test_a_board_is_removed_by_uuid_path_or_link(boards: Boards) -> None:
    """Its folder stays."""
    for number, name in enumerate(["by-uuid", "by-path", "by-link"]):
        boards.board(name, f"u{number}")
    (boards.home / "link").symlink_to(boards.home / "by-link")
    for wanted in ["u0", "by-path/", str(boards.home / "link")]:
        boards.registry.remove(wanted)
    assert boards.paths() == []
    assert boards.config.read() == {"boards": []}
    assert (boards.home / "by-path").is_dir()


@pytest.mark.parametrize("wanted", ["", " ", "nobody", "/nowhere", "."])
def test_what_is_no_board_cannot_be_removed(boards: Boards, wanted: str) -> None:
    """An empty argument is not the working directory."""
    boards.board("board")
    with pytest.raises(NotFound):
        boards.registry.remove(wanted)
    assert len(boards.paths()) == 1


def test_a_registration_that_cannot_be_saved_holds_in_memory(tmp_path: Path) -> None:
    """``register`` tells it in ``save_problem``; ``add`` raises it."""
    (tmp_path / "file").write_text("")
    boards = Boards(tmp_path / "file")
    boards.registry.register("u", "/a")
    assert boards.paths() == ["/a"]
    assert "Cannot save" in str(boards.registry.save_problem)
    with pytest.raises(StorageError):
        boards.registry.add("v", "/b")
    assert boards.paths() == ["/a", "/b"]


def test_saving_again_clears_the_problem(boards: Boards) -> None:
    """When the disk is back."""
    (boards.home / "config").write_text("in the way")
    boards.registry.register("u", "/a")
    assert boards.registry.save_problem is not None
    (boards.home / "config").unlink()
    boards.registry.register("v", "/b")
    assert boards.registry.save_problem is None
    assert boards.paths() == ["/a", "/b"]


def test_a_home_that_may_not_be_written_keeps_boards_in_memory(
    open_folder: Path, as_nobody: AsNobody
) -> None:
    """Only this user's rights count; root's are dropped for the test."""
    open_folder.chmod(0o555)
    boards = Boards(open_folder)

    def work() -> object:
        boards.registry.register("u", "/a")
        return [boards.paths(), str(boards.registry.save_problem)]

    problem = f"Cannot save {boards.config.path}: Permission denied"
    assert as_nobody(work) == [["/a"], problem]
