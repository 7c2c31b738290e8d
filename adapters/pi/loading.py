"""What keeps Pi from loading an extension that lies in its folder, as Pi 1.6.0 decides it.

The folder's own manifest or index hides all else in it; ``.gitignore``, ``.ignore`` and ``.fdignore``
in it hide what they match; Pi's settings turn single extensions off, and on again.
"""

import fnmatch
import json
import os
import re
from pathlib import Path
from typing import Callable, List, Mapping, Tuple

from adapters import placing

EXTENSIONS = "extensions"
"""The folder's name, and the key in manifests and settings."""

_INDEX = ("index.ts", "index.js")
_IGNORING = (".gitignore", ".ignore", ".fdignore")
_MAX_BYTES = 1024 * 1024
# In characters; a longer pattern means no file of ours.
_MAX_LINE = 4096


def obstacles(extension: Path, home: Path) -> Tuple[str, ...]:
    """Why Pi does not load this file of its folder, one line each, naming the file that says so.

    Never raises: what cannot be understood is nobody's obstacle, Pi will say so itself.
    """
    folder = extension.parent
    settings = folder.parent / "settings.json"
    excluded_by = _exclusion(_object(settings).get(EXTENSIONS), extension, home)
    found = [_hidden(folder, extension), _ignored(folder, extension.name)]
    if excluded_by:
        found.append(f'{settings}: "{EXTENSIONS}" has {json.dumps(excluded_by)}, which turns it off')
    return tuple(each for each in found if each)


def _hidden(folder: Path, extension: Path) -> str:
    """A manifest counts when it names something that exists; before an index."""
    manifest = _object(folder / "package.json").get("pi")
    listed = manifest.get(EXTENSIONS) if isinstance(manifest, dict) else None
    names = listed if isinstance(listed, list) and all(isinstance(each, str) for each in listed) else []
    there = [path for path in (os.path.normpath(folder / name) for name in names) if os.path.exists(path)]
    if str(extension) in there:
        return ""
    if there:
        return f"{folder / 'package.json'} lists what Pi loads from the folder, and nothing else is"
    index = next((folder / name for name in _INDEX if os.path.exists(folder / name)), None)
    return f"{index} is there, so Pi loads that and nothing else of the folder" if index else ""


def _ignored(folder: Path, name: str) -> str:
    """The last pattern that matches decides, over all files together."""
    verdict = ""
    for file in _IGNORING:
        for line in re.split(r"\r?\n", _text(folder / file).lstrip("\ufeff")):
            if not line.strip() or line.lstrip().startswith("#") or len(line) > _MAX_LINE:
                continue
            negated = line.startswith(("!", "\\!"))  # Pi loses that backslash.
            if _matches(line.lstrip("\\")[1:] if negated else line, name):
                told = f"{folder / file} has {json.dumps(line, ensure_ascii=False)}, so Pi leaves it out"
                verdict = "" if negated else told
    return verdict


def _matches(pattern: str, name: str) -> bool:
    """Whether a line of ``.gitignore`` (without its ``!``) means the file ``name`` beside it."""
    glob = re.sub(r"(?<!\\) +$", "", pattern[1:] if pattern.startswith("/") else pattern)
    glob = re.sub(r"^(\*\*/)+", "", glob)
    if "/" in glob:  # A folder, or something in one.
        return False
    # fnmatch knows no backslash and no [^...].
    glob = re.sub(r"(\[[^]]+\])|\\(.)", lambda m: (m[1] or f"[{m[2]}]").replace("\\", ""), glob)
    return fnmatch.fnmatchcase(name, glob.replace("[^", "[!").lower())


def _exclusion(entries: object, path: Path, home: Path) -> str:
    """The entry of Pi's settings that turns an extension off, or an empty string.

    ``!pattern`` excludes, ``+path`` includes all the same, ``-path`` excludes after all.
    """
    told: List[str] = [each for each in entries if isinstance(each, str)] if isinstance(entries, list) else []
    told = [each for each in told if len(each) <= _MAX_LINE]
    exact = (f"{EXTENSIONS}/{path.name}", str(path))

    def first(sign: str, means: Callable[[str], bool]) -> str:
        bodies = ((each, each[1:]) for each in told if each.startswith(sign))
        return next((each for each, body in bodies if means(_at_home(body, home))), "")

    def is_named(body: str) -> bool:
        return (body[2:] if body.startswith("./") else body) in exact

    def is_matched(body: str) -> bool:
        parts = re.sub(r"(\*\*/)+", "**/", body).split("/")
        return any(_covers(parts, name.split("/")) for name in (*exact, path.name))

    return first("-", is_named) or ("" if first("+", is_named) else first("!", is_matched))


def _at_home(path: str, home: Path) -> str:
    return f"{home}{path[1:]}" if path == "~" or path.startswith("~/") else path


def _covers(pattern: List[str], parts: List[str]) -> bool:
    """Whether a glob means a path, part by part; ``**`` is any number of them."""
    if not pattern or not parts:
        return pattern == parts or pattern == ["**"]
    if pattern[0] == "**" and (_covers(pattern[1:], parts) or _covers(pattern, parts[1:])):
        return True
    return fnmatch.fnmatchcase(parts[0], pattern[0]) and _covers(pattern[1:], parts[1:])


def _object(path: Path) -> Mapping[str, object]:
    try:
        content = json.loads(_text(path).lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _text(path: Path) -> str:
    data = placing.read_small(Path(os.path.realpath(path)), _MAX_BYTES)
    return data.decode("utf-8", errors="replace")
