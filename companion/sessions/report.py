"""What callers report of a session, and the record it becomes on a card."""

from collections.abc import Mapping as AnyMapping
from typing import Dict, Mapping, NamedTuple, Optional

from adapters.contract import Status
from companion.boards.cards import Card
from companion.sessions.association import Association, InvalidAssociation, from_json

# The fields that the caller decides; all others are ours, whatever the caller says.
_CALLERS_FIELDS = ("harness", "sessionId", "sessionFile", "status")


class Event(NamedTuple):
    """What one hook event says of every card of its session."""

    harness: str
    session_id: str
    status: Status
    session_file: Optional[str]

    def to_json(self) -> Dict[str, object]:
        """As a client would have posted it; no ``sessionFile`` key when there is none."""
        body: Dict[str, object] = {
            "harness": self.harness,
            "sessionId": self.session_id,
            "status": self.status.value,
        }
        if self.session_file is not None:
            body["sessionFile"] = self.session_file
        return body

    def on_card(self, card: Card, updated_at: str) -> Association:
        """The record of the event on a card. InvalidAssociation when it names no session."""
        if not (self.harness and self.session_id):
            raise InvalidAssociation("harness" if self.session_id else "sessionId")
        return Association(
            card_path=card.path,
            harness=self.harness,
            session_id=self.session_id,
            status=self.status,
            updated_at=updated_at,
            board_uuid=card.board_uuid,
            card_uuid=card.uuid,
            session_file=self.session_file,
        )


def requested_path(body: object) -> Optional[str]:
    """``markdownPath`` unless it is absent or null, else ``cardPath``; None when it is no text.

    A ``markdownPath`` that is there but useless does not fall back (the contract, measured).
    """
    if not isinstance(body, AnyMapping):
        return None
    path = body.get("markdownPath")
    if path is None:
        path = body.get("cardPath")
    return path if isinstance(path, str) and path else None


def on_card(body: Mapping[str, object], card: Card, updated_at: str) -> Association:
    """The record of a report on a card. InvalidAssociation when a field breaks the contract."""
    return from_json(
        {
            **_callers_fields(body),
            "boardUuid": card.board_uuid,
            "cardUuid": card.uuid,
            "cardPath": card.path,
            "updatedAt": updated_at,
        }
    )


def on_path(body: Mapping[str, object], path: str, updated_at: str) -> Association:
    """The record of a report on a file that has no uuid yet. InvalidAssociation as above."""
    return from_json({**_callers_fields(body), "cardPath": path, "updatedAt": updated_at})


def _callers_fields(body: Mapping[str, object]) -> Dict[str, object]:
    return {name: body[name] for name in _CALLERS_FIELDS if name in body}
