"""A path leads to its card, and a scan finds all cards, whatever else lies there."""

import os
import threading
import unicodedata
from pathlib import Path
from typing import List

import pytest

from companion.boards import cards
from companion.boards.cards import Card, Resolution
from companion.boards.frontmatter import HEAD_LIMIT_BYTES
from companion.core.errors import CardReadError
from tests.companion.boards.conftest import AsNobody, Boards, MakeCard

NFC, NFD = (unicodedata.normalize(form, "Tür 각.md") for form in ("NFC", "NFD"))


def test_a_path_leads_to_its_card(boards: Boards, card: MakeCard) -> None:
    """Uuid, normalised path, board."""
    path = card(boards.board() / "x.md", "u-1")
    found = boards.finder.resolve(f"{path.parent}/./sub/..//x.md/")
    assert found == Resolution(Card("u-1", str(path), "board"))


@pytest.mark.parametrize(
    "name", ["UP.MD", "x.txt", "..dots.md", "back\\slash.md", "archive/x.md", "x.markdown", "md"]
)
def test_what_the_contract_does_not_call_a_card_is_none(boards: Boards, card: MakeCard, name: str) -> None:
    """Even with a uuid in it; it is not a card without a uuid either."""
    (boards.board() / "archive").mkdir()
    path = card(boards.home / "board" / name, "u-1")
    assert boards.finder.resolve(str(path)) == Resolution(None)
    assert boards.finder.scan().cards == {}
    assert boards.finder.scan().without_uuid == ()


def test_dotfiles_are_cards(boards: Boards, card: MakeCard) -> None:
    """One dot does no harm."""
    path = card(boards.board() / ".hidden.md", "u-1")
    assert boards.finder.resolve(str(path)).card is not None
    assert "u-1" in boards.finder.scan().cards


@pytest.mark.parametrize(
    "path", ["board/none.md", "elsewhere/x.md", "", "x\0.md", "board/\ud800.md", "board"]
)
def test_what_is_not_there_is_no_card(boards: Boards, path: str) -> None:
    """Missing, outside, or no path at all: nothing is said about it."""
    boards.board()
    assert boards.finder.resolve(path) == Resolution(None)


@pytest.mark.parametrize(
    ("content", "complete"),
    [
        (b"# Just text\n", True),
        (b"---\ntitle: x\n---\n", True),
        (b"---\nuuid: 12\n---\n", True),
        (b"\xef\xbb\xbf---\nuuid: a\n---\n", False),
        (b"---\nuuid: a\ntitle: Fix: x\n---\n", False),
        (b"---\nuuid: a\n", False),
        (b"---\nuuid: a\n" + b"x: y\n" * 20_000 + b"---\n", False),
        (b"--- \nuuid: a\n---\n", False),
        (b"---\n- uuid\n---\n", False),
        (b"---\nuuid: a\nx: " + b"[" * 5_000 + b"\n---\n", False),
        (b" ", True),
        (b"---\r\nuuid:\r\n---\r\n", True),
    ],
)
def test_a_file_without_a_uuid_is_told_by_its_path(
    boards: Boards, card: MakeCard, content: bytes, complete: bool
) -> None:
    """It may become a card; a scan says why it is none. Where a head cannot be read, nobody can say whose
    card it is: a renamed one, perhaps, so that no card is known to be gone."""
    path = card(boards.board() / "x.md", content=content)
    assert boards.finder.resolve(f"{path}/") == Resolution(None, str(path))
    scan = boards.finder.scan()
    assert [found for found, _ in scan.without_uuid] == [str(path)]
    assert all(why for _, why in scan.without_uuid)
    assert scan.complete == complete


def test_crlf_cards_are_cards(boards: Boards, card: MakeCard) -> None:
    """As Windows editors write them."""
    path = card(boards.board() / "x.md", content=b"---\r\nuuid: u-1\r\ntitle: T\r\n---\r\n\r\nText\r\n")
    assert boards.finder.resolve(str(path)).card == Card("u-1", str(path), "board")


def test_a_folder_named_like_a_card_is_an_error_with_the_systems_words(boards: Boards) -> None:
    """Naming it directly; a scan does not list it."""
    (boards.board() / "x.md").mkdir()
    with pytest.raises(CardReadError, match="Is a directory"):
        boards.finder.resolve("board/x.md")
    assert boards.finder.scan().complete


def test_a_named_pipe_is_not_waited_for(boards: Boards) -> None:
    """It is an error, at once."""
    os.mkfifo(boards.board() / "x.md")
    with pytest.raises(CardReadError, match="Not a regular file"):
        boards.finder.resolve("board/x.md")
    assert boards.finder.scan().complete


def test_a_name_that_is_too_long_is_an_error(boards: Boards) -> None:
    """Any reading error but a missing file is told."""
    boards.board()
    with pytest.raises(CardReadError, match="too long"):
        boards.finder.resolve(f"board/{'x' * 300}.md")


def test_a_linked_file_is_a_card_when_named_but_is_not_listed(boards: Boards, card: MakeCard) -> None:
    """The contract's rule; a link that leads nowhere is no card."""
    folder = boards.board()
    (folder / "link.md").symlink_to(card(boards.home / "outside.md", "u-1"))
    (folder / "dangling.md").symlink_to(boards.home / "nowhere.md")
    assert boards.finder.resolve("board/link.md").card == Card("u-1", str(folder / "link.md"), "board")
    assert boards.finder.resolve("board/dangling.md") == Resolution(None)
    assert boards.finder.scan().cards == {}


@pytest.mark.parametrize(("on_disk", "asked"), [(NFC, NFD), (NFD, NFC)])
def test_a_name_in_the_other_unicode_form_is_found(
    boards: Boards, card: MakeCard, on_disk: str, asked: str
) -> None:
    """The card's path is the one on disk."""
    path = card(boards.board() / on_disk, "u-1")
    assert boards.finder.resolve(str(path.parent / asked)).card == Card("u-1", str(path), "board")
    card(path, content=b"text")
    assert boards.finder.resolve(str(path.parent / asked)) == Resolution(None, str(path))


def test_both_unicode_forms_side_by_side_are_two_cards(boards: Boards, card: MakeCard) -> None:
    """The exact name wins where there is one."""
    folder = boards.board()
    for name in (NFC, NFD):
        card(folder / name, name)
    for name in (NFC, NFD):
        found = boards.finder.resolve(str(folder / name)).card
        assert found is not None and found.path == str(folder / name)


@pytest.mark.parametrize("home", ["a b", "it's", 'say "hi"', unicodedata.normalize("NFD", "Ünï"), "日本 😀"])
def test_homes_may_have_any_name(boards: Boards, card: MakeCard, home: str) -> None:
    """Spaces, quotes, other scripts."""
    folder = boards.board(f"{home}/board", "b")
    path = card(folder / "x y.md", "u-1")
    assert boards.finder.resolve(str(path)).card == Card("u-1", str(path), "b")
    assert boards.finder.scan().cards["u-1"].path == str(path)


def test_a_card_of_a_symlinked_board_is_found_by_either_name(boards: Boards, card: MakeCard) -> None:
    """And listed under the registered one."""
    real = boards.home / "real"
    real.mkdir()
    (boards.home / "link").symlink_to(real)
    boards.registry.register("b", str(boards.home / "link"))
    card(real / "x.md", "u-1")
    expected = Card("u-1", str(boards.home / "link" / "x.md"), "b")
    for folder in ("real", "link"):
        assert boards.finder.resolve(f"{folder}/x.md").card == expected
    assert boards.finder.scan().cards == {"u-1": expected}


def test_a_scan_lists_all_boards_in_order(boards: Boards, card: MakeCard) -> None:
    """Of several files with one uuid the last one counts, and all are named."""
    first, second = boards.board("first"), boards.board("second")
    for folder, name, uuid in [(first, "b.md", "u-2"), (first, "a.md", "u-1"), (second, "c.md", "u-1")]:
        card(folder / name, uuid)
    scan = boards.finder.scan()
    assert list(scan.cards) == ["u-1", "u-2"]
    assert scan.cards["u-1"] == Card("u-1", str(second / "c.md"), "second")
    assert scan.duplicates == (("u-1", (str(first / "a.md"), str(second / "c.md"))),)
    assert scan.complete and scan.problems == () and scan.without_uuid == ()


def test_one_folder_registered_twice_has_no_duplicates(boards: Boards, card: MakeCard) -> None:
    """Through a link it is the same file; the later board wins, as always."""
    card(boards.board() / "x.md", "u-1")
    (boards.home / "link").symlink_to(boards.home / "board")
    boards.registry.register("again", str(boards.home / "link"))
    scan = boards.finder.scan()
    assert scan.duplicates == ()
    assert scan.cards["u-1"].board_uuid == "again"


def test_a_board_that_cannot_be_read_is_a_problem_and_the_rest_goes_on(
    boards: Boards, card: MakeCard
) -> None:
    """Gone, or a plain file."""
    for name in ("gone", "file", "fine"):
        boards.board(name)
    (boards.home / "gone").rmdir()
    (boards.home / "file").rmdir()
    (boards.home / "file").write_text("")
    card(boards.home / "fine" / "x.md", "u-1")
    scan = boards.finder.scan()
    assert list(scan.cards) == ["u-1"]
    assert not scan.complete
    assert scan.problems == (
        (str(boards.home / "gone"), "No such file or directory"),
        (str(boards.home / "file"), "Not a directory"),
    )


def test_what_may_not_be_read_is_a_problem(open_folder: Path, as_nobody: AsNobody, card: MakeCard) -> None:
    """One card, or a whole board; the others are listed."""
    boards = Boards(open_folder)
    folder, closed = boards.board("board"), boards.board("closed")
    card(folder / "x.md", "u-1")
    secret = card(folder / "secret.md", "u-2")
    secret.chmod(0)
    closed.chmod(0)
    boards.config.path.parent.chmod(0o755)
    boards.config.path.chmod(0o644)

    def work() -> object:
        scan = boards.finder.scan()
        try:
            boards.finder.resolve(str(secret))
        except CardReadError as exc:
            return [list(scan.cards), scan.problems, str(exc)]
        return None

    assert as_nobody(work) == [
        ["u-1"],
        [[str(secret), "Permission denied"], [str(closed), "Permission denied"]],
        f"Permission denied: {secret}",
    ]


def test_a_name_that_is_not_utf8_is_told_and_not_passed_on(boards: Boards) -> None:
    """No JSON could hold it."""
    folder = boards.board()
    (folder / os.fsdecode(b"caf\xe9.md")).write_bytes(b"---\nuuid: u-1\n---\n")
    scan = boards.finder.scan()
    assert scan.cards == {} and scan.complete
    assert scan.without_uuid == ((f"{folder}/caf\ufffd.md", cards.NOT_UTF8),)


def _count_reads(monkeypatch: pytest.MonkeyPatch) -> List[str]:
    reads: List[str] = []
    real = cards._read

    def read(path: str) -> object:
        reads.append(path)
        return real(path)

    monkeypatch.setattr(cards, "_read", read)
    return reads


def test_a_file_that_did_not_change_is_not_read_again(
    boards: Boards, card: MakeCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by a scan nor by name; without a uuid as well as with one."""
    monkeypatch.setattr(cards, "_SETTLED_AFTER_NS", -(10**18))
    reads = _count_reads(monkeypatch)
    path = card(boards.board() / "x.md", "u-1")
    card(path.parent / "bare.md", content=b"text")
    for _ in range(3):
        boards.finder.scan()
        boards.finder.resolve(str(path))
    assert len(reads) == 2


def test_a_changed_file_is_read_again(
    boards: Boards, card: MakeCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when its length and time stamp are as before."""
    monkeypatch.setattr(cards, "_SETTLED_AFTER_NS", -(10**18))
    path = card(boards.board() / "x.md", "u-1")
    found = path.stat()
    assert boards.finder.resolve(str(path)).card == Card("u-1", str(path), "board")
    replacement = card(path.with_suffix(".new"), "u-2")
    os.utime(replacement, ns=(found.st_atime_ns, found.st_mtime_ns))
    replacement.replace(path)
    assert boards.finder.resolve(str(path)).card == Card("u-2", str(path), "board")


def test_a_file_written_just_now_is_not_remembered(boards: Boards, card: MakeCard) -> None:
    """Its next change could bear the same time stamp."""
    path = card(boards.board() / "x.md", "u-1")
    for number in range(200):
        uuid = f"u-{number:03}"
        with path.open("r+b") as file:
            file.write(f"---\nuuid: {uuid}\n---\n".encode())
        found = boards.finder.resolve(str(path)).card
        assert found is not None and found.uuid == uuid


def test_only_the_head_of_a_large_file_is_read(
    boards: Boards, card: MakeCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to the closing fence, or to the limit when there is none."""
    folder = boards.board()
    for name, head in [("card", b"---\nuuid: u-1\n---\n"), ("text", b"# T\n"), ("open", b"---\nuuid: a\n")]:
        with (folder / f"{name}.md").open("wb") as file:
            file.write(head + b"x\n" * 200_000)
    sizes: List[int] = []
    real = os.read

    def read(fd: int, size: int) -> bytes:
        data = real(fd, size)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(os, "read", read)
    assert boards.finder.resolve(str(folder / "card.md")).card is not None
    assert sum(sizes) <= 4096
    assert boards.finder.resolve(str(folder / "text.md")).without_uuid is not None
    assert sum(sizes) <= 2 * 4096
    assert boards.finder.resolve(str(folder / "open.md")).without_uuid is not None
    assert sum(sizes) <= 2 * 4096 + HEAD_LIMIT_BYTES


def test_a_head_longer_than_the_first_read_is_found(boards: Boards, card: MakeCard) -> None:
    """Read on until it is closed."""
    notes = b"".join(b"k%d: some words\n" % number for number in range(1500))
    path = card(boards.board() / "x.md", content=b"---\n" + notes + b"uuid: u-1\n---\n")
    assert boards.finder.resolve(str(path)).card is not None


def test_many_threads_may_ask_at_once(boards: Boards, card: MakeCard) -> None:
    """While a file is rewritten they see one content or the other."""
    path = card(boards.board() / "x.md", "u-1")
    seen, failures = set(), []

    def look() -> None:
        try:
            for _ in range(50):
                found = boards.finder.resolve(str(path)).card
                seen.add(found.uuid if found else None)
                boards.finder.scan()
        except Exception as exc:
            failures.append(exc)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(50):
        card(path.with_suffix(".new"), f"u-{number % 2}").replace(path)
    for thread in threads:
        thread.join()
    assert not failures
    assert seen <= {"u-0", "u-1"}
