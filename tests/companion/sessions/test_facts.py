"""What people are told of the ledger."""

import json
from pathlib import Path

from adapters.contract import Status
from companion.sessions.association import Association
from companion.sessions.book import Book
from companion.sessions.facts import ledger_facts
from companion.sessions.pending import PendingLinks


def test_numbers_problems_and_files_that_wait(tmp_path: Path) -> None:
    """All fit for JSON; problems of boards and of both logs in one list."""
    (tmp_path / "pending").mkdir()
    book, pending = Book(tmp_path / "log"), PendingLinks(tmp_path / "pending")
    book.settle(Association("/b/a.md", "pi", "s", Status.IDLE, "t", "b", "c"))
    pending.remember(Association("/b/new.md", "claude", "s", Status.RUNNING, "t"))
    facts = ledger_facts(book, pending, ["/b: not there"])
    assert json.loads(json.dumps(facts)) == facts
    assert facts["counts"] == {
        "associations": 1,
        "cards": 1,
        "sessions": 1,
        "cardsMissing": 0,
        "logEvents": 1,
        "logDamagedLines": 0,
        "unsaved": 1,
        "pendingLinks": 1,
        "pendingDropped": 0,
    }
    assert facts["problems"] == [f"Cannot write {tmp_path}/pending: Is a directory", "/b: not there"]
    assert facts["withoutUuid"] == [{"path": "/b/new.md", "harness": "claude", "status": "running"}]
