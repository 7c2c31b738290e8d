"""Codex: hooks, rollouts (its session files), and the hooks file that makes it report to us."""

from typing import Tuple

from adapters import defaults
from adapters.codex.events import EVENTS as EVENTS
from adapters.codex.history import read_session as read_session
from adapters.codex.history import read_sessions as read_sessions
from adapters.codex.history import session_file as session_file
from adapters.codex.history import session_files as session_files
from adapters.codex.history import sessions_root as sessions_root
from adapters.codex.hooks import session_of as session_of
from adapters.codex.hooks import translate as translate
from adapters.codex.install import inspect as inspect
from adapters.codex.install import install as install
from adapters.codex.install import presence as presence
from adapters.codex.install import uninstall as uninstall
from adapters.codex.tail import read_tail as read_tail

NAME = "codex"
"""The harness name."""
TITLE = "Codex"
"""For people."""
ENVIRONMENT: Tuple[Tuple[str, str], ...] = (("CODEX_HOME", "Codex's folder (~/.codex)"),)
"""Variables that this adapter reads."""
records_root = defaults.no_records_root
folders_of = defaults.no_folders
read_record = defaults.no_read_record
KNOWN_BY_FILE = defaults.known_by_id
