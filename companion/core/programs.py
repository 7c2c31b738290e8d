"""Outside programs (gh, jira, herdr, launchctl): found, run with limits, ended with us.

A program of somebody else may be missing, hang, print garbage or leave children behind. Here all
of that becomes :class:`ProgramFailed` with one line for people; nothing of it reaches further.
"""

import contextlib
import logging
import os
import selectors
import signal
import subprocess
import threading
import time
from typing import Dict, Mapping, Optional, Sequence, Set, Tuple

from companion.core.clock import Deadline
from companion.core.errors import ProgramFailed

_log = logging.getLogger(__name__)

# Enough for the answer to a question about one thing; who asks for a list says how long it may be.
MOST_BYTES = 4 * 1024 * 1024
# What is kept of stderr while the program runs, and what of that goes into the error.
_STDERR_BYTES = 4 * 1024
_REASON_CHARACTERS = 300
_PIECE = 64 * 1024
# How soon we notice that a program ended whose child still holds its pipes open.
_LOOK_S = 0.05
# The first pause after its pipes were closed; each following one is twice as long.
_SOON_S = 0.0005
# A killed process is gone at once, unless it hangs in the kernel (a dead network disk).
_REAP_S = 2.0
# How long close() waits for threads that are just starting or ending a program.
_CLOSE_S = 3.0

# Sockets that the service manager gave to us; our switch, which gh would take for its own and
# tell its traffic; what makes programs colour an answer that is not for a terminal.
_OURS = ("LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "LISTEN_PIDFDID", "DEBUG")
_COLOURS = ("CLICOLOR_FORCE", "FORCE_COLOR", "GH_FORCE_TTY")
# A program that is written in Python must not run with what was meant for our interpreter.
_PYTHON = ("PYTHON", "SHIV_", "__PYVENV_LAUNCHER__")

_Process = subprocess.Popen[bytes]


class Programs:
    """All outside programs of this process: at most ``at_once`` run at the same time.

    Safe to use from several threads. Every run ends within its time, and all end with
    :meth:`close`. A program's children belong to it and are killed when it ends.
    """

    def __init__(self, environ: Mapping[str, str], at_once: int = 8) -> None:
        self._environ = environ
        self._at_once = at_once
        self._changed = threading.Condition()  # Guards all below; told when a place becomes free.
        self._taken = 0  # Places; a program that is being started or ended has one too.
        self._running: Set[_Process] = set()  # Those that close() may kill: not reaped yet.
        self._closed = False

    def path(self, name: str) -> Optional[str]:
        """Where a program is: ``<NAME>_PATH`` unchecked, else the first executable file on PATH.

        None when there is none, or no PATH. Looked up anew each time: who installs a program
        need not restart us.
        """
        told = self._environ.get(f"{name.upper()}_PATH")
        if told:
            return told
        search = self._environ.get("PATH")
        for folder in search.split(os.pathsep) if search else ():
            candidate = os.path.join(folder or ".", name)
            if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
                return candidate
        return None

    def run(self, argv: Sequence[str], timeout_s: float, most_bytes: int = MOST_BYTES) -> str:
        """What the program prints; bytes that are not UTF-8 become U+FFFD.

        Waits at most ``timeout_s`` for a free place and then as long again for the program.
        Its stdin is empty. ProgramFailed when it cannot be started, takes longer, prints more
        than ``most_bytes``, exits with anything but 0, or when we are closed.
        """
        name = os.path.basename(argv[0])
        self._take_place(name, timeout_s)
        try:
            process = self._start(name, argv)
            try:
                out, err = self._collect(process, name, Deadline(timeout_s), most_bytes)
            finally:
                self._end(process)
        finally:
            with self._changed:
                self._taken -= 1
                self._changed.notify_all()
        if process.returncode != 0:
            raise self._failure(name, process.returncode, err)
        return out.decode("utf-8", errors="replace")

    def close(self) -> None:
        """End all that runs and start nothing afterwards. Waits for their ends. A second call is allowed."""
        with self._changed:
            self._closed = True
            for process in self._running:
                _kill_group(process)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._taken == 0, _CLOSE_S)

    def _take_place(self, name: str, timeout_s: float) -> None:
        with self._changed:
            free = self._changed.wait_for(lambda: self._closed or self._taken < self._at_once, timeout_s)
            if self._closed:
                raise _stopping(name)
            if not free:
                raise ProgramFailed(f"{name} did not get its turn within {timeout_s:g} s")
            self._taken += 1

    def _start(self, name: str, argv: Sequence[str]) -> _Process:
        try:
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_for_children(self._environ),
                start_new_session=True,  # A group of its own to be killed, and no terminal to ask at.
            )
        except (OSError, ValueError) as exc:  # ValueError: NUL or half a surrogate in an argument.
            reason = exc.strerror if isinstance(exc, OSError) else None
            raise ProgramFailed(f"{name} cannot be started: {reason or exc}") from exc
        with self._changed:
            if not self._closed:
                self._running.add(process)
                return process
        self._end(process)
        raise _stopping(name)

    def _collect(
        self, process: _Process, name: str, deadline: Deadline, most_bytes: int
    ) -> Tuple[bytes, bytes]:
        """All of stdout and the end of stderr, once the program has ended.

        Does not wait for the pipes' end then: a child that was left behind may hold them.
        """
        out, err = bytearray(), bytearray()
        with selectors.DefaultSelector() as pipes:
            for pipe, kept in ((process.stdout, out), (process.stderr, err)):
                assert pipe is not None
                pipes.register(pipe, selectors.EVENT_READ, kept)
            pause_s = _SOON_S
            while True:
                ended = self._has_ended(process)
                wait_s = 0.0 if ended else min(_LOOK_S, deadline.left_s())
                ready = pipes.select(wait_s) if pipes.get_map() else []
                for key, _ in ready:
                    piece = os.read(key.fd, _PIECE)
                    key.data.extend(piece)
                    if not piece:
                        pipes.unregister(key.fileobj)
                if len(out) > most_bytes:
                    raise ProgramFailed(f"{name} prints more than {most_bytes} bytes")
                del err[:-_STDERR_BYTES]
                if ended and not ready:
                    return bytes(out), bytes(err)
                if deadline.over():
                    raise ProgramFailed(f"{name} did not end within {deadline.timeout_s:g} s")
                if not pipes.get_map() and not ended:  # It closes its pipes a moment before it is gone.
                    time.sleep(pause_s)
                    pause_s = min(2 * pause_s, _LOOK_S)

    def _has_ended(self, process: _Process) -> bool:
        with self._changed:  # Reaped and forgotten in one, so that close() kills no stranger.
            if process.poll() is None:
                return False
            self._running.discard(process)
            return True

    def _end(self, process: _Process) -> None:
        """Kill what is left of a program, and free what it held. It is ended already when all went well."""
        with self._changed:
            self._running.discard(process)
        _kill_group(process)
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
        try:
            process.wait(_REAP_S)
        except subprocess.TimeoutExpired:  # Python reaps it at a later start of a program.
            _log.warning("a program does not end although it was killed: pid %d", process.pid)

    def _failure(self, name: str, code: int, err: bytes) -> ProgramFailed:
        if self._closed:
            return _stopping(name)
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        text = "".join(each if each.isprintable() else " " for each in err.decode("utf-8", errors="replace"))
        said = " ".join(text.split())[-_REASON_CHARACTERS:]
        return ProgramFailed(f"{name} failed ({how})" + (f": {said}" if said else ""))


def _stopping(name: str) -> ProgramFailed:
    return ProgramFailed(f"{name} is not run: the companion stops")


def _kill_group(process: _Process) -> None:
    """All of its group that still live. Its number is not given away while one of them does."""
    with contextlib.suppress(OSError):  # Nobody left (macOS: not permitted, for one that just ended).
        os.killpg(process.pid, signal.SIGKILL)


def _for_children(environ: Mapping[str, str]) -> Dict[str, str]:
    return {
        name: value
        for name, value in environ.items()
        if name not in _OURS and name not in _COLOURS and not name.startswith(_PYTHON)
    }
