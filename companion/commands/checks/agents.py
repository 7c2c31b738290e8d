"""Each integration: is it here, is it installed, will it be loaded, did a report ever arrive?"""

from typing import Dict, List, Mapping, Optional

from adapters.contract import Inspection, InstallContext, Integration
from companion.commands.checks.finding import Finding, ok, unknown, wrong
from companion.commands.checks.server import Health, ago
from companion.core.clock import WallClock, parse_iso

SECTION = "Integrations"


def check(
    integrations: Mapping[str, Integration],
    hooked: Mapping[str, bool],
    context: InstallContext,
    health: Optional[Health],
    last_records: Mapping[str, str],
    now: WallClock,
) -> List[Finding]:
    """One line or more for each integration.

    Args:
        hooked: for those that report to us, whether they do so by hooks (else by a client).
        health: the running companion's account, or None.
        last_records: harness to the time (UTC ISO-8601) of its newest record in the log.
    """
    found: List[Finding] = []
    for name, integration in integrations.items():
        inspection = integration.inspect(context)
        here = name not in hooked or integration.presence(context) is not None
        found += _installation(name, integration.TITLE, inspection, here)
        if name not in hooked:
            continue
        tally = _tally_of(health, "harnesses" if hooked[name] else "clients", name)
        if inspection.state != "absent" or tally or name in last_records:
            tell = _events if hooked[name] else _reports
            seen = tally if health is not None else None
            found += tell(integration.TITLE, seen, last_records.get(name), now)
        found += _own_records(integration.TITLE, _records_of(health, name))
    return found


def _installation(name: str, title: str, found: Inspection, here: bool) -> List[Finding]:
    """``here``: the agent was found on this machine, or it is none."""
    again = f"mdello.pyz install {name}"
    if found.state == "absent":
        text = f"{title}: {'' if here else 'not found on this machine, and '}not installed"
        return [unknown(SECTION, "; ".join((text, *found.notes)), f"Install it: {again}" if here else "")]
    if found.state == "foreign":
        text = f"{title}: {found.place} is not ours ({'; '.join(found.notes)})"
        return [wrong(SECTION, text, f"Move it away, then: {again}")]
    if found.state == "outdated":
        text = f"{title}: installed at {found.place}, but out of date"
        findings = [wrong(SECTION, text, f"Renew it: {again}")]
    else:
        findings = [ok(SECTION, f"{title}: installed at {found.place}")]
    if not here:
        findings.append(unknown(SECTION, f"{title}: not found on this machine"))
    return [*findings, *_loading(title, found)]


def _loading(title: str, found: Inspection) -> List[Finding]:
    if found.loaded is False:
        text = f"{title}: something keeps its events away"
        return [wrong(SECTION, text), *(wrong(SECTION, f"  {note}") for note in found.notes)]
    if found.loaded is None:
        text = f"{title}: whether it is loaded cannot be told from the files"
        return [unknown(SECTION, text), *(unknown(SECTION, f"  {note}") for note in found.notes)]
    text = f"{title}: nothing was found that would keep it from being loaded"
    return [ok(SECTION, text), *(unknown(SECTION, f"  {note}") for note in found.notes)]


def _tally_of(health: Optional[Health], kind: str, name: str) -> Mapping[str, object]:
    tallies = health.get(kind) if health else None
    tally = tallies.get(name) if isinstance(tallies, dict) else None
    return tally if isinstance(tally, dict) else {}


def _records_of(health: Optional[Health], name: str) -> Mapping[str, object]:
    watcher = health.get("watcher") if health else None
    records = watcher.get("records") if isinstance(watcher, dict) else None
    found = records.get(name) if isinstance(records, dict) else None
    return found if isinstance(found, dict) else {}


def _own_records(title: str, seen: Mapping[str, object]) -> List[Finding]:
    """What the agent's own records of its processes tell, and whether its events tell the same."""
    problems = seen.get("problems")
    lines = [f"  {path}: {reason}" for path, reason in problems.items()] if isinstance(problems, dict) else []
    if seen.get("state") == "unreadable" or (lines and not seen.get("records")):
        text = f"{title}: none of its own records of running sessions could be read"
        return [wrong(SECTION, text), *(wrong(SECTION, line) for line in lines)]
    running, silent = seen.get("running"), seen.get("silent")
    found = [unknown(SECTION, line) for line in lines]
    if isinstance(silent, int) and silent > 0:
        text = (
            f"{title}: {silent} of {running} running sessions do things that no event tells;"
            " their statuses and cards come from its own records and files"
        )
        hint = "See above what keeps events away; sessions older than the installation have to begin anew"
        return [*found, unknown(SECTION, text, hint)]
    if isinstance(running, int) and running > 0:
        what = "1 running session is" if running == 1 else f"{running} running sessions are"
        return [*found, ok(SECTION, f"{title}: {what} seen by its own records")]
    return found


def _events(
    title: str, seen: Optional[Mapping[str, object]], last_record: Optional[str], now: WallClock
) -> List[Finding]:
    """How hooks fared. ``seen`` is None when no companion runs."""
    at = parse_iso(str((seen or {}).get("lastEventAt") or ""))
    if seen is None or at is None:
        return [_silence(title, "event", seen is not None, last_record)]
    last = f"last event {ago(now() - at)}: {seen.get('lastEvent')}"
    text = f"{title}: {last} ({seen.get('events')} since the companion started)"
    return [ok(SECTION, text), *_oddities(title, seen)]


def _reports(
    title: str, seen: Optional[Mapping[str, object]], last_record: Optional[str], now: WallClock
) -> List[Finding]:
    """How a client fared. ``seen`` is None when no companion runs."""
    at = parse_iso(str((seen or {}).get("lastReportAt") or ""))
    if seen is None or at is None:
        return [_silence(title, "report", seen is not None, last_record)]
    text = f"{title}: last report {ago(now() - at)} ({seen.get('reports')} since the companion started)"
    strangers = seen.get("unknownCards")
    if not isinstance(strangers, int) or strangers <= 0:
        return [ok(SECTION, text)]
    return [
        ok(SECTION, text),
        unknown(SECTION, f"{title}: {strangers} reports were about no card of a board"),
    ]


def _silence(title: str, what: str, running: bool, last_record: Optional[str]) -> Finding:
    recorded = f"; the newest record in the log is from {last_record}" if last_record else ""
    if not running:
        return unknown(SECTION, f"{title}: {what}s not checked, the companion is not running{recorded}")
    text = (
        f"{title}: no {what} since the companion started"
        if last_record
        else f"{title}: no {what} ever received"
    )
    hint = f"Start {title} anew and say something to it, then look again"
    if what == "report":
        hint = f"Start {title} anew and name a card in a prompt, then look again"
    return unknown(SECTION, text + recorded, hint)


_ODDITIES: Dict[str, str] = {
    "unusable": "events without a session or a name were ignored",
    "failed": "times an event or a session file could not be understood",
    "unreadableCards": "times a card could not be read",
}


def _oddities(title: str, seen: Mapping[str, object]) -> List[Finding]:
    found = []
    unknown_events = seen.get("unknownEvents")
    if isinstance(unknown_events, dict) and unknown_events:
        names = ", ".join(f"{event} ({count})" for event, count in unknown_events.items())
        text = f"{title}: events that this version does not know: {names}"
        found.append(unknown(SECTION, text, "A newer mdello may know them"))
    for key, meaning in _ODDITIES.items():
        count = seen.get(key)
        if isinstance(count, int) and count > 0:
            found.append(unknown(SECTION, f"{title}: {count} {meaning}"))
    return found
