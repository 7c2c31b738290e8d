"""A systemd user manager of our own, where this machine lets us have one: in a mount namespace."""

import os
import shutil
import signal
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Dict, List, Optional, Type

import pytest

from tests.companion.web.talk import PATIENCE_S, eventually

_SYSTEMD = ("/usr/lib/systemd/systemd", "/lib/systemd/systemd")
_HIERARCHIES = ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified")

# systemd wants to see that the machine runs it, and a control group of its own to rule over.
_SCRIPT = """
mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system || exit 1
for group in "$@"; do echo $$ >"$group/cgroup.procs" || exit 1; done
exec "$SYSTEMD" --user --log-target=console
"""


class UserManager:
    """Runs for one home until the context is left. The test is skipped where that cannot be."""

    def __init__(self, home: Path, folder: Path) -> None:
        systemd = next((path for path in _SYSTEMD if os.path.exists(path)), None)
        roots = [root for root in _HIERARCHIES if os.path.exists(f"{root}/cgroup.procs")]
        if systemd is None or shutil.which("unshare") is None or os.getuid() != 0 or len(roots) < 2:
            pytest.skip("no systemd user manager can be started here: it takes root and control groups")
        runtime = folder / "runtime"
        runtime.mkdir(mode=0o700)
        self._groups = [f"{root}/mdello-test-{os.getpid()}" for root in roots]
        self.environ: Dict[str, str] = {
            "HOME": str(home),
            "XDG_RUNTIME_DIR": str(runtime),
            "PATH": "/usr/bin:/bin",
        }
        for group in self._groups:
            os.mkdir(group)
        self._log = folder / "systemd.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                ["unshare", "--mount", "sh", "-c", _SCRIPT, "sh", *self._groups],
                env={**self.environ, "SYSTEMD": systemd},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            eventually(lambda: self.ready() or self._process.poll() is not None)
            if self._process.poll() is not None:
                pytest.skip(f"no systemd user manager can be started here: {self._log.read_text()}")
        except BaseException:
            self.close()
            raise

    def ready(self) -> bool:
        """Whether it answers, and has started what starts at login."""
        return self.ask("is-active", "default.target") == "active"

    def ask(self, *arguments: str) -> str:
        """What ``systemctl --user`` prints."""
        done = subprocess.run(
            ["systemctl", "--user", *arguments],
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return done.stdout.strip()

    def close(self) -> None:
        """End it with all that it has started."""
        self._process.send_signal(signal.SIGRTMIN + 24)  # systemd(1): exit, stopping all units.
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for group in self._groups:
            for pid in self._left(group):
                os.kill(pid, signal.SIGKILL)
            eventually(lambda group=group: not self._left(group))
            for folder, _, _ in os.walk(group, topdown=False):
                os.rmdir(folder)

    def _left(self, group: str) -> List[int]:
        found: List[int] = []
        for folder, _, _ in os.walk(group):
            found += [int(line) for line in Path(folder, "cgroup.procs").read_text().split()]
        return found

    def __enter__(self) -> "UserManager":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()
