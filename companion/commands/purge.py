"""``purge`` (also ``reset``): forget all associations, in a running companion too."""

import argparse
import os
import sys
from pathlib import Path
from typing import Set, Tuple
from urllib.parse import urlencode

from companion.core.errors import StorageError
from companion.core.files import ensure_private_dir, write_atomically
from companion.core.settings import Settings, load

PROBE_TIMEOUT_S = 0.5
REQUEST_TIMEOUT_S = 10.0


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """``purge`` takes no arguments; surplus ones are ignored, as the contract has it."""
    for name in ("purge", "reset"):
        subparsers.add_parser(name, add_help=False).add_argument("ignored", nargs="*")


def run(args: argparse.Namespace) -> int:
    """Empty the log and the files beside it. StorageError when one cannot be written."""
    settings = load(os.environ)
    _purge_running_companion(settings)
    paths = (settings.data_path, settings.pending_path, settings.hook_state_path, settings.process_path)
    for path in paths:
        _empty(path, must_exist=path == settings.data_path)
    print("Purged companion session data.")
    return 0


def _empty(path: Path, must_exist: bool) -> None:
    if not must_exist and not path.exists():
        return
    try:
        ensure_private_dir(path.parent)
        write_atomically(path, b"")
    except OSError as exc:
        raise StorageError(f"Cannot empty {path}: {exc.strerror or exc}") from exc


def _purge_running_companion(settings: Settings) -> None:
    """Forget every session through the companion's own route, so that its memory agrees."""
    from companion.web import client

    if client.probe(settings.port, PROBE_TIMEOUT_S) is not client.Holder.OURS:
        return
    print(f"The companion on port {settings.port} forgets its sessions too.", file=sys.stderr)
    for harness, session_id in sorted(_remembered_sessions(settings)):
        query = urlencode({"harness": harness, "sessionId": session_id})
        client.delete_json(settings.port, f"/associations?{query}", REQUEST_TIMEOUT_S)


def _remembered_sessions(settings: Settings) -> Set[Tuple[str, str]]:
    """(harness, session id) of all associations and of all links to files without a uuid."""
    from companion.sessions.pending import read_links
    from companion.web import client

    held = client.get_json(settings.port, "/associations", REQUEST_TIMEOUT_S)
    sessions = {(link.harness, link.session_id) for link in read_links(settings.pending_path)}
    for record in held if isinstance(held, list) else []:
        if isinstance(record, dict) and "harness" in record and "sessionId" in record:
            sessions.add((str(record["harness"]), str(record["sessionId"])))
    return sessions
