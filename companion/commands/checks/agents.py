"""Each agent: is our integration installed, will it be loaded, did an event ever arrive?"""

from typing import Dict, List, Mapping, Optional

from adapters.contract import Adapter, Inspection, InstallContext
from companion.commands.checks.finding import Finding, ok, unknown, wrong
from companion.commands.checks.server import Health, ago
from companion.core.clock import WallClock, parse_iso

SECTION = "Agents"


def check(
    adapters: Mapping[str, Adapter],
    context: InstallContext,
    health: Optional[Health],
    last_records: Mapping[str, str],
    now: WallClock,
) -> List[Finding]:
    """Two lines or more for each agent.

    Args:
        health: the running companion's account, or None.
        last_records: harness to the time (UTC ISO-8601) of its newest record in the log.
    """
    found: List[Finding] = []
    for name, adapter in adapters.items():
        inspection = adapter.inspect(context)
        found += _installation(name, adapter, inspection)
        if inspection.state != "absent" or _events_of(health, name) or name in last_records:
            found += _events(name, adapter, health, last_records.get(name), now)
    return found


def _installation(name: str, adapter: Adapter, found: Inspection) -> List[Finding]:
    again = f"mdello.pyz install {name}"
    title = adapter.TITLE
    if found.state == "absent":
        notes = "".join(f"; {note}" for note in found.notes)
        return [unknown(SECTION, f"{title}: not installed{notes}", f"Connect it: {again}")]
    if found.state == "foreign":
        text = f"{title}: {found.place} is not ours ({'; '.join(found.notes)})"
        return [wrong(SECTION, text, f"Move it away, then: {again}")]
    if found.state == "outdated":
        findings = [
            wrong(SECTION, f"{title}: installed at {found.place}, but out of date", f"Renew it: {again}")
        ]
    else:
        findings = [ok(SECTION, f"{title}: installed at {found.place}")]
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


def _events_of(health: Optional[Health], name: str) -> Mapping[str, object]:
    harnesses = health.get("harnesses") if health else None
    events = harnesses.get(name) if isinstance(harnesses, dict) else None
    return events if isinstance(events, dict) else {}


def _events(
    name: str, adapter: Adapter, health: Optional[Health], last_record: Optional[str], now: WallClock
) -> List[Finding]:
    title = adapter.TITLE
    recorded = f"; the newest record in the log is from {last_record}" if last_record else ""
    if health is None:
        text = f"{title}: events not checked, the companion is not running{recorded}"
        return [unknown(SECTION, text)]
    seen = _events_of(health, name)
    at = parse_iso(str(seen.get("lastEventAt") or ""))
    if at is None:
        text = (
            f"{title}: no event since the companion started"
            if last_record
            else f"{title}: no event ever received"
        )
        return [
            unknown(SECTION, text + recorded, f"Start {title} anew and say something to it, then look again")
        ]
    count = seen.get("events")
    last = f"last event {ago(now() - at)}: {seen.get('lastEvent')}"
    text = f"{title}: {last} ({count} since the companion started)"
    return [ok(SECTION, text), *_oddities(title, seen)]


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
