"""Which function answers, and what is said when none does."""

from typing import Any, List, cast

import pytest

from companion.core.errors import MethodNotAllowed, NotFound
from companion.web import router
from companion.web.messages import Request, Response, json_response
from companion.web.services import Services
from tests.companion.web.world import TOY

SERVICES = cast(Services, type("OnlyAdapters", (), {"adapters": {"toy": TOY}}))


def ask(method: str, path: str) -> Response:
    """The router's answer, which must be complete."""
    answer = router.answer(Request(method, path), SERVICES)
    assert isinstance(answer, Response)
    return answer


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "PUT"])
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/*",
        "/backfill",
        "/boards",
        "/enrichments/",
        "/settings/",
        "/Settings",
        "//settings",
        "/hooks",
        "/hooks/",
        "/hooks/toy/extra",
        "/hooks/<harness>",
        "/%73ettings",
    ],
)
def test_unknown_paths(method: str, path: str) -> None:
    """Also other cases, trailing slashes, and routes of other versions."""
    with pytest.raises(NotFound, match=r"^Not found$"):
        ask(method, path)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("HEAD", "/settings", "GET, POST, OPTIONS"),
        ("DELETE", "/settings", "GET, POST, OPTIONS"),
        ("PUT", "/associations", "GET, POST, DELETE, OPTIONS"),
        ("get", "/health", "GET, OPTIONS"),
        ("POST", "/events", "GET, OPTIONS"),
        ("GET", "/hooks/toy", "POST"),
        ("DELETE", "/hooks/toy", "POST"),
    ],
)
def test_known_paths_tell_their_methods(method: str, path: str, allowed: str) -> None:
    """Hook routes know no OPTIONS."""
    with pytest.raises(MethodNotAllowed) as caught:
        ask(method, path)
    assert ", ".join(caught.value.allowed) == allowed


def test_an_unknown_harness_has_no_methods() -> None:
    """It is not found, whatever is tried on it."""
    with pytest.raises(NotFound, match=r"^Not found$"):
        ask("GET", "/hooks/nobody")
    with pytest.raises(NotFound, match=r"^Unknown harness: nobody$"):
        ask("POST", "/hooks/nobody")


def test_options() -> None:
    """204 on every path, known or not; hook routes give nothing away."""
    for path in ("/settings", "/nowhere", "/*", "/hooks/toy/extra"):
        assert ask("OPTIONS", path) == Response(204)
    for path in ("/hooks/toy", "/hooks/nobody"):
        assert ask("OPTIONS", path) == Response(404)


def test_a_route_gets_request_and_services(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line of the table that fits answers."""
    seen: List[Any] = []

    def answer(request: Request, services: Services) -> Response:
        seen.append((request.path, services))
        return json_response(200, 1)

    monkeypatch.setattr(router, "ROUTES", (router.Route("GET", "/one", answer),))
    assert ask("GET", "/one").body == b"1"
    assert seen == [("/one", SERVICES)]
