"""Puts the parts together: the one place where boards, sessions and the web meet."""

import logging
import os
import platform
import secrets
import threading
import time
from dataclasses import dataclass
from functools import partial
from typing import Callable, Dict, List, Mapping, Tuple

from companion.boards.cards import CardFinder
from companion.boards.registry import BoardRegistry
from companion.core import archive
from companion.core.clock import iso_utc
from companion.core.config import ConfigFile
from companion.core.files import sweep
from companion.core.settings import Settings
from mdello import __version__

_log = logging.getLogger(__name__)

# How often a running server looks whether its own file was replaced: one stat.
ARCHIVE_CHECK_S = 30.0


@dataclass(frozen=True)
class Boards:
    """What a command needs to know about boards and cards."""

    config: ConfigFile
    registry: BoardRegistry
    finder: CardFinder


def open_boards(settings: Settings) -> Boards:
    """Boards as ``companion.json`` names them. Nothing is read before it is asked for."""
    config = ConfigFile(settings.config_path)
    registry = BoardRegistry(config, time.time, _working_directory(settings.environ))
    return Boards(config, registry, CardFinder(registry))


def _working_directory(environ: Mapping[str, str]) -> str:
    """The current folder; a guess when ours was removed under us."""
    try:
        return os.getcwd()
    except OSError:
        return environ.get("PWD") or "/"


class Companion:
    """The whole sidecar: made, bound, started, stopped."""

    def __init__(self, settings: Settings) -> None:
        from adapters.registry import ADAPTERS
        from companion.commands import assign
        from companion.core.hub import Hub
        from companion.core.programs import Programs
        from companion.enrich.lookups import Lookups
        from companion.herdr.focus import focus
        from companion.herdr.labels import HerdrLabels
        from companion.history.scanner import needles_for
        from companion.sessions.clients import Clients
        from companion.sessions.intake import HookIntake
        from companion.sessions.ledger import Ledger
        from companion.sessions.watcher import Watcher
        from companion.web.server import CompanionServer
        from companion.web.services import Services

        self._settings = settings
        self._boards = open_boards(settings)
        self._started_s = time.monotonic()
        self._started_at = iso_utc(time.time())
        self._archive = archive.ArchiveWatch()
        # Event ids of another life of the companion must never be taken for ours.
        hub = Hub(secrets.token_hex(4))
        self.programs = Programs(settings.environ)
        self.lookups = Lookups(self.programs)
        self.assignment = assign.open_job(self._boards, self.programs)
        self.labels = HerdrLabels(self.programs, ADAPTERS)
        self.ledger = Ledger(
            settings.data_path,
            settings.pending_path,
            self._boards.finder,
            self._boards.registry,
            hub,
            labels=self.labels,
        )

        def needles() -> Tuple[bytes, ...]:
            return needles_for(board.path for board in self._boards.registry.boards())

        self.watcher = Watcher(
            self.ledger, ADAPTERS, settings.home, settings.environ, settings.process_path, needles
        )
        self.intake = HookIntake(
            self.ledger, settings.hook_state_path, needles=needles, heard=self.watcher.heard
        )
        self.clients = Clients()
        self.server = CompanionServer(
            Services(
                settings=settings,
                config=self._boards.config,
                registry=self._boards.registry,
                ledger=self.ledger,
                intake=self.intake,
                adapters={name: adapter for name, adapter in ADAPTERS.items() if adapter.EVENTS},
                clients=self.clients,
                watcher=self.watcher,
                hub=hub,
                programs=self.programs,
                lookups=self.lookups,
                focus=partial(focus, self.programs, ADAPTERS),
                health=self.health,
            )
        )

    def start(self) -> None:
        """Take up what earlier lives remembered. Call it once the port is ours.

        Everything is imported now: a module read later, from an archive that was replaced in the
        meantime, would run wrong bytes.
        """
        archive.import_all("adapters", "companion")
        for path in (
            self._settings.data_path,
            self._settings.pending_path,
            self._settings.hook_state_path,
            self._settings.process_path,
        ):
            sweep(path)
        self.ledger.load()
        self.intake.load()
        self.watcher.load()
        self.labels.start(self.ledger.relabelled)
        self.assignment.start()

    def serve_until(self, stopped: Callable[[float], bool]) -> None:
        """Serve until ``stopped``, which waits for so many seconds, is true."""
        server = threading.Thread(target=self.server.serve_until_stopped, name="server", daemon=True)
        server.start()
        said = False
        while not stopped(ARCHIVE_CHECK_S):
            if not said and self._archive.replaced():
                said = True
                _log.warning("%s was replaced: restart the companion to run the new one", self._archive.path)

    def stop(self) -> None:
        """Stop serving and save what is unsaved."""
        self.server.stop()
        self.assignment.close(0.0)  # That its program ends now is no failure of a run.
        self.programs.close()
        self.assignment.close()
        self.labels.close()
        self.watcher.close()
        self.intake.close()
        self.ledger.close()

    def unsaved(self) -> int:
        """How many events no disk has taken yet."""
        counts = self.ledger.facts()["counts"]
        return int(counts["unsaved"]) if isinstance(counts, dict) else 0

    def advice(self) -> List[str]:
        """What a person who has just started the companion should know."""
        lines = []
        if not self._boards.registry.boards():
            lines.append(
                "No board is registered yet. Make one with: mdello.pyz board init DIR\n"
                "(or look around first with: mdello.pyz serve --demo)"
            )
        return lines + [f"Note: {problem}" for problem in self._problems()]

    def health(self) -> Dict[str, object]:
        """The body of ``/health``."""
        ledger = self.ledger.facts()
        return {
            "name": "mdello",
            "version": __version__,
            "pid": os.getpid(),
            "python": platform.python_version(),
            "startedAt": self._started_at,
            "uptimeSeconds": round(time.monotonic() - self._started_s, 1),
            "boards": [
                {"uuid": board.uuid, "path": board.path, "available": os.path.isdir(board.path)}
                for board in self._boards.registry.boards()
            ],
            "counts": ledger["counts"],
            "withoutUuid": ledger["withoutUuid"],
            "harnesses": self.intake.facts(),
            "clients": self.clients.facts(),
            "watcher": self.watcher.facts(),
            "lookups": self.lookups.facts(),
            "assignment": self.assignment.facts(),
            "problems": self._problems(),
            "socketsHandedIn": self.server.handed_in,
            "notes": self._notes(),
            "archive": {"path": str(self._archive.path), "replaced": self._archive.replaced()},
        }

    def _notes(self) -> List[str]:
        """What may be meant to be as it is (a herdr that does not run), one line each."""
        problem = self.labels.problem
        notes = [f"herdr does not tell where sessions run: {problem}"] if problem else []
        return notes + self.lookups.notes()

    def _problems(self) -> List[str]:
        """Everything that does not work as it should, one line each."""
        found = [self._boards.config.problem, self._boards.registry.save_problem, self.intake.problem]
        found += [self.assignment.problem, *self.watcher.problems()]
        problems = self.ledger.facts()["problems"]
        found += problems if isinstance(problems, list) else []
        if self._archive.replaced():
            found.append(f"{self._archive.path} was replaced since the start: restart the companion")
        return [text for text in found if text]
