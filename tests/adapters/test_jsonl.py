"""A line file that is still being written, with every kind of damage."""

import json
import os
from pathlib import Path
from typing import Iterator, List, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import jsonl
from adapters.jsonl import LineFile, LongLine


def parts_of(path: Path) -> List[Union[bytes, LongLine]]:
    with LineFile(path) as file:
        return [
            part if isinstance(part, LongLine) else bytes(part.data[part.start : part.end])
            for part in file.blocks()
        ]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Blocks of 8 bytes, and lines above 32 bytes that are too long to hold."""
    monkeypatch.setattr(jsonl, "BLOCK_BYTES", 8)
    monkeypatch.setattr(jsonl, "DIRECT_BYTES", 32)
    monkeypatch.setattr(jsonl, "KEPT_STRING_BYTES", 16)
    monkeypatch.setattr(jsonl, "EDGE_BYTES", 16)
    yield


@given(lines=st.lists(st.binary(max_size=70).map(lambda line: line.replace(b"\n", b"")), max_size=12))
def test_blocks_are_the_file_cut_behind_line_ends(
    tmp_path_factory: pytest.TempPathFactory, lines: List[bytes]
) -> None:
    """Whatever the lengths of lines, blocks joined with the long lines between them are the file."""
    path = tmp_path_factory.getbasetemp() / "blocks.jsonl"
    content = b"\n".join(lines)
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "BLOCK_BYTES", 8)
        patch.setattr(jsonl, "DIRECT_BYTES", 32)
        parts = parts_of(path)
    seen = 0
    for part in parts:
        if isinstance(part, LongLine):
            assert part.offset == seen
            assert b"\n" not in content[seen : seen + part.size_bytes]
            seen += part.size_bytes
            assert content[seen : seen + 1] in (b"", b"\n")
            seen += 1
        else:
            assert content[seen : seen + len(part)] == part
            seen += len(part)
            assert part.endswith(b"\n") or seen == len(content)
    assert seen in (len(content), len(content) + 1)


def test_last_line_without_end_is_given(tmp_path: Path) -> None:
    """The line at the end may be complete although its LF is still to come."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"a":1}\n{"b":2}')
    assert b"".join(part for part in parts_of(path) if isinstance(part, bytes)) == path.read_bytes()


def test_file_is_read_as_long_as_it_was_when_opened(tmp_path: Path) -> None:
    """A writer that goes on does not keep us reading for ever."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"a":1}\n')
    with LineFile(path) as file:
        with path.open("ab") as writer:
            writer.write(b'{"b":2}\n')
        assert [bytes(part.data[part.start : part.end]) for part in file.blocks()] == [b'{"a":1}\n']  # type: ignore


def test_file_that_is_cut_short_meanwhile_ends(tmp_path: Path) -> None:
    """A file truncated while it is read gives what is left, and no error."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"a":1}\n' * 100_000)
    with LineFile(path) as file:
        blocks = file.blocks()
        next(blocks)
        os.truncate(path, 0)
        assert list(blocks) == []


@pytest.mark.parametrize("kind", ["pipe", "folder", "missing"])
def test_only_regular_files_are_opened(tmp_path: Path, kind: str) -> None:
    """A pipe is refused at once: reading it would never end."""
    path = tmp_path / "log.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    if kind == "folder":
        path.mkdir()
    with pytest.raises(OSError):
        LineFile(path)


def test_tail_is_whole_lines(tmp_path: Path) -> None:
    """The end of a file begins behind a line end; one huge last line gives nothing."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"number":1}\n' * 40)
    with LineFile(path) as file:
        assert file.tail() == b'{"number":1}\n' * 9
    path.write_bytes(b"x" * 100_000)
    with LineFile(path) as file:
        assert file.tail() == b""


def test_long_line_is_found_searched_and_made_lean(tmp_path: Path, tiny: None) -> None:
    """Of a line that is too long, needles across block edges are found, huge strings are dropped."""
    path = tmp_path / "log.jsonl"
    big = json.dumps({"k": "needle" + 'x\\"y' * 20, "z": "end"}).encode()
    path.write_bytes(b'{"a":1}\n' + big + b'\n{"b":2}')
    first, long_line, last = parts_of(path)
    assert (first, last) == (b'{"a":1}\n', b'{"b":2}')
    assert long_line == LongLine(8, len(big))
    with LineFile(path) as file:
        assert isinstance(long_line, LongLine)
        for start in range(len(big) - 5):
            assert file.holds(long_line, [b"nothing", big[start : start + 5]])
        assert not file.holds(long_line, [b'"b"', b'"a"'])
        assert file.edges(long_line) == (big[:16], big[-16:])
        assert file.lean(long_line) == b'{"k": "", "z": "end"}'


def test_long_line_of_many_small_parts_is_given_up(tmp_path: Path, tiny: None) -> None:
    """A line that stays long without its strings is not held."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(json.dumps(list(range(300))).encode())
    with LineFile(path) as file:
        (line,) = file.blocks()
        assert isinstance(line, LongLine)
        assert file.lean(line) is None


@given(
    value=st.recursive(
        st.text(max_size=60) | st.integers(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    ),
    cuts=st.integers(1, 9),
)
def test_lean_line_is_the_line_with_long_strings_empty(value: object, cuts: int) -> None:
    """Wherever the pieces are cut, also within escapes, only strings above the limit change."""

    def shortened(part: object) -> object:
        if isinstance(part, str):
            return "" if len(json.dumps(part)) - 2 > 16 else part
        if isinstance(part, list):
            return [shortened(each) for each in part]
        if isinstance(part, dict):
            return {shortened(key): shortened(each) for key, each in part.items()}
        return part

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "KEPT_STRING_BYTES", 16)
        lean = jsonl._Lean()
        line = json.dumps(value).encode()
        for start in range(0, len(line), cuts):
            lean.feed(line[start : start + cuts])
        assert json.loads(bytes(lean.kept)) == shortened(value)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b'\xef\xbb\xbf{"a": 1}\r', {"a": 1}),
        (b'\0\0\0\0{"a": 1}', {"a": 1}),
        (b'{"a": "\xff"}', {"a": "\ufffd"}),
        (b"null", None),
    ],
)
def test_line_is_parsed_in_spite_of_its_surroundings(line: bytes, value: object) -> None:
    """A BOM, CR, NULs of a crash and bytes that are not UTF-8 do no harm."""
    assert jsonl.parse(line) == value


@pytest.mark.parametrize(
    "line", [b'{"a": 1', b'{"a":1}{"b":2}', b"text", b"", b'{"a": "\0"}', b"[" * 100_000, b"1" * 5000 + b"x"]
)
def test_damaged_line_is_a_value_error(line: bytes) -> None:
    """Torn, welded, nested without end: one kind of error."""
    with pytest.raises(ValueError):
        jsonl.parse(line)
