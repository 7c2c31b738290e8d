"""The shell line of a command hook: sends its standard input to us, whatever happens in silence.

Agents run it in the middle of their work, so it is short, prints nothing, gives up soon and succeeds
always. It says which process the agent is, so that its end will be seen even when nobody tells of it.
"""

import re
import shlex
from dataclasses import dataclass
from typing import Optional

from adapters.contract import AdapterError, InstallContext

POST_LIMIT_S = 1
"""The line gives up by itself after so many seconds. Agents grant a session's end little more, and one
that is cancelled there prints an error line in spite of ``|| true``."""

PROCESS_HEADER = "Mdello-Process"
"""Of the request: the number of the agent's process."""


@dataclass(frozen=True)
class Poster:
    """What a command hook runs to send its standard input to us."""

    curl: Optional[str]
    """Absolute path, or None: then our own file does it."""
    interpreter: str
    program: str
    """Absolute path of our own file."""


def poster(context: InstallContext, program: str) -> Poster:
    """curl by its absolute path, else our own file at ``program``."""
    # The usual place first, so that the same hooks come out of every shell, whatever its PATH.
    curl = context.which("/usr/bin/curl") or context.which("curl")
    return Poster(curl, context.interpreter, program)


def line(url: str, harness: str, by: Poster) -> str:
    """One shell line that posts to ``url``, which is the harness's own. AdapterError for a path that JSON
    cannot hold.

    Plain words, quotes and ``|| true`` only, which every shell understands. The shell's parent is the agent;
    a shell that does not know ``$PPID`` (fish) says nothing there.
    """
    if by.curl is not None:
        # -q: no ~/.curlrc, which might add a proxy or a Referer. Expect: curl would otherwise
        # announce a body above 1 MB and wait for leave to send it.
        words = [by.curl, "-q", "-s", "--noproxy", "*", "--max-time", str(POST_LIMIT_S), "-X", "POST"]
        words += ["-H", "Content-Type: application/json", "-H", "Expect:", "--data-binary", "@-", url]
        process = f'-H "{PROCESS_HEADER}: $PPID"'
    else:
        # -E -S: no PYTHON* variables and no site-packages; it starts in half the time and cannot
        # import a stranger's module.
        words = [by.interpreter, "-E", "-S", by.program, "hook-post", harness, _port(url)]
        process = '"$PPID"'
    text = " ".join(shlex.quote(word) for word in words) + f" {process} >/dev/null 2>&1 || true"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise AdapterError(
            f"{text.encode('utf-8', 'backslashreplace').decode()!r} is not UTF-8, which JSON cannot hold:"
            " install curl, or choose another path"
        ) from exc
    return text


def _port(url: str) -> str:
    found = re.match(r"http://[^/]*:([0-9]+)/", url)
    return found[1] if found else "80"
