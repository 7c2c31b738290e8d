"""Codex's hook events: the one table, from which the hooks file is made and payloads are read."""

from typing import Tuple

OLDEST_VERSION = "0.124"
"""The first version whose hooks are on without a setting; names that a version lacks it ignores."""

SUBSCRIBED: Tuple[str, ...] = (
    *("SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse"),
    *("SubagentStop", "Stop", "Interrupt", "SessionEnd"),
)
"""Exactly these stand in the hooks file, in this order; each has to be trusted by the user."""

EVENTS: Tuple[str, ...] = (
    *SUBSCRIBED,
    *("SubagentStart", "PreModelRequest", "PostModelRequest", "PreCompact", "PostCompact"),
)
"""Every event name of 0.171. Those that are not subscribed to mean nothing to us."""
