"""``/enrichments``: titles and states of links, as GitHub and Jira have them, while a page listens."""

from companion.core import logs
from companion.core.errors import BadRequest, Conflict
from companion.core.hub import Subscription
from companion.enrich.lookups import PROVIDERS
from companion.enrich.urls import Link, parse_link
from companion.web.messages import Request, Stream
from companion.web.services import Services

MOST_URLS = 50
# A stream keeps programs running: a page that went away is noticed soon.
_LOOK_S = 1.0


def get(request: Request, services: Services) -> Stream:
    """A stream about the links of all ``url`` parameters, each once. Conflict without any provider.

    A link whose own provider is missing is not refused; its lookups fail.
    """
    if not any(services.lookups.enabled(name) for name in PROVIDERS):
        raise Conflict("no_enrichment_providers")
    urls = dict.fromkeys(request.values.get("url", ()))
    links = [link for link in map(parse_link, urls) if isinstance(link, Link)]
    if not 0 < len(links) == len(urls) <= MOST_URLS:
        raise BadRequest("Invalid or unsupported enrichment URLs")
    subscription = services.lookups.subscribe(links, request.cut)
    logs.debug_event("enrichment stream subscribed", {"links": len(links)})

    def unsubscribe(ended: Subscription) -> None:
        services.lookups.unsubscribe(ended)
        logs.debug_event("enrichment stream unsubscribed", {"links": len(links)})

    return Stream(subscription, unsubscribe, look_s=_LOOK_S)
