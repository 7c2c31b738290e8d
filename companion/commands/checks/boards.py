"""Configuration and boards: readable, and is every card one of a kind?"""

import os
import uuid
from pathlib import Path
from typing import List

from companion.boards.cards import Scan
from companion.boards.registry import Board
from companion.boards.writer import give_uuid
from companion.commands.checks.finding import Finding, ok, unknown, wrong
from companion.commands.wiring import Boards

SECTION = "Boards"


def check(boards: Boards) -> List[Finding]:
    """The configuration file, then each board with its cards. Never raises for foreign data."""
    found = _config(boards)
    registered = boards.registry.boards()
    if not registered:
        return [*found, unknown(SECTION, "No board is registered", "Make one: mdello.pyz board init DIR")]
    scan = boards.finder.scan()
    for board in registered:
        found += _board(board, scan)
    return found + _duplicates(scan) + _elsewhere(registered, scan)


def _config(boards: Boards) -> List[Finding]:
    boards.config.read()
    path = boards.config.path
    if boards.config.problem is not None:
        return [
            wrong(SECTION, boards.config.problem, "Mend the file, or move it away and register boards anew")
        ]
    hint = "Copy from it what you miss, then delete it"
    found = [
        unknown(SECTION, f"{each}: an older {path.name} that could not be read", hint)
        for each in boards.config.set_aside()
    ]
    if not path.exists():
        return [ok(SECTION, f"{path}: not there yet, made with the first board"), *found]
    invalid = boards.registry.invalid_entries
    if invalid:
        text = f"{path}: {invalid} of its entries are no boards and are skipped"
        return [wrong(SECTION, text, 'Each board needs a "uuid" and an absolute "path"'), *found]
    return [ok(SECTION, f"{path}: readable"), *found]


def _board(board: Board, scan: Scan) -> List[Finding]:
    cards = sum(1 for card in scan.cards.values() if card.board_uuid == board.uuid)
    problems = [each for each in scan.problems if _is_in(each[0], board)]
    text = f"{board.path}: {cards} {'card' if cards == 1 else 'cards'} ({board.uuid})"
    if any(path == board.path for path, _ in problems) or not os.path.isdir(board.path):
        reason = next((reason for path, reason in problems if path == board.path), "no such folder")
        text = f"{board.path}: cannot be read ({reason})"
        return [wrong(SECTION, text, f"Bring it back, or: mdello.pyz board remove {board.uuid}")]
    found = [ok(SECTION, text)]
    found += [wrong(SECTION, f"{path}: {reason}") for path, reason in problems]
    for path, reason in scan.without_uuid:
        if _is_in(path, board):
            found.append(unknown(SECTION, f"{path} is no card: {reason}", _remedy(path)))
    return found


def _remedy(path: str) -> str:
    """What helps a file without a uuid; a head that ``board repair`` would refuse needs a person."""
    if give_uuid(Path(path), str(uuid.uuid4()), dry_run=True).refused:
        return "Mend the lines between its --- by hand: mdello.pyz board repair leaves it alone"
    return "Give it a uuid: mdello.pyz board repair"


def _is_in(path: str, board: Board) -> bool:
    return path == board.path or os.path.dirname(path) == board.path


def _duplicates(scan: Scan) -> List[Finding]:
    return [
        wrong(
            SECTION,
            f"The uuid {uuid} stands in several files: {', '.join(paths)}; the last of them counts",
            "Remove the uuid from the copies, then: mdello.pyz board repair",
        )
        for uuid, paths in scan.duplicates
    ]


def _elsewhere(registered: List[Board], scan: Scan) -> List[Finding]:
    """Problems of no board in particular."""
    return [
        wrong(SECTION, f"{path}: {reason}")
        for path, reason in scan.problems
        if not any(_is_in(path, board) for board in registered)
    ]
