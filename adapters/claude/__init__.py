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
from adapters.claude.records import folders_of as folders_of
from adapters.claude.records import read_record as read_record
from adapters.claude.records import records_root as records_root
from adapters.claude.tail import read_tail as read_tail
from adapters.claude.tail import session_file as session_file
from adapters.claude.transcript import read_session as read_session
from adapters.claude.transcript import read_sessions as read_sessions
from adapters.claude.transcript import session_files as session_files
from adapters.claude.transcript import sessions_root as sessions_root

KNOWN_BY_FILE = defaults.known_by_id
