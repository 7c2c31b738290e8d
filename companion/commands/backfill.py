"""``backfill``: rebuild associations from the agents' own files of the last 30 days."""

import argparse
import json
import os
import socket
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Dict, List, Sequence, Union

from adapters.contract import Adapter, AdapterError, ReadReport
from companion.core.errors import CompanionError, StorageError, UsageError
from companion.core.settings import Settings, load
from companion.history.backfill import Counts
from companion.history.scanner import Progress

# A companion on this machine takes a connection at once; so does whatever else holds the port.
CONNECT_TIMEOUT_S = 0.25

# What was left out is told by name up to so many lines; all of it is in --json.
SHOWN_LINES = 12

_BAR_CELLS = 24


@dataclass(frozen=True)
class Result:
    """One agent's backfill."""

    harness: str
    counts: Counts
    report: ReadReport
    without_uuid: List[str]
    """Files on a board that sessions worked on, but that have no uuid."""
    other_roots: List[str] = field(default_factory=list)
    """Folders that were read besides the one that this process was told of."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """``backfill [AGENT] [--json]``."""
    parser = subparsers.add_parser("backfill", add_help=False, usage=_usage())
    parser.add_argument("agents", nargs="*")
    parser.add_argument("--json", action="store_true")


def run(args: argparse.Namespace) -> int:
    """Every agent, or the one named. 1, with nothing touched, while a companion is running.

    An agent whose backfill fails does not stop the others; 1 then too. UsageError for an unknown
    agent and for more than one, before anything is looked at.
    """
    chosen = _chosen(args.agents)
    settings = load(os.environ)
    if is_held(settings.port):
        print(_refusal(settings), file=sys.stderr)
        return 1
    outcomes: Dict[str, Union[Result, Exception]] = {}
    for adapter in chosen:
        outcome = outcomes[adapter.NAME] = _tried(adapter, settings)
        if isinstance(outcome, Exception):
            print(_printable(f"{adapter.NAME}: {outcome}"), file=sys.stderr, flush=True)
        elif not args.json:
            for line in told(outcome):
                print(_printable(line), flush=True)
    if args.json:
        print(json.dumps({"harnesses": [as_json(*each) for each in outcomes.items()]}, indent=2))
    return int(any(isinstance(each, Exception) for each in outcomes.values()))


def _tried(adapter: Adapter, settings: Settings) -> Union[Result, Exception]:
    try:
        return backfill_agent(adapter, settings, Bar(adapter.TITLE))
    except (AdapterError, CompanionError, OSError) as exc:
        return exc


def is_held(port: int) -> bool:
    """Whether anything takes connections on ``127.0.0.1:port``."""
    try:
        socket.create_connection(("127.0.0.1", port), CONNECT_TIMEOUT_S).close()
    except OSError:
        return False
    return True


def backfill_agent(adapter: Adapter, settings: Settings, bar: "Bar") -> Result:
    """Read one agent's files and rebuild its part of the log.

    CompanionError when a companion was started meanwhile or the boards cannot be read; StorageError
    when the log cannot be read or written. The log is then as it was.
    """
    from companion.commands.wiring import open_boards
    from companion.core.clock import iso_utc
    from companion.core.files import locked
    from companion.history.backfill import Cards, backfill, other_roots
    from companion.history.scanner import needles_for, scan
    from companion.sessions.journal import association_journal

    boards = open_boards(settings)
    registered = boards.registry.boards()
    if boards.config.problem is not None:
        raise CompanionError(f"{boards.config.problem}. Nothing was changed.")
    needles = needles_for(board.path for board in registered) if registered else (_NOWHERE,)
    log = association_journal(settings.data_path)
    root = adapter.sessions_root(settings.home, settings.environ)
    others = other_roots(adapter.folders_of, adapter.NAME, log.read(), root)
    now_s = time.time()
    with bar:
        past = scan(adapter, root, needles, now_s, bar.show)
        for other in others:
            more = scan(adapter, other, needles, now_s, bar.show)
            past.sessions += more.sessions
            past.report.add(more.report)
    if is_held(settings.port):  # Started while we were reading: the log is its own now.
        raise CompanionError(_refusal(settings))
    cards = Cards(boards.finder)
    with locked(settings.state_dir):
        counts = backfill(
            harness=adapter.NAME,
            sessions=past.sessions,
            log=log,
            cards=cards,
            now=iso_utc(now_s),
            roots=[root, *others],
            any_boards=bool(registered),
            all_read=not (past.report.incomplete or understood_nothing(past.report)),
        )
    if log.unsaved:  # There was no log, and none could be made.
        raise StorageError(log.problem or f"Cannot write {settings.data_path}")
    past.report.skipped += cards.unreadable.items()
    return Result(adapter.NAME, counts, past.report, list(cards.without_uuid), [str(path) for path in others])


# A needle that no line of JSON holds: without boards there is nothing to find.
_NOWHERE = b"\0"


def _chosen(names: Sequence[str]) -> List[Adapter]:
    from adapters.registry import ADAPTERS

    wrong = [name for name in names if name not in ADAPTERS] or list(names[1:])
    if wrong:
        what = "Unknown agent" if wrong[0] not in ADAPTERS else "One agent at a time, surplus"
        raise UsageError(f"Usage: {_usage()}\n{what}: {wrong[0]}. See mdello.pyz help.")
    return [ADAPTERS[name] for name in names or sorted(ADAPTERS)]


def _usage() -> str:
    from adapters.registry import ADAPTERS

    return f"mdello.pyz backfill [{'|'.join(sorted(ADAPTERS))}] [--json]"


def _refusal(settings: Settings) -> str:
    return (
        f"Port {settings.port} is in use, so a companion seems to be running, and it keeps\n"
        f"{settings.data_path} in memory. Stop it, run backfill again, and start it. Nothing was changed."
    )


# --- what is printed -----------------------------------------------------------------------------


def told(result: Result) -> List[str]:
    """The result for people: the summary in one line, then what could not be read or used."""
    counts = result.counts
    summary = (
        f"{result.harness}: scanned {_number(counts.scanned, 'session')}, "
        f"found {_number(counts.found, 'association')} in {_number(counts.matched, 'session')}. "
        f"Added {counts.added}; {counts.existing} already existed, {counts.purged} stale purged."
    )
    return [summary, *(f"  {line}" for line in _notes(result))]


def _notes(result: Result) -> List[str]:
    report = result.report
    lines = []
    blind = understood_nothing(report)
    if result.other_roots:
        lines += ["Read too, since known sessions lie there:", *_listed(result.other_roots)]
    if blind:
        looked_at = _number(report.records + report.damaged, "record")
        lines.append(f"ALARM: parsed 0 of {looked_at}. Has the format changed?")
    if result.counts.kept:
        kept = _number(result.counts.kept, "association")
        unread = report.incomplete or blind
        why = "not all sessions could be read" if unread else "their cards or files cannot be judged now"
        lines.append(f"Kept {kept} without a session: {why}.")
    if result.without_uuid:
        lines.append("Worked on, but without a uuid (mdello.pyz board repair, then backfill again):")
        lines += _listed(result.without_uuid)
    if report.damaged:
        lines.append(f"Skipped {_number(report.damaged, 'damaged line')}:")
        lines += _listed([f"{place}: {count}" for place, count in report.damaged_in.items()])
    if report.unknown:
        kinds = sorted(report.unknown.items(), key=lambda kind: (-kind[1], kind[0]))
        lines.append(f"Entries of unknown types ({len(kinds)} types, most frequent first):")
        lines += _listed([f"{kind}: {count}" for kind, count in kinds])
    if report.skipped:
        lines.append(f"Left out ({len(report.skipped)}):")
        lines += _listed([f"{path}: {reason}" for path, reason in report.skipped])
    return lines


def understood_nothing(report: ReadReport) -> bool:
    """Whether there were records and none was of a known type: sessions without cards look the same."""
    looked_at = report.records + report.damaged
    return looked_at > 0 and report.records <= sum(report.unknown.values())


def _listed(items: Sequence[str]) -> List[str]:
    lines = [f"  {item}" for item in items[:SHOWN_LINES]]
    more = len(items) - len(lines)
    return [*lines, f"  and {more} more (--json shows all)"] if more else lines


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _printable(line: str) -> str:
    """The line in characters that the terminal knows, and none that would steer it."""
    shown = "".join(character if character.isprintable() else "\ufffd" for character in line)
    encoding = sys.stdout.encoding or "ascii"
    return shown.encode(encoding, errors="backslashreplace").decode(encoding)


def as_json(harness: str, result: Union[Result, Exception]) -> Dict[str, object]:
    """The result for programs; the names of the counts are those of :class:`Counts`."""
    if isinstance(result, Exception):
        return {"harness": harness, "error": str(result)}
    report = result.report
    return {
        "harness": harness,
        **asdict(result.counts),
        "withoutUuid": result.without_uuid,
        "otherRoots": result.other_roots,
        "records": report.records,
        "damaged": report.damaged,
        "damagedIn": report.damaged_in,
        "incomplete": report.incomplete,
        "alarm": understood_nothing(report),
        "unknown": report.unknown,
        "skipped": [{"path": path, "reason": reason} for path, reason in report.skipped],
    }


class Bar:
    """A progress bar on stderr; nothing at all when that is no terminal."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._on = sys.stderr.isatty()
        self._shown = ""

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown:
            print("\r" + " " * len(self._shown) + "\r", end="", file=sys.stderr, flush=True)

    def show(self, progress: Progress) -> None:
        """Draw the state, if it looks different from the last."""
        if not self._on:
            return
        share = progress.size_bytes / progress.size_total_bytes if progress.size_total_bytes else 1.0
        cells = int(_BAR_CELLS * share)
        bar = "#" * cells + "." * (_BAR_CELLS - cells)
        line = f"{self._title} [{bar}] {share:4.0%} "
        line += f"{progress.files}/{progress.files_total} files, {progress.sessions} sessions"
        if line != self._shown:
            print("\r" + line, end="", file=sys.stderr, flush=True)
            self._shown = line
