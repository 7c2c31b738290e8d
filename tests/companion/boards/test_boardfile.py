"""A board's own file is read with care and written in the form of the web page."""

from pathlib import Path

import pytest

from companion.boards.boardfile import (
    FILE_NAME,
    MAX_BYTES,
    new_board_file,
    read_board_file,
    with_board_uuid,
    yaml_text,
)
from companion.boards.yaml_values import load
from companion.core.errors import BoardError


def test_a_new_file_holds_the_six_keys_in_the_web_pages_order(tmp_path: Path) -> None:
    """And reads back as what it was made from."""
    folder = "/home/it's: a #board/ü"
    content = new_board_file("5f0c1f3e-8f53-4a77-9d3f-1f6f2f7a9b10", folder, ["To do", "yes", "null", "Done"])
    value = load(content.decode())
    assert isinstance(value, dict)
    assert list(value) == ["uuid", "columns", "path", "editor", "companion", "labels"]
    assert value["editor"] == "vscode://file{path}"
    assert value["companion"] is True and value["labels"] == []
    (tmp_path / FILE_NAME).write_bytes(content)
    found = read_board_file(tmp_path)
    assert found is not None
    assert (found.uuid, found.columns) == (value["uuid"], ("To do", "yes", "null", "Done"))
    assert (found.path, found.companion) == (folder, True)


def test_columns_are_trimmed_and_unique(tmp_path: Path) -> None:
    """What is no text, blank or repeated is left out."""
    (tmp_path / FILE_NAME).write_bytes(b"columns: [' A ', B, '', 1, A, {x: y}]\n")
    found = read_board_file(tmp_path)
    assert found is not None
    assert (found.columns, found.uuid, found.path, found.companion) == (("A", "B"), None, "", False)


@pytest.mark.parametrize(
    "data", [b"", b"# nothing yet\n", b"\n\n", b"uuid:\n", b"uuid: ''\n", b"columns: []\n"]
)
def test_a_file_without_a_uuid_gets_one_line(tmp_path: Path, data: bytes) -> None:
    """Everything else stays as it is."""
    (tmp_path / FILE_NAME).write_bytes(data)
    found = read_board_file(tmp_path)
    assert found is not None and found.uuid is None
    (tmp_path / FILE_NAME).write_bytes(with_board_uuid(tmp_path, data, "u-1"))
    found = read_board_file(tmp_path)
    assert found is not None and found.uuid == "u-1"


def test_a_missing_file_is_none(tmp_path: Path) -> None:
    """Whether that is an error is for the caller to say."""
    assert read_board_file(tmp_path) is None
    assert read_board_file(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"a: b: c\n", "line 1"),
        (b"# x\na: b\nc: [\n", "line 4"),
        (b"- a\n", "holds no keys"),
        (b"uuid: 12\n", "not text but 12"),
        (b"uuid: a\n---\nuuid: b\n", "more than one document"),
        (b"#" * (MAX_BYTES + 1), "too large"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, data: bytes, why: str) -> None:
    """With its path."""
    (tmp_path / FILE_NAME).write_bytes(data)
    with pytest.raises(BoardError, match=why) as caught:
        read_board_file(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_a_folder_in_its_place_is_an_error(tmp_path: Path) -> None:
    """With the system's words."""
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(BoardError, match="Is a directory"):
        read_board_file(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "a: b",
        "#x",
        " x",
        "x ",
        "",
        "null",
        "12",
        "1e3",
        "true",
        "~",
        "it's",
        'say "x"',
        "- a",
        "[a]",
        "@x",
        "a\nb",
        "a\tb",
        "\x07",
        "é",
        "日本",
        "😀",
        "a\\b",
        "\u2028",
        "*x",
        "&x",
        "!x",
        "%x",
        "|",
        ">",
        "key:",
        "---",
    ],
)
def test_any_text_can_be_written_as_a_scalar(text: str) -> None:
    """Quoted where that is needed."""
    assert load(f"key: {yaml_text(text)}\n") == {"key": text}
    assert yaml_text("In progress") == "In progress"
