"""What is to be started at login, with which environment: the same for every service manager.

No PATH and no credentials: the programs that we call are named by absolute path, as found now.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, List, Mapping, Optional, Tuple

from adapters.contract import AdapterError, InstallContext
from companion.core.errors import SettingsError
from companion.core.settings import Settings, load

INTERPRETER = "PYTHON_PATH"
"""How the question about the Python that runs us calls it."""
ASKED = ("herdr", "gh", "jira")
"""Programs that a person may replace or leave out, in the order of the questions."""
TOOLS = (*ASKED, "tmux")
"""Programs that are looked for."""

_FILES = ("MDELLO_COMPANION_CONFIG", "MDELLO_COMPANION_DATA")
_YES = ("", "y", "yes")


@dataclass(frozen=True)
class Plan:
    """Everything that a service manager has to know, all paths absolute."""

    interpreter: str
    program: str
    environment: Tuple[Tuple[str, str], ...]
    """(name, value), in the order in which they are written."""
    port: int
    settings: Settings
    """Where that companion will have its files."""


def make(context: InstallContext) -> Plan:
    """The plan for this machine, after the questions when there is somebody to ask.

    AdapterError for a program that is not there, and for an interpreter that was refused.
    """
    if not context.program.is_absolute() or not context.program.is_file():
        raise AdapterError("our own program cannot be found there, so it cannot be started", context.program)
    interpreter = _confirmed(context.ask, INTERPRETER, context.interpreter)
    if interpreter is None:
        raise AdapterError("No interpreter: nothing was installed")
    tools: List[Tuple[str, str]] = []
    for name in TOOLS:
        path = found(context, name)
        if path is not None:
            path = _confirmed(context.ask if name in ASKED else None, variable(name), path)
        if path is not None:
            tools.append((variable(name), path))
    return assembled(context, interpreter, tools)


def assembled(context: InstallContext, interpreter: str, tools: List[Tuple[str, str]]) -> Plan:
    """The plan with this interpreter and these ``(<NAME>_PATH, path)``; nothing is asked or checked."""
    settings = settings_of(context)
    environ = context.environ
    environment = [
        ("HOME", str(context.home)),
        ("MDELLO_COMPANION_PORT", str(settings.port)),
        ("XDG_CONFIG_HOME", str(base_folder(environ, "XDG_CONFIG_HOME", context.home / ".config"))),
        ("XDG_STATE_HOME", str(base_folder(environ, "XDG_STATE_HOME", context.home / ".local" / "state"))),
    ]
    paths = {"MDELLO_COMPANION_CONFIG": settings.config_path, "MDELLO_COMPANION_DATA": settings.data_path}
    environment += [(name, str(paths[name])) for name in _FILES if environ.get(name)]
    return Plan(interpreter, str(context.program), (*environment, *tools), settings.port, settings)


def settings_of(context: InstallContext) -> Settings:
    """What a companion makes of this environment. AdapterError for a value that cannot be used."""
    port = context.endpoint.rpartition(":")[2]
    try:
        return load({**context.environ, "HOME": str(context.home), "MDELLO_COMPANION_PORT": port})
    except SettingsError as exc:
        raise AdapterError(str(exc)) from exc


def base_folder(environ: Mapping[str, str], name: str, default: Path) -> Path:
    """A base folder of XDG; a relative or empty value is to be ignored."""
    told = environ.get(name, "")
    return Path(told) if os.path.isabs(told) else default


def variable(tool: str) -> str:
    """The environment variable that names a program: ``GH_PATH``."""
    return f"{tool.upper()}_PATH"


def found(context: InstallContext, tool: str) -> Optional[str]:
    """Where a program is: as its variable says, else on PATH; None when it is not there."""
    return context.environ.get(variable(tool)) or context.which(tool)


def is_program(path: str) -> bool:
    """Whether that is the absolute path of a file that may be executed."""
    return os.path.isabs(path) and os.path.isfile(path) and os.access(path, os.X_OK)


def _confirmed(ask: Optional[Callable[[str], str]], name: str, path: str) -> Optional[str]:
    """The path, or what the person puts in its place; None when they leave it out."""
    while True:
        if not is_program(path):
            raise AdapterError(f"{name} is {path!r}: it must be the absolute path of a program")
        if ask is None or _answer(ask, f"{name}={path} Y/n? ").lower() in _YES:
            return path
        path = _answer(ask, f"{name}=")
        if not path:
            return None


def _answer(ask: Callable[[str], str], question: str) -> str:
    try:
        return ask(question).strip()
    except EOFError:
        raise AdapterError("No answer: nothing was installed") from None
