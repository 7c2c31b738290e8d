"""The list of commands, and the help text made from it."""

from typing import Dict, List, Mapping, Tuple

COMMANDS: Dict[str, str] = {
    "serve": "serve",
    "status": "status",
    "explain": "explain",
    "board": "board",
    "backfill": "backfill",
    "purge": "purge",
    "reset": "purge",
    "install": "install",
    "uninstall": "install",
    "assign": "assign",
    "doctor": "doctor",
    "hook-post": "hook_post",
}
"""Command to the module beside this one that runs it."""


def help_text(environ: Mapping[str, str]) -> str:
    """All commands and environment variables in two aligned columns; the home is shown as ``~``."""
    from adapters.registry import ADAPTERS
    from companion.commands.integrations import SERVICE, words

    agents = "|".join(sorted(ADAPTERS))
    # The contract knows the service by its name on macOS.
    installable = "|".join(name for name in words() if name != SERVICE)
    commands = [
        (
            "serve [--demo] [--log-files]",
            "Start the sidecar (the default); --demo: with a throw-away board; --log-files: log to files",
        ),
        ("status [--json]", "Boards, and which session works on which card"),
        ("explain [SESSION|CARD]", "Why a session has its status: verdict and evidence; --json"),
        ("board init DIR", "Make a board in a folder and register it"),
        ("board add DIR", "Register an existing board"),
        ("board list [--json]", "Registered boards"),
        ("board remove DIR|UUID", "Forget a board; its files stay"),
        (
            "board repair [DIR|CARD]",
            "Give a uuid to cards that have none; --dry-run: only say so; --force: in mid-turn too",
        ),
        (f"backfill [{agents}]", "Rebuild associations from past sessions"),
        ("purge", "Forget all associations (also: reset)"),
        (f"install [{installable}]", "Connect agents; --transport http|command: how turn events travel"),
        (f"uninstall [{installable}]", "Remove what install made"),
        (f"install {SERVICE}", "Start the companion at login; uninstall undoes it"),
        ("assign [--dry-run]", "Put your GitHub assignments on the board now; --dry-run: only list them"),
        ("doctor [--json]", "Check Python, file, port, boards and integrations"),
        ("help", "This text (also: -h, --help)"),
        ("--version [--verbose]", "Version and Python; --verbose: the file and its SHA-256"),
    ]
    exit_codes = [
        ("0", "Done"),
        ("1", "Refused, failed, or wrongly called"),
        ("2", "An environment value cannot be used"),
        ("3", "A fault of mdello's own"),
        ("130", "Stopped by Ctrl-C"),
    ]
    return "\n\n".join(
        [
            "mdello: which agent session works on which Markdown card, live.\n\n"
            "Usage: mdello.pyz [command]   or   python3 mdello.pyz [command]",
            _columns("Commands:", commands),
            _columns("Environment:", _variables(environ)),
            _columns("Exit codes:", exit_codes),
        ]
    )


def _variables(environ: Mapping[str, str]) -> List[Tuple[str, str]]:
    from companion.core.settings import DEFAULT_PORT, load

    defaults = load(
        {name: value for name, value in environ.items() if not name.startswith("MDELLO_COMPANION_")}
    )

    def shown(path: object) -> str:
        text = str(path)
        home = str(defaults.home)
        return "~" + text[len(home) :] if text.startswith(home + "/") else text

    from adapters.registry import ADAPTERS

    rows = [
        ("MDELLO_COMPANION_PORT", f"Listen port ({DEFAULT_PORT})"),
        ("MDELLO_COMPANION_CONFIG", f"Boards and preferences ({shown(defaults.config_path)})"),
        ("MDELLO_COMPANION_DATA", f"Log of associations ({shown(defaults.data_path)})"),
    ]
    for adapter in ADAPTERS.values():
        rows += adapter.ENVIRONMENT
    rows += [
        ("MDELLO_COMPANION_URL", "Where clients in agents report to (the port at installation)"),
        ("GH_PATH, JIRA_PATH, HERDR_PATH", "Programs to use instead of those on PATH"),
        ("XDG_CONFIG_HOME", "Base of the configuration (~/.config)"),
        ("XDG_STATE_HOME", "Base of the state files (~/.local/state)"),
        ("XDG_DATA_HOME", "Base of the installed clients (~/.local/share)"),
        ("PATH", "Where agents, gh, jira, herdr and tmux are looked for"),
        ("DEBUG", "1: show every event on stderr"),
    ]
    return rows


def _columns(title: str, rows: List[Tuple[str, str]]) -> str:
    width = max(len(left) for left, _ in rows) + 2
    return "\n".join([title, *(f"  {left:<{width}}{right}" for left, right in rows)])
