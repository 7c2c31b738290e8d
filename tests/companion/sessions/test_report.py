"""What callers say, and what of it counts."""

from typing import Optional, Tuple

import pytest

from adapters.contract import Status
from companion.boards.cards import Card
from companion.sessions.association import InvalidAssociation
from companion.sessions.report import Event, on_card, on_path, requested_path

CARD = Card("cu", "/b/a.md", "bu")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"markdownPath": "/a.md", "cardPath": "/b.md"}, "/a.md"),
        ({"markdownPath": None, "cardPath": "/b.md"}, "/b.md"),
        ({"cardPath": "/b.md"}, "/b.md"),
        ({"markdownPath": "", "cardPath": "/b.md"}, None),
        ({"markdownPath": [], "cardPath": "/b.md"}, None),
        ({"cardPath": ""}, None),
        ({}, None),
        ([], None),
        ("/a.md", None),
    ],
)
def test_which_path_is_requested(body: object, path: str) -> None:
    """One that is there but useless does not fall back to the other."""
    assert requested_path(body) == path


def test_the_callers_place_and_time_do_not_count() -> None:
    """Only harness, session, session file and status do."""
    body = {
        **{"boardUuid": "x", "cardUuid": 5, "cardPath": [], "updatedAt": {}, "herdrTab": "t"},
        **{"harness": "pi", "sessionId": "s", "status": "idle"},
    }
    record = on_card(body, CARD, "now")
    assert record.to_json() == {
        "boardUuid": "bu",
        "cardUuid": "cu",
        "cardPath": "/b/a.md",
        "harness": "pi",
        "sessionId": "s",
        "status": "idle",
        "updatedAt": "now",
    }
    link = on_path(body, "/b/new.md", "now")
    assert (link.card_uuid, link.board_uuid, link.card_path) == ("", "", "/b/new.md")


def test_a_bad_field_is_named() -> None:
    """The first one that breaks the contract."""
    with pytest.raises(InvalidAssociation, match="sessionId"):
        on_card({"status": "idle"}, CARD, "now")


def test_an_events_absent_session_file_has_no_key() -> None:
    """Null would be invalid."""
    event = Event("claude", "s", Status.RUNNING, None)
    assert "sessionFile" not in event.to_json()
    assert on_card(event.to_json(), CARD, "now").session_file is None
    assert Event("claude", "s", Status.RUNNING, "/f").to_json()["sessionFile"] == "/f"


@pytest.mark.parametrize("file", [None, "", "/f"])
def test_an_event_becomes_the_record_that_a_client_would_have_made(file: Optional[str]) -> None:
    """By a shorter way."""
    event = Event("claude", "s", Status.RUNNING, file)
    assert event.on_card(CARD, "now") == on_card(event.to_json(), CARD, "now")


@pytest.mark.parametrize(("event", "field"), [(("", "s"), "harness"), (("claude", ""), "sessionId")])
def test_an_event_of_nobody_is_invalid(event: Tuple[str, str], field: str) -> None:
    """As a client's report would be."""
    with pytest.raises(InvalidAssociation, match=field):
        Event(*event, Status.IDLE, None).on_card(CARD, "now")
