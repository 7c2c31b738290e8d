"""``/actions``: what a page asks for beyond its board; so far, to bring a session's terminal to the front."""

from typing import Optional, Tuple

from companion.core import logs
from companion.core.errors import BadRequest, CompanionError, ProgramFailed
from companion.web.limits import BODY_BYTES
from companion.web.messages import Request, Response, error_response, json_response
from companion.web.services import Services


def post(request: Request, services: Services) -> Response:
    """``{"ok":true}`` when it is done; 400, 404 and 409 with a code; 500 when herdr fails."""
    try:
        services.focus(*_session(request.json(BODY_BYTES)))
    except ProgramFailed as exc:
        logs.debug_event("action failed", {"error": str(exc)})
        return error_response(500, "herdr_command_failed")
    except CompanionError as exc:
        logs.debug_event("action request failed", {"error": str(exc)})
        raise
    return json_response(200, {"ok": True})


def _session(body: object) -> Tuple[str, str, Optional[str]]:
    """Harness, session id and session file of a valid action."""
    if isinstance(body, dict) and body.get("action") == "focus":
        harness, session_id = body.get("harness"), body.get("sessionId")
        session_file = body.get("sessionFile")
        file_fits = "sessionFile" not in body or isinstance(session_file, str)
        if isinstance(harness, str) and isinstance(session_id, str) and harness and session_id and file_fits:
            return harness, session_id, session_file
    raise BadRequest("Invalid action")
