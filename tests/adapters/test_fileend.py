"""Lines from the end of a file, and what is done with their parts."""

import os
import tracemalloc
from pathlib import Path
from typing import List, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import fileend
from adapters.fileend import FileEnd, folder_of, newest_file, object_of, unix_s


def lines_of(path: Path) -> List[bytes]:
    with FileEnd(path) as file:
        return list(file.lines())


@given(data=st.lists(st.binary(max_size=40), max_size=30), step=st.integers(1, 50))
def test_lines_are_those_of_the_file_backwards(
    data: List[bytes], step: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever the step, lines come whole, the last one first, and empty ones not at all."""
    path = tmp_path_factory.mktemp("lines") / "f"
    path.write_bytes(b"\n".join(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fileend, "STEP_BYTES", step)
        with FileEnd(path) as file:
            found = list(file.lines())
            assert file.whole
    assert found == [line for line in reversed(b"\n".join(data).split(b"\n")) if line]


def test_no_more_than_the_limit_is_read(tmp_path: Path) -> None:
    """A line that begins before the limit is left out, and what stands before it as well."""
    path = tmp_path / "f"
    path.write_bytes(b"first\n" + b"x" * fileend.LIMIT_BYTES + b"\nlast\n")
    with FileEnd(path) as file:
        assert list(file.lines()) == [b"last"]
        assert not file.whole


def test_a_huge_file_costs_what_a_small_one_does(tmp_path: Path) -> None:
    """100 MB without a line break, and an end after it."""
    path = tmp_path / "f"
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast\n")
    tracemalloc.start()
    try:
        assert lines_of(path) == [b"last"]
        assert tracemalloc.get_traced_memory()[1] < 6 * fileend.LIMIT_BYTES
    finally:
        tracemalloc.stop()


def test_whole_is_known_only_at_the_beginning(tmp_path: Path) -> None:
    """Who stops early has not seen the first line."""
    path = tmp_path / "f"
    path.write_bytes(b"a\nb\n")
    with FileEnd(path) as file:
        assert next(file.lines()) == b"b"
        assert not file.whole


@pytest.mark.parametrize(
    ("content", "first"),
    [(b"", b""), (b"a", b"a"), (b"a\nb", b"a"), (b"\nb", b""), (b"x" * (fileend.STEP_BYTES + 1), b"")],
)
def test_the_first_line_is_read_when_it_is_short(tmp_path: Path, content: bytes, first: bytes) -> None:
    """A header is; a first line that is longer than a header is none."""
    path = tmp_path / "f"
    path.write_bytes(content)
    with FileEnd(path) as file:
        assert file.first_line() == first


@pytest.mark.parametrize("name", ["gone", "with\0nul", "\udfff"])
def test_what_cannot_be_opened_is_an_os_error(tmp_path: Path, name: str) -> None:
    """Also a name that no system can have: it may come from a foreign payload."""
    with pytest.raises(OSError):
        FileEnd(tmp_path / name)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Nobody ever writes to it."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError):
        FileEnd(tmp_path / "pipe")


def test_the_newest_file_is_a_regular_one(tmp_path: Path) -> None:
    """Links and folders are newer here, and do not count; names that cannot be are not there."""
    for age, name in enumerate(("old", "new")):
        (tmp_path / name).write_bytes(b"")
        os.utime(tmp_path / name, (age, age))
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("old")
    names = ("old", "new", "folder", "link", "gone", "n\0l")
    assert newest_file(tmp_path / name for name in names) == tmp_path / "new"
    assert newest_file([tmp_path / "gone"]) is None


@pytest.mark.parametrize(
    ("iso", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("2026-12-01T12:30:00.250Z", 1796128200.25),
        ("2026-12-01T13:30:00.250+01:00", 1796128200.25),
        ("2026-12-01T12:00:00-00:30", 1796128200.0),
        ("1969-12-31T23:59:59.5Z", -0.5),
        ("2026-13-01T12:30:00Z", None),
        ("2026-12-01T12:30:60Z", None),
        ("0000-01-01T00:00:00Z", None),
        ("2026-12-01T12:30:00", None),
        ("2026-12-01", None),
        ("\u0662026-12-01T12:30:00Z", None),
        ("", None),
        (1796128200, None),
        (None, None),
    ],
)
def test_times(iso: object, seconds: Optional[float]) -> None:
    """Only a time with its zone is one."""
    assert unix_s(iso) == seconds


@given(st.text() | st.from_regex(r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]+)?(Z|[+-][0-9:]{5})\Z"))
def test_no_text_makes_a_time_raise(text: str) -> None:
    """A float or None."""
    assert isinstance(unix_s(text), (float, type(None)))


@pytest.mark.parametrize("value", [None, 1, "", "a\0b", "\ud800", "x" * 5000, ["/home/dev"]])
def test_what_cannot_be_a_folder_is_none(value: object) -> None:
    """A path of today's system, or nothing."""
    assert folder_of(value) is None
    assert folder_of("/home/dev") == "/home/dev"


@pytest.mark.parametrize("line", [b"", b"[]", b'{"a":', b"1", b"\xff", b"[" * 100000])
def test_what_is_no_object_is_none(line: bytes) -> None:
    """Torn lines, and other JSON."""
    assert object_of(line) is None
    assert object_of(b'\0\0{"a": 1}\r') == {"a": 1}
