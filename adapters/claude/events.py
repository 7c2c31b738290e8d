"""Claude Code's hook events: the one table.

The installer generates the plugin's hooks from it and :mod:`adapters.claude.hooks` reads what they
bring. An event is either *lifecycle*, then it has a transport and we subscribe to it, or
*metadata*, then it is known, never subscribed to, and ignored should it arrive.

Up to some version after 2.1.220 one unknown event name made a hooks file fail as a whole. So nothing
is subscribed to that :data:`OLDEST_VERSION` does not know.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Optional, Tuple

OLDEST_VERSION = "2.1.197"
"""The oldest version that is supported; npm picks it on Node 20."""


class Transport(str, Enum):
    """How a subscribed event travels; the values are the hook types of Claude Code."""

    HTTP = "http"
    """A POST by Claude Code itself, without a process."""
    COMMAND = "command"
    """A process that posts: SessionStart never sends http hooks, and a failed http hook at
    SessionEnd prints a line at exit."""


@dataclass(frozen=True)
class EventPolicy:
    """What we do with one event."""

    name: str
    transport: Optional[Transport] = None
    """None: metadata, not subscribed to."""
    matcher: Optional[str] = None
    """Which of them; None: all."""
    since: str = OLDEST_VERSION
    """The oldest of the measured versions (2.1.197, 2.1.220, 2.1.332) that knows the event."""


NOTIFICATION_TYPES = (
    "permission_prompt",
    "agent_needs_input",
    "elicitation_dialog",
    "elicitation_url_dialog",
    "elicitation_complete",
    "elicitation_response",
    "quota_auto_resume_fired",
    "quota_auto_resume_stale",
    "quota_auto_resume_disabled",
    # Not the contract's: a type that a version does not know simply never matches.
    "worker_permission_prompt",
    "agent_completed",
)
"""The notifications we ask for, in the order of the matcher. ``idle_prompt`` is left out on purpose."""

POLICIES: Tuple[EventPolicy, ...] = (
    EventPolicy("SessionStart", Transport.COMMAND),
    EventPolicy("UserPromptSubmit", Transport.HTTP),
    EventPolicy("Stop", Transport.HTTP),
    EventPolicy("StopFailure", Transport.HTTP),
    EventPolicy("SessionEnd", Transport.COMMAND),
    # All tools, not just AskUserQuestion: a permission has no id but the one of its tool call.
    EventPolicy("PreToolUse", Transport.HTTP),
    EventPolicy("PermissionRequest", Transport.HTTP),
    EventPolicy("PermissionDenied", Transport.HTTP),
    EventPolicy("PostToolUse", Transport.HTTP),
    EventPolicy("PostToolUseFailure", Transport.HTTP),
    # The only trace of a permission that `claude -p` refuses by itself.
    EventPolicy("PostToolBatch", Transport.HTTP),
    # The only end of a background agent that says whose it is.
    EventPolicy("SubagentStop", Transport.HTTP),
    EventPolicy("Elicitation", Transport.HTTP),
    EventPolicy("ElicitationResult", Transport.HTTP),
    EventPolicy("Notification", Transport.HTTP, "|".join(NOTIFICATION_TYPES)),
    EventPolicy("Setup"),
    EventPolicy("UserPromptExpansion"),
    EventPolicy("MessageDisplay"),  # comes per few streamed lines: costly
    EventPolicy("SubagentStart"),
    EventPolicy("TaskCreated"),
    EventPolicy("TaskCompleted"),
    EventPolicy("TeammateIdle"),
    EventPolicy("PreCompact"),  # a successful http hook is announced in the user's terminal
    EventPolicy("PostCompact"),  # likewise
    EventPolicy("PreModelSwitch", since="2.1.332"),
    EventPolicy("PostModelSwitch", since="2.1.332"),
    EventPolicy("InstructionsLoaded"),
    EventPolicy("ConfigChange"),
    EventPolicy("CwdChanged"),
    EventPolicy("DirectoryAdded", since="2.1.220"),
    EventPolicy("FileChanged"),
    EventPolicy("WorktreeCreate"),  # expects a path for an answer
    EventPolicy("WorktreeRemove"),
    EventPolicy("PreSkillShellCommand", since="2.1.332"),
)
"""Every event of the current version, each exactly once; the lifecycle ones in hooks-file order."""

SUBSCRIBED: Tuple[EventPolicy, ...] = tuple(policy for policy in POLICIES if policy.transport)
"""The lifecycle events: exactly these stand in the hooks file, in this order."""

EVENTS: Tuple[str, ...] = tuple(policy.name for policy in POLICIES)
"""Every event name that this adapter knows."""
