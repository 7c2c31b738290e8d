"""``status``: the boards, and which session works on which card."""

import argparse
import json
import os
import time
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from adapters.contract import Status
from companion.core.clock import parse_iso
from companion.core.settings import Settings, load
from companion.sessions.association import Association, Key

PROBE_TIMEOUT_S = 0.5

# What a person looks for first stands first.
_ORDER = (
    Status.WAITING_FOR_INPUT,
    Status.READY_FOR_REVIEW,
    Status.RUNNING,
    Status.IDLE,
    Status.CLOSED,
)


@dataclass(frozen=True)
class Overview:
    """What ``status`` knows, read from the files of the companion."""

    boards: List[Tuple[str, str]]
    """(uuid, path) in order of registration."""
    events: Dict[str, int]
    """Log events per board uuid, history included."""
    sessions: List[Association]
    """The last record of every session on every card."""
    without_uuid: List[Tuple[str, str]]
    """(path, why) of Markdown files that are no cards for want of a uuid."""
    waiting_links: List[Tuple[str, str, str, str]]
    """(path, harness, session id, status) of sessions on such files."""
    problems: List[str]
    """What could not be read, one line each."""
    running: str
    """Whether a companion serves our port: a value of ``client.Holder``."""
    unsaved: int
    """Records that the running companion could not write and holds in memory."""
    told: List[str]
    """What the running companion says does not work, beyond ``problems``."""
    watched: List[Dict[str, object]]
    """Open sessions as the running companion sees them, with the reasons of their statuses."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """``status [--json]``; surplus arguments are ignored, as the contract has it."""
    parser = subparsers.add_parser("status", add_help=False)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("ignored", nargs="*")


def run(args: argparse.Namespace) -> int:
    """Print the overview; always 0 when it could be made."""
    settings = load(os.environ)
    overview = look(settings)
    if args.json:
        print(json.dumps(_as_json(overview), indent=2, ensure_ascii=True))
    else:
        for line in _lines(overview, settings, time.time()):
            print(line)
    return 0


def look(settings: Settings) -> Overview:
    """Read everything that ``status`` shows. Never raises for what is damaged: it is a problem."""
    from companion.commands.wiring import open_boards
    from companion.core.errors import StorageError
    from companion.sessions.journal import association_journal
    from companion.sessions.pending import read_links
    from companion.web.client import Holder, probe

    boards = open_boards(settings)
    registered = boards.registry.boards()
    problems = [boards.config.problem] if boards.config.problem else []
    journal = association_journal(settings.data_path)
    events: List[Association] = []
    links: List[Tuple[str, str, str, str]] = []
    try:
        events = journal.read()
        links = [
            (link.path, link.harness, link.session_id, link.status.value)
            for link in read_links(settings.pending_path)
        ]
    except StorageError as exc:
        problems.append(str(exc))
    if journal.damaged:
        problems.append(f"{settings.data_path}: {journal.damaged} damaged lines were skipped")
    running = probe(settings.port, PROBE_TIMEOUT_S)
    unsaved, told = _health(settings.port) if running is Holder.OURS else (0, [])
    sessions = list(_fold(events).values())
    if unsaved:  # The log lags behind: what counts is what the companion knows.
        sessions = _held(settings.port) or sessions
    scan = boards.finder.scan()
    problems += [f"{path}: {reason}" for path, reason in scan.problems]
    return Overview(
        boards=[(board.uuid, board.path) for board in registered],
        events=_count(events),
        sessions=sessions,
        without_uuid=list(scan.without_uuid),
        waiting_links=links,
        problems=problems,
        running=running.value,
        unsaved=unsaved,
        told=[each for each in told if each not in problems],
        watched=_watched(settings.port) if running is Holder.OURS else [],
    )


def _health(port: int) -> Tuple[int, List[str]]:
    """(records that the companion could not write, what else does not work there)."""
    from companion.core.errors import CompanionUnreachable
    from companion.web.client import get_json

    try:
        health = get_json(port, "/health", PROBE_TIMEOUT_S)
    except CompanionUnreachable:
        return 0, []
    health = health if isinstance(health, dict) else {}
    counts, problems = health.get("counts"), health.get("problems")
    unsaved = counts.get("unsaved") if isinstance(counts, dict) else None
    told = [str(each) for each in problems] if isinstance(problems, list) else []
    return unsaved if isinstance(unsaved, int) else 0, told


def _held(port: int) -> List[Association]:
    """What the running companion knows; nothing when it does not answer."""
    from companion.core.errors import CompanionUnreachable
    from companion.sessions.association import InvalidAssociation, from_json
    from companion.web.client import get_json

    try:
        answer = get_json(port, "/associations", PROBE_TIMEOUT_S)
        return [from_json(record) for record in answer] if isinstance(answer, list) else []
    except (CompanionUnreachable, InvalidAssociation):
        return []


def _watched(port: int) -> List[Dict[str, object]]:
    """Nothing when it does not answer, or is of a version that has no such answer."""
    from companion.core.errors import CompanionUnreachable
    from companion.web.client import get_json

    try:
        answer = get_json(port, "/sessions", PROBE_TIMEOUT_S)
    except CompanionUnreachable:
        return []
    return session_rows(answer)


def session_rows(answer: object) -> List[Dict[str, object]]:
    """The sessions in an answer of ``/sessions``."""
    rows = answer.get("sessions") if isinstance(answer, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _count(events: List[Association]) -> Dict[str, int]:
    counts: Dict[str, int] = {}
    for event in events:
        counts[event.board_uuid] = counts.get(event.board_uuid, 0) + 1
    return counts


def _fold(events: List[Association]) -> Dict[Key, Association]:
    """The last record per session and card, in order of first appearance."""
    held: Dict[Key, Association] = {}
    for event in events:
        held[event.key] = event
    return held


def _lines(overview: Overview, settings: Settings, now_s: float) -> List[str]:
    lines: List[str] = []
    if not overview.boards:
        lines.append("No tracked boards.")
    for uuid, path in overview.boards:
        lines.append(f"{uuid} {path}: {overview.events.get(uuid, 0)} events")
        on_it = [each for each in overview.sessions if each.board_uuid == uuid]
        lines += _board_lines(on_it, overview.watched, now_s)
    known = {uuid for uuid, _ in overview.boards}
    homeless = [each for each in overview.sessions if each.board_uuid not in known]
    if homeless:
        lines += ["Not on a registered board:", *_board_lines(homeless, overview.watched, now_s)]
    lines += _cardless_lines(overview, now_s)
    lines += _without_uuid_lines(overview)
    lines += [f"Could not be read: {problem}" for problem in overview.problems]
    lines += [f"The companion says: {printable(problem)}" for problem in overview.told]
    if overview.unsaved:
        what = "1 event is" if overview.unsaved == 1 else f"{overview.unsaved} events are"
        lines.append(f"{what} in memory only: the log cannot be written; see mdello.pyz doctor")
    lines.append(_companion_line(overview, settings))
    return lines


def _board_lines(sessions: List[Association], watched: List[Dict[str, object]], now_s: float) -> List[str]:
    """Open sessions one by one, those that need a person first; closed ones as a number."""
    reasons = {(row.get("harness"), row.get("sessionId")): str(row.get("reason") or "") for row in watched}
    still_open = [each for each in sessions if each.status is not Status.CLOSED]
    still_open.sort(key=lambda each: (_ORDER.index(each.status), each.card_path))
    lines = [
        f"  {each.status.value.replace('_', ' '):<17} {printable(os.path.basename(each.card_path))}"
        f"  {printable(each.harness)} {printable(each.session_id)}  {_age(each.updated_at, now_s)}"
        f"{_why(reasons.get((each.harness, each.session_id)))}"
        for each in still_open
    ]
    closed = len(sessions) - len(still_open)
    return lines + ([f"  {closed} closed"] if closed else [])


def _why(reason: Optional[str]) -> str:
    return f"  ({printable(reason)})" if reason else ""


def _cardless_lines(overview: Overview, now_s: float) -> List[str]:
    """Open sessions that work on no card."""
    linked = {(each.harness, each.session_id) for each in overview.sessions}
    lines = []
    for row in overview.watched:
        harness, session_id = str(row.get("harness")), str(row.get("sessionId"))
        if (harness, session_id) in linked:
            continue
        status = str(row.get("status")).replace("_", " ")
        place = str(row.get("project") or row.get("cwd") or "")
        line = f"  {status:<17} {harness} {session_id}  {_age(str(row.get('since')), now_s)}  {place}"
        lines.append(printable(line.rstrip()) + _why(str(row.get("reason") or "")))
    return ["Without a card:", *lines] if lines else []


def _without_uuid_lines(overview: Overview) -> List[str]:
    if not overview.without_uuid:
        return []
    sessions: Dict[str, List[str]] = {}
    for path, harness, session_id, status in overview.waiting_links:
        sessions.setdefault(path, []).append(f"{harness} {session_id} {status.replace('_', ' ')}")
    lines = ["Without a uuid, so not linked yet (mdello.pyz board repair gives them one, or says why not):"]
    for path, why in overview.without_uuid:
        on_it = f"; {', '.join(sessions[path])}" if path in sessions else ""
        lines.append(f"  {printable(path)} ({printable(why)}{printable(on_it)})")
    return lines


def _companion_line(overview: Overview, settings: Settings) -> str:
    if overview.running == "ours":
        return f"The companion is running at {settings.endpoint}."
    if overview.running == "free":
        return "The companion is not running: statuses are as of its end. Start it: mdello.pyz serve"
    held = f"Port {settings.port} is held by something that does not answer as a companion"
    return f"{held}; see mdello.pyz doctor"


def _age(updated_at: str, now_s: float) -> str:
    then_s: Optional[float] = parse_iso(updated_at)
    if then_s is None:
        return ""
    seconds = max(0, int(now_s - then_s))
    for unit_s, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= unit_s:
            return f"{seconds // unit_s} {unit} ago"
    return f"{seconds} s ago"


def printable(text: str) -> str:
    """Foreign text without control characters or lone surrogates: a name must not move the cursor."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text
    )


def _as_json(overview: Overview) -> Dict[str, object]:
    return {
        "companion": overview.running,
        "boards": [
            {"uuid": uuid, "path": path, "events": overview.events.get(uuid, 0)}
            for uuid, path in overview.boards
        ],
        "sessions": [each.to_json() for each in overview.sessions],
        "withoutUuid": [{"path": path, "reason": why} for path, why in overview.without_uuid],
        "pendingLinks": [
            {"path": path, "harness": harness, "sessionId": session_id, "status": status}
            for path, harness, session_id, status in overview.waiting_links
        ],
        "unsaved": overview.unsaved,
        "companionProblems": overview.told,
        "watched": overview.watched,
        "problems": overview.problems,
    }
