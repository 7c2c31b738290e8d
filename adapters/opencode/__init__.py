"""OpenCode: the client that runs inside it, and its session database."""

from typing import Tuple

from adapters import defaults
from adapters.opencode.install import inspect as inspect
from adapters.opencode.install import install as install
from adapters.opencode.install import presence as presence
from adapters.opencode.install import uninstall as uninstall

NAME = "opencode"
"""The harness name."""
TITLE = "OpenCode"
"""For people."""
ENVIRONMENT: Tuple[Tuple[str, str], ...] = (
    ("OPENCODE_SESSIONS_DB", "opencode sessions read by backfill (opencode/opencode.db in XDG_DATA_HOME)"),
)
"""Variables that this adapter reads."""

KNOWN_BY_FILE = defaults.known_by_id
# It posts to /associations by itself: there are no hooks.
EVENTS = defaults.no_events
session_of = defaults.no_session_of
translate = defaults.no_translate

read_session = defaults.no_read_session
read_sessions = defaults.no_read_sessions
session_files = defaults.no_session_files
sessions_root = defaults.no_sessions_root
