"""An agent with three words: its adapter does what the test tells it."""

import threading
from pathlib import Path
from typing import Callable, Dict, List, Optional, Tuple, cast

from adapters.contract import (
    Adapter,
    HookEvent,
    HookPayload,
    PastSession,
    ReadReport,
    SessionState,
    Status,
    Translation,
)


class FakeAgent:
    """Payloads are ``{"event", "session", "status", "cards", "file", "resume", "state"}``."""

    NAME = "fake"

    def __init__(self) -> None:
        self.transcripts: Dict[str, Tuple[str, ...]] = {}
        """Path to the cards that are found in it."""
        self.while_reading: Callable[[], None] = lambda: None
        self.read: List[Tuple[str, Tuple[bytes, ...], Optional[str]]] = []
        self.seen_states: List[Optional[SessionState]] = []

    def as_adapter(self) -> Adapter:
        """What the intake takes."""
        return cast(Adapter, self)

    def session_of(self, payload: HookPayload) -> str:
        """The session, whatever it is."""
        return str(payload.get("session", ""))

    def translate(self, payload: HookPayload, state: Optional[SessionState]) -> Translation:
        """Straight from the payload; raises for the event ``Crash``."""
        self.seen_states.append(state)
        name = str(payload.get("event", ""))
        if name == "Crash":
            raise KeyError("session_id")
        new_state = cast(Optional[SessionState], payload.get("state"))
        if name.startswith("Unknown"):
            return Translation(name, known=False)
        if "status" not in payload:
            return Translation(name, known=True, state=new_state)
        resumed = payload.get("resume")
        event = HookEvent(
            session_id=self.session_of(payload),
            status=Status(payload["status"]),
            card_paths=tuple(cast(List[str], payload.get("cards", []))),
            session_file=cast(Optional[str], payload.get("file")),
            discover_from=str(resumed) if resumed is not None else None,
            discover_cwd="/work" if resumed is not None else None,
        )
        return Translation(name, known=True, state=new_state, event=event)

    def read_session(
        self, path: Path, needles: Tuple[bytes, ...], cwd: Optional[str], report: ReadReport
    ) -> PastSession:
        """The transcript's cards, after ``while_reading``."""
        self.read.append((str(path), needles, cwd))
        self.while_reading()
        if str(path) not in self.transcripts:
            raise FileNotFoundError(2, "No such file", str(path))
        return PastSession("s", str(path), None, self.transcripts[str(path)])


class Gate:
    """Holds a thread until the test lets it go on."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.open.wait(30)
