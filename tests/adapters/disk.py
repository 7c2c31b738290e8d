"""What tests of installers need: trees to compare, deaths in the middle, and many at once."""

import os
import signal
from pathlib import Path
from typing import Callable, Dict, List, Tuple

from adapters.contract import AdapterError
from tests.another_user import as_nobody

Tree = Dict[str, Tuple[str, int, bytes, int]]

_CALLS = ("mkdir", "open", "symlink", "fsync", "rename", "replace", "unlink", "rmdir")


def tree_of(root: Path) -> Tree:
    """Everything below ``root``: kind, permissions, content and time of change of each path.

    A folder's time is left out: it tells that there was something in between.
    """
    found: Tree = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = ("link", 0, os.fsencode(os.readlink(path)), status.st_mtime_ns)
        elif path.is_dir():
            found[name] = ("folder", status.st_mode, b"", 0)
        elif path.is_file():
            found[name] = ("file", status.st_mode, path.read_bytes(), status.st_mtime_ns)
        else:
            found[name] = ("special", status.st_mode, b"", status.st_mtime_ns)
    return found


def times_of(root: Path) -> Dict[str, Tuple[int, int]]:
    """Inode and modification time of everything below ``root``."""
    return {str(path): (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in root.rglob("*")}


def die_at(count: int, act: Callable[[], object]) -> bool:
    """Run ``act`` in a child that is killed before its ``count``-th change. True when it got through."""
    child = os.fork()
    if child == 0:
        left = count

        def dying(call: Callable[..., object]) -> Callable[..., object]:
            def wrapper(*arguments: object, **keywords: object) -> object:
                nonlocal left
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(*arguments, **keywords)

            return wrapper

        for name in _CALLS:
            setattr(os, name, dying(getattr(os, name)))
        try:
            act()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFEXITED(status)


def in_parallel(acts: List[Callable[[], object]]) -> List[int]:
    """Run each in a child of its own, all at once; their exit codes (1: a telling error, 2: a bug)."""
    children = []
    for act in acts:
        child = os.fork()
        if child == 0:
            code = 2
            try:
                act()
                code = 0
            except AdapterError:
                code = 1
            finally:
                os._exit(code)
        children.append(child)
    return [os.WEXITSTATUS(os.waitpid(child, 0)[1]) for child in children]


def refusal_to_nobody(act: Callable[[], object]) -> str:
    """Run ``act`` in a child without root's rights; the words of its AdapterError, or nothing."""

    def words() -> str:
        try:
            act()
        except AdapterError as exc:
            return str(exc)
        return ""

    return str(as_nobody(words))
