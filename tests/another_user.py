"""What a test about permissions needs: another user's rights, for a call in a child process."""

import json
import os
from pathlib import Path
from typing import Any, Callable, NoReturn

import pytest

NOBODY = 65534
"""A user that owns nothing here."""

as_root_only = pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")


def open_to_all(path: Path) -> None:
    """Let every user reach a folder of pytest's."""
    for parent in [path, *path.parents]:
        if parent.stat().st_uid == os.getuid() and parent not in (Path("/"), Path("/tmp")):
            parent.chmod(parent.stat().st_mode | 0o055)


def as_nobody(work: Callable[[], object]) -> Any:
    """The value, as JSON carries it, of a function that a child without root's rights called."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        _in_child(work, into)
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    result = json.loads(said)
    assert "error" not in result, result
    return result["value"]


def _in_child(work: Callable[[], object], into: int) -> NoReturn:
    try:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        said = json.dumps({"value": work()})
    except BaseException as exc:  # Nothing may run on in a copy of the test run.
        said = json.dumps({"error": repr(exc)})
    with os.fdopen(into, "wb") as pipe:
        pipe.write(said.encode())
    os._exit(0)
