"""What readers of foreign files need to be tested with: another user's rights."""

import json
import os
from pathlib import Path
from typing import Any, Callable

import pytest

NOBODY = 65534
"""A user that owns nothing here."""

as_root_only = pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")


def open_to_all(path: Path) -> None:
    """Let every user reach a folder of pytest's."""
    for parent in [path, *path.parents]:
        if parent.stat().st_uid == os.getuid() and parent not in (Path("/"), Path("/tmp")):
            parent.chmod(parent.stat().st_mode | 0o055)


def as_nobody(act: Callable[[], Any]) -> Any:
    """The value, as JSON carries it, of a function that a child without root's rights called."""
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            with os.fdopen(sending, "w") as answer:
                json.dump(act(), answer)
        finally:
            os._exit(0)
    os.close(sending)
    with os.fdopen(receiving) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return json.loads(said)
