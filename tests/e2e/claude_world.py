"""A person who works with Claude Code."""

import json
import subprocess
from pathlib import Path
from typing import Dict, List

from tests.e2e import agent_cli
from tests.e2e.screen import Screen
from tests.e2e.world import Run, World

API_KEY = "dummy-key-for-loopback"


class ClaudeWorld(World):
    """A world with the real CLI."""

    def __init__(self, root: Path, pyz: Path, cli: Path, home_name: str = "home") -> None:
        super().__init__(root, pyz, home_name)
        self.cli = cli

    def agent_environ(self) -> Dict[str, str]:
        """Our model is the only host that the CLI knows."""
        return {
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.model_port}",
            "ANTHROPIC_API_KEY": API_KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "CLAUDE_CODE_MAX_RETRIES": "0",
        }

    def settle_in(self) -> None:
        """The welcome is over, and project and board are trusted."""
        self.trust(self.home)

    def trust(self, folder: Path) -> None:
        """Write to ``folder`` what the CLI keeps of earlier starts: no welcome, and no question about
        the key, the project or the board."""
        trusted = {
            "hasTrustDialogAccepted": True,
            "hasCompletedProjectOnboarding": True,
            "projectOnboardingSeenCount": 1,
            "allowedTools": [],
        }
        config = {
            "hasCompletedOnboarding": True,
            "lastOnboardingVersion": agent_cli.CURRENT,
            "theme": "dark",
            "numStartups": 5,
            "customApiKeyResponses": {"approved": [API_KEY[-20:]], "rejected": []},
            "projects": {str(place): trusted for place in (self.project, self.board)},
        }
        (folder / ".claude.json").write_text(json.dumps(config), "utf-8")

    def headless(self, prompt: str, *flags: str, form: str = "json") -> Run:
        """One ``claude -p`` run, waited for."""
        return self.run_in(self.headless_command(prompt, *flags, form=form), self.project)

    def headless_in_background(self, prompt: str, *flags: str) -> "subprocess.Popen[str]":
        """One ``claude -p`` run that goes on while the test acts; finish it with :meth:`finish`."""
        return self.start(self.headless_command(prompt, *flags))

    def headless_command(self, prompt: str, *flags: str, form: str = "json") -> List[str]:
        """The argv of one ``claude -p`` run that may edit files on the board."""
        mode = ["--permission-mode", "acceptEdits", "--add-dir", str(self.board)]
        return [str(self.cli), "-p", prompt, "--output-format", form, *mode, *flags]

    def run_cli(self, *arguments: str) -> Run:
        """One subcommand of the CLI, waited for."""
        return self.run_in([str(self.cli), *arguments], self.project)

    def terminal(self, *flags: str, mode: str = "acceptEdits") -> Screen:
        """The CLI in its terminal UI."""
        command = [str(self.cli), "--permission-mode", mode, "--add-dir", str(self.board), *flags]
        return Screen(command, self.environ(), self.project)
