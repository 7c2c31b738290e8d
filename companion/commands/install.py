"""``install`` and ``uninstall``: connect agents, and undo exactly that."""

import argparse
import json
import os
import sys
from typing import Dict, List, Mapping, Optional, Sequence, Union

from adapters.contract import Adapter, AdapterError, InstallContext, InstallReport
from companion.core import archive
from companion.core.errors import UsageError
from companion.core.settings import Settings, load

TRANSPORTS = ("http", "command")

Outcome = Union[InstallReport, AdapterError]
"""What became of one agent: the report, or why it was refused."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """``install [AGENT] [--transport http|command] [--json]`` and ``uninstall [AGENT] [--json]``."""
    for command in ("install", "uninstall"):
        parser = subparsers.add_parser(command, add_help=False, usage=_usage(command))
        parser.add_argument("agents", nargs="*")
        parser.add_argument("--json", action="store_true")
        if command == "install":
            parser.add_argument("--transport", choices=TRANSPORTS, default="")


def run(args: argparse.Namespace) -> int:
    """Every agent, or the one named. 1 when a step failed; the other steps are done all the same.

    UsageError for an unknown agent and for more than one.
    """
    removing = args.command == "uninstall"
    chosen = _chosen(args.command, args.agents)
    context = context_for(load(os.environ), "" if removing else args.transport)
    outcomes = apply(chosen, context, removing)
    if args.json:
        print(json.dumps([outcome_json(name, each) for name, each in outcomes.items()], indent=2))
    else:
        for each in outcomes.values():
            _tell(each)
    return 1 if any(isinstance(each, AdapterError) for each in outcomes.values()) else 0


def installable() -> Dict[str, Adapter]:
    """The agents that can be connected: those that do not say that they cannot."""
    from adapters.defaults import no_install
    from adapters.registry import ADAPTERS

    return {name: adapter for name, adapter in ADAPTERS.items() if adapter.install is not no_install}


def _usage(command: str) -> str:
    transport = f" [--transport {'|'.join(TRANSPORTS)}]" if command == "install" else ""
    return f"mdello.pyz {command} [{'|'.join(installable())}]{transport} [--json]"


def _chosen(command: str, names: Sequence[str]) -> Dict[str, Adapter]:
    known = installable()
    wrong = [name for name in names if name not in known] or list(names[1:])
    if wrong:
        what = "Unknown agent" if wrong[0] not in known else "One agent at a time, surplus"
        raise UsageError(f"Usage: {_usage(command)}\n{what}: {wrong[0]}. See mdello.pyz help.")
    return {name: known[name] for name in names or known}


def context_for(settings: Settings, transport: str = "") -> InstallContext:
    """What installers may know. ``transport``: empty keeps what is installed."""
    import shutil

    from mdello import __version__

    path = settings.environ.get("PATH", os.defpath)

    def which(name: str) -> Optional[str]:
        found = shutil.which(name, path=path)
        return os.path.abspath(found) if found else None

    return InstallContext(
        home=settings.home,
        environ=settings.environ,
        endpoint=settings.endpoint,
        program=archive.program_path(),
        interpreter=os.path.abspath(sys.executable),
        transport=transport,
        which=which,
        version=__version__,
    )


def apply(adapters: Mapping[str, Adapter], context: InstallContext, removing: bool) -> Dict[str, Outcome]:
    """Install or uninstall each, in order; the report of each, or why it was refused."""
    outcomes: Dict[str, Outcome] = {}
    for name, adapter in adapters.items():
        try:
            outcomes[name] = adapter.uninstall(context) if removing else adapter.install(context)
        except AdapterError as exc:
            outcomes[name] = exc
    return outcomes


def outcome_json(name: str, outcome: Outcome) -> Dict[str, object]:
    """One outcome for programs; ``error`` is null when it went well."""
    if isinstance(outcome, AdapterError):
        return {"harness": name, "error": str(outcome), "changed": False}
    return {
        "harness": name,
        "error": None,
        "changed": outcome.changed,
        "message": outcome.headline,
        "details": list(outcome.details),
        "warnings": list(outcome.warnings),
    }


def _tell(outcome: Outcome) -> None:
    if isinstance(outcome, AdapterError):
        print(outcome, file=sys.stderr)
        return
    lines: List[str] = [outcome.headline, *(f"  {line}" for line in outcome.details)]
    print("\n".join(lines), flush=True)
    for warning in outcome.warnings:
        print(f"Warning: {warning}", file=sys.stderr)
