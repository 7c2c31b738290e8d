"""``/events``: the live associations of one board. Subscribing also registers the board."""

from companion.core import logs
from companion.core.errors import BadRequest, CompanionError
from companion.core.hub import Subscription
from companion.web.messages import Request, Stream
from companion.web.services import Services


def get(request: Request, services: Services) -> Stream:
    """Register the board, reconcile, bring open streams up to date, then open this one.

    Every failure on the way is a 400 with its text; the registration stays.
    """
    board_uuid = request.query.get("boardUuid", "")
    board_path = request.query.get("boardPath", "")
    if not board_uuid.strip() or not board_path.strip():
        raise BadRequest("boardUuid and boardPath are required")
    try:
        board = services.registry.register(board_uuid, board_path)
        logs.debug_event("board registered", {"boardUuid": board.uuid, "boardPath": board.path})
        services.watcher.refresh()
        subscription = services.ledger.subscribe(
            board.uuid, request.headers.get("last-event-id"), request.cut
        )
    except CompanionError as exc:
        logs.debug_event("board registration failed", {"boardUuid": board_uuid, "error": str(exc)})
        raise BadRequest(str(exc)) from exc
    logs.debug_event("event stream subscribed", {"boardUuid": board.uuid})

    def unsubscribe(ended: Subscription) -> None:
        services.ledger.unsubscribe(ended)
        logs.debug_event("event stream unsubscribed", {"boardUuid": board.uuid})

    return Stream(subscription, unsubscribe, services.hub.event_id)
