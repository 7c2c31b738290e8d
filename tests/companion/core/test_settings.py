"""What the environment says, checked once."""

from pathlib import Path
from typing import Dict

import pytest

from companion.core.errors import SettingsError
from companion.core.settings import DEFAULT_PORT, NO_HOME, load


def test_the_usual_places(tmp_path: Path) -> None:
    """Only HOME is set: XDG's defaults below it, our port, our other logs beside the contract's."""
    settings = load({"HOME": str(tmp_path)})
    assert settings.home == tmp_path
    assert settings.port == DEFAULT_PORT == 51618
    assert settings.config_path == tmp_path / ".config/mdello/companion.json"
    assert settings.data_path == tmp_path / ".local/state/mdello/companion.jsonl"
    assert settings.state_dir == settings.data_path.parent
    assert settings.pending_path == settings.state_dir / "companion-pending.jsonl"
    assert settings.hook_state_path == settings.state_dir / "companion-hooks.jsonl"
    assert settings.endpoint == "http://127.0.0.1:51618"
    assert settings.debug is False


def test_xdg_folders_are_used_when_absolute(tmp_path: Path) -> None:
    """A relative or empty one is to be ignored, says the specification."""
    home = {"HOME": str(tmp_path)}
    settings = load({**home, "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"})
    assert settings.config_path == Path("/c/mdello/companion.json")
    assert settings.data_path == Path("/s/mdello/companion.jsonl")
    for value in ("", "relative/folder"):
        settings = load({**home, "XDG_CONFIG_HOME": value, "XDG_STATE_HOME": value})
        assert settings.config_path == tmp_path / ".config/mdello/companion.json"
        assert settings.data_path == tmp_path / ".local/state/mdello/companion.jsonl"


def test_files_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Absolute or relative to the working directory; empty counts as unset."""
    monkeypatch.chdir(tmp_path)
    settings = load(
        {
            "HOME": "/h",
            "MDELLO_COMPANION_CONFIG": "c.json",
            "MDELLO_COMPANION_DATA": str(tmp_path / "d/log.jsonl"),
        }
    )
    assert settings.config_path == tmp_path / "c.json"
    assert settings.data_path == tmp_path / "d/log.jsonl"
    assert settings.pending_path == tmp_path / "d/log-pending.jsonl"
    settings = load({"HOME": "/h", "MDELLO_COMPANION_CONFIG": "", "MDELLO_COMPANION_DATA": ""})
    assert settings.data_path == Path("/h/.local/state/mdello/companion.jsonl")


@pytest.mark.parametrize("name", ["MDELLO_COMPANION_CONFIG", "MDELLO_COMPANION_DATA"])
@pytest.mark.parametrize("value", ["/", "{tmp}", "{tmp}/new/", "a\0b"])
def test_a_folder_is_no_file(name: str, value: str, tmp_path: Path) -> None:
    """Refused with one line that names the variable."""
    with pytest.raises(SettingsError, match=name) as caught:
        load({"HOME": "/h", name: value.format(tmp=tmp_path)})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "port"), [("1", 1), ("65535", 65535), (" 4000 ", 4000), ("", 51618), ("  ", 51618)]
)
def test_ports(text: str, port: int) -> None:
    """Any of the 65,535; blank counts as unset."""
    settings = load({"HOME": "/h", "MDELLO_COMPANION_PORT": text})
    assert settings.port == port
    assert settings.endpoint == f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(
    "text", ["0", "65536", "-1", "+1", "1.0", "0x10", "http", "1 2", "\u0664", "9" * 5000]
)
def test_bad_ports_are_refused(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(SettingsError, match="MDELLO_COMPANION_PORT"):
        load({"HOME": "/h", "MDELLO_COMPANION_PORT": text})


@pytest.mark.parametrize(
    ("text", "debug"), [("1", True), ("0", False), ("true", False), ("", False), ("11", False)]
)
def test_debug_is_exactly_one(text: str, debug: bool) -> None:
    """Other programs use DEBUG for other things."""
    assert load({"HOME": "/h", "DEBUG": text}).debug is debug


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "relative"}])
def test_without_a_usable_home_the_user_database_is_asked(
    environ: Dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where that knows nothing either, a folder that does not exist."""
    import pwd

    class Entry:
        pw_dir = "/from/passwd"

    monkeypatch.setattr(pwd, "getpwuid", lambda uid: Entry())
    assert load(environ).home == Path("/from/passwd")

    def unknown(uid: int) -> Entry:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert load(environ).home == Path(NO_HOME)


def test_the_environment_is_passed_on() -> None:
    """Adapters look up variables of their agents there."""
    environ = {"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"}
    assert load(environ).environ["CLAUDE_CONFIG_DIR"] == "/c"
