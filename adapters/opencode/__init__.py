"""OpenCode: the client that runs inside it, and its session database."""

from typing import Tuple

from adapters import defaults
from adapters.opencode.history import read_sessions as read_sessions
from adapters.opencode.history import session_files as session_files
from adapters.opencode.history import sessions_root as sessions_root
from adapters.opencode.install import inspect as inspect
from adapters.opencode.install import install as install
from adapters.opencode.install import presence as presence
from adapters.opencode.install import uninstall as uninstall
from adapters.opencode.tail import read_tail as read_tail
from adapters.opencode.tail import session_file as session_file

NAME = "opencode"
"""The harness name."""
TITLE = "OpenCode"
"""For people."""
ENVIRONMENT: Tuple[Tuple[str, str], ...] = (
    ("OPENCODE_DB", "OpenCode's database (opencode/opencode.db in XDG_DATA_HOME)"),
    ("OPENCODE_SESSIONS_DB", "opencode sessions read by backfill (OpenCode's database)"),
)
"""Variables that this adapter reads."""

records_root = defaults.no_records_root
folders_of = defaults.no_folders
read_record = defaults.no_read_record
KNOWN_BY_FILE = defaults.known_by_id
# It posts to /associations by itself: there are no hooks.
EVENTS = defaults.no_events
session_of = defaults.no_session_of
translate = defaults.no_translate

# A session is found by its id, in a store of many; nothing asks for one by a file of its own.
read_session = defaults.no_read_session
