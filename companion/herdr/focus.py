"""Brings the terminal of a session to the front."""

from typing import Mapping, Optional

from adapters.contract import Adapter
from companion.core.clock import Deadline
from companion.core.errors import Conflict, NotFound, ProgramFailed
from companion.core.programs import Programs
from companion.herdr.answers import Entry, entries, session_of, session_value

# For all three commands. A person has clicked and waits.
FOCUS_S = 10.0


def focus(
    programs: Programs,
    adapters: Mapping[str, Adapter],
    harness: str,
    session_id: str,
    session_file: Optional[str],
    timeout_s: float = FOCUS_S,
) -> None:
    """Focus the first agent that runs this session in a pane, then its tab.

    Raises:
        Conflict: ``herdr_not_configured``; nothing was run.
        NotFound: ``session_not_found``.
        ProgramFailed: herdr failed, took too long, or answered with what cannot be used.
    """
    program = programs.path("herdr")
    if program is None:
        raise Conflict("herdr_not_configured")
    wanted = session_value(adapters, harness, session_id, session_file)
    deadline = Deadline(timeout_s)
    agents = entries(programs.run([program, "agent", "list"], deadline.left_s()), "agents")
    for agent in agents:
        if wanted and session_of(agent) == wanted and agent.get("pane_id"):
            break
    else:
        raise NotFound("session_not_found")
    # Both before the first is used: half a focus would be worse than none.
    pane, tab = _id(agent, "pane_id"), _id(agent, "tab_id")
    programs.run([program, "agent", "focus", pane], deadline.left_s())
    if tab:
        programs.run([program, "tab", "focus", tab], deadline.left_s())


def _id(agent: Entry, name: str) -> str:
    """An id that is safe as an argument; empty when there is none."""
    value = agent.get(name) or ""
    if not isinstance(value, str) or value.startswith("-"):
        raise ProgramFailed(f"herdr's {name} cannot be used")
    return value
