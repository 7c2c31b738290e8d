"""What herdr answers, and how it knows a session.

Its JSON is foreign: an entry that does not fit is left out, an answer without its list is a failure.
"""

from itertools import islice
from typing import Dict, Iterable, List, Mapping, Optional, Tuple

from adapters.contract import Adapter
from companion.core import foreign_json
from companion.core.errors import ProgramFailed

Entry = Mapping[str, object]
"""One agent, tab or workspace as herdr tells it; nothing in it is to be believed."""

Table = Mapping[str, Tuple[str, str]]
"""What herdr calls a session, to (label of its workspace, label of its tab); both are never empty."""

# Far more than anybody runs; a program that babbles must not fill our memory.
MOST_SESSIONS = 10_000
# A label is a short name for people. It goes into every frame, so a novel is cut.
LABEL_CHARACTERS = 200


def session_value(
    adapters: Mapping[str, Adapter], harness: str, session_id: str, session_file: Optional[str]
) -> Optional[str]:
    """What herdr calls a session: its file or its id, as the agent's adapter says; else its id.

    None when that is not known.
    """
    adapter = adapters.get(harness)
    by_file = adapter is not None and adapter.KNOWN_BY_FILE
    return (session_file if by_file else session_id) or None


def entries(text: str, kind: str) -> List[Entry]:
    """The objects of ``result.<kind>``, in order. ProgramFailed when there is no such list."""
    try:
        answer = foreign_json.loads(text)
    except ValueError as exc:
        raise ProgramFailed("herdr answered with something else than JSON") from exc
    result = answer.get("result") if isinstance(answer, dict) else None
    found = result.get(kind) if isinstance(result, dict) else None
    if not isinstance(found, list):
        raise ProgramFailed(f"herdr's answer holds no {kind}")
    return [each for each in found if isinstance(each, dict)]


def session_of(agent: Entry) -> str:
    """What herdr calls the session of an agent; empty when it knows none."""
    session = agent.get("agent_session")
    return _text(session, "value") if isinstance(session, dict) else ""


def label_table(agents: Iterable[Entry], tabs: Iterable[Entry], workspaces: Iterable[Entry]) -> Table:
    """The labels of all sessions that have both. Of two agents with one session the first counts."""
    of_tab = _labels(tabs, "tab_id")
    of_workspace = _labels(workspaces, "workspace_id")
    table: Dict[str, Tuple[str, str]] = {}
    for agent in islice(agents, MOST_SESSIONS):
        session = session_of(agent)
        workspace = of_workspace.get(_text(agent, "workspace_id"))
        tab = of_tab.get(_text(agent, "tab_id"))
        if session and workspace and tab:
            table.setdefault(session, (workspace, tab))
    return table


def _labels(found: Iterable[Entry], key: str) -> Dict[str, str]:
    return {_text(each, key): _text(each, "label")[:LABEL_CHARACTERS] for each in found if _text(each, key)}


def _text(entry: Entry, name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""
