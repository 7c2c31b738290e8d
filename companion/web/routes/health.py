"""``/health``: who serves this port, and how it fares."""

from companion.web import peer
from companion.web.messages import Request, Response, json_response
from companion.web.services import Services


def get(request: Request, services: Services) -> Response:
    """Facts for ``status``, ``doctor`` and a starter that finds the port taken; no secrets."""
    facts = dict(services.health())
    facts["peerCheck"] = "kernel" if peer.kernel_tells() else "unavailable"
    return json_response(200, facts)
