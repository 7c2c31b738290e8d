"""From the command line to one command's module, and from an error to an exit code.

Only the module of the command at hand is imported, so that a quick command stays quick.

Exit codes: 0 done; 1 refused, failed or wrongly called; 2 an environment value cannot be used;
3 a fault of ours; 130 stopped by Ctrl-C.
"""

import argparse
import importlib
import io
import os
import sys
from typing import List, NoReturn, Optional, Sequence, Tuple

from companion.commands.help import COMMANDS, help_text
from companion.core.errors import CompanionError, UsageError

PROGRAM = "mdello.pyz"
EXIT_BUG = 3
EXIT_INTERRUPTED = 130

_HELP = ("help", "-h", "--help")
_HELP_OPTIONS = ("-h", "--help")


class Parser(argparse.ArgumentParser):
    """An argument parser that raises UsageError instead of leaving the process."""

    def error(self, message: str) -> NoReturn:
        """Called by argparse for anything it cannot understand."""
        usage = self.format_usage().strip().replace("usage:", "Usage:", 1)
        raise UsageError(f"{usage}\n{message[:1].upper()}{message[1:]}. See {PROGRAM} help.")

    def parse_known_args(  # type: ignore[override]
        self, args: Optional[Sequence[str]] = None, namespace: Optional[argparse.Namespace] = None
    ) -> Tuple[argparse.Namespace, List[str]]:
        """Refuse surplus arguments where they stand, so that the usage shown is that command's own."""
        parsed, surplus = super().parse_known_args(args, namespace)
        if surplus:
            self.error(f"unrecognized arguments: {' '.join(surplus)}")
        return parsed, surplus


def run(arguments: List[str]) -> int:
    """Run the command that ``arguments`` name (``serve`` when there is none); the exit code."""
    _tolerate_any_text()
    try:
        return _run(arguments)
    except CompanionError as exc:
        print(exc, file=sys.stderr)
        return exc.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output left (``status | head``). Python would complain once more
        # while it flushes at exit, so stdout is turned away.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as exc:
        return _report_bug(exc)


def _tolerate_any_text() -> None:
    """A terminal in another encoding shows escapes for what it lacks; printing never fails."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run(arguments: List[str]) -> int:
    name = arguments[0] if arguments and not arguments[0].startswith("--") else "serve"
    rest = arguments[1:] if arguments and arguments[0] == name else arguments
    if name in _HELP or _asks_for_help(arguments):
        print(help_text(os.environ))
        return 0
    module = COMMANDS.get(name)
    if module is None:
        print(f'Unknown command "{name}".\n\n{help_text(os.environ)}', file=sys.stderr)
        return 1
    command = importlib.import_module(f"companion.commands.{module}")
    parser = Parser(prog=PROGRAM)
    command.add_parser(parser.add_subparsers(dest="command", parser_class=Parser))
    parsed = parser.parse_args([name, *rest])
    result: int = command.run(parsed)
    return result


def _asks_for_help(arguments: List[str]) -> bool:
    """Whether an option asks for help, behind any command; what stands behind ``--`` is no option."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return any(each in _HELP_OPTIONS for each in arguments[:end])


def _report_bug(exc: Exception) -> int:
    """One line on screen, the whole story behind ``DEBUG=1``."""
    if os.environ.get("DEBUG") == "1":
        import traceback

        traceback.print_exc()
    else:
        print(f"mdello failed: {type(exc).__name__}: {exc} (DEBUG=1 shows where)", file=sys.stderr)
    return EXIT_BUG
