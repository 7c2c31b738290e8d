"""A listener on the companion's ``/events``, as the board in the browser is one."""

import contextlib
import http.client
import json
import socket
import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional
from urllib.parse import urlencode

WAIT_S = 20.0
READ_LIMIT_S = 120.0

Association = Dict[str, object]


class Seen(NamedTuple):
    """One event of the stream."""

    name: str
    """``snapshot`` or ``association``."""
    associations: List[Association]


class EventStream:
    """Collects what one open stream says, until closed. Use as a context manager."""

    def __init__(self, port: int, board_uuid: str, board_path: str) -> None:
        self._changed = threading.Condition()  # Guards _seen and _ended.
        self._seen: List[Seen] = []
        self._ended: Optional[str] = None
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=READ_LIMIT_S)
        query = urlencode({"boardUuid": board_uuid, "boardPath": board_path})
        self._connection.request("GET", f"/events?{query}")
        self._socket = self._connection.sock  # getresponse() takes it away from an endless answer.
        self._response = self._connection.getresponse()
        assert self._response.status == 200, self._response.read()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        self._wait(lambda: bool(self._seen), "first snapshot", WAIT_S)

    def __enter__(self) -> "EventStream":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # Wakes the reader, which close() would not.
        self._thread.join(WAIT_S)
        self._response.close()
        self._socket.close()

    def statuses(self, card_uuid: str, session_id: str = "") -> List[str]:
        """The statuses of a card in the order of the ``association`` events, snapshots left out."""
        with self._changed:
            return self._statuses(card_uuid, session_id)

    def wait_for(self, card_uuid: str, expected: List[str], session_id: str = "") -> None:
        """Wait until a card had exactly these statuses; AssertionError with what it had instead."""

        def complete() -> bool:
            return len(self._statuses(card_uuid, session_id)) >= len(expected)

        self._wait(complete, f"statuses {expected}", WAIT_S, card_uuid)
        had = self.statuses(card_uuid, session_id)
        assert had == expected, f"expected {expected}, had {had}"

    def wait_for_newest(self, expected: Dict[str, str]) -> None:
        """Wait until the board shows these statuses by card uuid, and no more; snapshots count."""
        self._wait(lambda: self._newest() == expected, f"newest {expected}", WAIT_S)

    def _newest(self) -> Dict[str, str]:
        newest: Dict[str, str] = {}
        for event in self._seen:
            if event.name == "snapshot":
                newest = {}
            newest.update((str(one["cardUuid"]), str(one["status"])) for one in event.associations)
        return newest

    def _statuses(self, card_uuid: str, session_id: str) -> List[str]:
        return [
            str(one.get("status"))
            for event in self._seen
            if event.name == "association"
            for one in event.associations
            if one.get("cardUuid") == card_uuid and session_id in ("", one.get("sessionId"))
        ]

    def _wait(self, holds: Callable[[], bool], what: str, timeout_s: float, card_uuid: str = "") -> None:
        until = time.monotonic() + timeout_s
        with self._changed:
            while not holds():
                left = until - time.monotonic()
                if left <= 0 or self._ended is not None:
                    had = self._statuses(card_uuid, "") if card_uuid else self._seen
                    raise AssertionError(f"no {what} in {timeout_s:g} s (end: {self._ended}); had {had}")
                self._changed.wait(left)

    def _read(self) -> None:
        end = "closed by the server"
        try:
            self._read_frames()
        except (OSError, ValueError, AttributeError) as error:  # AttributeError: closed under http.client.
            end = repr(error)
        with self._changed:
            self._ended = end
            self._changed.notify_all()

    def _read_frames(self) -> None:
        name, data = "", ""
        for raw in self._response:
            line = raw.decode("utf-8").rstrip("\r\n")
            field, _, value = line.partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                data = value
            elif not line and data:
                self._add(name, json.loads(data))
                name, data = "", ""

    def _add(self, name: str, data: Any) -> None:
        associations: List[Association] = data if isinstance(data, list) else [data]
        with self._changed:
            self._seen.append(Seen(name, associations))
            self._changed.notify_all()
