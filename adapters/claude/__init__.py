"""Claude Code: hooks, session files, and the plugin that makes it report to us."""

from adapters import defaults
from adapters.claude.events import EVENTS as EVENTS
from adapters.claude.hooks import ENVIRONMENT as ENVIRONMENT
from adapters.claude.hooks import NAME as NAME
from adapters.claude.hooks import TITLE as TITLE
from adapters.claude.hooks import translate as translate
from adapters.claude.install import inspect as inspect
from adapters.claude.install import install as install
from adapters.claude.install import presence as presence
from adapters.claude.install import uninstall as uninstall
from adapters.claude.payload import session_of as session_of
from adapters.claude.transcript import read_session as read_session
from adapters.claude.transcript import read_sessions as read_sessions
from adapters.claude.transcript import session_files as session_files
from adapters.claude.transcript import sessions_root as sessions_root

records_root = defaults.no_records_root
read_record = defaults.no_read_record
session_file = defaults.no_session_file
read_tail = defaults.no_read_tail
KNOWN_BY_FILE = defaults.known_by_id
