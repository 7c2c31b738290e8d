"""``assign``: run the GitHub assignment job once, now, or only tell what it would do."""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Dict, List, Optional

from companion.core.errors import AssignmentFailed, BoardError
from companion.core.settings import Settings, load

if TYPE_CHECKING:
    from companion.assignment.job import Job
    from companion.assignment.run import Outcome
    from companion.assignment.setting import Setting
    from companion.commands.wiring import Boards
    from companion.core.programs import Programs

_EXAMPLE = """"extensions": {
  "github-assignment": {
    "schedule": "*/15 8-18 * * MON-FRI",
    "organizations": [],
    "boardUuid": "..."
  }
}"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """``assign [--dry-run] [--json]``."""
    parser = subparsers.add_parser("assign", add_help=False, usage="mdello.pyz assign [--dry-run] [--json]")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--json", action="store_true")


def run(args: argparse.Namespace) -> int:
    """One run. 0 when all went well. AssignmentFailed when no job, or a wrong one, is set up."""
    from companion.commands.serve import stop_signals
    from companion.commands.wiring import open_boards
    from companion.core.programs import Programs

    settings = load(os.environ)
    setting = read_job(open_boards(settings))
    if setting is None:
        raise AssignmentFailed(_nothing_set_up(settings))
    programs = Programs(settings.environ)
    for number in stop_signals():  # Killed at once we would leave a gh behind that hangs, for ever.
        signal.signal(number, _leave)
    try:
        outcome = _run(setting, programs, args.dry_run)
    finally:
        programs.close()
    if args.json:
        print(json.dumps(as_json(outcome), indent=2))
    else:
        print("\n".join(as_lines(outcome, args.dry_run)))
    for note in notes(outcome):
        print(f"Note: {note}", file=sys.stderr)
    if outcome.failure is not None:
        print(outcome.failure, file=sys.stderr)
    return 1 if outcome.failure is not None else 0


def _run(setting: "Setting", programs: "Programs", dry_run: bool) -> "Outcome":
    from companion.assignment.run import Runner

    return Runner(programs, add_card).run(setting, dry_run)


def _leave(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def _nothing_set_up(settings: Settings) -> str:
    return (
        "No GitHub assignment job is set up. One is in the configuration when it holds\n\n"
        f"{_EXAMPLE}\n\n"
        f"File: {settings.config_path}\n"
        "boardUuid is of a registered board (mdello.pyz board list) that has a column Triage."
    )


def as_lines(outcome: "Outcome", dry_run: bool) -> List[str]:
    """A line for each card, and a last one with the numbers."""
    verb = "Would write" if dry_run else "Wrote"
    lines = [f"{verb} {title} ({place})" for title, place in outcome.created]
    count = len(outcome.created)
    return [*lines, f"{count} {'card' if count == 1 else 'cards'}; {outcome.known} already on the board."]


def notes(outcome: "Outcome") -> List[str]:
    """What else should be known about a run."""
    said = []
    if outcome.unusable:
        said.append(f"{outcome.unusable} of gh's results are no issues or pull requests as we know them")
    if outcome.cut:
        said.append("GitHub gives no more than 1000 results to one search: there may be more")
    return said


def as_json(outcome: "Outcome") -> Dict[str, object]:
    """``created`` (title, and path or link, of each), ``skipped``, ``unusable``, ``more``, ``failure``."""
    return {
        "created": [{"title": title, "place": place} for title, place in outcome.created],
        "skipped": outcome.known,
        "unusable": outcome.unusable,
        "more": outcome.cut,
        "failure": outcome.failure,
    }


def read_job(boards: "Boards") -> "Optional[Setting]":
    """The job as the configuration has it now, or None. CompanionError when it cannot be used."""
    from companion.assignment.setting import read_setting
    from companion.boards.boardfile import read_board_file

    def folder_of(uuid: str) -> Optional[str]:
        return next((board.path for board in boards.registry.boards() if board.uuid == uuid), None)

    def columns_of(folder: str) -> "tuple[str, ...]":
        found = read_board_file(Path(folder))
        if found is None:
            raise BoardError(f"{folder} is not there, or has no mdello.yml")
        return found.columns

    return read_setting(boards.config.read(), folder_of, columns_of)


def open_job(boards: "Boards", programs: "Programs") -> "Job":
    """The job of a running companion; not started yet."""
    from companion.assignment.job import Job
    from companion.assignment.run import Runner

    def stopping() -> bool:
        return job.stopping()

    job = Job(lambda: read_job(boards), Runner(programs, add_card, stopping).run)
    return job


def add_card(folder: Path, title: str, column: str, body: str) -> Path:
    """Write a new card, created now. BoardError."""
    from companion.boards.newcard import add_card as write
    from companion.core.clock import iso_utc

    return write(folder, title, column, body, iso_utc(time.time()))
