"""Where log lines go: to stderr, never to stdout, and only as much as was asked for.

``DEBUG=1`` (exactly) shows every event as ``[mdello-companion] <message> <json details>``; that
form is the contract's. Otherwise warnings and errors appear as plain lines.
"""

import json
import logging
import sys
from typing import Callable, Mapping, Union

PREFIX = "[mdello-companion]"

_details = logging.getLogger("mdello.events")

Details = Union[Mapping[str, object], Callable[[], Mapping[str, object]]]
"""What a debug line tells; a function is called only when the line is wanted."""


class _PlainFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = f"{PREFIX} {record.getMessage()}"
        if record.exc_info:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        return text


def configure(debug: bool) -> None:
    """Send the program's log to stderr. A second call replaces the first."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_PlainFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    _details.setLevel(logging.DEBUG if debug else logging.INFO)


def debug_event(message: str, details: Details) -> None:
    """One line of the contract's debug log. Prompts and file contents must not be in ``details``."""
    if _details.isEnabledFor(logging.DEBUG):
        told = details() if callable(details) else details
        text = json.dumps(told, ensure_ascii=False, separators=(",", ":"), default=str)
        _details.debug("%s %s", message, text)
