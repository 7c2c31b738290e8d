"""``companion.json`` keeps what others wrote into it, and no change gets lost."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Callable, Dict, List

import pytest

from companion.core.config import (
    DEFAULT_WEB_ORIGIN,
    ConfigFile,
    JsonObject,
    flag,
    normal_origin,
    web_origin,
)
from companion.core.errors import StorageError
from tests.conftest import ROOT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file would be."""
    return tmp_path / "config" / "companion.json"


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def _set(key: str, value: object) -> Callable[[JsonObject], None]:
    def edit(content: JsonObject) -> None:
        content[key] = value

    return edit


def _asides(path: Path) -> List[Path]:
    return sorted(path.parent.glob("companion.json.unreadable-*"))


def test_a_missing_file_is_empty_and_is_made_by_the_first_change(path: Path) -> None:
    """Private, with its folder, two spaces deep, with a last newline."""
    config = ConfigFile(path)
    assert config.read() == {}
    assert config.problem is None
    assert not path.parent.exists()
    config.change(_set("autofocus", True))
    assert path.read_bytes() == b'{\n  "autofocus": true\n}\n'
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_unknown_keys_and_the_order_of_keys_survive(path: Path) -> None:
    """Also when a key that is known is changed in the middle."""
    _write(path, {"z": [1, {"y": None}], "autofocus": False, "é": "日本", "webOrigin": "x"})
    ConfigFile(path).change(_set("autofocus", True))
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert list(saved.items()) == [
        ("z", [1, {"y": None}]),
        ("autofocus", True),
        ("é", "日本"),
        ("webOrigin", "x"),
    ]
    assert "日本" in path.read_text(encoding="utf-8")


def test_half_a_character_survives_as_an_escape(path: Path) -> None:
    """JSON may hold it, UTF-8 may not."""
    _write(path, '{"x": "\\ud800"}')
    ConfigFile(path).change(_set("y", 1))
    assert json.loads(path.read_bytes()) == {"x": "\ud800", "y": 1}


@pytest.mark.parametrize(
    ("content", "read"),
    [
        ({"githubLinkEnrichment": True, "jiraLinkEnrichment": False}, {"linkEnrichment": True}),
        ({"githubLinkEnrichment": False, "jiraLinkEnrichment": True}, {"linkEnrichment": True}),
        ({"githubLinkEnrichment": False}, {"linkEnrichment": False}),
        ({"jiraLinkEnrichment": "yes"}, {}),
        ({"jiraLinkEnrichment": "yes", "githubLinkEnrichment": True}, {"linkEnrichment": True}),
        ({"linkEnrichment": False, "githubLinkEnrichment": True}, {"linkEnrichment": False}),
        ({"linkEnrichment": "x", "githubLinkEnrichment": True}, {"linkEnrichment": True}),
        ({"linkEnrichment": None, "a": 1}, {"linkEnrichment": None, "a": 1}),
    ],
)
def test_two_legacy_keys_become_one(path: Path, content: JsonObject, read: JsonObject) -> None:
    """At reading; they leave the disk with the next change."""
    _write(path, content)
    config = ConfigFile(path)
    assert config.read() == read
    config.change(lambda content: None)
    assert json.loads(path.read_bytes()) == read


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        '"x"',
        "1",
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        "[" * 100000,
        "ÿ{}",
    ],
)
def test_an_unusable_file_is_empty_and_is_set_aside_by_the_next_change(path: Path, content: str) -> None:
    """Nothing that a person wrote is thrown away."""
    _write(path, content)
    config = ConfigFile(path)
    assert config.read() == {}
    assert str(path) in str(config.problem)
    assert path.read_text(encoding="utf-8") == content
    config.change(_set("a", 1))
    assert config.problem is None
    assert json.loads(path.read_bytes()) == {"a": 1}
    (aside,) = _asides(path)
    assert aside.read_text(encoding="utf-8") == content
    assert aside.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["", '{"boards": [', "[]"])
def test_a_file_that_breaks_while_we_run_is_as_it_was(path: Path, content: str) -> None:
    """An editor in the middle of a save, or a slip of the hand: the boards stay, also in the next save."""
    _write(path, {"boards": ["one"], "other": 1})
    config = ConfigFile(path)
    assert config.read()["boards"] == ["one"]
    _write(path, content)
    assert config.read() == {"boards": ["one"], "other": 1}
    assert config.problem is not None and config.problem.startswith(f"{path}: ")
    config.change(_set("autofocus", True))
    assert json.loads(path.read_text("utf-8")) == {"boards": ["one"], "other": 1, "autofocus": True}
    assert [each.read_text("utf-8") for each in path.parent.glob("*.unreadable-*")] == [content]
    assert ConfigFile(path).read()["boards"] == ["one"]


def test_a_byte_order_mark_does_no_harm(path: Path) -> None:
    """Some editors leave one."""
    _write(path, "\ufeff" + json.dumps({"a": 1}))
    assert ConfigFile(path).read() == {"a": 1}


def test_a_mended_file_is_read_again(path: Path) -> None:
    """And is not set aside any more."""
    _write(path, "{")
    config = ConfigFile(path)
    assert config.read() == {} and config.problem
    _write(path, {"a": 1})
    assert config.read() == {"a": 1}
    assert config.problem is None
    config.change(_set("b", 2))
    assert json.loads(path.read_bytes()) == {"a": 1, "b": 2}
    assert _asides(path) == []


def test_a_change_made_elsewhere_is_seen_by_the_next_reading(path: Path) -> None:
    """Without it the very same object is given, unread."""
    config = ConfigFile(path)
    config.change(_set("a", 1))
    assert config.read() is config.read()
    ConfigFile(path).change(_set("b", 2))
    assert config.read() == {"a": 1, "b": 2}


def test_a_change_builds_on_what_is_on_disk(path: Path) -> None:
    """Not on what was read before."""
    first, second = ConfigFile(path), ConfigFile(path)
    first.read()
    second.change(_set("b", 2))
    first.change(_set("a", 1))
    assert json.loads(path.read_bytes()) == {"b": 2, "a": 1}


def test_a_change_that_raises_changes_nothing(path: Path) -> None:
    """Neither on disk nor in memory."""
    config = ConfigFile(path)
    config.change(_set("a", 1))

    def edit(content: JsonObject) -> None:
        content["b"] = 2
        raise KeyError("no")

    with pytest.raises(KeyError):
        config.change(edit)
    assert config.read() == json.loads(path.read_bytes()) == {"a": 1}


def test_changes_that_cannot_be_saved_add_up_in_memory(tmp_path: Path) -> None:
    """A home that cannot be written; once it can, all of them are saved."""
    (tmp_path / "config").write_text("in the way")
    config = ConfigFile(tmp_path / "config" / "companion.json")
    for key in ("a", "b"):
        with pytest.raises(StorageError, match="Cannot save"):
            config.change(_set(key, 1))
    assert config.read() == {"a": 1, "b": 1}
    (tmp_path / "config").unlink()
    config.change(_set("c", 1))
    assert json.loads(config.path.read_bytes()) == {"a": 1, "b": 1, "c": 1}


def test_a_full_disk_keeps_the_changes_in_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the file as it was."""
    config = ConfigFile(path)
    config.change(_set("a", 1))
    before = path.read_bytes()

    def fail(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    for key in ("b", "c"):
        with pytest.raises(StorageError, match="No space left"):
            config.change(_set(key, 1))
    assert config.read() == {"a": 1, "b": 1, "c": 1}
    assert path.read_bytes() == before
    assert [found.name for found in path.parent.iterdir()] == ["companion.json"]


def test_a_file_that_cannot_be_read_is_not_overwritten(path: Path) -> None:
    """A folder in its place, for one."""
    path.mkdir(parents=True)
    config = ConfigFile(path)
    assert config.read() == {}
    assert "Is a directory" in str(config.problem)
    with pytest.raises(StorageError):
        config.change(_set("a", 1))
    assert config.read() == {"a": 1}
    assert path.is_dir()


def test_values_nested_too_deep_to_be_written_are_an_error(path: Path) -> None:
    """Not a crash."""
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    config = ConfigFile(path)
    with pytest.raises(StorageError):
        config.change(_set("a", deep))


def test_a_linked_file_stays_a_link_and_keeps_its_mode(path: Path, tmp_path: Path) -> None:
    """As a dotfiles repository has it."""
    target = tmp_path / "dotfiles.json"
    target.write_text('{"a": 1}')
    target.chmod(0o644)
    path.parent.mkdir()
    path.symlink_to("../dotfiles.json")
    ConfigFile(path).change(_set("b", 2))
    assert path.is_symlink()
    assert json.loads(target.read_bytes()) == {"a": 1, "b": 2}
    assert target.stat().st_mode & 0o777 == 0o644


def test_processes_that_change_it_at_once_lose_nothing(path: Path) -> None:
    """Four of them, forty changes each, each into one list."""
    program = (
        "import sys; from pathlib import Path; from companion.core.config import ConfigFile\n"
        "config = ConfigFile(Path(sys.argv[1]))\n"
        "def edit(content): content['list'] = [*content.get('list', []), f'{sys.argv[2]}-{number:02}']\n"
        "for number in range(40): config.change(edit)\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    processes = [subprocess.Popen([*command, str(name)], cwd=ROOT) for name in range(4)]
    assert [process.wait(timeout=120) for process in processes] == [0] * 4
    saved = json.loads(path.read_bytes())["list"]
    assert sorted(saved) == [f"{name}-{number:02}" for name in range(4) for number in range(40)]
    assert [found.name for found in path.parent.iterdir()] == ["companion.json"]


@pytest.mark.parametrize("value", [1, "true", None, [], {}, False])
def test_only_true_is_true(value: object) -> None:
    """A preference that is anything else is off."""
    assert flag({"autofocus": True}, "autofocus")
    assert not flag({"autofocus": value}, "autofocus")
    assert not flag({}, "autofocus")


# What Node's own URL class makes of each; None where it is no http(s) URL.
ORIGINS: Dict[str, object] = {
    "https://board.example/path?q#f": "https://board.example",
    "  HTTP://Board.Example:80/ ": "http://board.example",
    "https://board.example:443": "https://board.example",
    "https://board.example:8443/x": "https://board.example:8443",
    "http://board.example:": "http://board.example",
    "https://user:secret@board.example/": "https://board.example",
    "http://[::1]:51618/": "http://[::1]:51618",
    "http:\\\\board.example\\path": "http://board.example",
    "https://board.example\\@other.example": "https://board.example",
    "http://müller.example/x": "http://xn--mller-kva.example",
    "file:///home/me/page.html": None,
    "ftp://board.example": None,
    "board.example": None,
    "//board.example": None,
    "https://": None,
    "http://a b/": None,
    "http://a|b/": None,
    "http://board.example:port": None,
    "http://board.example:99999": None,
    "http://[::1": None,
    "null": None,
    "": None,
}


@pytest.mark.parametrize(("url", "origin"), ORIGINS.items())
def test_an_url_is_reduced_to_its_origin(url: str, origin: object) -> None:
    """Scheme, host, and the port unless it is the scheme's own."""
    assert normal_origin(url) == origin
    assert web_origin({"webOrigin": url}) == (origin or DEFAULT_WEB_ORIGIN)


@pytest.mark.parametrize(
    "content", [{}, {"webOrigin": None}, {"webOrigin": 1}, {"webOrigin": ["https://a.b"]}]
)
def test_without_a_web_origin_the_hosted_page_is_meant(content: JsonObject) -> None:
    """The default."""
    assert web_origin(content) == "https://subdavis.github.io"
