"""One registry drives installing, removing, doctor and help; whatever is in it can be undone exactly."""

import contextlib
import functools
import itertools
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from adapters.contract import AdapterError, InstallContext
from adapters.registry import ADAPTERS
from companion.commands import install
from companion.commands.help import help_text
from companion.commands.integrations import MACOS, SERVICE, at_once, integrations, named, on_macos, words
from companion.core.errors import UsageError
from tests.adapters.disk import Tree, die_at, in_parallel, refusal_to_nobody, tree_of
from tests.conftest import ROOT

# launchd is asked by the tests of the service only: there is no fake in its place here.
ALL = [name for name in integrations() if name != SERVICE or sys.platform.startswith("linux")]
PROGRAMS = ("pi", "opencode", "claude", "codex", "curl", "systemctl", "python3")

each_integration = pytest.mark.parametrize("name", ALL)


def make_machine(base: Path, **environ: str) -> InstallContext:
    """An empty home and programs that do nothing; ``{base}`` in a value is that folder."""
    for name in ("home", "bin"):
        (base / name).mkdir()
    for name in PROGRAMS:
        (base / "bin" / name).write_text("#!/bin/sh\n")
        (base / "bin" / name).chmod(0o755)
    (base / "mdello.pyz").touch()

    def which(name: str) -> Optional[str]:
        return str(base / "bin" / name) if name in PROGRAMS else None

    told = {name: value.format(base=base) for name, value in environ.items()}
    return InstallContext(
        home=base / "home",
        environ={"HOME": str(base / "home"), **told},
        endpoint="http://127.0.0.1:59999",
        program=base / "mdello.pyz",
        interpreter=str(base / "bin" / "python3"),
        which=which,
        version="1.2.3",
    )


def put(name: str, context: InstallContext) -> None:
    """Install one, twice: the second time changes nothing."""
    assert integrations()[name].install(context).changed
    before = tree_of(context.home.parent)
    assert not integrations()[name].install(context).changed
    assert tree_of(context.home.parent) == before


def take(name: str, context: InstallContext) -> None:
    """Remove one."""
    integrations()[name].uninstall(context)


PLACES = {
    "usual": {},
    "elsewhere": {
        "XDG_CONFIG_HOME": "{base}/xdg/config",
        "XDG_DATA_HOME": "{base}/xdg/data",
        "XDG_STATE_HOME": "{base}/xdg/state",
        "PI_CODING_AGENT_DIR": "{base}/agents/pi",
        "CLAUDE_CONFIG_DIR": "{base}/agents/claude",
        "CODEX_HOME": "{base}/agents/codex",
    },
    "within each other": {
        "CLAUDE_CONFIG_DIR": "{base}/home/.config/claude",
        "CODEX_HOME": "{base}/home/.config/opencode/codex",
        "PI_CODING_AGENT_DIR": "{base}/home/.config/opencode/pi",
        "XDG_DATA_HOME": "{base}/home/.config",
    },
    "not meant": {
        "XDG_CONFIG_HOME": "config",
        "XDG_DATA_HOME": "",
        "CLAUDE_CONFIG_DIR": "",
        "CODEX_HOME": "",
    },
}
ENVIRONMENTS: Dict[str, Dict[str, str]] = {name: dict(values) for name, values in PLACES.items()}


def fill(root: Path) -> None:
    """Foreign files at every level at which ours may come to stand, with modes of all kinds."""
    folders = [
        ".claude/skills/other",
        ".claude/projects",
        ".codex/sessions",
        ".config/opencode/plugins/node_modules",
        ".config/systemd/user/default.target.wants",
        ".local/share/mdello/clients",
        ".local/state/mdello",
        ".pi/agent/extensions/other",
        ".pi/agent/sessions",
        ".mdello-notes",
    ]
    for folder in folders:
        path = root
        for part in Path(folder).parts:
            path = path / part
            path.mkdir(exist_ok=True)
            (path / f"of the user in {part}").write_bytes(part.encode() * 3)
            if not (path / "link").is_symlink():
                (path / "link").symlink_to("nowhere")
            (path / "empty").mkdir(exist_ok=True)
    for number, path in enumerate(sorted(root.rglob("*"))):
        if not path.is_symlink():
            path.chmod(
                (0o700, 0o755, 0o775)[number % 3] if path.is_dir() else (0o600, 0o644, 0o400)[number % 3]
            )


# --- what the registry is ------------------------------------------------------------------------


def test_the_service_comes_first_and_then_the_agents() -> None:
    """In the contract's order."""
    assert list(integrations()) == [SERVICE, *ADAPTERS] == ["service", "pi", "opencode", "claude", "codex"]
    for name, integration in integrations().items():
        assert name == integration.NAME and integration.TITLE


def test_an_agent_that_cannot_be_connected_is_in_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the registry of agents for its history."""
    from adapters import defaults

    class Past:
        install = staticmethod(defaults.no_install)

    monkeypatch.setitem(ADAPTERS, "past", Past)
    assert "past" not in integrations() and "past" not in words()


def test_on_the_command_line_macos_is_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """There, and nowhere else; alone it belongs to what is installed at once there."""
    assert words() == ["service", "macos", "pi", "opencode", "claude", "codex"]
    assert [named(word) for word in words() if word != MACOS] == list(integrations())
    monkeypatch.setattr(sys, "platform", "darwin")
    assert on_macos() and named(MACOS) == SERVICE
    assert at_once() == ["service", "pi", "opencode", "claude", "codex"]
    monkeypatch.setattr(sys, "platform", "linux")
    assert at_once() == ["pi", "opencode", "claude", "codex"]
    with pytest.raises(UsageError, match="requires macOS"):
        named(MACOS)


def test_help_and_doctor_know_them_all(mdello: Any) -> None:
    """Nobody has a list of its own."""
    text = help_text({"HOME": "/home/dev"})
    assert f"install [{'|'.join(word for word in words() if word != SERVICE)}]" in text
    assert f"install {SERVICE}" in text
    said = mdello("doctor").stdout
    for integration in integrations().values():
        assert f"{integration.TITLE}: " in said


@each_integration
def test_inspection_and_presence_never_raise(name: str, tmp_path: Path) -> None:
    """Whatever the environment says, and where nothing can be looked at."""
    context = make_machine(tmp_path)
    (tmp_path / "file").touch()
    odd = {
        variable: value
        for variable in (
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "CLAUDE_CONFIG_DIR",
            "PI_CODING_AGENT_DIR",
            "CODEX_HOME",
        )
        for value in [f"{tmp_path}/file/below"]
    }
    for environ in ({}, odd, dict.fromkeys(odd, "relative"), dict.fromkeys(odd, "/" + "x" * 5000)):
        changed = replace(context, environ=environ)
        integrations()[name].presence(changed)
        assert integrations()[name].inspect(changed).state in ("absent", "foreign")


# --- undoing it ------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(itertools.permutations(ALL)), ids="-".join)
def test_any_order_in_and_out_twice_leaves_the_home_as_it_was(order: Tuple[str, ...], tmp_path: Path) -> None:
    """Over an empty home and a full one; each way out is tried over the runs."""
    ways_out = list(itertools.permutations(ALL))
    index = ways_out.index(order)
    for number, filled in enumerate((False, True)):
        base = tmp_path / str(filled)
        base.mkdir()
        context = make_machine(base)
        if filled:
            fill(context.home)
        before = tree_of(base)
        for run in range(2):
            for name in order:
                put(name, context)
            now = tree_of(base)
            assert {path: now[path] for path in before} == before
            out = ways_out[(index * 7 + number * 5 + run * 11) % len(ways_out)]
            for name in out:
                take(name, context)
            assert tree_of(base) == before, out
        for name in order:
            assert not integrations()[name].uninstall(context).changed
        assert tree_of(base) == before


_PARTS = [
    *{".claude", "skills", ".pi", "agent", "extensions", ".config", "opencode", "plugins", "systemd", "user"},
    *{".local", "share", "state", "mdello", "clients", "claude", "pi", ".codex", "a b'c$"},
]
_PATHS = st.lists(st.sampled_from(sorted(_PARTS)), min_size=1, max_size=5).map("/".join)


def untimed(tree: Tree) -> Dict[str, Tuple[str, int, bytes]]:
    """A tree without the times of change."""
    return {path: what[:3] for path, what in tree.items()}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    environment=st.sampled_from(sorted(ENVIRONMENTS)),
    wanted=st.dictionaries(_PATHS, st.none() | st.binary(max_size=9), max_size=7),
    steps=st.lists(st.tuples(st.sampled_from(ALL), st.booleans()), max_size=8),
    out=st.permutations(ALL),
)
@example(
    environment="not meant", wanted={".claude": b""}, steps=[("service", True), ("claude", True)], out=ALL
)
def test_any_home_is_the_same_after_uninstalling(
    environment: str,
    wanted: Dict[str, Optional[bytes]],
    steps: List[Tuple[str, bool]],
    out: List[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Foreign trees of all shapes, folders of all places, any steps, any way out."""
    context = make_machine(tmp_path_factory.mktemp("any"), **ENVIRONMENTS[environment])
    for path, content in wanted.items():
        with contextlib.suppress(OSError):  # They may contradict each other.
            (context.home / path).parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                (context.home / path).mkdir(exist_ok=True)
            else:
                (context.home / path).write_bytes(content)
    before = tree_of(context.home.parent)
    for name, installs in [*steps, *((name, False) for name in out)]:
        integration = integrations()[name]
        earlier = tree_of(context.home.parent)
        try:
            (integration.install if installs else integration.uninstall)(context)
        except AdapterError:  # A file stands where a folder is needed: then nothing may change.
            # Our list of folders named more for a moment, and has a new time.
            assert untimed(tree_of(context.home.parent)) == untimed(earlier)
        now = tree_of(context.home.parent)
        assert {path: now.get(path) for path in before} == before
    assert tree_of(context.home.parent) == before


@pytest.mark.parametrize("environment", sorted(ENVIRONMENTS))
def test_what_others_have_added_meanwhile_stays(environment: str, tmp_path: Path) -> None:
    """In every folder that we made: the file, the folders above it, and nothing else."""
    context = make_machine(tmp_path, **ENVIRONMENTS[environment])
    before = tree_of(tmp_path)
    for name in ALL:
        put(name, context)
    made = [path for path, (kind, *_) in tree_of(tmp_path).items() if kind == "folder" and path not in before]
    strangers = [f"{path}/of the user" for path in random.Random(1).sample(made, len(made) // 2)]
    for path in strangers:
        (tmp_path / path).write_text("mine")
    for name in reversed(ALL):
        take(name, context)
    after = tree_of(tmp_path)
    assert {path: after[path][2] for path in strangers} == dict.fromkeys(strangers, b"mine")
    parents = {str(parent) for path in strangers for parent in Path(path).parents}
    assert set(after) - set(before) <= {*strangers, *parents}


@each_integration
@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("dangling", [True, False])
@pytest.mark.parametrize(
    "linked", [".claude", ".codex", ".config", ".local", ".pi", ".config/systemd", ".local/share"]
)
def test_links_into_a_dotfiles_repository_stay_links(
    linked: str, dangling: bool, relative: bool, name: str, tmp_path: Path
) -> None:
    """Whatever of ours lies behind them; the repository is as before, too."""
    context = make_machine(tmp_path)
    target = tmp_path / "dotfiles" / "deep"
    target.parent.mkdir()
    if not dangling:
        fill(target.parent)
        target.mkdir()
    at = context.home / linked
    at.parent.mkdir(parents=True, exist_ok=True)
    at.symlink_to(os.path.relpath(target, at.parent) if relative else target)
    before = tree_of(tmp_path)
    put(name, context)
    assert at.is_symlink()
    take(name, context)
    assert tree_of(tmp_path) == before


# --- in the middle of it, at once, and without leave -------------------------------------------------


@each_integration
@pytest.mark.parametrize("act", ["install", "uninstall"])
def test_a_kill_at_any_point_is_undone_by_removing_all(name: str, act: str, tmp_path: Path) -> None:
    """With another one in place, which goes on as before."""
    other = next(each for each in ALL if each != name)
    for count in range(0, 400, 3):
        base = tmp_path / str(count)
        base.mkdir()
        context = make_machine(base)
        before = tree_of(base)
        integrations()[other].install(context)
        if act == "uninstall":
            integrations()[name].install(context)
        integration = integrations()[name]
        finished = die_at(count, functools.partial(getattr(integration, act), context))
        assert integrations()[other].inspect(context).state == "installed"
        for each in ALL:
            take(each, context)
        assert tree_of(base) == before, count
        if finished:
            return
    pytest.fail("it never finished")


@each_integration
@pytest.mark.parametrize("filled", [False, True])
def test_a_kill_at_every_step_of_an_install_is_undone_by_its_own_removal(
    filled: bool, name: str, tmp_path: Path
) -> None:
    """One command, and nothing else of ours there: the home is as before, its times too."""
    context = make_machine(tmp_path)
    if filled:
        fill(context.home)
    before = tree_of(tmp_path)
    steps = 0
    while not die_at(steps, functools.partial(integrations()[name].install, context)):
        take(name, context)
        assert tree_of(tmp_path) == before, steps
        steps += 1
    assert steps >= 5
    take(name, context)
    assert tree_of(tmp_path) == before


def test_all_of_them_at_once_and_out_again_at_once(tmp_path: Path) -> None:
    """Processes that come in the way of each other spoil nothing."""
    for attempt in range(3):
        base = tmp_path / str(attempt)
        base.mkdir()
        context = make_machine(base)
        before = tree_of(base)
        installs: List[Callable[[], object]] = [
            partial(integrations()[name].install, context) for name in ALL
        ]
        removals: List[Callable[[], object]] = [
            partial(integrations()[name].uninstall, context) for name in ALL
        ]
        assert in_parallel(installs) == [0] * len(ALL)
        assert all(integrations()[name].inspect(context).state == "installed" for name in ALL)
        assert 2 not in in_parallel(installs + removals)
        assert in_parallel(removals) == [0] * len(ALL)
        assert tree_of(base) == before


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that another user can enter, too; pytest's own are private."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        yield Path(place)


@each_integration
def test_read_only_places_are_told_and_nothing_is_half_done(name: str, public: Path) -> None:
    """As another user: on the way in, and on the way out for each folder that holds something of ours."""
    context = make_machine(public)
    context.home.chmod(0o555)
    (public / "said").touch()
    before = tree_of(context.home)
    told = refusal_to_nobody(lambda: integrations()[name].install(context))
    assert "Permission denied" in told or "cannot be written" in told, told
    assert tree_of(context.home) == before
    context.home.chmod(0o777)
    assert refusal_to_nobody(lambda: integrations()[name].install(context)) == ""
    installed = tree_of(context.home)
    assert installed
    holding = {(context.home / path).parent for path, (kind, *_) in installed.items() if kind != "folder"}
    for folder in sorted(holding):
        mode = folder.stat().st_mode
        folder.chmod(0o555)
        told = refusal_to_nobody(lambda: integrations()[name].uninstall(context))
        folder.chmod(mode)
        if told:
            assert "Permission denied" in told or "Cannot remove" in told
            assert tree_of(context.home) == installed, folder
        else:
            # A folder of our own whose parent can be written goes as a whole.
            refusal_to_nobody(lambda: integrations()[name].install(context))
    assert refusal_to_nobody(lambda: integrations()[name].uninstall(context)) == ""
    assert tree_of(context.home) == before


# --- through the front door --------------------------------------------------------------------------


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def front_door(pyz: Path) -> Callable[[InstallContext], Run]:
    """Runs the built file on a machine."""

    def on(context: InstallContext) -> Run:
        environ = {
            **context.environ,
            "PATH": str(context.home.parent / "bin"),
            "MDELLO_COMPANION_PORT": "59999",
        }

        def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
            command = [sys.executable, str(pyz), *arguments]
            return subprocess.run(
                command,
                env=environ,
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=120,
                stdin=subprocess.DEVNULL,
            )

        return run

    return on


def test_the_built_file_installs_and_removes_all(
    front_door: Callable[[InstallContext], Run], tmp_path: Path
) -> None:
    """In an empty home and in a full one: install all, then the service; then remove all at once."""
    for filled in (False, True):
        base = tmp_path / str(filled)
        base.mkdir()
        context = make_machine(base)
        if filled:
            fill(context.home)
        run = front_door(context)
        before = tree_of(context.home)
        for _ in range(2):
            assert run("install").returncode == 0
            if SERVICE in ALL:
                assert run("install", SERVICE).returncode == 0
            clients = context.home / ".local" / "share" / "mdello" / "clients"
            for name in ("pi", "opencode"):
                text = (clients / f"{name}.js").read_text(encoding="utf-8")
                assert '"http://127.0.0.1:59999"' in text and "../client/" not in text
            told = run("uninstall")
            assert (told.returncode, told.stderr) == (0, "")
            assert told.stdout.count("Removed ") == len(ALL)
            assert tree_of(context.home) == before


ODD_HOMES = [
    "two words",
    "50% %h",
    "$HOME ${X} $$",
    "o'b\"q",
    "new\nline",
    "\u00fc\ud55c\U0001f600",
    "b\\s",
    "lat\udcff",
]


@pytest.mark.parametrize("name", ODD_HOMES)
def test_homes_with_odd_names(name: str, front_door: Callable[[InstallContext], Run], tmp_path: Path) -> None:
    """Everything can be installed, looked at and removed; a service manager's limits are told."""
    (tmp_path / "machine").mkdir()
    machine = make_machine(tmp_path / "machine")
    home = machine.home.with_name(name)
    try:
        machine.home.rename(home)
    except OSError:
        pytest.skip("no such names here")
    run = front_door(replace(machine, home=home, environ={"HOME": str(home)}))
    before = tree_of(home)
    for _ in range(2):
        told = run("install")
        assert (told.returncode, told.stderr) == (0, "")
    for link in (".pi/agent/extensions", ".config/opencode/plugins"):
        assert (home / link / "mdello-companion.js").read_bytes().startswith(b"// mdello-companion client")
    assert run("doctor").stdout.count(": installed at ") == 4
    if SERVICE in ALL:
        told = run("install", SERVICE)
        refused = any(letter in name for letter in "\n\udcff")
        assert told.returncode == refused and ("systemd can start nothing" in told.stderr) == refused
    assert run("uninstall").returncode == 0
    assert tree_of(home) == before


def test_uninstall_alone_is_about_all_that_is_there(tmp_path: Path) -> None:
    """The usual ones in any case; the service too, once it is installed."""
    context = make_machine(tmp_path)
    assert list(install.removable(integrations(), context)) == at_once()
    if SERVICE in ALL:
        put(SERVICE, context)
        assert list(install.removable(integrations(), context)) == list(integrations())


def test_the_readme_says_how_each_is_removed() -> None:
    """Its table follows the registry."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in integrations():
        assert f"`./mdello.pyz uninstall {name}`" in text
