"""``/hooks/<harness>``: raw lifecycle payloads of an agent, handed to its adapter.

Claude Code takes anything but JSON for an error of the hook, so the answer is ``{}`` whatever
becomes of the payload.
"""

import logging

from companion.core import logs
from companion.core.errors import CompanionError, NotFound, RequestTimeout, UnsupportedMediaType
from companion.sessions.watcher import HEADER
from companion.web.guard import hook_name
from companion.web.limits import HOOK_BODY_BYTES
from companion.web.messages import JSON_TYPE, Request, Response
from companion.web.services import Services
from companion.web.wire import ClientGone

_log = logging.getLogger(__name__)


def post(request: Request, services: Services) -> Response:
    """202 for every payload that was understood or ignored; 400 when it could not be taken in."""
    harness = hook_name(request.path) or ""
    adapter = services.adapters.get(harness)
    if adapter is None:
        raise NotFound(f"Unknown harness: {harness}")
    if "application/json" not in request.headers.get("content-type", ""):
        logs.debug_event("hook rejected", {"harness": harness, "reason": "content type"})
        raise UnsupportedMediaType("Expected application/json")
    try:
        services.intake.handle(adapter, request.json(HOOK_BODY_BYTES), request.headers.get(HEADER))
    except RequestTimeout as exc:
        return _failed(harness, exc, 408)
    except CompanionError as exc:
        return _failed(harness, exc, 400)
    except ClientGone:
        raise
    except Exception as exc:  # Foreign data met a bug of ours: the agent must not suffer from it.
        _log.exception("a %s hook could not be handled", harness)
        return _failed(harness, exc, 400)
    return Response(202, b"{}", (JSON_TYPE,))


def _failed(harness: str, exc: Exception, status: int) -> Response:
    logs.debug_event("hook request failed", {"harness": harness, "error": str(exc)})
    return Response(status, b"{}", (JSON_TYPE,))
