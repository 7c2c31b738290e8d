"""``explain``: why a session has the status that it has, with each piece of evidence."""

import argparse
import json
import os
import re
from typing import Dict, List, Mapping, Optional, Sequence
from urllib.parse import quote

from companion.commands.status import printable, session_rows
from companion.core.errors import CompanionError, UsageError
from companion.core.settings import load

TIMEOUT_S = 5.0
# Shorter beginnings of an id fit too many.
LEAST_PREFIX_CHARS = 4

_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")

Row = Mapping[str, object]
"""A session as the companion tells it."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """``explain [SESSION|CARD] [--json]``."""
    parser = subparsers.add_parser("explain", add_help=False)
    parser.add_argument("what", nargs="?")
    parser.add_argument("--json", action="store_true")


def run(args: argparse.Namespace) -> int:
    """Explain one session, all of a card, or all that are open. CompanionError when that cannot be."""
    from companion.web.client import get_json

    settings = load(os.environ)
    _demand_companion(settings.port)
    chosen: Sequence[Row]
    if args.what is None:
        chosen = session_rows(get_json(settings.port, "/sessions", TIMEOUT_S))
    else:
        rows = session_rows(get_json(settings.port, "/sessions?closed=1&automated=1", TIMEOUT_S))
        chosen = choose(rows, args.what, os.getcwd())
    told = []
    for row in chosen:
        path = f"/sessions/{_quoted(row['harness'])}/{_quoted(row['sessionId'])}"
        told.append(get_json(settings.port, path, TIMEOUT_S))
    if args.json:
        print(json.dumps({"sessions": told}, indent=2))
    elif not told:
        print("No session is open.")
    else:
        blocks = ["\n".join(lines(each)) for each in told if isinstance(each, dict)]
        print("\n\n".join(blocks))
    return 0


def _demand_companion(port: int) -> None:
    from companion.web.client import Holder, probe

    if probe(port, TIMEOUT_S) is not Holder.OURS:
        raise CompanionError(
            f"No companion of yours answers on port {port}. It gathers the evidence: mdello.pyz serve"
        )


def _quoted(part: object) -> str:
    return quote(str(part), safe="")


def choose(rows: Sequence[Row], what: str, cwd: str) -> List[Row]:
    """The sessions that are meant: of a card (path or uuid), or the one with this id or its beginning.

    ``harness:id`` tells sessions of two agents apart. UsageError when none or several ids fit.
    """
    of_card = [row for row in rows if any(_is_meant(card, what, cwd) for card in _cards(row))]
    if of_card:
        return of_card
    harness, _, rest = what.rpartition(":")
    if harness and any(row.get("harness") == harness for row in rows):
        rows, what = [row for row in rows if row.get("harness") == harness], rest
    whole = [row for row in rows if row.get("sessionId") == what]
    if whole:
        return whole
    begun = [row for row in rows if str(row.get("sessionId")).startswith(what)]
    if len(begun) == 1 and len(what) >= LEAST_PREFIX_CHARS:
        return begun
    if not begun or len(what) < LEAST_PREFIX_CHARS:
        raise UsageError(f"Neither a session nor a card with sessions: {printable(what)}")
    ids = ", ".join(sorted(f"{row.get('harness')}:{row.get('sessionId')}" for row in begun))
    raise UsageError(f"Several sessions begin so: {printable(ids)}")


def _cards(row: Row) -> List[Row]:
    cards = row.get("cards")
    return [card for card in cards if isinstance(card, dict)] if isinstance(cards, list) else []


def _is_meant(card: Row, what: str, cwd: str) -> bool:
    if _UUID.fullmatch(what):
        return card.get("cardUuid") == what
    path = os.path.normpath(os.path.join(cwd, what))
    return what.endswith(".md") and path in (card.get("cardPath"), _real(card.get("cardPath")))


def _real(path: object) -> Optional[str]:
    return os.path.realpath(path) if isinstance(path, str) else None


# --- what is printed


def lines(told: Row) -> List[str]:
    """One session for people."""
    status = str(told.get("status")).replace("_", " ")
    text = [f"{told.get('harness')} {told.get('sessionId')}: {status}"]
    text += [f"  because {told.get('reason')} (rule {told.get('rule')}, {told.get('sure')})"]
    if told.get("since"):
        text.append(f"  since {told.get('since')}")
    for name in ("project", "cwd", "sessionFile"):
        if told.get(name) and not (name == "cwd" and told.get("project") == told.get("cwd")):
            text.append(f"  {_NAMES[name]}: {told[name]}")
    text += [f"  card: {card.get('cardPath')}" for card in _cards(told)]
    evidence = told.get("evidence")
    text += [
        "  Evidence:",
        *(f"    {line}" for line in _evidence(evidence if isinstance(evidence, dict) else {})),
    ]
    for title, key in (("Speaks against it:", "contradicts"), ("Missing:", "missing")):
        found = told.get(key)
        if isinstance(found, list) and found:
            text += [f"  {title}", *(f"    {each}" for each in found)]
    return [printable(line) for line in text]


_NAMES: Dict[str, str] = {"project": "project", "cwd": "folder", "sessionFile": "file"}


def _evidence(evidence: Row) -> List[str]:
    found = []
    event, file = evidence.get("event"), evidence.get("file")
    if isinstance(event, dict):
        name = event.get("name") or "unnamed"
        paused = ", its own agents go on" if event.get("paused") else ""
        found.append(f"event {name}: {event.get('status')}{paused}, {_ago(event)}")
    processes = evidence.get("processes")
    for each in processes if isinstance(processes, list) else []:
        found.append(f"process {each.get('pid')}: {each.get('life')}, looked at {_ago(each)}")
        record = each.get("record")
        if isinstance(record, dict):
            said = record.get("said") or record.get("status") or "nothing"
            found.append(f"the agent's record of it: {said}, {_ago(record)}")
    if isinstance(file, dict):
        found.append(f"its file ends with {file.get('said') or file.get('mark')}, {_ago(file)}")
    return found or ["none"]


def _ago(part: Row) -> str:
    age = part.get("ageSeconds")
    if not isinstance(age, (int, float)):
        return "at an unknown time"
    if age < 120:
        return f"{age:g} s ago"
    return f"{age / 60:.0f} min ago" if age < 7200 else f"{age / 3600:.0f} h ago"
