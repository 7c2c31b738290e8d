"""Which function answers: one list of routes."""

import re
from dataclasses import dataclass
from typing import Callable, Tuple

from companion.core.errors import MethodNotAllowed, NotFound
from companion.web.guard import hook_name
from companion.web.messages import Reply, Request, Response
from companion.web.routes import (
    actions,
    associations,
    enrichments,
    events,
    health,
    hooks,
    sessions,
    settings,
)
from companion.web.services import Services

# No request path can be these: a target holds no spaces.
_ANY_HARNESS = "/hooks/ any harness"
_ANY_SESSION = f"{sessions.PREFIX} any session"


_SESSION_PATH = re.compile(re.escape(sessions.PREFIX) + "[^/]+/.+")


@dataclass(frozen=True)
class Route:
    """One line of the table."""

    method: str
    path: str
    answer: Callable[[Request, Services], Reply]


ROUTES: Tuple[Route, ...] = (
    Route("POST", "/actions", actions.post),
    Route("GET", "/associations", associations.get),
    Route("POST", "/associations", associations.post),
    Route("DELETE", "/associations", associations.delete),
    Route("GET", "/enrichments", enrichments.get),
    Route("GET", "/events", events.get),
    Route("GET", "/health", health.get),
    Route("GET", "/sessions", sessions.get),
    Route("GET", _ANY_SESSION, sessions.get_one),
    Route("GET", "/settings", settings.get),
    Route("POST", "/settings", settings.post),
    Route("POST", _ANY_HARNESS, hooks.post),
)


def answer(request: Request, services: Services) -> Reply:
    """The answer to an admitted request. RequestError, other CompanionErrors and bugs as they come."""
    harness = hook_name(request.path)
    if request.method == "OPTIONS":  # A hook client never asks, and a page must not learn anything.
        return Response(204 if harness is None else 404)
    path = _ANY_HARNESS if harness else request.path
    if _SESSION_PATH.fullmatch(path):
        path = _ANY_SESSION
    here = [route for route in ROUTES if route.path == path]
    for route in here:
        if route.method == request.method:
            return route.answer(request, services)
    if not here or (harness and harness not in services.adapters):
        raise NotFound("Not found")
    methods = tuple(route.method for route in here)
    raise MethodNotAllowed(methods if harness else (*methods, "OPTIONS"))
