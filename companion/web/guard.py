"""Who may talk to us: any web page in the user's browser can reach a port on localhost.

``Host`` is checked against DNS rebinding (a GET carries no Origin), ``Origin`` or ``Referer``
against foreign pages, and hook routes refuse whatever comes from a browser. No I/O here.
A page can hide both (an image with ``referrerpolicy="no-referrer"``), but only on a GET; two of
those do something: ``/events`` registers a board, ``/enrichments`` runs programs.
"""

import json
import re
from pathlib import Path
from typing import Mapping, Optional, Tuple

from companion.core.config import normal_origin
from companion.core.errors import Forbidden
from companion.web.target import Target

CorsHeaders = Tuple[Tuple[str, str], ...]

# Odd spellings of the same addresses (127.1, 0x7f000001, user@localhost) are refused: nobody sends them.
_HOST = re.compile(r"(?i)(?:localhost|127\.0\.0\.1|\[::1\])(?::([0-9]{0,5}))?")
_LOOPBACK_ORIGIN = re.compile(r"https?://(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]+)?")
# Browsers write neither user names nor backslashes into these headers; parsers disagree about both.
_PLAIN_URL = re.compile(r"(?i)https?://[^\s/\\?#@]+(?:[/?#].*)?")
_HOOK_PATH = re.compile(r"/hooks/([A-Za-z0-9_-]+)")
_BROWSER_HEADERS = ("origin", "referer", "sec-fetch-site")
_SHOWN_CHARACTERS = 200
_ACTING_GETS = ("/events", "/enrichments")


def hook_name(path: str) -> Optional[str]:
    """The harness of ``/hooks/<harness>``; None for every other path."""
    found = _HOOK_PATH.fullmatch(path)
    return found.group(1) if found else None


class Guard:
    """The rules for one server's life: ``webOrigin`` is read once, at the start."""

    def __init__(self, web_origin: str, config_path: Path) -> None:
        self._web_origin = web_origin
        self._config_path = config_path

    def admit(self, method: str, target: Target, headers: Mapping[str, str]) -> CorsHeaders:
        """The headers that let the asking page read the answer; empty without an Origin. Forbidden."""
        self._check_host(headers.get("host", ""))
        if target.authority is not None:
            self._check_host(target.authority)
        if hook_name(target.path) is not None:
            _check_no_browser(headers)
            return ()
        if target.path in _ACTING_GETS:
            _check_not_smuggled(headers)
        return self._admit_page(method, headers)

    def _check_host(self, host: str) -> None:
        found = _HOST.fullmatch(host)
        if found is None or int(found.group(1) or 0) > 65535:
            raise Forbidden(f"Host {_quoted(host)} is not allowed. Use 127.0.0.1.")

    def _admit_page(self, method: str, headers: Mapping[str, str]) -> CorsHeaders:
        name = "Origin" if headers.get("origin") else "Referer"
        value = headers.get(name.lower(), "")
        if not value:
            return ()
        origin = normal_origin(value) if _PLAIN_URL.fullmatch(value) else None
        if origin is None or not (origin == self._web_origin or _LOOPBACK_ORIGIN.fullmatch(origin)):
            raise Forbidden(
                f'{name} {_quoted(value)} is not allowed. To allow it, set "webOrigin" in '
                f"{self._config_path} and restart mdello-companion. "
                f'The current webOrigin is "{self._web_origin}".'
            )
        return _cors(origin, method, headers) if name == "Origin" else ()


def _check_no_browser(headers: Mapping[str, str]) -> None:
    for name in _BROWSER_HEADERS:
        if headers.get(name):
            raise Forbidden("Hook endpoints are only for local agent hook clients, not for browsers.")


def _check_not_smuggled(headers: Mapping[str, str]) -> None:
    """Event streams of pages always carry an Origin: without one, another site embeds our address."""
    named = headers.get("origin") or headers.get("referer")
    if headers.get("sec-fetch-site") == "cross-site" and not named:
        raise Forbidden("Another site's page may not open an event stream without saying its Origin.")


def _cors(origin: str, method: str, headers: Mapping[str, str]) -> CorsHeaders:
    cors = (
        ("Access-Control-Allow-Origin", origin),
        ("Access-Control-Allow-Headers", "Content-Type"),
        ("Access-Control-Allow-Methods", "DELETE, GET, POST, OPTIONS"),
        ("Vary", "Origin"),
    )
    # Chrome asks this before a public page may reach a local address.
    if method == "OPTIONS" and headers.get("access-control-request-private-network") == "true":
        return (*cors, ("Access-Control-Allow-Private-Network", "true"))
    return cors


def _quoted(value: str) -> str:
    return json.dumps(value[:_SHOWN_CHARACTERS], ensure_ascii=False)
