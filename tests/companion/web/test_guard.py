"""The rules about Host, Origin, Referer and Sec-Fetch-Site."""

from pathlib import Path
from typing import Dict, Optional

import pytest

from companion.core.errors import Forbidden
from companion.web.guard import CorsHeaders, Guard, hook_name
from companion.web.target import parse_target

SITE = "https://subdavis.github.io"
CONFIG = Path("/home/ada/.config/mdello/companion.json")


def admit(
    path: str = "/settings", method: str = "GET", host: str = "127.0.0.1:51618", **headers: str
) -> CorsHeaders:
    """What the guard says to one request; header names are given with underscores."""
    given: Dict[str, str] = {"host": host, **{name.replace("_", "-"): headers[name] for name in headers}}
    target = parse_target(path)
    assert target is not None
    return Guard(SITE, CONFIG).admit(method, target, given)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:51618", "localhost", "LocalHost:1", "localhost:", "[::1]", "[::1]:65535"],
)
def test_loopback_hosts_are_admitted(host: str) -> None:
    """Any port, any case."""
    assert admit(host=host) == ()


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.2",
        "localhost.",
        "::1",
        "localhost:bad",
        "",
        "localhost:65536",
        "127.1",
        "0x7f000001",
        "user@localhost",
        "localhost/x",
        "localhost:80:80",
        "[::2]",
        "127.0.0.1.evil.example",
        "localhost\t",
        "evil.example#localhost",
        "\N{ARABIC-INDIC DIGIT ONE}27.0.0.1",
        "localhost, localhost",
    ],
)
def test_every_other_host_is_refused_by_name(host: str) -> None:
    """Also odd spellings of loopback, which no client sends."""
    with pytest.raises(Forbidden) as caught:
        admit(host=host)
    assert f'"{host}"'.replace("\t", "\\t") in str(caught.value) and "127.0.0.1" in str(caught.value)


def test_the_host_of_an_absolute_target_counts_too() -> None:
    """It would override the header."""
    with pytest.raises(Forbidden, match=r"evil\.example"):
        admit("http://evil.example/settings")
    assert admit("http://localhost:1/settings") == ()


@pytest.mark.parametrize(
    ("origin", "normalised"),
    [
        (SITE, SITE),
        ("https://SubDavis.github.io:443/", SITE),
        ("https://subdavis.github.io/mdello", SITE),
        ("http://localhost:5173", "http://localhost:5173"),
        ("https://LOCALHOST", "https://localhost"),
        ("http://127.0.0.1:80/", "http://127.0.0.1"),
        ("http://[::1]:3000", "http://[::1]:3000"),
    ],
)
def test_the_web_app_and_local_pages_are_admitted(origin: str, normalised: str) -> None:
    """And told so with their origin in its normal form."""
    assert admit(origin=origin) == (
        ("Access-Control-Allow-Origin", normalised),
        ("Access-Control-Allow-Headers", "Content-Type"),
        ("Access-Control-Allow-Methods", "DELETE, GET, POST, OPTIONS"),
        ("Vary", "Origin"),
    )
    assert admit(referer=origin) == ()


@pytest.mark.parametrize("name", ["Origin", "Referer"])
@pytest.mark.parametrize(
    "value",
    [
        "https://evil.example",
        "http://subdavis.github.io",
        "null",
        "file://",
        "file:///x",
        "http://127.0.0.2",
        "http://localhost.evil.example",
        "https://subdavis.github.io:444",
        "http://evil.example\\@localhost",
        "http://user@localhost",
        "chrome-extension://abc",
        "localhost",
        "http://",
        "http://localhost:bad",
        "http://localhost., http://a",
        "https://subdavis.github.io.evil.example/",
    ],
)
def test_foreign_pages_are_refused_with_all_that_helps(name: str, value: str) -> None:
    """Header name, quoted value, what to set, where, the restart, and what is set now."""
    with pytest.raises(Forbidden) as caught:
        admit(**{name.lower(): value})
    shown = value.replace("\\", "\\\\")
    for part in (name, f'"{shown}"', 'set "webOrigin"', str(CONFIG), "restart mdello-companion", SITE):
        assert part in str(caught.value)


def test_an_origin_counts_before_a_referer_and_empty_ones_do_not_count() -> None:
    """The Referer is looked at only when no Origin was sent."""
    assert admit(origin=SITE, referer="https://evil.example/")
    assert admit(origin="", referer="") == ()
    with pytest.raises(Forbidden, match="Referer"):
        admit(origin="", referer="https://evil.example/")


def test_sec_fetch_site_alone_does_not_matter_elsewhere() -> None:
    """Only hook routes look at it."""
    assert admit(sec_fetch_site="cross-site") == ()


@pytest.mark.parametrize("stream", ["/events?boardUuid=u&boardPath=/b", "/enrichments?url=u"])
def test_another_sites_image_can_neither_register_a_board_nor_run_programs(stream: str) -> None:
    """Both happen on a GET, and an image can be asked for without any Referer."""
    with pytest.raises(Forbidden, match="Origin"):
        admit(stream, sec_fetch_site="cross-site")
    with pytest.raises(Forbidden, match="Origin"):
        admit(f"/x/..{stream}", sec_fetch_site="cross-site", origin="", referer="")
    assert dict(admit(stream, sec_fetch_site="cross-site", origin=SITE))["Vary"] == "Origin"
    for site in ("same-origin", "same-site", "none", ""):
        assert admit(stream, sec_fetch_site=site) == ()
    assert admit(stream) == ()


@pytest.mark.parametrize("method", ["POST", "OPTIONS", "GET"])
@pytest.mark.parametrize(
    ("name", "value"),
    [("origin", SITE), ("origin", "null"), ("referer", "http://localhost/"), ("sec_fetch_site", "none")],
)
def test_hook_routes_refuse_browsers(method: str, name: str, value: str) -> None:
    """Even the web app itself."""
    with pytest.raises(Forbidden, match="only for local agent hook clients"):
        admit("/hooks/claude?x=y", method=method, **{name: value})
    assert admit("/hooks/claude", method=method, **{name: ""}) == ()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/hooks/claude", "claude"),
        ("/hooks/A-b_9", "A-b_9"),
        ("/hooks/claude/extra", None),
        ("/hooks/claude/", None),
        ("/hooks/", None),
        ("/hooks", None),
        ("/hooks/a.b", None),
        ("/hooks/cl%61ude", None),
        ("/associations", None),
        ("/Hooks/claude", None),
        ("/hooks/claude\n", None),
    ],
)
def test_what_is_a_hook_route(path: str, name: Optional[str]) -> None:
    """One name after ``/hooks/`` and nothing more."""
    assert hook_name(path) == name


def test_a_page_may_ask_for_the_private_network() -> None:
    """Only in a preflight, only with an admitted Origin."""
    asked = {"access_control_request_private_network": "true"}
    allowed = ("Access-Control-Allow-Private-Network", "true")
    assert allowed in admit(method="OPTIONS", origin=SITE, **asked)
    assert allowed not in admit(method="OPTIONS", origin=SITE)
    assert allowed not in admit(method="GET", origin=SITE, **asked)
    assert admit(method="OPTIONS", **asked) == ()


def test_a_long_foreign_value_is_cut() -> None:
    """The refusal must not become a mirror for kilobytes."""
    with pytest.raises(Forbidden) as caught:
        admit(host="a" * 10_000)
    assert len(str(caught.value)) < 400
