"""``/associations``: what clients report, what pages ask for, and what is to be forgotten."""

from companion.core import logs
from companion.core.errors import BadRequest, CompanionError
from companion.sessions.association import InvalidAssociation
from companion.sessions.watcher import HEADER
from companion.web.limits import BODY_BYTES
from companion.web.messages import Request, Response, json_response
from companion.web.services import Services

_UNKNOWN_CARD = {"ignored": True, "reason": "unknown_card"}


def get(request: Request, services: Services) -> Response:
    """All associations held, oldest first; narrowed by ``boardUuid`` and ``cardUuid``."""
    query = request.query
    services.watcher.refresh()
    return json_response(
        200, services.ledger.associations(query.get("boardUuid", ""), query.get("cardUuid", ""))
    )


def post(request: Request, services: Services) -> Response:
    """202 with the stored record, or saying that no card of a registered board is meant."""
    try:
        body = request.json(BODY_BYTES)
        services.watcher.reported(body, request.headers.get(HEADER, ""))
        return _record(body, services)
    except CompanionError as exc:
        logs.debug_event("association request failed", {"error": str(exc)})
        raise


def _record(body: object, services: Services) -> Response:
    try:
        stored = services.ledger.ingest(body)
    except InvalidAssociation as exc:
        raise BadRequest("Invalid association") from exc
    services.clients.count(body, stored is not None)
    return json_response(202, _UNKNOWN_CARD if stored is None else stored.to_json())


def delete(request: Request, services: Services) -> Response:
    """Forget a card, a session everywhere, or a session on one card. StorageError is a 500."""
    card_uuid, harness, session_id = (
        request.query.get(name, "") for name in ("cardUuid", "harness", "sessionId")
    )
    if bool(harness) != bool(session_id) or not (card_uuid or harness):
        raise BadRequest("cardUuid or harness and sessionId are required")
    try:
        removed = services.ledger.forget(card_uuid, harness, session_id)
    except CompanionError as exc:
        logs.debug_event("associations expunge failed", {"error": str(exc)})
        raise
    logs.debug_event("associations expunged", {"removedEvents": removed})
    return json_response(200, {"removedEvents": removed})
