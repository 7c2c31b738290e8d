"""``/settings``: the preferences that pages read and change."""

from typing import Dict

from companion.core.config import JsonObject, flag
from companion.core.errors import BadRequest
from companion.web.limits import BODY_BYTES
from companion.web.messages import Request, Response, json_response
from companion.web.services import Services

# In this order: when a client sends both, only the first is applied.
_WRITABLE = ("autofocus", "linkEnrichment")


def get(request: Request, services: Services) -> Response:
    """The five switches, always all of them."""
    return json_response(200, _presented(services, services.config.read()))


def post(request: Request, services: Services) -> Response:
    """Store one switch and answer with all of them. StorageError when it cannot be saved."""
    body = request.json(BODY_BYTES)
    if isinstance(body, dict):
        for name in _WRITABLE:
            value = body.get(name)
            if isinstance(value, bool):
                return json_response(200, _presented(services, _store(services, name, value)))
    raise BadRequest("Invalid settings")


def _store(services: Services, name: str, value: bool) -> JsonObject:
    def edit(config: JsonObject) -> None:
        config[name] = value

    return services.config.change(edit)


def _presented(services: Services, config: JsonObject) -> Dict[str, bool]:
    return {
        "autofocus": flag(config, "autofocus"),
        "githubEnabled": services.lookups.enabled("github"),
        "herdrEnabled": services.programs.path("herdr") is not None,
        "jiraEnabled": services.lookups.enabled("jira"),
        "linkEnrichment": flag(config, "linkEnrichment"),
    }
