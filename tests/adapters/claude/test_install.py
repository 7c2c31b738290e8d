"""Installing the Claude plugin: what is written, what is refused, and that it can all be undone."""

import json
import os
import shutil
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Callable, Dict, List, Tuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.claude import events, folder
from adapters.claude.install import inspect, install, presence, uninstall
from adapters.contract import AdapterError, InstallContext, InstallReport
from tests.adapters.disk import die_at, in_parallel, refusal_to_nobody, times_of, tree_of

CURL = "/usr/bin/curl"
ENDPOINT = "http://127.0.0.1:43210"
URL = ENDPOINT + "/hooks/claude"
NO_POLICY: Tuple[Path, ...] = ()


def with_curl(name: str) -> "str | None":
    """A machine that has curl."""
    return CURL if name in ("curl", CURL) else None


def make_context(base: Path, **changes: object) -> InstallContext:
    """A home and a program below ``base``; curl is there unless ``which`` says otherwise."""
    home = base / "home"
    home.mkdir(exist_ok=True)
    program = base / "mdello.pyz"
    program.touch()
    context = InstallContext(home, {}, ENDPOINT, program, sys.executable, which=with_curl, version="1.2.3")
    return replace(context, **changes)  # type: ignore[arg-type]


@pytest.fixture
def context(tmp_path: Path) -> InstallContext:
    """A new machine: an empty home."""
    return make_context(tmp_path)


def plugin_dir(context: InstallContext) -> Path:
    """Where the plugin belongs by default."""
    return context.home / ".claude" / "skills" / "mdello-companion"


def do_install(context: InstallContext) -> InstallReport:
    """Install on a machine without an organisation's settings."""
    return install(context, NO_POLICY)


def hooks_of(context: InstallContext) -> Dict[str, Dict[str, object]]:
    """Event to its one hook, as written; ``matcher`` is put in when there is one."""
    content = json.loads((plugin_dir(context) / "hooks" / "hooks.json").read_text("utf-8"))
    assert set(content) == {"hooks"}
    found = {}
    for event, groups in content["hooks"].items():
        (group,) = groups
        (hook,) = group["hooks"]
        assert set(group) <= {"matcher", "hooks"}
        found[event] = {**hook, **({"matcher": group["matcher"]} if "matcher" in group else {})}
    return found


# --- what is written -----------------------------------------------------------------------------


def test_it_writes_a_manifest_hooks_and_a_link_and_nothing_else(context: InstallContext) -> None:
    """Three files in one folder of our own, and the record of the folders that had to be made."""
    report = do_install(context)
    place = plugin_dir(context)
    assert report.headline == f"Installed Claude plugin at {place}"
    assert report.changed
    files = {str(path.relative_to(place)) for path in place.rglob("*") if not path.is_dir()}
    assert files == {".claude-plugin/plugin.json", "hooks/hooks.json", "mdello.pyz"}
    assert set(tree_of(context.home)) == {
        ".claude",
        ".claude/skills",
        ".claude/skills/mdello-companion",
        ".claude/skills/mdello-companion/.claude-plugin",
        ".claude/skills/mdello-companion/.claude-plugin/plugin.json",
        ".claude/skills/mdello-companion/hooks",
        ".claude/skills/mdello-companion/hooks/hooks.json",
        ".claude/skills/mdello-companion/mdello.pyz",
        ".local",
        ".local/share",
        ".local/share/mdello",
        ".local/share/mdello/made-folders.json",
    }
    assert os.readlink(place / "mdello.pyz") == str(context.program)


def test_the_manifest_carries_name_version_and_marker(context: InstallContext) -> None:
    """Whoever validates plugins finds all keys; we find our marker."""
    do_install(context)
    text = (plugin_dir(context) / ".claude-plugin" / "plugin.json").read_text("utf-8")
    manifest = json.loads(text)
    assert manifest["name"] == "mdello-companion"
    assert manifest["version"] == "1.2.3"
    assert manifest["description"] and manifest["author"]["name"]
    assert manifest["metadata"]["managedBy"] == "mdello-companion"
    assert text.startswith('{\n  "name"') and text.endswith("}\n")


def test_every_subscribed_event_has_one_hook_from_the_table(context: InstallContext) -> None:
    """Events, order, transports and matchers are those of the event table; timeouts are explicit."""
    do_install(context)
    hooks = hooks_of(context)
    assert list(hooks) == [policy.name for policy in events.SUBSCRIBED]
    for policy in events.SUBSCRIBED:
        hook = hooks[policy.name]
        assert policy.transport is not None
        assert hook["type"] == policy.transport.value
        assert hook.get("matcher") == policy.matcher
        assert isinstance(hook["timeout"], int) and 0 < hook["timeout"] <= 5
        assert "async" not in hook
        if policy.transport is events.Transport.HTTP:
            assert hook["url"] == URL


def test_hooks_are_indented_json_with_a_timeout_of_two_seconds(context: InstallContext) -> None:
    """A hook that hangs costs its whole timeout, each time; an editor can show the file."""
    do_install(context)
    for transport in ("http", "command"):
        do_install(replace(context, transport=transport))
        assert {hook["timeout"] for hook in hooks_of(context).values()} == {2}
        text = (plugin_dir(context) / "hooks" / "hooks.json").read_text("utf-8")
        assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"


def test_only_events_of_the_oldest_version_are_subscribed(context: InstallContext) -> None:
    """One name that an older version does not know would make it drop the whole file."""
    do_install(context)
    oldest = {policy.name for policy in events.POLICIES if policy.since == events.OLDEST_VERSION}
    assert set(hooks_of(context)) <= oldest


def test_session_boundaries_use_a_silent_curl(context: InstallContext) -> None:
    """Start and end run curl: no proxy, no curlrc, one second, always a success."""
    do_install(context)
    for event in ("SessionStart", "SessionEnd"):
        command = hooks_of(context)[event]["command"]
        assert isinstance(command, str)
        assert command.startswith(CURL + " -q ")
        assert "--noproxy '*'" in command and "--max-time 1 " in command
        assert "--data-binary @-" in command and URL in command
        assert command.endswith(">/dev/null 2>&1 || true")


def test_the_configured_port_lands_in_both_kinds_and_a_trailing_slash_is_dropped(tmp_path: Path) -> None:
    """The endpoint is fixed at installation."""
    context = make_context(tmp_path, endpoint="http://127.0.0.1:5555/")
    do_install(context)
    hooks = hooks_of(context)
    assert hooks["Stop"]["url"] == "http://127.0.0.1:5555/hooks/claude"
    assert "http://127.0.0.1:5555/hooks/claude " in str(hooks["SessionEnd"]["command"])


def test_command_transport_makes_every_event_a_command_that_is_waited_for(tmp_path: Path) -> None:
    """Nothing is http, and nothing asynchronous: such commands get lost and overtake each other."""
    context = make_context(tmp_path, transport="command")
    do_install(context)
    for event, hook in hooks_of(context).items():
        assert hook["type"] == "command"
        assert "async" not in hook, event
        assert str(hook["command"]).endswith("|| true")


def test_without_curl_our_own_file_posts(tmp_path: Path) -> None:
    """The interpreter runs our file through the link in the plugin folder."""
    context = make_context(tmp_path, which=lambda name: None)
    do_install(context)
    command = str(hooks_of(context)["SessionStart"]["command"])
    assert command.startswith(f"{sys.executable} -E -S ")
    assert f"{plugin_dir(context)}/mdello.pyz" in command
    assert "hook-post claude 43210" in command


def test_the_report_is_read_back_from_disk(context: InstallContext) -> None:
    """Details name every event under the transport that the file on disk gives it."""
    details = do_install(context).details
    hooks = hooks_of(context)
    for transport in ("http", "command"):
        line = next(line for line in details if line.startswith(f"Events by {transport}: "))
        named = line.partition(": ")[2].split(", ")
        assert named == [event for event, hook in hooks.items() if hook["type"] == transport]
    assert f"Wrote mdello.pyz -> {context.program}" in details


def test_the_report_says_so_when_another_program_undoes_the_write(
    context: InstallContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is reported is what is there afterwards, not what was meant."""
    original = folder.put_new

    def put_and_lose(*arguments: object) -> None:
        original(*arguments)  # type: ignore[arg-type]
        shutil.rmtree(plugin_dir(context))

    monkeypatch.setattr(folder, "put_new", put_and_lose)
    with pytest.raises(AdapterError, match="changed by another program"):
        do_install(context)


# --- twice, and from other places ------------------------------------------------------------------


def test_installing_twice_changes_nothing(context: InstallContext) -> None:
    """Same bytes, same inodes, same times; the report says so."""
    do_install(context)
    before = (tree_of(context.home), times_of(context.home))
    report = do_install(context)
    assert not report.changed
    assert report.headline.startswith("Installed Claude plugin at ")
    assert (tree_of(context.home), times_of(context.home)) == before


def test_a_changed_endpoint_or_program_is_brought_up_to_date(context: InstallContext, tmp_path: Path) -> None:
    """Only what differs is written; the record of folders that we made is kept."""
    do_install(context)
    other = tmp_path / "other.pyz"
    other.touch()
    report = do_install(replace(context, endpoint="http://127.0.0.1:6000", program=other))
    assert report.changed
    assert "Kept .claude-plugin/plugin.json" in report.details
    assert "Wrote hooks/hooks.json" in report.details
    assert os.readlink(plugin_dir(context) / "mdello.pyz") == str(other)
    uninstall(context)
    assert tree_of(context.home) == {}


def test_a_transport_is_kept_unless_another_is_asked_for(context: InstallContext) -> None:
    """An update must not turn a quiet installation into a noisy one."""
    do_install(replace(context, transport="command"))
    assert not do_install(replace(context, transport="")).changed
    assert hooks_of(context)["Stop"]["type"] == "command"
    do_install(replace(context, transport="http"))
    assert hooks_of(context)["Stop"]["type"] == "http"
    assert not do_install(replace(context, transport="")).changed


def test_the_program_may_be_started_through_its_own_link(context: InstallContext) -> None:
    """The link must not come to point to itself."""
    do_install(context)
    assert not do_install(replace(context, program=plugin_dir(context) / "mdello.pyz")).changed
    assert (plugin_dir(context) / "mdello.pyz").resolve() == context.program.resolve()


def test_claude_config_dir_is_honoured_and_named(context: InstallContext, tmp_path: Path) -> None:
    """The whole folder moves; an empty value counts as unset; ``~`` is not expanded."""
    elsewhere = tmp_path / "deep" / "er" / "config dir"
    moved = replace(context, environ={"CLAUDE_CONFIG_DIR": str(elsewhere)})
    report = do_install(moved)
    assert (elsewhere / "skills" / "mdello-companion" / "hooks" / "hooks.json").is_file()
    assert any("CLAUDE_CONFIG_DIR" in line for line in report.details)
    assert ".claude" not in tree_of(context.home)
    uninstall(moved)
    assert not (tmp_path / "deep").exists()
    assert tree_of(context.home) == {}
    do_install(replace(context, environ={"CLAUDE_CONFIG_DIR": ""}))
    assert plugin_dir(context).is_dir()


def test_a_relative_claude_config_dir_is_refused(context: InstallContext) -> None:
    """It would name another folder in every directory."""
    relative = replace(context, environ={"CLAUDE_CONFIG_DIR": "~/.claude"})
    with pytest.raises(AdapterError, match="CLAUDE_CONFIG_DIR"):
        do_install(relative)
    assert inspect(relative, NO_POLICY).state == "absent"


def test_a_missing_program_is_an_error_before_anything_is_changed(context: InstallContext) -> None:
    """A link to nothing would be of no use."""
    context.program.unlink()
    with pytest.raises(AdapterError, match=r"mdello\.pyz"):
        do_install(context)
    assert tree_of(context.home) == {}


# --- what is not ours ----------------------------------------------------------------------------


def _unmanaged_folder(place: Path, target: Path) -> None:
    (place / ".claude-plugin").mkdir(parents=True)
    (place / ".claude-plugin" / "plugin.json").write_text('{"name": "mdello-companion"}')


def _other_owner(place: Path, target: Path) -> None:
    (place / ".claude-plugin").mkdir(parents=True)
    manifest = {"name": "mdello-companion", "metadata": {"managedBy": "somebody"}}
    (place / ".claude-plugin" / "plugin.json").write_text(json.dumps(manifest))


def _broken_manifest(place: Path, target: Path) -> None:
    (place / ".claude-plugin").mkdir(parents=True)
    (place / ".claude-plugin" / "plugin.json").write_bytes(b'{"metadata": {"managedBy": "mdello-companion"')


def _manifest_is_a_list(place: Path, target: Path) -> None:
    (place / ".claude-plugin").mkdir(parents=True)
    (place / ".claude-plugin" / "plugin.json").write_text('[{"metadata": 1}]')


def _nested_too_deep(place: Path, target: Path) -> None:
    (place / ".claude-plugin").mkdir(parents=True)
    (place / ".claude-plugin" / "plugin.json").write_text("[" * 100_000)


def _empty_folder(place: Path, target: Path) -> None:
    place.mkdir(parents=True)


def _plain_file(place: Path, target: Path) -> None:
    place.parent.mkdir(parents=True)
    place.write_text("a note")


def _link_to_ours(place: Path, target: Path) -> None:
    shutil.copytree(target, place.parent.parent / "elsewhere", symlinks=True)
    place.parent.mkdir(parents=True)
    place.symlink_to("../elsewhere")


def _dangling_link(place: Path, target: Path) -> None:
    place.parent.mkdir(parents=True)
    place.symlink_to("nowhere")


def _circular_link(place: Path, target: Path) -> None:
    place.parent.mkdir(parents=True)
    place.symlink_to(place.name)


def _pipe_as_manifest(place: Path, target: Path) -> None:
    (place / ".claude-plugin").mkdir(parents=True)
    os.mkfifo(place / ".claude-plugin" / "plugin.json")


def _linked_manifest_folder(place: Path, target: Path) -> None:
    place.mkdir(parents=True)
    (place / ".claude-plugin").symlink_to(target / ".claude-plugin")


def _linked_hooks_folder(place: Path, target: Path) -> None:
    shutil.copytree(target, place, symlinks=True)
    shutil.rmtree(place / "hooks")
    (place / "hooks").symlink_to(target / "hooks")


def _linked_hooks_file(place: Path, target: Path) -> None:
    shutil.copytree(target, place, symlinks=True)
    (place / "hooks" / "hooks.json").unlink()
    (place / "hooks" / "hooks.json").symlink_to(target / "hooks" / "hooks.json")


def _plain_file_for_link(place: Path, target: Path) -> None:
    shutil.copytree(target, place, symlinks=True)
    (place / "mdello.pyz").unlink()
    (place / "mdello.pyz").write_text("mine")


NOT_OURS = [
    _unmanaged_folder,
    _other_owner,
    _broken_manifest,
    _manifest_is_a_list,
    _nested_too_deep,
    _empty_folder,
    _plain_file,
    _link_to_ours,
    _dangling_link,
    _circular_link,
    _pipe_as_manifest,
    _linked_manifest_folder,
    _linked_hooks_folder,
    _linked_hooks_file,
    _plain_file_for_link,
]


@pytest.mark.parametrize("make", NOT_OURS, ids=lambda make: make.__name__.strip("_"))
def test_what_is_not_ours_is_spared_both_ways(make: Callable[[Path, Path], None], tmp_path: Path) -> None:
    """Refused with a telling error, not a byte changed; inspection calls it foreign."""
    (tmp_path / "example").mkdir()
    example = make_context(tmp_path / "example")
    do_install(example)
    context = make_context(tmp_path)
    make(plugin_dir(context), plugin_dir(example))
    is_pipe = make is _pipe_as_manifest
    before = {} if is_pipe else (tree_of(context.home), tree_of(example.home))
    with pytest.raises(AdapterError, match="Cannot replace unmanaged"):
        do_install(context)
    with pytest.raises(AdapterError, match="Refusing to remove unmanaged"):
        uninstall(context)
    found = inspect(context, NO_POLICY)
    assert (found.state, found.loaded) == ("foreign", None)
    assert found.notes
    assert before == ({} if is_pipe else (tree_of(context.home), tree_of(example.home)))


def test_a_file_in_a_parents_place_is_an_error_that_changes_nothing(context: InstallContext) -> None:
    """``.claude`` itself may be a file; nobody but its owner can sort that out."""
    (context.home / ".claude").write_text("a file")
    with pytest.raises(AdapterError, match="Cannot install"):
        do_install(context)
    assert set(tree_of(context.home)) == {".claude"}
    assert uninstall(context).headline.startswith("Removed Claude plugin")
    assert inspect(context, NO_POLICY).state == "absent"


def test_settings_are_byte_for_byte_the_users(context: InstallContext) -> None:
    """Neither installing nor uninstalling writes a settings file, whatever stands in it."""
    (context.home / ".claude").mkdir()
    for name, content in (("settings.json", b'{"hooks":  {}}\r\n'), ("settings.local.json", b"// not JSON")):
        (context.home / ".claude" / name).write_bytes(content)
    before = times_of(context.home)
    do_install(context)
    uninstall(context)
    after = times_of(context.home)
    assert {path: after[path] for path in after if path.endswith(".json")} == {
        path: before[path] for path in before if path.endswith(".json")
    }


# --- links among the parents -----------------------------------------------------------------------


@pytest.mark.parametrize("linked", [".claude", ".claude/skills"])
@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("dangling", [True, False])
def test_a_parent_may_be_a_link_into_a_dotfiles_repository(
    linked: str, relative: bool, dangling: bool, context: InstallContext, tmp_path: Path
) -> None:
    """We write behind the link; the link stays, and uninstalling leaves what was there."""
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    target = dotfiles / "target"
    if not dangling:
        target.mkdir()
        (target / "own.md").write_text("mine")
    link = context.home / linked
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(os.path.relpath(target, link.parent) if relative else target)
    before = (tree_of(context.home), tree_of(dotfiles))
    do_install(context)
    assert link.is_symlink()
    assert (plugin_dir(context) / "hooks" / "hooks.json").is_file()
    assert (target / "skills" if linked == ".claude" else target).is_dir()
    assert not do_install(context).changed
    uninstall(context)
    assert (tree_of(context.home), tree_of(dotfiles)) == before


# --- undoing it ------------------------------------------------------------------------------------


def test_uninstalling_twice_and_without_an_installation_is_fine(context: InstallContext) -> None:
    """There is nothing to remove, and that is said in the same words."""
    assert not uninstall(context).changed
    do_install(context)
    assert uninstall(context).changed
    report = uninstall(context)
    assert not report.changed and report.headline.startswith("Removed Claude plugin")
    assert tree_of(context.home) == {}


def test_folders_that_others_use_by_now_stay(context: InstallContext) -> None:
    """A folder that we made goes only as long as nothing else is in it."""
    do_install(context)
    (context.home / ".claude" / "projects").mkdir()
    uninstall(context)
    assert set(tree_of(context.home)) == {".claude", ".claude/projects"}


def test_an_empty_folder_that_was_there_before_stays(context: InstallContext) -> None:
    """Empty is not the same as ours."""
    (context.home / ".claude" / "skills").mkdir(parents=True)
    before = tree_of(context.home)
    do_install(context)
    uninstall(context)
    assert tree_of(context.home) == before


def test_files_of_the_user_in_our_folder_stay_and_are_named(context: InstallContext) -> None:
    """Ours goes, theirs stays, and the report says which."""
    do_install(context)
    place = plugin_dir(context)
    (place / "notes.txt").write_text("mine")
    (place / "hooks" / "more").mkdir()
    (place / "hooks" / "more" / "deep.txt").write_text("mine too")
    report = uninstall(context)
    assert [line.rpartition(" ")[2] for line in report.warnings] == [
        str(place / "hooks" / "more"),
        str(place / "notes.txt"),
    ]
    left = {name for name, (kind, *_) in tree_of(place).items() if kind != "folder"}
    assert left == {"notes.txt", "hooks/more/deep.txt"}


def test_where_no_folder_is_missing_no_record_is_kept(context: InstallContext) -> None:
    """There is nothing to remember then: the plugin folder is all that is written."""
    (context.home / ".claude" / "skills").mkdir(parents=True)
    do_install(context)
    assert not (context.home / ".local").exists()


@pytest.mark.parametrize("update", [False, True])
def test_what_an_older_version_wrote_down_in_its_manifest_is_honoured(
    update: bool, context: InstallContext
) -> None:
    """It counted the folders that it made; they go, whether we update it first or not."""
    do_install(context)
    manifest = plugin_dir(context) / ".claude-plugin" / "plugin.json"
    content = json.loads(manifest.read_text())
    content["metadata"]["createdFolders"] = 2
    manifest.write_text(json.dumps(content))
    shutil.rmtree(context.home / ".local")
    if update:
        assert inspect(context, NO_POLICY).state == "outdated"
        assert do_install(context).changed
        assert "createdFolders" not in manifest.read_text()
    uninstall(context)
    assert tree_of(context.home) == {}


def test_presence_is_the_program_or_a_folder_that_claude_has_used(context: InstallContext) -> None:
    """What we have made ourselves proves nothing."""
    assert presence(context) is None
    do_install(context)
    assert presence(context) is None
    (context.home / ".claude" / "settings.json").touch()
    assert presence(context) == str(context.home / ".claude")
    assert presence(replace(context, which=lambda name: f"/bin/{name}")) == "/bin/claude"
    assert presence(replace(context, environ={"CLAUDE_CONFIG_DIR": "relative"})) is None


def test_an_update_keeps_files_of_the_user(context: InstallContext) -> None:
    """Bringing the folder up to date is not replacing it."""
    do_install(context)
    (plugin_dir(context) / "notes.txt").write_text("mine")
    do_install(replace(context, endpoint="http://127.0.0.1:6000"))
    assert (plugin_dir(context) / "notes.txt").read_text() == "mine"


# Foreign trees, also with names that are nearly ours. What is exactly ours is another test's matter.
_NAMES = st.sampled_from(
    [
        ".claude",
        ".local",
        "share",
        "mdello",
        "made-folders.json",
        "skills",
        "settings.json",
        "settings.local.json",
        "mdello-companion2",
        "hooks",
        "é",
        "é",
        "a b'c$",
    ]
)
_PATHS = st.lists(_NAMES, min_size=1, max_size=4).map(lambda parts: "/".join(parts))
_CONTENTS = st.one_of(st.none(), st.binary(max_size=40), st.just(b'{"enabledPlugins": {"x": false}}'))
_STEPS = st.lists(st.sampled_from(["install", "install command", "uninstall"]), max_size=5)


def _grow(home: Path, wanted: Dict[str, "bytes | None"]) -> None:
    """Make the files and folders (None) as far as they do not contradict each other."""
    for name, content in wanted.items():
        path = home / name
        try:
            if content is None:
                path.mkdir(parents=True, exist_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        except OSError:
            continue


@settings(max_examples=100, deadline=None)
@given(wanted=st.dictionaries(_PATHS, _CONTENTS, max_size=6), steps=_STEPS)
def test_any_home_is_the_same_after_uninstalling(
    wanted: Dict[str, "bytes | None"], steps: List[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any order of installs and uninstalls over any foreign tree ends, undone, where it began."""
    context = make_context(tmp_path_factory.mktemp("any"))
    _grow(context.home, wanted)
    before = tree_of(context.home)
    for step in [*steps, "uninstall"]:
        try:
            if step == "uninstall":
                uninstall(context)
                assert tree_of(context.home) == before
            else:
                do_install(replace(context, transport="command" if "command" in step else "http"))
                kept = {name: now for name, now in tree_of(context.home).items() if name in before}
                assert kept == before
        except AdapterError:  # A file stands where a folder is needed: then nothing may change.
            assert tree_of(context.home) == before


# --- in the middle of it ---------------------------------------------------------------------------


def _state(context: InstallContext) -> str:
    """The plugin as Claude Code would see it: absent, or its hooks, which must be whole."""
    place = plugin_dir(context)
    if not place.exists():
        return "absent"
    assert json.loads((place / ".claude-plugin" / "plugin.json").read_text("utf-8"))
    hooks = hooks_of(context)
    assert list(hooks) == [policy.name for policy in events.SUBSCRIBED]
    assert (place / "mdello.pyz").exists()
    return str(hooks["Stop"]["type"])


@pytest.mark.parametrize("skills_exist", [False, True])
def test_a_kill_while_installing_leaves_all_or_nothing(skills_exist: bool, tmp_path: Path) -> None:
    """At every step: the old state or the new one, and the next run cleans up after the dead one."""
    for count in range(200):
        base = tmp_path / str(count)
        base.mkdir()
        context = make_context(base)
        if skills_exist:
            (context.home / ".claude" / "skills").mkdir(parents=True)
        before = tree_of(context.home)
        finished = die_at(count, partial(do_install, context))
        assert _state(context) in ("absent", "http")
        if count % 2:
            do_install(context)
            assert inspect(context, NO_POLICY).state == "installed"
        uninstall(context)
        assert tree_of(context.home) == before
        if finished:
            return
    pytest.fail("it never finished")


def test_a_kill_while_updating_leaves_old_or_new_hooks(tmp_path: Path) -> None:
    """An update is file by file; what the agent runs is never half a file."""
    for count in range(200):
        base = tmp_path / str(count)
        base.mkdir()
        context = make_context(base)
        do_install(context)
        newer = replace(context, transport="command", version="2.0")
        finished = die_at(count, partial(do_install, newer))
        assert _state(context) in ("http", "command")
        do_install(newer)
        assert inspect(newer, NO_POLICY).state == "installed"
        uninstall(newer)
        assert tree_of(context.home) == {}
        if finished:
            return
    pytest.fail("it never finished")


def test_a_kill_while_uninstalling_leaves_all_or_nothing(tmp_path: Path) -> None:
    """The folder disappears at once; the next run removes what the dead one left."""
    for count in range(200):
        base = tmp_path / str(count)
        base.mkdir()
        context = make_context(base)
        do_install(context)
        finished = die_at(count, partial(uninstall, context))
        assert _state(context) in ("absent", "http")
        if count % 2:
            do_install(context)
        uninstall(context)
        assert tree_of(context.home) == {}, count
        if finished:
            return
    pytest.fail("it never finished")


def test_several_installs_at_once_end_in_one_right_installation(tmp_path: Path) -> None:
    """Whoever is later finds the work done."""
    for attempt in range(10):
        base = tmp_path / str(attempt)
        base.mkdir()
        context = make_context(base)
        assert in_parallel([partial(do_install, context)] * 6) == [0] * 6
        assert inspect(context, NO_POLICY).state == "installed"
        assert not [name for name in tree_of(context.home) if name.endswith(".tmp")]
        uninstall(context)
        assert tree_of(context.home) == {}


def test_installs_and_uninstalls_at_once_never_break(tmp_path: Path) -> None:
    """Some may give up with a telling error; in the end it can be undone as ever."""
    for attempt in range(10):
        base = tmp_path / str(attempt)
        base.mkdir()
        context = make_context(base)
        acts: List[Callable[[], object]] = [
            partial(do_install, context),
            partial(uninstall, context),
        ] * 3
        assert 2 not in in_parallel(acts)
        do_install(context)
        uninstall(context)
        left = tree_of(context.home)
        assert not any("mdello" in name for name in left)


def test_a_place_where_nothing_can_be_made_is_told_with_the_systems_words(
    context: InstallContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as below ``/proc``: it is no race, and is not told as one."""

    def refuse(place: Path, items: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(folder, "put_new", refuse)
    with pytest.raises(AdapterError, match="Cannot install the Claude plugin: No such file"):
        do_install(context)


def test_a_home_that_cannot_be_written_is_a_telling_error(tmp_path: Path) -> None:
    """As another user: the error names the place and the reason, and nothing is left."""
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are private to this user.
        Path(place).chmod(0o755)
        context = make_context(Path(place))
        context.home.chmod(0o555)
        said = refusal_to_nobody(lambda: do_install(context))
        assert "Permission denied" in said and str(context.home) in said
        assert tree_of(context.home) == {}


# --- inspection ------------------------------------------------------------------------------------


def test_inspection_tells_absent_installed_and_outdated_apart(context: InstallContext) -> None:
    """And it says which file differs."""
    assert inspect(context, NO_POLICY).state == "absent"
    do_install(context)
    found = inspect(context, NO_POLICY)
    assert (found.state, found.loaded, found.notes) == ("installed", True, ())
    assert found.place == str(plugin_dir(context))
    older = inspect(replace(context, endpoint="http://127.0.0.1:1"), NO_POLICY)
    assert older.state == "outdated"
    assert any("hooks.json" in note for note in older.notes)


@pytest.mark.parametrize("lost", [".claude-plugin/plugin.json", "hooks/hooks.json", "mdello.pyz"])
def test_a_lost_or_emptied_file_is_noticed_and_put_back(lost: str, context: InstallContext) -> None:
    """Deleting our hooks behind our back is seen; without its manifest the folder is not ours any more."""
    do_install(context)
    (plugin_dir(context) / lost).unlink()
    found = inspect(context, NO_POLICY)
    if lost.endswith("plugin.json"):
        assert found.state == "foreign"
        return
    assert found.state == "outdated"
    assert any(lost in note for note in found.notes)
    assert do_install(context).changed
    assert inspect(context, NO_POLICY).state == "installed"


def test_a_link_to_a_program_that_is_gone_is_said(context: InstallContext, tmp_path: Path) -> None:
    """People move the file; then the hooks without curl run nothing."""
    do_install(context)
    moved = tmp_path / "moved.pyz"
    context.program.rename(moved)
    notes = inspect(replace(context, program=moved), NO_POLICY).notes
    assert any("which is gone" in note and str(context.program) in note for note in notes)


def test_inspection_keeps_the_installed_transport_in_mind(context: InstallContext) -> None:
    """A quiet installation is not outdated merely because http is the default."""
    do_install(replace(context, transport="command"))
    assert inspect(context, NO_POLICY).state == "installed"


def test_policy_findings_are_warnings_and_notes(context: InstallContext) -> None:
    """What keeps events away is told at once, and again by inspection."""
    (context.home / ".claude").mkdir()
    settings_file = context.home / ".claude" / "settings.json"
    settings_file.write_text('{"enabledPlugins": {"mdello-companion@skills-dir": false}}')
    report = do_install(context)
    assert any(str(settings_file) in line and "disabled" in line for line in report.warnings)
    found = inspect(context, NO_POLICY)
    assert (found.state, found.loaded) == ("installed", False)
    assert any(str(settings_file) in line for line in found.notes)
