"""What a person should know of the ledger's state."""

from typing import Dict, List, Sequence, TypedDict

from companion.sessions.book import Book
from companion.sessions.pending import PendingLinks


class LedgerFacts(TypedDict):
    """A part of the health report. Fit for JSON; holds no prompts and no secrets."""

    counts: Dict[str, int]
    """Numbers by name."""
    problems: List[str]
    """What does not work as it should, one line each."""
    withoutUuid: List[Dict[str, str]]
    """Files that wait for a uuid: path, harness and status of each session at work on them."""


def ledger_facts(book: Book, pending: PendingLinks, board_problems: Sequence[str]) -> LedgerFacts:
    """The present state of memory and logs. The ledger's lock must be held."""
    links = pending.links()
    problems = (book.journal.problem, pending.problem, *board_problems)
    return {
        "counts": {
            "associations": len(book.held),
            "cards": book.held.cards(),
            "sessions": book.held.sessions(),
            "cardsMissing": len(book.missing),
            "logEvents": book.journal.lines,
            "logDamagedLines": book.journal.damaged,
            "unsaved": book.journal.unsaved + pending.unsaved,
            "pendingLinks": len(links),
            "pendingDropped": pending.dropped,
        },
        "problems": [text for text in problems if text],
        "withoutUuid": [
            {"path": each.path, "harness": each.harness, "status": each.status.value} for each in links
        ],
    }
