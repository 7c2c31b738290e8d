"""One association: which agent session works on which card, and in which status.

The record, its identity and its normalisation are the contract's; see ARCHITECTURE.md for the
few places where we differ.
"""

from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass, replace
from functools import cached_property
from json.encoder import encode_basestring
from typing import Dict, Mapping, Optional, Tuple

from adapters.contract import Status
from companion.sessions.lines import text_bytes

Key = Tuple[str, str, str]
"""Identity: (cardUuid, or cardPath when there is none; harness; sessionId)."""

UNKNOWN_HARNESS = "unknown"
_LEGACY_STATUS = {"active": Status.IDLE, "inactive": Status.CLOSED}
_STATUS = {status.value: status for status in Status}


class InvalidAssociation(ValueError):
    """A record that breaks the contract; the text says which field."""


@dataclass(frozen=True)
class Association:
    """A valid record. Fields carry the contract's names in Python spelling."""

    card_path: str
    """Absolute, begins with ``/`` and ends with ``.md``."""
    harness: str
    session_id: str
    status: Status
    updated_at: str
    """UTC ISO-8601 with milliseconds, assigned by the companion."""
    board_uuid: str = ""
    """Empty only in legacy log lines."""
    card_uuid: str = ""
    """Empty only in legacy log lines."""
    session_file: Optional[str] = None

    @property
    def key(self) -> Key:
        """Identity; board and path are no part of it, so it survives moves and renames."""
        return (self.card_uuid or self.card_path, self.harness, self.session_id)

    def same_but_for_time(self, other: "Association") -> bool:
        """Whether both say the same, ``updated_at`` left aside."""
        return (
            self.status is other.status
            and self.card_path == other.card_path
            and self.session_file == other.session_file
            and self.board_uuid == other.board_uuid
            and self.key == other.key
            and self.card_uuid == other.card_uuid
        )

    def moved_to(self, board_uuid: str, card_uuid: str, card_path: str) -> "Association":
        """The same session and status on the card's present place."""
        return replace(self, board_uuid=board_uuid, card_uuid=card_uuid, card_path=card_path)

    def to_json(self) -> Dict[str, str]:
        """The stored fields under the contract's names; absent ones have no key."""
        record = {}
        if self.board_uuid:
            record["boardUuid"] = self.board_uuid
        if self.card_uuid:
            record["cardUuid"] = self.card_uuid
        record.update(cardPath=self.card_path, harness=self.harness, sessionId=self.session_id)
        if self.session_file is not None:
            record["sessionFile"] = self.session_file
        record.update(status=self.status.value, updatedAt=self.updated_at)
        return record

    @cached_property
    def encoded(self) -> bytes:
        """:meth:`to_json` as one line of UTF-8; kept, since logs, frames and snapshots hold it."""
        # Written out, because it is made for every event: a general encoder takes twice as long.
        quote = encode_basestring
        board = f'"boardUuid":{quote(self.board_uuid)},' if self.board_uuid else ""
        card = f'"cardUuid":{quote(self.card_uuid)},' if self.card_uuid else ""
        file = f',"sessionFile":{quote(self.session_file)}' if self.session_file is not None else ""
        return text_bytes(
            f'{{{board}{card}"cardPath":{quote(self.card_path)},"harness":{quote(self.harness)}'
            f',"sessionId":{quote(self.session_id)}{file}'
            f',"status":"{self.status.value}","updatedAt":{quote(self.updated_at)}}}'
        )


def from_json(record: object) -> Association:
    """A normalised association from foreign JSON. InvalidAssociation names the first bad field.

    Unknown fields are dropped, a missing harness becomes ``unknown``, legacy statuses are
    translated.
    """
    if not isinstance(record, AnyMapping):
        raise InvalidAssociation("not an object")
    path = record.get("cardPath")
    if not (isinstance(path, str) and path.startswith("/") and path.endswith(".md")):
        raise InvalidAssociation("cardPath")
    harness = record.get("harness")
    harness = UNKNOWN_HARNESS if harness is None else harness
    if not (isinstance(harness, str) and harness):
        raise InvalidAssociation("harness")
    session_id = record.get("sessionId")
    if not (isinstance(session_id, str) and session_id):
        raise InvalidAssociation("sessionId")
    session_file = record.get("sessionFile")
    if "sessionFile" in record and not isinstance(session_file, str):
        raise InvalidAssociation("sessionFile")
    updated_at = record.get("updatedAt")
    if not isinstance(updated_at, str):
        raise InvalidAssociation("updatedAt")
    return Association(
        card_path=path,
        harness=harness,
        session_id=session_id,
        status=_status(record.get("status")),
        updated_at=updated_at,
        board_uuid=_optional_text(record, "boardUuid"),
        card_uuid=_optional_text(record, "cardUuid"),
        session_file=session_file if isinstance(session_file, str) else None,
    )


def _status(value: object) -> Status:
    if isinstance(value, str):
        status = _STATUS.get(value) or _LEGACY_STATUS.get(value)
        if status is not None:
            return status
    raise InvalidAssociation("status")


def _optional_text(record: Mapping[str, object], name: str) -> str:
    value = record.get(name, "")
    if not isinstance(value, str):
        raise InvalidAssociation(name)
    return value
