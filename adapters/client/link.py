"""Connects an agent that loads a JavaScript module: our client is copied out and linked.

The copy lies in our data folder, ``mdello/clients/<agent>.js``; the agent finds a symbolic link to
it in the folder from which it loads by itself. No settings file is touched. A link is ours when it
points to our copy, a copy when it begins with our mark. Anything else in these places is refused.
"""

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator, List, Mapping, Optional, Tuple

from adapters import made_folders, placing
from adapters.client import bundle
from adapters.contract import AdapterError, Inspection, InstallContext, InstallReport
from adapters.made_folders import MadeFolders

LINK = "mdello-companion.js"
"""The link's name in the agent's folder."""
CLIENTS = "clients"
"""The folder of the copies, in our data folder."""

DEFAULT_ENDPOINT = "http://127.0.0.1:51618"
"""Stands in ``companion.js`` exactly once, as a string; another port is written over it."""

_MARK = b"// mdello-companion client"
# Clients have some 20 kB.
_MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class Client:
    """What is particular to one agent."""

    agent: str
    """Its harness name."""
    noun: str
    """For people: ``Pi extension``."""
    load_dir: Callable[[Path, Mapping[str, str]], Path]
    """Home and environment to the folder from which the agent loads modules; AdapterError when
    that cannot be told."""
    afterwards: str
    """What the person has to do for a change to take effect."""
    former: str = ""
    """Name of a link in that folder that older versions made, or empty."""
    obstacles: Callable[[Path, InstallContext], Tuple[str, ...]] = lambda load_dir, context: ()
    """What keeps the agent from loading our link in that folder, each naming its file."""


@dataclass(frozen=True)
class _Places:
    """Where everything is, as shown to people; all of it may lie behind links."""

    link: Path
    copy: Path
    """The copy that the link is to point to, or (when removing) points to."""

    @property
    def data_dir(self) -> Path:
        return self.copy.parent.parent


@dataclass(frozen=True)
class _Found:
    """What stands in the place of one of ours."""

    state: str
    """``absent``, ``ours`` or ``foreign``."""
    why: str = ""
    """For a foreign one: what makes it so."""
    target: Optional[Path] = None
    """For a link of ours: the copy that it points to."""


def install(client: Client, context: InstallContext) -> InstallReport:
    """Copy the client and link it, or bring both up to date. A second call changes nothing.

    AdapterError when something that is not ours stands there, when the client is missing, or when
    it cannot be written; nothing has changed then.
    """
    content = _content(client, context)
    places = _places(client, context)
    with _told(f"Cannot install the {client.noun}", places.link):
        # All is looked at under the lock: an uninstall at the same moment would change what is seen.
        with made_folders.opened(context.home, places.data_dir) as made:
            _refuse(client, places, "Cannot replace unmanaged", "Move it away, then install again")
            if _look_at_link(client, places).target in (None, places.copy):
                return _put(client, context, made, places, content)
        _leave_other_copy(client, context, places)
        with made_folders.opened(context.home, places.data_dir) as made:
            _refuse(client, places, "Cannot replace unmanaged", "Move it away, then install again")
            return _put(client, context, made, places, content)


def uninstall(client: Client, context: InstallContext) -> InstallReport:
    """Remove link, copy and the folders that :func:`install` had to make.

    A copy to which another link of ours points stays. AdapterError for what is not ours.
    """
    places = _places(client, context)
    with _told(f"Cannot remove the {client.noun}", places.link):
        target = _look_at_link(client, places).target
        if target is not None:
            places = _Places(places.link, target)
        with made_folders.opened(context.home, places.data_dir) as made:
            _refuse(client, places, "Refusing to remove unmanaged", "Move it away, then uninstall again")
            removed = _take_away(client, made, places)
    if not removed:
        return InstallReport(f"Removed {client.noun}: there was none at {places.link}")
    details = (f"Deleted {path}" for path in removed if path != places.link)
    return InstallReport(
        f"Removed {client.noun} at {places.link}", (*details, client.afterwards), changed=True
    )


def inspect(client: Client, context: InstallContext) -> Inspection:
    """How link and copy stand on disk. Never raises."""
    try:
        places = _places(client, context)
    except AdapterError as exc:
        return Inspection("absent", "", None, (str(exc),))
    try:
        found = _look_at_link(client, places)
        former = _look_at_former(client, places)
        for each in (found, former):
            if each.state == "foreign":
                return Inspection("foreign", str(places.link), None, (each.why,))
        if found.target is not None and found.target.exists() and not _is_ours(found.target):
            why = f"{found.target}, to which it points, does not begin with our mark"
            return Inspection("foreign", str(places.link), None, (why,))
        if found.state == former.state == "absent":
            return Inspection("absent", str(places.link), None)
        return _inspected(client, context, places, found, former)
    except (OSError, AdapterError) as exc:
        return Inspection("foreign", str(places.link), None, (f"{places.link}: {exc}",))


def _inspected(
    client: Client, context: InstallContext, places: _Places, found: _Found, former: _Found
) -> Inspection:
    wrong = []
    gone = False
    if found.target is None or former.state != "absent":
        wrong.append(f"{places.link.with_name(client.former)} is the link of an older version")
    if found.target is not None:
        gone = not found.target.exists()
        if gone:
            wrong.append(f"{places.link} points to {found.target}, which is gone")
        elif placing.read_small(found.target, _MAX_BYTES) != _content(client, context):
            wrong.append(f"{found.target} is not what this version writes for {context.endpoint}")
    obstacles = client.obstacles(places.link.parent, context)
    state = "outdated" if wrong else "installed"
    return Inspection(state, str(places.link), not (gone or obstacles), (*wrong, *obstacles))


# -- places and what stands there


def _places(client: Client, context: InstallContext) -> _Places:
    link = client.load_dir(context.home, context.environ) / LINK
    folder = made_folders.data_dir(context.home, context.environ)
    return _Places(link, folder / CLIENTS / f"{client.agent}.js")


def _content(client: Client, context: InstallContext) -> bytes:
    """The copy's bytes: our mark, and the client with the endpoint that it falls back to."""
    try:
        source = bundle.client_source(client.agent)
    except OSError as exc:
        raise AdapterError(f"our own {client.noun} cannot be read: {exc}") from exc
    told = context.endpoint.rstrip("/")
    if told != DEFAULT_ENDPOINT:
        before = json.dumps(DEFAULT_ENDPOINT).encode()
        if source.count(before) != 1:
            raise AdapterError(f"our own {client.noun} has no place for another port")
        source = source.replace(before, json.dumps(told).encode())
    command = f"mdello.pyz install {client.agent}"
    return _MARK + f' ({client.agent}), written by "{command}", which also renews it.\n'.encode() + source


def _look_at_link(client: Client, places: _Places) -> _Found:
    place = placing.real_place(places.link)
    kind = placing.kind_of(place)
    if kind == "absent":
        return _Found("absent")
    if kind != "link":
        return _Found("foreign", "it is not a symbolic link")
    try:
        told = os.readlink(place)
    except FileNotFoundError:  # An uninstall at the same moment.
        return _Found("absent")
    target = Path(os.path.normpath(place.parent / told))
    if target == places.copy or os.path.realpath(target) == os.path.realpath(places.copy):
        return _Found("ours", target=places.copy)
    if _is_copy_elsewhere(client, target):
        return _Found("ours", target=target)
    return _Found("foreign", f"it is a symbolic link to {told}")


def _is_copy_elsewhere(client: Client, target: Path) -> bool:
    """Whether that is our copy in another data folder: ``XDG_DATA_HOME`` had another value then."""
    if target.parts[-3:] != ("mdello", CLIENTS, f"{client.agent}.js"):
        return False
    return placing.kind_of(target) == "absent" or _is_ours(target)


def _is_ours(copy: Path) -> bool:
    return placing.read_small(copy, len(_MARK)) == _MARK


def _look_at_former(client: Client, places: _Places) -> _Found:
    if not client.former:
        return _Found("absent")
    former = placing.real_place(places.link.with_name(client.former))
    kind = placing.kind_of(former)
    if kind in ("absent", "link"):
        return _Found("absent" if kind == "absent" else "ours")
    return _Found("foreign", f"{former.name} beside it is not a symbolic link")


def _refuse(client: Client, places: _Places, refusal: str, remedy: str) -> None:
    """AdapterError for anything that is not ours."""
    link, former = _look_at_link(client, places), _look_at_former(client, places)
    if link.state == "foreign":
        raise AdapterError(f"{refusal} {client.noun} ({link.why}). {remedy}", places.link)
    if former.state == "foreign":
        shown = places.link.with_name(client.former)
        raise AdapterError(f"{refusal} {client.noun} (it is not a symbolic link). {remedy}", shown)
    if placing.kind_of(placing.real_place(places.copy)) != "absent" and not _is_ours(places.copy):
        raise AdapterError(f"{refusal} file (it does not begin with our mark). {remedy}", places.copy)


# -- putting in place


def _leave_other_copy(client: Client, context: InstallContext, places: _Places) -> None:
    """Take a link to another data folder away together with what it points to."""
    for place in (places.link, places.copy):
        placing.demand_writable(placing.real_place(place))
    uninstall(client, context)


def _put(
    client: Client, context: InstallContext, made: MadeFolders, places: _Places, content: bytes
) -> InstallReport:
    """Put all in place; the report, from what the disk says then."""
    return _installed(client, context, places, _place(client, made, places, content))


def _place(client: Client, made: MadeFolders, places: _Places, content: bytes) -> List[Path]:
    """Write what has to be written; the shown paths that changed. OSError as it comes."""
    link, copy = placing.real_place(places.link), placing.real_place(places.copy)
    for folder in (link.parent, copy.parent):
        placing.sweep(folder)
    changed = []
    is_new = placing.kind_of(copy) == "absent"
    if is_new or placing.read_small(copy, _MAX_BYTES) != content:
        made.hold(copy)
        placing.put_file(copy, content)
        changed.append(places.copy)
    try:
        if placing.kind_of(link) == "absent" or os.readlink(link) != str(places.copy):
            made.hold(link, always=True)
            # What stands there is ours, as was just seen.
            placing.put_link(link, str(places.copy), replacing=placing.kind_of(link) == "link")
            changed.append(places.link)
        if _look_at_former(client, places).state == "ours":
            os.unlink(link.with_name(client.former))
            changed.append(places.link.with_name(client.former))
    except BaseException:
        if is_new and not os.path.lexists(link):
            with contextlib.suppress(OSError):
                os.unlink(copy)
        raise
    return changed


def _installed(
    client: Client, context: InstallContext, places: _Places, changed: List[Path]
) -> InstallReport:
    """The report, from what the disk now says."""
    found = inspect(client, context)
    if found.state != "installed":
        raise AdapterError("was changed by another program at once", places.link)
    details = [f"{'Wrote' if places.copy in changed else 'Kept'} {places.copy}"]
    former = places.link.with_name(client.former) if client.former else None
    if former in changed:
        details.append(f"Removed the link of an older version, {former}")
    details.append(f"To: {context.endpoint}")
    told = context.environ.get("MDELLO_COMPANION_URL", "")
    if told:
        details.append(f"MDELLO_COMPANION_URL is {told}: sessions started with it report there instead")
    if changed:
        details.append(client.afterwards)
    headline = f"Installed {client.noun} at {places.link}"
    return InstallReport(
        headline if changed else f"{headline} (nothing to change)", tuple(details), found.notes, bool(changed)
    )


# -- taking away


def _take_away(client: Client, made: MadeFolders, places: _Places) -> List[Path]:
    """Delete link and copy; the shown paths that were deleted. OSError as it comes."""
    link, copy = placing.real_place(places.link), placing.real_place(places.copy)
    for folder in (link.parent, copy.parent):
        placing.sweep(folder)
    doomed = [(places.link, link)]
    if client.former:
        doomed.append((places.link.with_name(client.former), link.with_name(client.former)))
    if not any(_points_to(other, copy) for other in made.places if other != link):
        doomed.append((places.copy, copy))
    standing = [(shown, place) for shown, place in doomed if placing.kind_of(place) != "absent"]
    for _, place in standing:
        placing.demand_writable(place)
    made.demand_writable()
    for _, place in standing:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(place)
    made.release(*(place for _, place in doomed))
    return [shown for shown, _ in standing]


def _points_to(link: Path, copy: Path) -> bool:
    try:
        return placing.kind_of(link) == "link" and os.path.realpath(link) == str(copy)
    except OSError:
        return False


@contextlib.contextmanager
def _told(what: str, place: Path) -> Iterator[None]:
    """An OSError becomes an AdapterError that says what failed."""
    try:
        yield
    except OSError as exc:
        raise AdapterError(f"{what}: {exc.strerror or exc}", place) from exc
