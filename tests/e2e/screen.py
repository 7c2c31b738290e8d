"""A terminal that tests can type into: tmux with a server of its own, always reaped."""

import re
import shlex
import shutil
import subprocess
import tempfile
import time
import uuid
from pathlib import Path
from typing import Callable, List, Mapping

POLL_S = 0.1
WAIT_S = 30.0

KEY_GRACE_S = 1.0
"""The CLI swallows keys that come within about a second after a dialog appeared."""
TYPING_GRACE_S = 0.4
"""An Enter in the same breath as the text is taken for a pasted line break."""

PROMPT = re.compile("^\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}", re.MULTILINE)
"""The input line; a dialog's choice has a blank before the arrow."""


class ScreenError(AssertionError):
    """Something did not appear in time; carries the screen as it was."""


class Screen:
    """One program in one tmux pane. Use as a context manager; the server dies with it."""

    def __init__(self, command: List[str], environ: Mapping[str, str], folder: Path) -> None:
        self._name = f"mdello-{uuid.uuid4().hex[:12]}"
        # Socket paths are limited to some 100 bytes, and a test's own folder can be longer.
        self._sockets = tempfile.mkdtemp(prefix="mdt-", dir="/tmp")
        self._environ = {**environ, "TMUX_TMPDIR": self._sockets}
        self._history: List[str] = []
        # What a program prints as it ends must stay to be read.
        stay = ("start-server", ";", "set-option", "-g", "remain-on-exit", "on", ";")
        size = ("-x", "150", "-y", "50", "-c", str(folder))
        self._tmux(*stay, "new-session", "-d", *size, "exec " + shlex.join(command))

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server", check=False)
        shutil.rmtree(self._sockets, ignore_errors=True)

    def text(self) -> str:
        """What the pane shows now, with the lines that scrolled away."""
        shown = self._tmux("capture-pane", "-p", "-J", "-S", "-500")
        self._history.append(shown)
        return shown

    def seen(self) -> str:
        """Every different screen that was looked at, for the search of what must never appear."""
        return "\n".join(dict.fromkeys(self._history))

    def wait_until(self, holds: Callable[[str], bool], what: str, timeout_s: float = WAIT_S) -> str:
        """Poll until the screen satisfies ``holds``; the screen. ScreenError after ``timeout_s``."""
        until = time.monotonic() + timeout_s
        while True:
            shown = self.text()
            if holds(shown):
                return shown
            if time.monotonic() > until:
                raise ScreenError(f"no {what} within {timeout_s:g} s on this screen:\n{shown}")
            time.sleep(POLL_S)

    def wait_for(self, text: str, timeout_s: float = WAIT_S) -> str:
        """Poll until ``text`` is shown."""
        return self.wait_until(lambda shown: text in shown, repr(text), timeout_s)

    def wait_for_prompt(self) -> None:
        """Poll until the input line is there."""
        self.wait_until(lambda shown: bool(PROMPT.search(shown)), "input line")

    def submit(self, text: str) -> None:
        """Type a line and send it once the input box shows it."""
        self._tmux("send-keys", "-l", text)
        tail = "".join(text.split())[-16:]
        self.wait_until(lambda shown: tail in "".join(shown.split()), f"typed text {tail!r}")
        time.sleep(TYPING_GRACE_S)
        self.key("Enter")

    def answer(self, dialog: str, key: str) -> None:
        """Wait for a dialog, press ``key``, and again should the first press have been swallowed.

        ``dialog`` is a text that goes away with the dialog.
        """
        self.wait_for(dialog)
        time.sleep(KEY_GRACE_S)
        for _ in range(5):
            self.key(key)
            try:
                self.wait_until(lambda shown: dialog not in shown, f"end of dialog {dialog!r}", 3.0)
            except ScreenError:
                continue
            return
        raise ScreenError(f"the dialog {dialog!r} stays:\n{self.text()}")

    def key(self, name: str) -> None:
        """Press one key by tmux's name for it."""
        self._tmux("send-keys", name)

    def wait_for_end(self, timeout_s: float = WAIT_S) -> None:
        """Poll until the program has ended; its last words are in :meth:`text`."""
        self.wait_until(
            lambda _: self._tmux("display", "-p", "#{pane_dead}").strip() == "1", "end", timeout_s
        )

    def _tmux(self, *arguments: str, check: bool = True) -> str:
        command = ["tmux", "-L", self._name, "-f", "/dev/null", *arguments]
        done = subprocess.run(command, env=self._environ, capture_output=True, text=True, encoding="utf-8")
        if check and done.returncode != 0:
            raise ScreenError(f"tmux {arguments[0]}: {done.stderr.strip()}")
        return done.stdout
