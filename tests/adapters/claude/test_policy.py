"""What in Claude Code's settings and environment is recognised as being against our hooks."""

import json
import os
from pathlib import Path
from typing import Dict, Mapping, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.claude import policy

ID = "mdello-companion@skills-dir"
URL = "http://127.0.0.1:51618/hooks/claude"


class World:
    """A configuration folder and an organisation's folder."""

    def __init__(self, base: Path) -> None:
        self.config = base / "config"
        self.managed = base / "managed"
        self.config.mkdir()
        (self.managed / "managed-settings.d").mkdir(parents=True)

    def put(self, name: str, content: object) -> Path:
        """Write one settings file: ``user``, ``local``, ``remote``, ``managed`` or a drop-in's name."""
        path = {
            "user": self.config / "settings.json",
            "local": self.config / "settings.local.json",
            "remote": self.config / "remote-settings.json",
            "managed": self.managed / "managed-settings.json",
        }.get(name, self.managed / "managed-settings.d" / name)
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return path

    def verdict(self, environ: Optional[Mapping[str, str]] = None, http: bool = True) -> policy.Verdict:
        """What is found."""
        return policy.examine(
            self.config, environ or {}, "mdello-companion", URL, http, (self.managed, Path("/nonexistent"))
        )


@pytest.fixture
def world(tmp_path: Path) -> World:
    """No settings at all."""
    return World(tmp_path)


def test_without_settings_nothing_is_in_the_way(world: World) -> None:
    """Absent files allow everything."""
    assert world.verdict() == policy.Verdict(True, ())


def test_harmless_settings_are_no_finding(world: World) -> None:
    """Keys of others, an enabled plugin, an allowlist that names us."""
    world.put(
        "user",
        {
            "model": "x",
            "enabledPlugins": {ID: True, "other@skills-dir": False},
            "disableAllHooks": False,
            "allowedHttpHookUrls": ["https://elsewhere/*", "http://127.0.0.1:51618/*"],
            "env": {"PATH": "/bin"},
        },
    )
    assert world.verdict() == policy.Verdict(True, ())


BLOCKING = [
    ("user", {"enabledPlugins": {ID: False}}, "claude plugin enable " + ID),
    ("managed", {"enabledPlugins": {ID: False}}, "organisation has disabled"),
    ("user", {"disableAllHooks": True}, "disableAllHooks"),
    ("managed", {"disableAllHooks": True}, "disableAllHooks"),
    ("managed", {"allowManagedHooksOnly": True}, "allowManagedHooksOnly"),
    ("remote", {"allowManagedHooksOnly": True}, "allowManagedHooksOnly"),
    ("10-hooks.json", {"allowManagedHooksOnly": True}, "allowManagedHooksOnly"),
    ("user", {"allowedHttpHookUrls": []}, '"http://127.0.0.1:51618/*"'),
    ("user", {"allowedHttpHookUrls": ["https://hooks.example.com/*"]}, "--transport command"),
    ("managed", {"strictKnownMarketplaces": []}, "strictKnownMarketplaces"),
    ("managed", {"blockedMarketplaces": [{"source": "skills-dir"}]}, "blockedMarketplaces"),
]


@pytest.mark.parametrize(("where", "content", "said"), BLOCKING)
def test_what_certainly_blocks_is_named_with_its_file(
    where: str, content: Dict[str, object], said: str, world: World
) -> None:
    """The verdict is no, and the note leads to the file and to what to do."""
    path = world.put(where, content)
    verdict = world.verdict()
    assert verdict.loaded is False
    (note,) = verdict.notes
    assert note.startswith(f"{path}: ") and said in note


IGNORED = [
    ("user", {"allowManagedHooksOnly": True}),
    ("user", {"strictKnownMarketplaces": []}),
    ("user", {"blockedMarketplaces": [{"source": "skills-dir"}]}),
    ("user", {"enabledPlugins": {ID: None}}),
    ("user", {"enabledPlugins": []}),
    ("user", {"disableAllHooks": "false"}),
    ("user", {"disableAllHooks": None}),
    ("user", {"allowedHttpHookUrls": "x"}),
    ("managed", {"strictKnownMarketplaces": [{"source": "skills-dir"}]}),
    ("managed", {"blockedMarketplaces": [{"source": "github", "repo": "a/b"}]}),
    (".hidden.json", {"disableAllHooks": True}),
    ("note.txt", {"disableAllHooks": True}),
]


@pytest.mark.parametrize(("where", "content"), IGNORED)
def test_what_does_not_count_there_is_no_finding(
    where: str, content: Dict[str, object], world: World
) -> None:
    """Some keys are obeyed in an organisation's settings only; odd values mean nothing."""
    world.put(where, content)
    assert world.verdict() == policy.Verdict(True, ())


def test_local_settings_concern_one_folder_only(world: World) -> None:
    """They are worth a word, but other sessions escape them."""
    world.put("local", {"enabledPlugins": {ID: False}, "disableAllHooks": True, "allowedHttpHookUrls": []})
    verdict = world.verdict()
    assert verdict.loaded is None
    assert len(verdict.notes) == 3


def test_allowlists_of_all_files_count_together(world: World) -> None:
    """It is enough that one of them names us."""
    world.put("user", {"allowedHttpHookUrls": []})
    world.put("managed", {"allowedHttpHookUrls": ["http://127.0.0.1:*"]})
    assert world.verdict().loaded is True


def test_an_organisation_may_enable_the_plugin_in_spite_of_all(world: World) -> None:
    """Plugins that managed settings enable run where only managed hooks do."""
    world.put("user", {"enabledPlugins": {ID: False}})
    world.put("managed", {"enabledPlugins": {ID: True}, "allowManagedHooksOnly": True})
    assert world.verdict().loaded is not False


def test_command_hooks_mind_neither_allowlists_nor_proxies(world: World) -> None:
    """Only http hooks are checked against them."""
    world.put("user", {"allowedHttpHookUrls": []})
    assert world.verdict({"HTTP_PROXY": "http://proxy:1"}, http=False) == policy.Verdict(True, ())


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"])
@pytest.mark.parametrize(
    ("spared", "expected"),
    [
        ({}, None),
        ({"NO_PROXY": ""}, None),
        ({"NO_PROXY": "localhost,example.com"}, None),
        ({"NO_PROXY": "127.0.0.0/8"}, None),
        ({"NO_PROXY": "127.0.0.1"}, True),
        ({"no_proxy": "example.com, 127.0.0.1"}, True),
        ({"NO_PROXY": "a b 127.0.0.1:51618"}, True),
        ({"NO_PROXY": "x", "no_proxy": "127.0.0.1"}, True),
        ({"NO_PROXY": "*"}, True),
    ],
)
def test_a_proxy_needs_an_exception_for_loopback(
    variable: str, spared: Dict[str, str], expected: Optional[bool], world: World
) -> None:
    """Otherwise hooks would go to the proxy; that depends on where a session is started."""
    verdict = world.verdict({variable: "http://proxy:3128", **spared})
    assert verdict.loaded is expected
    assert bool(verdict.notes) == (expected is None)
    if verdict.notes:
        assert variable in verdict.notes[0] and "NO_PROXY=127.0.0.1" in verdict.notes[0]


def test_an_empty_proxy_variable_is_none(world: World) -> None:
    """Empty counts as unset."""
    assert world.verdict({"HTTP_PROXY": ""}).loaded is True


def test_settings_may_set_the_proxy_too(world: World) -> None:
    """Their ``env`` block is part of every session's environment."""
    world.put("user", {"env": {"HTTPS_PROXY": "http://proxy:3128"}})
    assert "HTTPS_PROXY" in world.verdict().notes[0]
    world.put("user", {"env": {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "127.0.0.1"}})
    assert world.verdict().loaded is True


UNREADABLE = ["", "  ", "{", "[]", "null", "// comment\n{}", '{"a": 1,}', "[" * 100_000, "\ufeff{"]


@pytest.mark.parametrize("content", UNREADABLE)
@pytest.mark.parametrize("where", ["user", "managed"])
def test_a_file_that_cannot_be_understood_is_said(where: str, content: str, world: World) -> None:
    """Neither a crash nor a silent yes; only an empty file says nothing."""
    path = world.put(where, content)
    verdict = world.verdict()
    if not content.strip():
        assert verdict == policy.Verdict(True, ())
        return
    assert verdict.loaded is None
    assert str(path) in verdict.notes[0] and "could not be read" in verdict.notes[0]


def test_a_byte_order_mark_is_no_obstacle(world: World) -> None:
    """Editors on Windows write one."""
    world.put("user", '\ufeff{"disableAllHooks": true}')
    assert world.verdict().loaded is False


def test_odd_files_neither_hang_nor_crash(world: World) -> None:
    """A pipe, a folder, a dangling or circular link, and a file of more than settings' size."""
    os.mkfifo(world.config / "settings.json")
    (world.config / "settings.local.json").mkdir()
    (world.config / "remote-settings.json").symlink_to("nowhere")
    (world.managed / "managed-settings.json").symlink_to("managed-settings.json")
    (world.managed / "managed-settings.d" / "big.json").write_bytes(b" " * (policy.MAX_SETTINGS_BYTES + 1))
    verdict = world.verdict()
    assert verdict.loaded is None
    assert len(verdict.notes) == 4


def test_a_configuration_folder_that_is_a_file_says_nothing(tmp_path: Path) -> None:
    """Nothing is in it, so nothing is in the way."""
    (tmp_path / "file").touch()
    assert policy.examine(tmp_path / "file", {}, "mdello-companion", URL, True, ()).loaded is True


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([ID, "source", "skills-dir", "HTTP_PROXY"]), inner, max_size=3)
    ),
    max_leaves=8,
)
_KEYS = [
    "enabledPlugins",
    "disableAllHooks",
    "allowManagedHooksOnly",
    "allowedHttpHookUrls",
    "strictKnownMarketplaces",
    "blockedMarketplaces",
    "env",
]


@settings(max_examples=200, deadline=None)
@given(contents=st.dictionaries(st.sampled_from(_KEYS), _JSON), raw=st.binary(max_size=30))
def test_no_settings_whatsoever_make_it_raise(
    contents: Dict[str, object], raw: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any JSON under any key, and any bytes."""
    world = World(tmp_path_factory.mktemp("any"))
    world.put("user", contents)
    world.put("managed", contents)
    (world.config / "settings.local.json").write_bytes(raw)
    verdict = world.verdict()
    assert verdict.loaded is not True or not verdict.notes


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("http://127.0.0.1:51618/*", True),
        ("http://127.0.0.1:*", True),
        ("*", True),
        (URL, True),
        ("*claude", True),
        ("http*51618*claude", True),
        ("http://127.0.0.1:51618/", False),
        ("http://127.0.0.1:51619/*", False),
        ("http://127x0.0.1:51618/*", False),
        ("http://localhost:51618/*", False),
        ("", False),
        (URL + "*" + URL, False),
        ("*a" * 2_000 + "*", False),
        (7, False),
    ],
)
def test_url_patterns(pattern: object, matches: bool, world: World) -> None:
    """A star stands for any text, everything else for itself, and the whole URL has to fit."""
    world.put("user", {"allowedHttpHookUrls": [pattern]})
    assert (world.verdict().loaded is True) == matches
