"""Pi: the client that runs inside it, and session files."""

from typing import Tuple

from adapters import defaults
from adapters.pi.history import read_session as read_session
from adapters.pi.history import read_sessions as read_sessions
from adapters.pi.history import session_files as session_files
from adapters.pi.history import sessions_root as sessions_root
from adapters.pi.install import inspect as inspect
from adapters.pi.install import install as install
from adapters.pi.install import presence as presence
from adapters.pi.install import uninstall as uninstall
from adapters.pi.tail import read_tail as read_tail
from adapters.pi.tail import session_file as session_file

NAME = "pi"
"""The harness name."""
TITLE = "Pi"
"""For people."""
ENVIRONMENT: Tuple[Tuple[str, str], ...] = (
    ("PI_CODING_AGENT_DIR", "Pi's folder (~/.pi/agent)"),
    ("PI_CODING_AGENT_SESSION_DIR", "where Pi keeps its sessions (sessions in Pi's folder)"),
    ("PI_SESSIONS_DIR", "pi sessions read by backfill (where Pi keeps them)"),
)
"""Variables that this adapter reads."""
records_root = defaults.no_records_root
folders_of = defaults.no_folders
read_record = defaults.no_read_record
KNOWN_BY_FILE = True
"""herdr is told the session's file by Pi's own integration."""

# It posts to /associations by itself: there are no hooks.
EVENTS = defaults.no_events
session_of = defaults.no_session_of
translate = defaults.no_translate
