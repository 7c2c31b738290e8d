"""``/sessions``: every session under watch with its verdict; of one, the evidence too."""

from typing import Dict, List, Tuple
from urllib.parse import unquote

from adapters.contract import Status
from companion.core.errors import NotFound
from companion.sessions.explanation import in_full, in_short
from companion.sessions.watched import Watched
from companion.web.messages import Request, Response, json_response
from companion.web.services import Services

PREFIX = "/sessions/"

_ORDER = {
    status: place
    for place, status in enumerate(
        (
            Status.WAITING_FOR_INPUT,
            Status.READY_FOR_REVIEW,
            Status.RUNNING,
            Status.IDLE,
            Status.CLOSED,
        )
    )
}
"""What a person looks for first stands first."""

Cards = Dict[Tuple[str, str], List[Dict[str, object]]]
"""By harness and session id."""


def get(request: Request, services: Services) -> Response:
    """All of them, those that need a person first.

    The closed ones with ``closed=1`` only; those that a program has started and that work on no card (a
    fan-out may be hundreds) with ``automated=1`` only.
    """
    with_closed, with_automated = (request.query.get(name) == "1" for name in ("closed", "automated"))
    cards = _cards(services)
    found = [
        each
        for each in services.watcher.sessions()
        if (with_closed or not _is_closed(each))
        and (with_automated or not each.is_automated or each.session in cards)
    ]
    found.sort(key=lambda each: (_ORDER[_status(each)], -each.since_s))
    return json_response(
        200, {"sessions": [{**in_short(each), "cards": cards.get(each.session, [])} for each in found]}
    )


def get_one(request: Request, services: Services) -> Response:
    """``/sessions/<harness>/<id>``, both percent-encoded: verdict, evidence, cards. NotFound."""
    harness, _, session_id = request.path[len(PREFIX) :].partition("/")
    found = services.watcher.session(unquote(harness), unquote(session_id))
    if found is None:
        raise NotFound(f"Nothing is known of the {unquote(harness)} session {unquote(session_id)}")
    return json_response(200, {**in_full(found), "cards": _cards(services).get(found.session, [])})


def _status(watched: Watched) -> Status:
    return watched.verdict.status if watched.verdict is not None else Status.IDLE


def _is_closed(watched: Watched) -> bool:
    return _status(watched) is Status.CLOSED


def _cards(services: Services) -> Cards:
    cards: Cards = {}
    for each in services.ledger.associations():
        row: Dict[str, object] = {
            key: each[key] for key in ("boardUuid", "cardUuid", "cardPath") if key in each
        }
        cards.setdefault((str(each["harness"]), str(each["sessionId"])), []).append(row)
    return cards
