"""``board``: make, register, list, forget and repair boards."""

import argparse
import contextlib
import json
import os
import sys
import time
import uuid
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Callable, Dict, List, Optional, Sequence, Tuple

from companion.core.errors import BoardError, CompanionError, NotFound, StorageError, UsageError
from companion.core.settings import Settings, load

if TYPE_CHECKING:
    from companion.boards.registry import Board
    from companion.boards.writer import RepairResult
    from companion.commands.wiring import Boards

BusyOn = Callable[[str], Optional[str]]
"""Which session is in the middle of a turn on a file (its normalised path), or None."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """``board init|add|list|remove|repair``."""
    parser = subparsers.add_parser("board", add_help=False)
    actions = parser.add_subparsers(dest="action", required=True, metavar="init|add|list|remove|repair")
    for name in ("init", "add"):
        actions.add_parser(name, add_help=False).add_argument("folder", metavar="DIR")
    actions.add_parser("list", add_help=False).add_argument("--json", action="store_true")
    actions.add_parser("remove", add_help=False).add_argument("board", metavar="DIR|UUID")
    repair = actions.add_parser("repair", add_help=False)
    repair.add_argument("paths", metavar="DIR|CARD", nargs="*")
    repair.add_argument("--dry-run", action="store_true")
    repair.add_argument("--force", action="store_true")
    repair.add_argument("--json", action="store_true")


def run(args: argparse.Namespace) -> int:
    """Do what was asked. 0 when all of it was done, 1 when ``repair`` left something alone."""
    from companion.commands.wiring import open_boards

    settings = load(os.environ)
    boards = open_boards(settings)
    if args.action in ("init", "add", "remove"):
        _demand_configuration(boards)
    if args.action == "init":
        return _init(boards, args.folder)
    if args.action == "add":
        return _add(boards, args.folder)
    if args.action == "list":
        return _list(boards, args.json)
    if args.action == "remove":
        return _remove(boards, settings, args.board)
    return _repair(boards, args, _busy_on(settings, args.force))


def _demand_configuration(boards: "Boards") -> None:
    """CompanionError when it cannot be read: saved now, it would lack the other boards and settings."""
    boards.registry.boards()
    if boards.config.problem is not None:
        raise CompanionError(f"{boards.config.problem}. Mend it, or move it away. Nothing was changed.")


def _init(boards: "Boards", folder: str) -> int:
    """A board in a folder, made where needed, and registered."""
    from companion.boards.writer import init_board

    made = init_board(_folder(boards, folder), time.time)
    _register(boards, made.uuid, made.path)
    for path in made.written:
        print(f"Wrote {path}")
    print(f"Board {made.uuid} in {made.path}")
    _say(made.notes)
    return 0


def _add(boards: "Boards", folder: str) -> int:
    """Register a board that was made elsewhere."""
    from companion.boards.boardfile import read_board_file
    from companion.boards.writer import board_notes

    path = _folder(boards, folder)
    if not path.is_dir():
        raise BoardError(f"{path} is no folder.")
    found = read_board_file(path)
    if found is None or found.uuid is None:
        lacks = "no mdello.yml" if found is None else "no uuid in its mdello.yml"
        raise BoardError(
            f"{path} has {lacks}. Make it a board with: mdello.pyz board init {quote(str(path))}"
        )
    _register(boards, found.uuid, str(path))
    print(f"Board {found.uuid} in {path}")
    _say(board_notes(found, str(path)))
    return 0


def _folder(boards: "Boards", folder: str) -> Path:
    if not folder.strip():
        raise UsageError("DIR is empty: name a folder.")
    return Path(boards.registry.normal(folder))


def _register(boards: "Boards", board_uuid: str, path: str) -> None:
    """Register, and tell when that takes the place of another folder."""
    before = boards.registry.find(board_uuid)
    board = boards.registry.add(board_uuid, path)
    if before is not None and before.path != board.path:
        other = os.path.isdir(before.path) and not os.path.samefile(before.path, board.path)
        still = " It is still there: two folders must not share a uuid." if other else ""
        _say([f"this board was registered in {before.path} until now.{still}"])


def _list(boards: "Boards", as_json: bool) -> int:
    found = boards.registry.boards()
    if as_json:
        rows = [
            {
                "uuid": board.uuid,
                "path": board.path,
                "updatedAt": board.updated_at,
                "problem": _folder_problem(board.path),
            }
            for board in found
        ]
        print(json.dumps(rows, indent=2))
    else:
        for board in found:
            problem = _folder_problem(board.path)
            print(f"{board.uuid}  {board.path}{f'  ({problem})' if problem else ''}")
        if not found:
            print("No board is registered. Make one with: mdello.pyz board init DIR", file=sys.stderr)
    if boards.config.problem is not None:
        _say([boards.config.problem])
    invalid = boards.registry.invalid_entries
    if invalid:
        what = "1 entry" if invalid == 1 else f"{invalid} entries"
        verbs = "is no board and is" if invalid == 1 else "are no boards and are"
        _say([f"{what} in {boards.config.path} {verbs} skipped"])
    return 0


def _folder_problem(path: str) -> Optional[str]:
    """Why a board's folder cannot be read, or None."""
    try:
        with os.scandir(path):
            return None
    except OSError as exc:
        return exc.strerror or str(exc)
    except ValueError as exc:  # A path that this locale cannot spell.
        return str(exc)


def _remove(boards: "Boards", settings: Settings, uuid_or_path: str) -> int:
    board = boards.registry.remove(uuid_or_path)
    print(f"Forgot board {board.uuid} in {board.path}; its files stay.")
    stay = _remembered_sessions(settings, board)
    if stay:
        stays = "1 session on its cards stays" if stay == 1 else f"{stay} sessions on its cards stay"
        _say([f"{stays} remembered; mdello.pyz purge forgets all sessions"])
    return 0


def _remembered_sessions(settings: Settings, board: "Board") -> int:
    from companion.sessions.journal import association_journal

    try:
        records = association_journal(settings.data_path).read()
    except StorageError as exc:
        _say([str(exc)])
        return 0
    last = {record.key: record for record in records}
    return len({(each.harness, each.session_id) for each in last.values() if each.board_uuid == board.uuid})


def _say(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"Note: {note}", file=sys.stderr)


def repair(boards: "Boards", paths: Sequence[str], busy_on: BusyOn, dry_run: bool) -> "List[RepairResult]":
    """Give a uuid to each card without one: of all boards, or of the named boards and cards.

    A file that a session is working on is refused. NotFound when a path is neither a registered
    board nor a file in one.
    """
    from companion.boards.writer import RepairResult, give_uuid

    results = []
    for path, problem in _candidates(boards, paths):
        busy = busy_on(path)
        if problem is None and busy is not None:
            problem = f"{busy} is working on it (--force repairs it all the same)"
        if problem is not None:
            results.append(RepairResult(path, None, False, refused=problem))
        else:
            results.append(give_uuid(Path(path), str(uuid.uuid4()), dry_run))
    return results


def _candidates(boards: "Boards", paths: Sequence[str]) -> List[Tuple[str, Optional[str]]]:
    """(Path, why it cannot even be tried or None) of the files to repair, each once."""
    chosen: Dict[str, Optional[str]] = {}
    if not paths:
        chosen.update(_in_boards(boards, None))
    for path in paths:
        board = boards.registry.find(path)
        if board is not None:
            chosen.update(_in_boards(boards, board.path))
            continue
        owned = boards.registry.owner_of(path)
        if owned is None or not path.rstrip("/").endswith(".md"):
            raise NotFound(f"Neither a registered board nor a card in one: {path}")
        chosen[_spelled(boards, owned[1])] = None
    return list(chosen.items())


def _spelled(boards: "Boards", path: str) -> str:
    """The path as it is on disk, where that is another Unicode form."""
    with contextlib.suppress(CompanionError):
        found = boards.finder.resolve(path)
        return found.without_uuid or (found.card.path if found.card else path)
    return path


def _in_boards(boards: "Boards", folder: Optional[str]) -> Dict[str, Optional[str]]:
    from companion.boards.cards import NOT_UTF8

    scan = boards.finder.scan()
    chosen: Dict[str, Optional[str]] = {
        path: why if why == NOT_UTF8 else None for path, why in scan.without_uuid
    }
    chosen.update(scan.problems)
    if folder is None:
        return chosen
    return {path: why for path, why in chosen.items() if folder in (path, os.path.dirname(path))}


def _repair(boards: "Boards", args: argparse.Namespace, busy_on: BusyOn) -> int:
    results = repair(boards, args.paths, busy_on, args.dry_run)
    if args.json:
        print(json.dumps([asdict(result) for result in results], indent=2))
    else:
        _show(results, args.dry_run)
    _tell_duplicates(boards)
    return 1 if any(result.refused for result in results) else 0


def _show(results: "List[RepairResult]", dry_run: bool) -> None:
    for result in results:
        if result.refused is not None:
            print(f"Left alone: {result.path}: {result.refused}", file=sys.stderr)
        elif result.changed:
            verb = "Would change" if dry_run else "Changed"
            notes = "".join(f"; {note}" for note in result.notes)
            print(f"{verb} {result.path}: uuid {result.uuid}{notes}")
    if not any(result.refused or result.changed for result in results):
        print("Every card has a uuid.")


def _tell_duplicates(boards: "Boards") -> None:
    for card_uuid, paths in boards.finder.scan().duplicates:
        _say([f"the uuid {card_uuid} is in several files, the last one counts: {', '.join(paths)}"])


def _busy_on(settings: Settings, force: bool) -> BusyOn:
    """Asks the remembered links, as they stood when the command began."""
    from companion.sessions import pending

    links = [] if force else pending.read_links(settings.pending_path)

    def busy_on(path: str) -> Optional[str]:
        busy = pending.busy_on(links, path)
        return f"{busy[0].harness} session {busy[0].session_id}" if busy else None

    return busy_on
