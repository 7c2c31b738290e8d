"""Files and links of ours among those of a service manager: put in place together, taken away together."""

import contextlib
import os
from pathlib import Path
from typing import Dict, List, Mapping, Sequence, Tuple, Union

from adapters import made_folders, placing
from adapters.contract import InstallContext

# Units and plists have some 2 kB. A larger file is none of ours.
MOST_BYTES = 256 * 1024


def put(
    context: InstallContext,
    files: Mapping[Path, bytes],
    links: Mapping[Path, str],
    folders: Sequence[Path] = (),
) -> List[Path]:
    """Write what is not as it should be, in this order; the paths that changed. OSError as it comes.

    The caller has made sure that what stands there is ours. When a step fails, what was new is gone
    again; what was replaced has its new content. ``folders`` are made too, for the manager's use.
    """
    new: List[Path] = []
    changed: List[Path] = []
    with made_folders.opened(context.home, _record(context)) as made:
        try:
            for folder in (Path(os.path.realpath(each)) for each in folders):
                new += [] if folder.is_dir() else [folder]
                made.hold_folder(folder)
            everything: Dict[Path, Union[bytes, str]] = {**files, **links}
            for path, wanted in everything.items():
                place = placing.real_place(path)
                placing.sweep(place.parent)
                if _is(place, wanted):
                    continue
                absent = placing.kind_of(place) == "absent"
                made.hold(place)
                new += [place] if absent else []
                _put(place, wanted, replacing=not absent)
                changed.append(path)
        except BaseException:
            for place in new:
                with contextlib.suppress(OSError):  # A folder, or not there yet.
                    os.unlink(place)
            with contextlib.suppress(OSError):
                made.release(*new)
            raise
    return changed


def take_away(
    context: InstallContext, paths: Sequence[Path], folders: Sequence[Path] = ()
) -> Tuple[List[Path], List[Path]]:
    """Delete files and links, and the folders that :func:`put` has made as far as they are empty.

    Returns the paths that were deleted, and of ``folders`` those that stay because something is in
    them. OSError as it comes; nothing has changed when a folder cannot be written.
    """
    with made_folders.opened(context.home, _record(context)) as made:
        places = {path: placing.real_place(path) for path in paths}
        standing = [path for path, place in places.items() if placing.kind_of(place) != "absent"]
        for path in standing:
            placing.demand_writable(places[path])
        made.demand_writable()
        for path in standing:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(places[path])
        for place in places.values():
            placing.sweep(place.parent)
        made.release(*places.values(), *(Path(os.path.realpath(folder)) for folder in folders))
    return standing, [folder for folder in folders if folder.is_dir()]


def _record(context: InstallContext) -> Path:
    return made_folders.data_dir(context.home, context.environ)


def _is(place: Path, wanted: "bytes | str") -> bool:
    if isinstance(wanted, bytes):
        return placing.read_small(place, MOST_BYTES) == wanted
    return placing.kind_of(place) == "link" and os.readlink(place) == wanted


def _put(place: Path, wanted: "bytes | str", replacing: bool) -> None:
    if isinstance(wanted, bytes):
        placing.put_file(place, wanted)
    else:
        placing.put_link(place, wanted, replacing)
