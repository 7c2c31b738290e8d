"""Where no service manager is: lines for a shell profile, which a person has to add."""

import shlex
from typing import List

from companion.service.plan import Plan

FILE = "~/.profile"
"""What a login shell reads, whichever of the Bourne family it is."""


def lines(plan: Plan) -> List[str]:
    """POSIX shell: starts the companion in the background at login, once.

    A second one finds the port taken and leaves. ``nohup`` keeps it alive when the terminal closes;
    the subshell keeps job control out of it.
    """
    environment = [f"{name}={shlex.quote(value)}" for name, value in plan.environment if name != "HOME"]
    command = [shlex.quote(word) for word in (plan.interpreter, plan.program)]
    words = ["env", *environment, "nohup", *command, "serve", "--log-files"]
    return [
        "# The mdello companion: which agent session works on which card.",
        f"( {' '.join(words)} </dev/null >/dev/null 2>&1 & )",
    ]
