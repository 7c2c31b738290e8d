"""Files of the first companions, in ``~/.mdello``, move to where XDG has them.

Only installing the service does this. A file moves when its new place is free; otherwise it stays
where it is, and is named. The new file is complete before the old one goes, so a crash in between
leaves both, never none.
"""

import contextlib
import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import List, Tuple

from companion.core.files import Replacement, ensure_private_dir, sync_dir
from companion.core.settings import Settings
from companion.service import logfiles

_PIECE_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Moved:
    """What became of the files; both empty when there was nothing to move."""

    done: Tuple[str, ...] = ()
    """What was moved, one line each."""
    left: Tuple[str, ...] = ()
    """What is still there, with the reason."""


def legacy_folder(settings: Settings) -> Path:
    """Where the first companions kept everything."""
    return settings.home / ".mdello"


def pending(settings: Settings) -> bool:
    """Whether there is anything to move."""
    return any(os.path.lexists(source) for source, _ in _moves(settings))


def migrate(settings: Settings) -> Moved:
    """Move what can be moved, and remove the folder when it is empty then. Never raises OSError.

    The companion must not be running: it would not see the files.
    """
    done: List[str] = []
    left: List[str] = []
    for source, target in _moves(settings):
        if not os.path.lexists(source):
            continue
        try:
            _move(source, target)
            done.append(f"Moved {source} to {target}")
        except FileExistsError:
            left.append(f"{source} stays where it is: there is a {target} already")
        except OSError as exc:
            left.append(f"{source} cannot be moved to {target}: {exc.strerror or exc}")
    if done or not left:
        with contextlib.suppress(OSError):  # Not there, not empty, or a link.
            os.rmdir(legacy_folder(settings))
    return Moved(tuple(done), tuple(left))


def _moves(settings: Settings) -> List[Tuple[Path, Path]]:
    state = settings.state_dir
    targets = (
        settings.config_path,
        settings.data_path,
        state / logfiles.OUTPUT,
        state / logfiles.ERRORS,
    )
    names = ("companion.json", "companion.jsonl", logfiles.OUTPUT, logfiles.ERRORS)
    return [(legacy_folder(settings) / name, target) for name, target in zip(names, targets)]


def _move(source: Path, target: Path) -> None:
    """OSError as it comes, FileExistsError when the target is taken; the source is untouched then."""
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    if not source.is_file():
        raise OSError(errno.EINVAL, "it is not a plain file", str(source))
    ensure_private_dir(target.parent)
    with source.open("rb") as old, Replacement(target) as new:
        for piece in iter(lambda: old.read(_PIECE_BYTES), b""):
            new.write(piece)
        new.sync()
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        new.take_place()
    sync_dir(target.parent)
    os.unlink(source)
