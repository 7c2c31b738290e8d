"""A real companion for tests: boards on disk, ledger, intake and server, on a port of its own."""

import threading
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Dict, Mapping, MutableMapping, Optional, cast

from adapters.contract import Adapter, HookEvent, SessionState, Status, Translation
from adapters.registry import ADAPTERS
from companion.boards.cards import CardFinder
from companion.boards.registry import BoardRegistry
from companion.core.config import ConfigFile
from companion.core.hub import Hub
from companion.core.programs import Programs
from companion.core.settings import Settings
from companion.enrich.lookups import POLL_S, Lookups
from companion.herdr.focus import focus
from companion.herdr.labels import HerdrLabels
from companion.sessions.clients import Clients
from companion.sessions.intake import HookIntake
from companion.sessions.ledger import Ledger
from companion.sessions.watcher import Watcher
from companion.web.limits import Limits
from companion.web.server import CompanionServer
from companion.web.services import Services
from tests.companion.web.talk import PATIENCE_S, Talk

BOARD = "b0a4d000-0000-4000-8000-000000000001"
OTHER_BOARD = "b0a4d000-0000-4000-8000-000000000002"
SITE = "https://subdavis.github.io"


def _translate(payload: Mapping[str, object], state: Optional[SessionState]) -> Translation:
    """The toy agent's hooks: ``{"session", "status", "paths"}``; ``{"fault": true}`` is our bug."""
    if payload.get("fault"):
        raise ZeroDivisionError
    if "status" not in payload:
        return Translation(event_name=str(payload.get("event", "")), known=False)
    paths = payload.get("paths")
    event = HookEvent(
        session_id=str(payload["session"]),
        status=Status(payload["status"]),
        card_paths=tuple(paths) if isinstance(paths, list) else (),
    )
    return Translation(event_name="toy", known=True, event=event)


TOY = cast(
    Adapter,
    SimpleNamespace(
        NAME="toy",
        TITLE="Toy",
        EVENTS=("toy",),
        session_of=lambda payload: str(payload.get("session", "")),
        translate=_translate,
    ),
)


class World:
    """Two boards, three cards, and a companion that serves them."""

    def __init__(
        self,
        folder: Path,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        port: int = 0,
        poll_s: float = POLL_S,
    ) -> None:
        self.folder = folder
        self.environ: MutableMapping[str, str] = {}
        """Where outside programs are; empty: there are none. May be changed before one is run."""
        self.settings = Settings(
            home=folder,
            port=port,
            config_path=folder / "config" / "companion.json",
            data_path=folder / "state" / "companion.jsonl",
            debug=False,
            environ=self.environ,
        )
        self.config = ConfigFile(self.settings.config_path)
        self.registry = BoardRegistry(self.config, time.time, str(folder))
        self.hub = Hub("life")
        self.programs = Programs(self.environ)
        self.lookups = Lookups(self.programs, poll_s)
        self.labels = HerdrLabels(self.programs, ADAPTERS)
        self.ledger = Ledger(
            self.settings.data_path,
            self.settings.pending_path,
            CardFinder(self.registry),
            self.registry,
            self.hub,
            second_look_s=0.0,
            labels=self.labels,
        )
        self.watcher = Watcher(
            self.ledger,
            ADAPTERS,
            self.settings.home,
            self.environ,
            self.settings.process_path,
            look_s=0.05,
        )
        self.intake = HookIntake(self.ledger, self.settings.hook_state_path, heard=self.watcher.heard)
        self.services = Services(
            settings=self.settings,
            config=self.config,
            registry=self.registry,
            ledger=self.ledger,
            intake=self.intake,
            adapters={"toy": TOY},
            clients=Clients(),
            watcher=self.watcher,
            hub=self.hub,
            programs=self.programs,
            lookups=self.lookups,
            focus=partial(focus, self.programs, ADAPTERS),
            health=self.health,
        )
        self.limits = limits
        self.board = self.make_board("board", BOARD)
        self.other_board = self.make_board("other", OTHER_BOARD)
        self.card_a = self.make_card(self.board / "a.md", "card-a")
        self.card_b = self.make_card(self.board / "b.md", "card-b")
        self.card_c = self.make_card(self.other_board / "c.md", "card-c")
        self.server = CompanionServer(self.services, limits)
        self._thread: Optional[threading.Thread] = None

    def health(self) -> Dict[str, object]:
        """As much of it as the web floor cares for."""
        return {"name": "mdello", "version": "0", "pid": 1}

    def make_board(self, name: str, uuid: str) -> Path:
        """A registered board's folder."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        self.registry.register(uuid, str(folder))
        return folder

    def make_card(self, path: Path, uuid: str) -> str:
        """A card's path."""
        path.write_text(f"---\nuuid: {uuid}\ncolumn: Doing\n---\n\nText\n", encoding="utf-8")
        return str(path)

    def start(self) -> "World":
        """Bind and serve in a thread."""
        self.ledger.load()
        self.intake.load()
        self.watcher.load()
        self.labels.start(self.ledger.relabelled)
        self.server.bind()
        self._thread = threading.Thread(target=self.server.serve_until_stopped)
        self._thread.start()
        return self

    def stop(self) -> None:
        """End everything; a serving thread that does not end is a failure. May be called twice."""
        self.server.stop(PATIENCE_S)
        if self._thread is not None:
            self._thread.join(PATIENCE_S)
            assert not self._thread.is_alive()
        self.programs.close()
        self.labels.close()
        self.watcher.close()
        self.intake.close()
        self.ledger.close()

    @property
    def port(self) -> int:
        """The real port."""
        return self.server.port

    def talk(self) -> Talk:
        """A new connection."""
        return Talk(self.port)

    def listen(self, board_uuid: str = BOARD, board: Optional[Path] = None, *headers: str) -> Talk:
        """An open event stream, its head read."""
        talk = self.talk()
        lines = "".join(f"{header}\r\n" for header in headers)
        path = f"/events?boardUuid={board_uuid}&boardPath={board or self.board}"
        talk.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode())
        assert talk.head()[0] == 200
        return talk

    def record(self, path: str, session: str = "s1", status: str = "running") -> None:
        """What a client would post."""
        body = {"cardPath": path, "harness": "pi", "sessionId": session, "status": status}
        assert self.ledger.ingest(body) is not None
