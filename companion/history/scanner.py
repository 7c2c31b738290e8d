"""Asks an agent for its past sessions, and tells it which folders are interesting."""

import os
import re
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Dict, Iterable, List, Tuple

from adapters.contract import Adapter, PastSession, ReadReport

WINDOW_S = 30 * 24 * 60 * 60
"""Sessions that were last written to longer ago than this are left alone, in seconds."""

# A folder's name is searched for by a run of characters that every JSON writer spells as they
# are; a shorter run would be found everywhere.
_MIN_RUN_CHARS = 3
# Not in it: what JSON escapes, what writers of JSON for web pages escape, what ends a string.
_RUN = re.compile(r"""[^\x00-\x1f\x7f-\U0010ffff"\\/<>&'+=]+""")
_SPELLED = re.compile(r"""[^\x00-\x1f\x7f"\\/<>&'+=]+""")

# What stands in front of a name within a path: a slash in one of its spellings, or the quote
# that opens a relative path.
_FRONTS = (b"/", b"\\u002f", b"\\u002F", b'"')


@dataclass(frozen=True)
class Progress:
    """How far a scan is."""

    files: int
    """Session files read."""
    files_total: int
    size_bytes: int
    """Their bytes."""
    size_total_bytes: int
    sessions: int = 0
    """Sessions found; a database is one file with many."""


@dataclass
class Scan:
    """Past sessions of one agent, in the order of its files, and what was not understood."""

    sessions: List[PastSession] = field(default_factory=list)
    report: ReadReport = field(default_factory=ReadReport)


def scan(
    adapter: Adapter,
    root: Path,
    needles: Tuple[bytes, ...],
    now_s: float,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Scan:
    """Every session below ``root`` that was written to within :data:`WINDOW_S` before ``now_s``.

    Never raises for foreign files; what could not be read stands in the report.
    """
    result = Scan()
    report, sessions, since_s = result.report, result.sessions, now_s - WINDOW_S
    files = list(adapter.session_files(root, since_s, report))
    sizes = [_size(path) for path in files]
    done, total = 0, sum(sizes)
    on_progress(Progress(0, len(files), 0, total))
    for number, (path, size) in enumerate(zip(files, sizes), 1):
        report.share = 0.0
        for session in adapter.read_sessions(path, needles, since_s, report):
            if session.session_file is not None:
                sessions.append(session)
            if report.share:
                part = int(size * min(report.share, 1.0))
                on_progress(Progress(number - 1, len(files), done + part, total, len(sessions)))
        done += size
        on_progress(Progress(number, len(files), done, total, len(sessions)))
    return result


def needles_for(folders: Iterable[str]) -> Tuple[bytes, ...]:
    """Byte strings of which every line that leads to a card in one of the folders holds one.

    Only a folder's own name is looked for, not its whole path: the name is there however the path
    was written (``a//b``, ``a/x/../b``, relative to the folder of an entry, in either Unicode normal
    form, with escapes). A link is looked for under its real name too. Empty, which means that
    everything is interesting, when a name cannot be searched for; also without folders.
    """
    needles: Dict[bytes, None] = {}
    for name in _names(folders):
        spellings = _spellings(name)
        if not spellings:
            return ()
        needles.update(dict.fromkeys(spellings))
    return tuple(needles)


def _names(folders: Iterable[str]) -> List[str]:
    names: Dict[str, None] = {}
    for folder in folders:
        for path in (folder, os.path.realpath(folder)):
            names[os.path.basename(os.path.normpath(path))] = None
    return list(names)


def _spellings(name: str) -> List[bytes]:
    composed = unicodedata.normalize("NFC", name)
    run = max(_RUN.findall(composed), key=len, default="")
    if len(run) >= _MIN_RUN_CHARS:
        at_start = composed.startswith(run)
        return [front + run.encode("ascii") for front in (_FRONTS if at_start else (b"",))]
    if composed.isascii():
        return [] if len(run) < len(composed) or not run else _short(run.encode("ascii"))
    return _escaped_too(name)


def _short(name: bytes) -> List[bytes]:
    """A name so short that it is only worth looking for as a whole component of a path."""
    return [front + name + back for back in (b"/", b"\\", b'"') for front in _FRONTS]


def _escaped_too(name: str) -> List[bytes]:
    """A name that is not ASCII: both normal forms and its own, as UTF-8 and as JSON escapes."""
    found: Dict[bytes, None] = {}
    for form in (name, unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name)):
        part = max(_SPELLED.findall(form), key=len, default="")
        raw = part.encode("utf-8", errors="surrogatepass")
        lower = "".join(_escape(character) for character in part).encode("ascii")
        upper = re.sub(rb"\\u(.{4})", lambda found: b"\\u" + found[1].upper(), lower)
        found.update(dict.fromkeys((raw, lower, upper)))
    return [] if b"" in found else list(found)


def _escape(character: str) -> str:
    if character.isascii():
        return character
    units = character.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
