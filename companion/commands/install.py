"""``install`` and ``uninstall``: connect what is there, or what is named, and undo exactly that."""

import argparse
import json
import os
import sys
from dataclasses import replace
from typing import Dict, List, Mapping, Optional, Sequence, Union

from adapters.contract import AdapterError, InstallContext, InstallReport, Integration
from companion.commands import integrations
from companion.core import archive
from companion.core.errors import CompanionError, UsageError
from companion.core.settings import Settings, load

TRANSPORTS = ("http", "command")

Outcome = Union[InstallReport, Exception]
"""What became of one integration: the report, or why it was refused."""

# What is there already is kept up to date, whether its agent was found or not.
_OURS = ("installed", "outdated")

NOT_FOUND = "not found on this machine"
"""What is said of an agent of which nothing is there."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """``install [NAME] [--transport http|command] [--json]`` and ``uninstall [NAME] [--json]``."""
    for command in ("install", "uninstall"):
        parser = subparsers.add_parser(command, add_help=False, usage=_usage(command))
        parser.add_argument("names", nargs="*")
        parser.add_argument("--json", action="store_true")
        if command == "install":
            parser.add_argument("--transport", choices=TRANSPORTS, default="")


def run(args: argparse.Namespace) -> int:
    """The one that is named, or all. 1 when a step failed; the other steps are done all the same.

    UsageError for an unknown name, for more than one, and for one that this system has not.
    """
    removing = args.command == "uninstall"
    name = _named(args.command, args.names)
    context = context_for(load(os.environ), "" if removing else args.transport, asking=not args.json)
    known = integrations.integrations()
    if name is not None:
        outcomes = apply({name: known[name]}, context, removing)
    elif removing:
        outcomes = apply(removable(known, context), context, removing)
    else:
        wanted = {each: known[each] for each in integrations.at_once()}
        outcomes = apply(wanted, context, removing, skipping=True)
    if args.json:
        print(json.dumps([outcome_json(each, outcomes[each]) for each in outcomes], indent=2))
    else:
        for outcome in outcomes.values():
            _tell(outcome)
        if not (name or removing) and _service_is_missing(known, context):
            print(f"To start the companion at login: mdello.pyz install {integrations.SERVICE}")
    return 1 if any(isinstance(each, Exception) for each in outcomes.values()) else 0


def removable(known: Mapping[str, Integration], context: InstallContext) -> Dict[str, Integration]:
    """What ``uninstall`` alone is about: all that ``install`` alone is, and what else is there."""
    usual = integrations.at_once()
    return {
        name: each for name, each in known.items() if name in usual or each.inspect(context).state != "absent"
    }


def _service_is_missing(known: Mapping[str, Integration], context: InstallContext) -> bool:
    service = known.get(integrations.SERVICE)
    return service is not None and service.inspect(context).state == "absent"


def _usage(command: str) -> str:
    transport = f" [--transport {'|'.join(TRANSPORTS)}]" if command == "install" else ""
    return f"mdello.pyz {command} [{'|'.join(integrations.words())}]{transport} [--json]"


def _named(command: str, words: Sequence[str]) -> Optional[str]:
    """The integration that is named, or None for all."""
    known = integrations.words()
    wrong = [word for word in words if word not in known] or list(words[1:])
    if wrong:
        what = "Unknown integration" if wrong[0] not in known else "One at a time, surplus"
        raise UsageError(f"Usage: {_usage(command)}\n{what}: {wrong[0]}. See mdello.pyz help.")
    return integrations.named(words[0]) if words else None


def context_for(settings: Settings, transport: str = "", asking: bool = False) -> InstallContext:
    """What installers may know.

    Args:
        transport: empty keeps what is installed.
        asking: whether the person at the terminal may be asked, when there is one.
    """
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
        ask=_ask if asking and sys.stdin is not None and sys.stdin.isatty() else None,
    )


def _ask(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer:
        raise AdapterError("No answer came from the terminal")
    return answer.rstrip("\n")


def apply(
    wanted: Mapping[str, Integration], context: InstallContext, removing: bool, skipping: bool = False
) -> Dict[str, Outcome]:
    """Install or uninstall each, in order; the report of each, or why it was refused.

    ``skipping``: leave out, and say so, what is neither on this machine nor installed.
    """
    return {name: _done(name, each, context, removing, skipping) for name, each in wanted.items()}


def _done(
    name: str, integration: Integration, context: InstallContext, removing: bool, skipping: bool
) -> Outcome:
    try:
        if removing:
            return integration.uninstall(context)
        found = integration.presence(context) is not None
        if skipping and not found and integration.inspect(context).state not in _OURS:
            hint = f"Connect it all the same: mdello.pyz install {name}"
            return InstallReport(f"{integration.TITLE}: {NOT_FOUND}, so not connected", (hint,))
        report = integration.install(context)
    except (AdapterError, CompanionError, OSError) as exc:
        return exc
    if found or name == integrations.SERVICE:  # The service says by itself what it found.
        return report
    note = f"{integration.TITLE} was {NOT_FOUND}: this takes effect once it is there"
    return replace(report, details=(*report.details, note))


def outcome_json(name: str, outcome: Outcome) -> Dict[str, object]:
    """One outcome for programs; ``error`` is null when it went well."""
    if isinstance(outcome, Exception):
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
    if isinstance(outcome, Exception):
        print(outcome, file=sys.stderr)
        return
    lines: List[str] = [outcome.headline, *(f"  {line}" for line in outcome.details)]
    print("\n".join(lines), flush=True)
    for warning in outcome.warnings:
        print(f"Warning: {warning}", file=sys.stderr)
