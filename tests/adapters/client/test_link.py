"""Copying a client out and linking it, for every agent that loads one: written, refused, undone."""

import contextlib
import os
import shutil
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Callable, Dict, List

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters import made_folders, opencode, pi, placing
from adapters.client import bundle, link
from adapters.contract import AdapterError, InstallContext
from tests.adapters.disk import die_at, in_parallel, refusal_to_nobody, times_of, tree_of

AGENTS: Dict[str, ModuleType] = {"pi": pi, "opencode": opencode}
FOLDERS = {"pi": ".pi/agent/extensions", "opencode": ".config/opencode/plugins"}
NOUNS = {"pi": "Pi extension", "opencode": "OpenCode extension"}
SOURCE = b'const where = process.env.MDELLO_COMPANION_URL || "http://127.0.0.1:51618";\n'

each_agent = pytest.mark.parametrize("name", sorted(AGENTS))


@pytest.fixture(autouse=True)
def small_client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of one line, so that these tests say nothing about the real ones."""
    if "real" not in request.node.name:
        monkeypatch.setattr(bundle, "client_source", lambda agent: b"// " + agent.encode() + b"\n" + SOURCE)


def make_context(base: Path, **changes: object) -> InstallContext:
    """An empty home below ``base``."""
    (base / "home").mkdir(exist_ok=True)
    context = InstallContext(
        base / "home", {}, link.DEFAULT_ENDPOINT, base / "mdello.pyz", "/usr/bin/python3"
    )
    return replace(context, **changes)  # type: ignore[arg-type]


@pytest.fixture
def context(tmp_path: Path) -> InstallContext:
    """A new machine."""
    return make_context(tmp_path)


def link_of(name: str, context: InstallContext) -> Path:
    """Where the agent looks by default."""
    return context.home / FOLDERS[name] / "mdello-companion.js"


def copy_of(name: str, context: InstallContext) -> Path:
    """Where the copy lies by default."""
    return context.home / ".local" / "share" / "mdello" / "clients" / f"{name}.js"


# --- what is written -----------------------------------------------------------------------------


@each_agent
def test_a_private_copy_and_a_link_to_it(name: str, context: InstallContext) -> None:
    """Nothing else; the report names both and what to do next."""
    report = AGENTS[name].install(context)
    assert report.changed and report.warnings == ()
    assert report.headline == f"Installed {NOUNS[name]} at {link_of(name, context)}"
    assert report.details[0] == f"Wrote {copy_of(name, context)}"
    assert "/reload" in report.details[-1] or "Restart OpenCode" in report.details[-1]
    assert os.readlink(link_of(name, context)) == str(copy_of(name, context))
    assert copy_of(name, context).read_bytes().endswith(f"// {name}\n".encode() + SOURCE)
    files = {path for path, (kind, *_) in tree_of(context.home).items() if kind != "folder"}
    assert files == {
        f"{FOLDERS[name]}/mdello-companion.js",
        f".local/share/mdello/clients/{name}.js",
        ".local/share/mdello/made-folders.json",
    }
    kinds = {"folder": 0o700, "file": 0o600}
    tree = tree_of(context.home)
    assert all(mode & 0o777 == kinds[kind] for kind, mode, *_ in tree.values() if kind != "link")


@each_agent
def test_another_port_is_written_into_the_copy(name: str, context: InstallContext) -> None:
    """The variable for the client still wins, and is told when it is set."""
    AGENTS[name].install(replace(context, endpoint="http://127.0.0.1:6000/"))
    text = copy_of(name, context).read_text()
    assert '|| "http://127.0.0.1:6000"' in text and "51618" not in text
    told = AGENTS[name].install(replace(context, environ={"MDELLO_COMPANION_URL": "http://other"}))
    assert told.changed and any("http://other" in line for line in told.details)
    assert "51618" in copy_of(name, context).read_text()


@each_agent
def test_a_client_without_a_place_for_the_port_is_an_error(
    name: str, context: InstallContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rather than one that reports to nobody."""
    monkeypatch.setattr(bundle, "client_source", lambda agent: SOURCE + SOURCE)
    with pytest.raises(AdapterError, match="no place for another port"):
        AGENTS[name].install(replace(context, endpoint="http://127.0.0.1:6000"))
    assert tree_of(context.home) == {}


@each_agent
def test_a_missing_client_is_an_error_before_anything_is_changed(
    name: str, context: InstallContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive without it, for one. Removing needs no client."""
    AGENTS[name].install(context)
    before = tree_of(context.home)

    def missing(agent: str) -> bytes:
        raise FileNotFoundError(2, "No such file", agent)

    monkeypatch.setattr(bundle, "client_source", missing)
    with pytest.raises(AdapterError, match="cannot be read"):
        AGENTS[name].install(context)
    assert tree_of(context.home) == before
    assert AGENTS[name].inspect(context).notes
    AGENTS[name].uninstall(context)
    assert tree_of(context.home) == {}


@each_agent
def test_the_real_client_has_one_place_for_the_port(name: str, context: InstallContext) -> None:
    """As a quoted string, once."""
    assert bundle.client_source(name).count(b'"http://127.0.0.1:51618"') == 1


# --- twice, and from other places ------------------------------------------------------------------


@each_agent
def test_installing_twice_changes_nothing(name: str, context: InstallContext) -> None:
    """Same bytes, same inodes, same times; the report says so."""
    AGENTS[name].install(context)
    before = (tree_of(context.home), times_of(context.home))
    report = AGENTS[name].install(context)
    assert not report.changed and "nothing to change" in report.headline
    assert (tree_of(context.home), times_of(context.home)) == before


@each_agent
def test_an_outdated_client_is_noticed_and_renewed(
    name: str, context: InstallContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link stays as it is."""
    AGENTS[name].install(context)
    monkeypatch.setattr(bundle, "client_source", lambda agent: b"// newer\n")
    found = AGENTS[name].inspect(context)
    assert (found.state, found.loaded) == ("outdated", True)
    assert str(copy_of(name, context)) in found.notes[0]
    inode = link_of(name, context).lstat().st_ino
    assert AGENTS[name].install(context).changed
    assert copy_of(name, context).read_bytes().endswith(b"// newer\n")
    assert link_of(name, context).lstat().st_ino == inode
    assert AGENTS[name].inspect(context).state == "installed"


@each_agent
def test_a_copy_that_is_gone_is_noticed_and_put_back(name: str, context: InstallContext) -> None:
    """The agent ignores such a link without a word."""
    AGENTS[name].install(context)
    copy_of(name, context).unlink()
    found = AGENTS[name].inspect(context)
    assert (found.state, found.loaded) == ("outdated", False)
    assert "which is gone" in found.notes[0]
    AGENTS[name].install(context)
    assert AGENTS[name].inspect(context).state == "installed"
    copy_of(name, context).unlink()
    assert AGENTS[name].uninstall(context).changed
    assert tree_of(context.home) == {}


@each_agent
def test_a_link_that_is_gone_is_put_back_and_a_lonely_copy_removed(
    name: str, context: InstallContext
) -> None:
    """People tidy up by hand."""
    AGENTS[name].install(context)
    link_of(name, context).unlink()
    assert AGENTS[name].inspect(context).state == "absent"
    assert AGENTS[name].install(context).changed
    shutil.rmtree(link_of(name, context).parent)
    assert AGENTS[name].uninstall(context).changed
    assert not copy_of(name, context).exists()


@pytest.mark.parametrize("told", ["", "relative", "~/data"])
@each_agent
def test_an_xdg_value_that_cannot_be_meant_is_ignored(name: str, told: str, context: InstallContext) -> None:
    """As XDG has it."""
    odd = replace(context, environ={"XDG_DATA_HOME": told, "XDG_CONFIG_HOME": told})
    AGENTS[name].install(odd)
    assert link_of(name, context).is_symlink() and copy_of(name, context).is_file()


@each_agent
def test_folders_elsewhere_are_used_and_made_and_removed(
    name: str, context: InstallContext, tmp_path: Path
) -> None:
    """Nothing appears in the home then."""
    moved = {
        "XDG_DATA_HOME": str(tmp_path / "data" / "deep"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "PI_CODING_AGENT_DIR": str(tmp_path / "agent dir"),
    }
    before = tree_of(tmp_path)
    AGENTS[name].install(replace(context, environ=moved))
    assert (tmp_path / "data" / "deep" / "mdello" / "clients" / f"{name}.js").is_file()
    assert tree_of(context.home) == {}
    AGENTS[name].uninstall(replace(context, environ=moved))
    assert tree_of(tmp_path) == before


@each_agent
def test_a_changed_data_folder_leaves_nothing_behind(
    name: str, context: InstallContext, tmp_path: Path
) -> None:
    """A link to the copy in the other one is ours, whether it is replaced or removed."""
    moved = replace(context, environ={"XDG_DATA_HOME": str(tmp_path / "data")})
    AGENTS[name].install(moved)
    assert AGENTS[name].inspect(context).state == "installed"
    AGENTS[name].uninstall(context)
    assert set(tree_of(tmp_path)) == {"home"}
    AGENTS[name].install(moved)
    assert AGENTS[name].install(context).changed
    assert not (tmp_path / "data").exists()
    AGENTS[name].uninstall(moved)
    assert set(tree_of(tmp_path)) == {"home"}


@each_agent
def test_two_agent_folders_share_one_copy(name: str, context: InstallContext, tmp_path: Path) -> None:
    """It goes with the last link."""
    second = replace(
        context,
        environ={
            "PI_CODING_AGENT_DIR": str(tmp_path / "second"),
            "XDG_CONFIG_HOME": str(tmp_path / "second"),
        },
    )
    AGENTS[name].install(context)
    AGENTS[name].install(second)
    AGENTS[name].uninstall(context)
    assert AGENTS[name].inspect(second).state == "installed"
    AGENTS[name].uninstall(second)
    assert set(tree_of(tmp_path)) == {"home"}


# --- what is not ours ----------------------------------------------------------------------------


def _plain_file(place: Path) -> None:
    place.write_text("// mine")


def _folder(place: Path) -> None:
    place.mkdir()


def _strange_link(place: Path) -> None:
    place.with_name("own.txt").write_text("// mine")
    place.symlink_to("own.txt")


def _dangling_link(place: Path) -> None:
    place.symlink_to("nowhere")


def _circular_link(place: Path) -> None:
    place.symlink_to(place.name)


def _link_to_something_named_alike(place: Path) -> None:
    target = place.parent / "mdello" / "clients" / "pi.js"
    target.parent.mkdir(parents=True)
    target.write_text("// not our mark")
    target.with_name("opencode.js").write_text("// not our mark")
    place.symlink_to(target.with_name("opencode.js") if "opencode" in str(place) else target)


def _pipe(place: Path) -> None:
    os.mkfifo(place)


NOT_OURS = [
    _plain_file,
    _folder,
    _strange_link,
    _dangling_link,
    _circular_link,
    _link_to_something_named_alike,
    _pipe,
]


@pytest.mark.parametrize("make", NOT_OURS, ids=lambda make: make.__name__.strip("_"))
@each_agent
def test_what_is_not_ours_is_spared_both_ways(
    name: str, make: Callable[[Path], None], context: InstallContext
) -> None:
    """Refused with a telling error, not a byte changed; inspection calls it foreign."""
    place = link_of(name, context)
    place.parent.mkdir(parents=True)
    make(place)

    def tree() -> object:
        return None if make is _pipe else tree_of(context.home)

    before = (tree(), times_of(context.home))
    with pytest.raises(AdapterError, match=f"Cannot replace unmanaged {NOUNS[name]}"):
        AGENTS[name].install(context)
    with pytest.raises(AdapterError, match=f"Refusing to remove unmanaged {NOUNS[name]}"):
        AGENTS[name].uninstall(context)
    found = AGENTS[name].inspect(context)
    assert (found.state, found.loaded) == ("foreign", None) and found.notes
    assert (tree(), times_of(context.home)) == before


@pytest.mark.parametrize("make", [_plain_file, _folder, _dangling_link], ids=lambda make: make.__name__)
@each_agent
def test_a_stranger_in_the_copys_place_is_spared_both_ways(
    name: str, make: Callable[[Path], None], context: InstallContext
) -> None:
    """Also when our link points there."""
    copy_of(name, context).parent.mkdir(parents=True)
    make(copy_of(name, context))
    for linked in (False, True):
        if linked:
            link_of(name, context).parent.mkdir(parents=True)
            link_of(name, context).symlink_to(copy_of(name, context))
            state = AGENTS[name].inspect(context).state
            assert state == ("outdated" if make is _dangling_link else "foreign")
        before = tree_of(context.home)
        with pytest.raises(AdapterError, match="Cannot replace unmanaged file"):
            AGENTS[name].install(context)
        with pytest.raises(AdapterError, match="Refusing to remove unmanaged file"):
            AGENTS[name].uninstall(context)
        assert tree_of(context.home) == before


@each_agent
def test_a_file_in_a_parents_place_is_an_error_that_changes_nothing(
    name: str, context: InstallContext
) -> None:
    """Nobody but its owner can sort that out."""
    top = FOLDERS[name].partition("/")[0]
    for at in (top, ".local"):
        (context.home / at).write_text("a file")
        with pytest.raises(AdapterError, match=f"Cannot install the {NOUNS[name]}"):
            AGENTS[name].install(context)
        assert set(tree_of(context.home)) == {at}
        assert not AGENTS[name].uninstall(context).changed
        (context.home / at).unlink()


@each_agent
def test_folders_that_others_use_by_now_stay(name: str, context: InstallContext) -> None:
    """OpenCode itself puts its packages beside the plugins."""
    AGENTS[name].install(context)
    beside = link_of(name, context).parent.parent
    for own in ("package.json", ".gitignore"):
        (beside / own).write_text("{}")
    (beside / "node_modules").mkdir()
    again = AGENTS[name].install(context)
    assert not again.changed
    AGENTS[name].uninstall(context)
    assert {path.name for path in beside.iterdir()} == {"package.json", ".gitignore", "node_modules"}
    assert set(tree_of(context.home / ".local")) == set()


# --- links among the parents -----------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("dangling", [True, False])
@each_agent
def test_a_parent_may_be_a_link_into_a_dotfiles_repository(
    name: str, level: int, relative: bool, dangling: bool, context: InstallContext, tmp_path: Path
) -> None:
    """We write behind the link; the link stays, and uninstalling leaves what was there."""
    target = tmp_path / "dotfiles" / "target"
    target.parent.mkdir()
    if not dangling:
        target.mkdir()
        (target / "own.md").write_text("mine")
    at = context.home / "/".join(FOLDERS[name].split("/")[: level + 1])
    at.parent.mkdir(parents=True, exist_ok=True)
    at.symlink_to(os.path.relpath(target, at.parent) if relative else target)
    before = tree_of(tmp_path)
    AGENTS[name].install(context)
    assert at.is_symlink() and link_of(name, context).exists()
    assert not AGENTS[name].install(context).changed
    assert AGENTS[name].inspect(context).state == "installed"
    AGENTS[name].uninstall(context)
    assert tree_of(tmp_path) == before


@each_agent
def test_the_data_folder_may_be_a_link_too(name: str, context: InstallContext, tmp_path: Path) -> None:
    """The copy lies behind it; the link to it goes the way that was told."""
    (tmp_path / "big disk").mkdir()
    (context.home / ".local").symlink_to("../big disk")
    before = tree_of(tmp_path)
    AGENTS[name].install(context)
    assert os.readlink(link_of(name, context)) == str(copy_of(name, context))
    AGENTS[name].uninstall(context)
    assert tree_of(tmp_path) == before


def test_a_link_that_is_retargeted_at_the_last_moment_is_not_lost(
    context: InstallContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands there is looked at again, within the lock, before anything is written."""
    pi.install(context)
    opened = made_folders.opened

    def late(home: Path, folder: Path) -> object:
        link_of("pi", context).unlink()
        link_of("pi", context).symlink_to("theirs")
        return opened(home, folder)

    monkeypatch.setattr("adapters.made_folders.opened", late)
    with pytest.raises(AdapterError, match="Cannot replace unmanaged"):
        pi.install(context)
    assert os.readlink(link_of("pi", context)) == "theirs"


# --- in the middle of it, at once, and without leave -------------------------------------------------


def _whole(name: str, context: InstallContext) -> bool:
    """What the agent would see: no link, or one to a whole client."""
    place = link_of(name, context)
    return not place.is_symlink() or not place.exists() or place.read_bytes().endswith((SOURCE, b"new\n"))


@each_agent
def test_a_kill_while_installing_leaves_all_or_nothing(name: str, tmp_path: Path) -> None:
    """At every step; the next run cleans up after the dead one."""
    for count in range(200):
        base = tmp_path / str(count)
        base.mkdir()
        context = make_context(base)
        finished = die_at(count, partial(AGENTS[name].install, context))
        assert _whole(name, context)
        if count % 2:
            AGENTS[name].install(context)
            assert AGENTS[name].inspect(context).state == "installed"
        AGENTS[name].uninstall(context)
        assert tree_of(context.home) == {}, count
        if finished:
            return
    pytest.fail("it never finished")


@each_agent
def test_a_kill_while_updating_or_removing_leaves_all_or_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the agent loads is never half a file."""
    for act in (AGENTS[name].install, AGENTS[name].uninstall):
        for count in range(200):
            base = tmp_path / f"{act.__name__}{count}"
            base.mkdir()
            context = make_context(base)
            AGENTS[name].install(context)
            with monkeypatch.context() as patched:
                patched.setattr(bundle, "client_source", lambda agent: b"new\n")
                finished = die_at(count, partial(act, context))
            assert _whole(name, context)
            if count % 2:
                AGENTS[name].install(context)
            AGENTS[name].uninstall(context)
            assert tree_of(context.home) == {}, count
            if finished:
                break
        else:
            pytest.fail("it never finished")


def test_many_at_once_end_in_a_right_state(tmp_path: Path) -> None:
    """Installs and uninstalls of both; in the end it can be undone as ever."""
    for attempt in range(5):
        base = tmp_path / str(attempt)
        base.mkdir()
        context = make_context(base)
        installs: List[Callable[[], object]] = [partial(agent.install, context) for agent in AGENTS.values()]
        removals: List[Callable[[], object]] = [
            partial(agent.uninstall, context) for agent in AGENTS.values()
        ]
        assert in_parallel(installs * 3) == [0] * 6
        assert all(agent.inspect(context).state == "installed" for agent in AGENTS.values())
        assert in_parallel((installs + removals) * 2) == [0] * 8
        assert in_parallel(removals * 2) == [0] * 4
        assert tree_of(context.home) == {}


@pytest.mark.parametrize("read_only", ["home", "data", "agent"])
@each_agent
def test_a_read_only_place_is_a_telling_error_and_nothing_is_half_done(
    name: str, read_only: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As another user, on the way in and on the way out."""
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are private to this user.
        base = Path(place)
        base.chmod(0o777)
        context = make_context(base)
        context.home.chmod(0o777)
        locked = {
            "home": context.home,
            "data": context.home / ".local",
            "agent": context.home / FOLDERS[name].partition("/")[0],
        }[read_only]
        locked.mkdir(exist_ok=True)
        locked.chmod(0o555)
        before = tree_of(context.home)
        told = refusal_to_nobody(lambda: AGENTS[name].install(context))
        assert f"Cannot install the {NOUNS[name]}: Permission denied" in told, told
        assert tree_of(context.home) == before
        locked.chmod(0o777)
        assert refusal_to_nobody(lambda: AGENTS[name].install(context)) == ""
        installed = tree_of(context.home)
        for folder in (link_of(name, context).parent, copy_of(name, context).parent):
            folder.chmod(0o555)
            told = refusal_to_nobody(lambda: AGENTS[name].uninstall(context))
            assert f"Cannot remove the {NOUNS[name]}: Permission denied: {folder}" in told
            folder.chmod(0o700)
            assert tree_of(context.home) == installed
        assert refusal_to_nobody(lambda: AGENTS[name].uninstall(context)) == ""
        assert not link_of(name, context).exists()


@each_agent
def test_a_disk_that_fills_up_leaves_nothing(
    name: str, context: InstallContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the last step: the copy is taken back."""

    def full(place: Path, target: str, replacing: bool) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(placing, "put_link", full)
    with pytest.raises(AdapterError, match="No space left"):
        AGENTS[name].install(context)
    assert tree_of(context.home) == {}


_NAMES = st.sampled_from(
    [
        *{part for folder in FOLDERS.values() for part in folder.split("/")},
        ".local",
        "share",
        "mdello",
        "clients",
        "made-folders.json",
        "a b'c$",
    ]
)
_PATHS = st.lists(_NAMES, min_size=1, max_size=5).map(lambda parts: "/".join(parts))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    wanted=st.dictionaries(_PATHS, st.none() | st.binary(max_size=20), max_size=6),
    steps=st.lists(st.tuples(st.sampled_from(sorted(AGENTS)), st.booleans()), max_size=6),
)
def test_any_home_is_the_same_after_uninstalling(
    wanted: "Dict[str, bytes | None]",
    steps: "List[tuple[str, bool]]",
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Any order of installs and uninstalls over any foreign tree ends, undone, where it began."""
    context = make_context(tmp_path_factory.mktemp("any"))
    for path, content in wanted.items():
        try:
            (context.home / path).parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                (context.home / path).mkdir(exist_ok=True)
            else:
                (context.home / path).write_bytes(content)
        except OSError:
            continue
    before = tree_of(context.home)
    for name, installs in [*steps, *((name, False) for name in AGENTS)]:
        with contextlib.suppress(AdapterError):  # A file stands where a folder is needed.
            (AGENTS[name].install if installs else AGENTS[name].uninstall)(context)
        kept = {path: now for path, now in tree_of(context.home).items() if path in before}
        assert kept == before
    assert tree_of(context.home) == before
