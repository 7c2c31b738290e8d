"""Whether an installed service is the one that this program would install now."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import List, Sequence, Tuple

from adapters.contract import InstallContext
from companion.service import plan as plans
from companion.service.plan import Plan


@dataclass(frozen=True)
class Verdict:
    """What was found out about an installed service."""

    wrong: Tuple[str, ...]
    """What is gone or another one, one line each."""
    plan: Plan
    """What this version would write, with the interpreter and the tools that were chosen then."""


def judge(context: InstallContext, command: Sequence[str], environment: Sequence[Tuple[str, str]]) -> Verdict:
    """Judge an installed command (interpreter, program) and environment. Never raises but AdapterError."""
    interpreter, program = [*command, "", ""][:2]
    wrong = _of_file("interpreter", interpreter, context.interpreter)
    wrong += _of_file("program", program, str(context.program))
    names = {plans.variable(tool) for tool in plans.TOOLS}
    tools = [(name, path) for name, path in environment if name in names]
    wrong += [f"{name} is {path}, which is gone" for name, path in tools if not plans.is_program(path)]
    same = replace(context, program=Path(program)) if not wrong else context
    return Verdict(tuple(wrong), plans.assembled(same, interpreter, tools))


def told(plan: Plan) -> List[str]:
    """For people: what the service runs, and which tools it knows."""
    names = {plans.variable(tool) for tool in plans.TOOLS}
    tools = [f"{name}={value}" for name, value in plan.environment if name in names]
    return [
        f"Runs {plan.program} with {plan.interpreter} on port {plan.port}",
        f"Tools: {', '.join(tools)}" if tools else "Tools: none of gh, jira, herdr and tmux was found",
    ]


def _of_file(what: str, path: str, ours: str) -> List[str]:
    if not os.path.isfile(path):
        return [f"its {what} {path} is gone" if path else f"it names no {what}"]
    try:
        same = os.path.samefile(path, ours)
    except OSError:
        same = True  # Ours cannot be looked at: no reason to complain about theirs.
    return [] if same or path == ours else [f"its {what} is {path}, this is {ours}"]
