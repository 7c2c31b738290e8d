"""``serve``: run the companion until it is told to stop."""

import argparse
import errno
import os
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import List, Mapping

from companion.core import logs, signals
from companion.core.errors import CompanionError
from companion.core.settings import Settings, load
from companion.service import logfiles, sockets

# A starter that finds the port taken waits this long for the holder to say who it is: of several
# started at once, one has bound the port and may not listen yet.
PROBE_TIMEOUT_S = 5.0


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """``serve [--demo] [--log-files]``; surplus arguments are ignored, as the contract has it."""
    parser = subparsers.add_parser("serve", add_help=False)
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--log-files", action="store_true")
    parser.add_argument("ignored", nargs="*")


def run(args: argparse.Namespace) -> int:
    """Serve until SIGINT, SIGTERM or a hang-up. 0 also when our companion serves this port already."""
    with ExitStack() as leftovers:
        environ: Mapping[str, str] = os.environ
        if args.demo:
            folder = leftovers.enter_context(tempfile.TemporaryDirectory(prefix="mdello-demo-"))
            environ = _demo_environment(Path(folder))
        settings = load(environ)
        problem = logfiles.write_there(settings.state_dir) if args.log_files else None
        logs.configure(settings.debug)
        if problem:
            print(problem, file=sys.stderr)
        return _serve(settings, args.demo)


def _serve(settings: Settings, demo: bool) -> int:
    from companion.commands.wiring import Companion

    handed_in = sockets.take(os.environ, settings.port)
    for note in handed_in.notes:
        print(note, file=sys.stderr)
    companion = Companion(settings)
    try:
        companion.server.bind(handed_in.sockets)
    except OSError as exc:
        if exc.errno != errno.EADDRINUSE:
            raise CompanionError(f"Cannot listen on 127.0.0.1:{settings.port}: {exc.strerror}") from exc
        return _port_taken(settings.port, demo)
    companion.start()
    with signals.heard(stop_signals()) as stopped:
        print(f"Mdello companion listening at http://127.0.0.1:{companion.server.port}", flush=True)
        for line in companion.advice():
            print(line, file=sys.stderr, flush=True)
        try:
            companion.serve_until(stopped)
        finally:
            companion.stop()
    lost = companion.unsaved()
    if lost:
        print(
            f"{lost} event(s) could not be saved and are lost; see why with: mdello.pyz doctor",
            file=sys.stderr,
        )
    return 0


def stop_signals() -> List[signal.Signals]:
    """What asks a process to end. A closed terminal ends it as orderly as Ctrl-C does, unless ``nohup``
    says otherwise."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    return numbers


def _port_taken(port: int, demo: bool) -> int:
    """Who holds the port? Ours: nothing to do. Anything else: how to choose another."""
    from companion.web.client import Holder, probe

    holder = probe(port, PROBE_TIMEOUT_S)
    if holder is Holder.OURS:
        print(f"Mdello companion is already running at http://127.0.0.1:{port}")
        if demo:
            print("No demo was started: it would need a port of its own.", file=sys.stderr)
        return 0
    owner = "another user's mdello companion" if holder is Holder.OTHER_USER else "another program"
    print(
        f"Port {port} is taken by {owner}. Choose another one, for example:\n"
        f"  MDELLO_COMPANION_PORT={port + 1 if port < 65535 else port - 1} mdello.pyz serve\n"
        "and run install again with the same value, so that agents report to it.",
        file=sys.stderr,
    )
    return 1


def _demo_environment(folder: Path) -> Mapping[str, str]:
    """A board, a configuration and a log in a folder that is removed at the end."""
    from companion.boards.writer import init_board
    from companion.commands.wiring import open_boards

    environ = {
        **os.environ,
        "MDELLO_COMPANION_CONFIG": str(folder / "companion.json"),
        "MDELLO_COMPANION_DATA": str(folder / "companion.jsonl"),
    }
    import time

    board = init_board(folder / "board", time.time)
    open_boards(load(environ)).registry.register(board.uuid, board.path)
    print(f"Demo board in {board.path} (removed when the companion stops)", file=sys.stderr)
    return environ
