"""The GitHub assignment job, where one is set up: can it run, when, and how did it go?"""

from typing import List, Mapping, Optional

from companion.commands.assign import read_job
from companion.commands.checks.finding import Finding, ok, unknown, wrong
from companion.commands.checks.server import Health, ago
from companion.commands.wiring import Boards
from companion.core.clock import WallClock, parse_iso
from companion.core.errors import CompanionError

SECTION = "GitHub assignment"


def check(boards: Boards, gh: Optional[str], health: Optional[Health], now: WallClock) -> List[Finding]:
    """Nothing when there is no such setting.

    Args:
        gh: path of the program, or None.
        health: the running companion's account, or None.
    """
    try:
        setting = read_job(boards)
    except CompanionError as exc:
        hint = f"Mend it in {boards.config.path}; it is read again within seconds"
        return [wrong(SECTION, f"Off: {exc}", hint)]
    if setting is None:
        return []
    owners = ", ".join(setting.organizations) or "all owners"
    found = [ok(SECTION, f'Set up: "{setting.expression}", {owners}, cards in {setting.folder}')]
    if gh is None:
        text = "gh, GitHub's command line, is not on PATH"
        found.append(wrong(SECTION, text, "Install it, or name it with GH_PATH; then: gh auth login"))
    else:
        found.append(ok(SECTION, f"gh: {gh}"))
    facts = health.get("assignment") if health else None
    if not isinstance(facts, dict) or facts.get("enabled") is not True:
        text = "It runs only while the companion does"
        return [*found, unknown(SECTION, text, "Try it once now: mdello.pyz assign --dry-run")]
    return [*found, _last(facts, now), ok(SECTION, f"Next run: {facts.get('nextRun')}")]


def _last(facts: Mapping[str, object], now: WallClock) -> Finding:
    last = facts.get("lastRun")
    if not isinstance(last, dict):
        text = "No run since the companion started"
        return unknown(SECTION, text, "Try it once now: mdello.pyz assign --dry-run")
    at = parse_iso(str(last.get("at") or ""))
    when = f"Last run {ago(now() - at) if at is not None else 'at an unknown time'}"
    if last.get("failure"):
        return wrong(SECTION, f"{when} failed: {last.get('failure')}")
    more = "; GitHub may have more than it tells" if last.get("more") is True else ""
    return ok(SECTION, f"{when}: {last.get('created')} cards made, {last.get('skipped')} already there{more}")
