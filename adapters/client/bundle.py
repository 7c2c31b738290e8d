"""Makes a client that stands alone: what all clients share is put in the place of its import.

An agent loads one file from wherever it lies, so that file must need no other. In a checkout the
clients import ``companion.js``, for tests and readers; the archive holds them ready made, and
without that file. The build runs this module by itself, hence it imports nothing of ours.
"""

import os
import re
from typing import Any, cast

SHARED = "companion.js"

_IMPORT = re.compile(r'^import \{[^}]*\} from "\.\./client/companion\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:default )?(?:async )?(?:function|class|const|let)\b)", re.MULTILINE)


def client_source(agent: str) -> bytes:
    """The self-contained client of an agent (its package's name), from the archive or a checkout.

    OSError when that agent has no client.
    """
    folder = os.path.dirname(os.path.abspath(__file__))
    client = _data(os.path.join(os.path.dirname(folder), agent, "client.js"))
    if not _IMPORT.search(client):
        return client.encode("utf-8")
    return bundled(client, _data(os.path.join(folder, SHARED))).encode("utf-8")


def bundled(client: str, shared: str) -> str:
    """The client's text with the shared text in place of its import; one without it stays as it is.

    Nothing of the shared part is exported: of a plugin, some agents call whatever is.
    """
    return _IMPORT.sub(lambda found: _EXPORT.sub("", shared), client, count=1)


def _data(path: str) -> str:
    """A file beside our modules, asked of the loader that found them: they may be in an archive."""
    data = cast(Any, __spec__.loader).get_data(path)
    return bytes(data).decode("utf-8")
