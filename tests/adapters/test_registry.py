"""The registry of agents: literal, complete, and not loaded by who does not ask for it."""

import subprocess
import sys

from adapters.registry import ADAPTERS
from tests.conftest import ROOT


def test_every_agent_stands_under_its_own_name() -> None:
    """The key is what stands in ``/hooks/<name>``."""
    assert list(ADAPTERS) == ["pi", "opencode", "claude", "codex"]
    assert all(name == adapter.NAME for name, adapter in ADAPTERS.items())


def test_the_contracts_words_load_no_agent() -> None:
    """A quick command that only compares statuses must not pay for every adapter."""
    code = "import sys, adapters.contract; sys.exit('adapters.claude' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
