"""Which processes sessions run in, across restarts."""

from pathlib import Path

import pytest

from companion.core.processes import Process
from companion.sessions import processbook
from companion.sessions.processbook import ProcessBook

ONE, TWO = Process(100, "1"), Process(200, "2", "pid:[1]")


def test_it_remembers_what_is_still_wanted(tmp_path: Path) -> None:
    """Of sessions that are closed by now nothing is kept, not even in the log."""
    path = tmp_path / "processes.jsonl"
    book = ProcessBook(path)
    for session in (("pi", "s"), ("pi", "s"), ("pi", "closed")):
        book.note(session, ONE)
    book.note(("pi", "s"), TWO)
    book.close()
    again = ProcessBook(path)
    assert again.load(lambda session: session[1] == "s") == {("pi", "s"): [ONE, TWO]}
    again.close()
    assert len(path.read_text().splitlines()) == 2
    assert ProcessBook(path).load(lambda session: True) == {("pi", "s"): [ONE, TWO]}


@pytest.mark.parametrize(
    "line",
    [
        "torn",
        "[]",
        "{}",
        '{"harness":"pi","sessionId":"","pid":1,"begun":""}',
        '{"harness":"pi","sessionId":"s","pid":true,"begun":""}',
        '{"harness":"pi","sessionId":"s","pid":1}',
        '{"harness":"pi","sessionId":"s","pid":1,"begun":"","domain":1}',
    ],
)
def test_lines_of_no_use_are_left_out(tmp_path: Path, line: str) -> None:
    """Whoever wrote them."""
    path = tmp_path / "processes.jsonl"
    path.write_text(f'{line}\n{{"harness":"pi","sessionId":"s","pid":100,"begun":"1"}}\n')
    assert ProcessBook(path).load(lambda session: True) == {("pi", "s"): [ONE]}


def test_a_log_that_cannot_be_read_is_empty_and_told(tmp_path: Path) -> None:
    """The watch goes on in memory."""
    (tmp_path / "processes.jsonl").mkdir()
    book = ProcessBook(tmp_path / "processes.jsonl")
    assert book.load(lambda session: True) == {}
    book.note(("pi", "s"), ONE)
    assert book.problem is not None and "processes.jsonl" in book.problem


def test_a_log_that_has_grown_is_shortened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To what its owner still wants."""
    monkeypatch.setattr(processbook, "MAX_LINES", 3)
    book = ProcessBook(tmp_path / "processes.jsonl")
    for number in range(3):
        book.note(("pi", "s"), ONE._replace(pid=number))
    assert not book.is_overgrown
    book.note(("pi", "s"), TWO)
    assert book.is_overgrown
    book.shorten({("pi", "s"): [TWO]})
    assert not book.is_overgrown
    assert ProcessBook(tmp_path / "processes.jsonl").load(lambda session: True) == {("pi", "s"): [TWO]}
