"""``systemctl --user``: asked with a limit, and only for as long as it answers."""

from typing import Dict, Optional

from adapters.contract import InstallContext
from companion.core.errors import ProgramFailed
from companion.core.programs import Programs

# Stopping waits for requests under way; a manager that takes longer than this hangs.
TIMEOUT_S = 20.0
"""For one call, in seconds."""


class UserManager:
    """``systemctl --user``, as long as it answers: after a failure nothing more is asked of it."""

    def __init__(self, context: InstallContext, timeout_s: float = TIMEOUT_S) -> None:
        self._program = context.which("systemctl")
        self._programs = Programs(context.environ)
        self._timeout_s = timeout_s
        self.problem: Optional[str] = None if self._program else "systemctl is not on PATH"
        """Why it does not answer, or what it has refused."""

    def ask(self, *arguments: str) -> str:
        """What it prints; empty once there is a problem."""
        if self.problem is not None or self._program is None:
            return ""
        try:
            return self._programs.run([self._program, "--user", *arguments], self._timeout_s)
        except ProgramFailed as exc:
            self.problem = f"{exc}"
            return ""

    def answers(self) -> bool:
        """Whether there is a user manager at all."""
        self.ask("show", "--property=Version")
        return self.problem is None

    def reset(self, *units: str) -> None:
        """Let it forget earlier failures of these units, after which it would not start them.

        It refuses for a unit that it does not know, and then there is nothing to forget.
        """
        before = self.problem
        self.ask("reset-failed", *units)
        self.problem = before

    def states(self, *units: str) -> Dict[str, str]:
        """``active``, ``failed`` and so on, for each of these units; empty when it does not answer."""
        told = self.ask("show", "--property=Id", "--property=ActiveState", *units)
        found: Dict[str, str] = {}
        for block in told.split("\n\n"):
            values = dict(line.split("=", 1) for line in block.split("\n") if "=" in line)
            if values.get("Id") in units and "ActiveState" in values:
                found[values["Id"]] = values["ActiveState"]
        return found
