"""What keeps Codex from running our hooks."""

from pathlib import Path
from typing import List, Optional

import pytest

from adapters.codex import policy
from adapters.codex.events import SUBSCRIBED
from adapters.codex.policy import Verdict, examine, settings_of

NAMES = "session_start user_prompt_submit pre_tool_use permission_request post_tool_use subagent_stop stop"
KEYS = [*NAMES.split(), "interrupt", "session_end"]


def trust(hooks: Path, keys: List[str] = KEYS, more: str = "") -> str:
    """What Codex writes when the user has trusted hooks."""
    return "".join(f'[hooks.state."{hooks}:{key}:0:0"]\ntrusted_hash = "sha256:0"\n{more}\n' for key in keys)


class Machine:
    """A folder of Codex's and what an administrator says."""

    def __init__(self, base: Path) -> None:
        self.hooks, self.config = base / "hooks.json", base / "config.toml"
        self.requirements = base / "requirements.toml"

    def examine(self) -> Verdict:
        return examine(self.hooks, self.config, self.requirements)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """One on which nothing is said."""
    return Machine(tmp_path)


def test_at_first_nothing_is_trusted(machine: Machine) -> None:
    """It is said what to do, and no hook will run."""
    verdict = machine.examine()
    assert verdict.loaded is False and verdict.notes == ()
    (told,) = verdict.untrusted
    assert "/hooks in Codex" in told and str(machine.config) in told


def test_trust_in_all_and_in_some(machine: Machine) -> None:
    """Whether the hashes fit cannot be told from here; what is missing is named."""
    machine.config.write_text('model = "x"\n' + trust(machine.hooks))
    assert machine.examine() == Verdict(None)
    machine.config.write_text(trust(machine.hooks, KEYS[:-2]))
    verdict = machine.examine()
    assert verdict.loaded is None and "for Interrupt, SessionEnd:" in verdict.untrusted[0]
    machine.config.write_text(trust(machine.hooks, more="enabled = false"))
    assert machine.examine().loaded is False
    machine.config.write_text(trust(machine.hooks.with_name("others.json")))
    assert machine.examine().loaded is False
    assert len(KEYS) == len(SUBSCRIBED)


@pytest.mark.parametrize("name", ['q"uote', "back\\slash", "it's"])
def test_keys_of_odd_folders(name: str, tmp_path: Path) -> None:
    """Escaped as TOML has it, or in a literal string."""
    machine = Machine(tmp_path / name)
    machine.config.parent.mkdir()
    escaped = str(machine.hooks).replace("\\", "\\\\").replace('"', '\\"')
    machine.config.write_text(trust(Path(escaped)))
    assert machine.examine().loaded is None
    if "'" not in name:
        machine.config.write_text(trust(machine.hooks).replace('."', ".'").replace('"]', "']"))
        assert machine.examine().loaded is None


@pytest.mark.parametrize(
    ("requirements", "config", "told"),
    [
        ("allow_managed_hooks_only = true\n[features]\n", "", "allow_managed_hooks_only"),
        ("[features]\nhooks = false # no\n", "", "requirements.toml: features.hooks"),
        ("[ features ]\ncodex_hooks=false\n", "", "features.codex_hooks"),
        ("features.hooks = false\n", "", "requirements.toml"),
        ("", "[features]\nhooks = false\n", "config.toml: features.hooks"),
        ("allow_managed_hooks_only = false\n", "", None),
        ("", "allow_managed_hooks_only = true\n", None),
        ("[other]\nallow_managed_hooks_only = true\n", "[x]\nhooks = false\n", None),
        ("# allow_managed_hooks_only = true\n", "[features]\nhooks = true\n", None),
    ],
)
def test_policies(requirements: str, config: str, told: Optional[str], machine: Machine) -> None:
    """Of an administrator, and the user's own switch."""
    machine.requirements.write_text(requirements)
    machine.config.write_text(trust(machine.hooks) + config)
    verdict = machine.examine()
    if told is None:
        assert verdict == Verdict(None)
    else:
        assert verdict.loaded is False and told in verdict.notes[0] and not verdict.untrusted


def test_hooks_in_the_configuration_are_named(machine: Machine) -> None:
    """Codex itself complains of the two places."""
    machine.config.write_text(trust(machine.hooks) + '[[hooks.Stop]]\nmatcher = "x"\n')
    assert "both run" in machine.examine().notes[0]


def test_foreign_files_never_raise(tmp_path: Path) -> None:
    """Bytes, folders, links, and nothing."""
    (tmp_path / "bytes").write_bytes(b"\xff\0[[[\n=\n a = \n[x\n]]\n" * 100)
    (tmp_path / "link").symlink_to("bytes")
    for name in ("bytes", "link", "none", "."):
        settings_of(tmp_path / name)
        examine(tmp_path / name, tmp_path / name, tmp_path / name)
    assert settings_of(tmp_path / "bytes").get("a", "") == ""
    assert policy.REQUIREMENTS.is_absolute()
