"""``doctor``: is everything in place, and does it work? Looks, and changes nothing."""

import argparse
import json
import os
import time
from typing import Dict, List

from companion.commands.checks.finding import Finding, State, all_well
from companion.core import archive
from companion.core.settings import Settings, load

_MARKS = {State.OK: "ok", State.WRONG: "!!", State.UNKNOWN: "??"}


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """``doctor [--json]``; surplus arguments are ignored, as the contract has it."""
    parser = subparsers.add_parser("doctor", add_help=False, usage="mdello.pyz doctor [--json]")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("ignored", nargs="*")


def run(args: argparse.Namespace) -> int:
    """0 when nothing is wrong, else 1. What could not be checked is said and does not count."""
    findings = diagnose(load(os.environ))
    print(json.dumps(as_json(findings), indent=2) if args.json else as_text(findings))
    return 0 if all_well(findings) else 1


def diagnose(settings: Settings) -> List[Finding]:
    """Every check, in the order of the report."""
    from adapters.registry import ADAPTERS
    from companion.commands.checks import agents, assignment, boards, logs, program, server
    from companion.commands.install import context_for
    from companion.commands.integrations import integrations
    from companion.commands.wiring import open_boards
    from companion.core.programs import Programs
    from mdello import __version__

    path = archive.program_path()
    served = server.check(settings.port, path, __version__)
    known = open_boards(settings)
    files, newest = logs.check(settings)
    hooked = {name: bool(adapter.EVENTS) for name, adapter in ADAPTERS.items()}
    return [
        *program.check(path, __version__),
        *served.findings,
        *boards.check(known),
        *files,
        *agents.check(integrations(), hooked, context_for(settings), served.health, newest, time.time),
        *assignment.check(known, Programs(settings.environ).path("gh"), served.health, time.time),
    ]


def as_json(findings: List[Finding]) -> Dict[str, object]:
    """``ok`` (nothing is wrong) and ``findings``, each as :meth:`Finding.to_json` tells it."""
    return {"ok": all_well(findings), "findings": [each.to_json() for each in findings]}


def as_text(findings: List[Finding]) -> str:
    """Sections with marked lines: ok, ``!!`` wrong, ``??`` unknown; hints are indented."""
    lines: List[str] = []
    section = ""
    for each in findings:
        if each.section != section:
            section = each.section
            lines += [*([""] if lines else []), section]
        lines.append(f"  {_MARKS[each.state]}  {each.text}")
        if each.hint:
            lines.append(f"      -> {each.hint}")
    wrongs = sum(each.state is State.WRONG for each in findings)
    lines += ["", "Nothing is wrong." if not wrongs else f"Wrong: {wrongs}. See the lines marked !!"]
    return "\n".join(lines)
