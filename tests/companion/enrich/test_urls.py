"""Which links can be looked up."""

import pytest

from companion.enrich.urls import Link, parse_link


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://github.com/acme/shop/pull/12", "pull"),
        ("https://www.github.com/acme/shop/pull/12", "pull"),
        ("https://github.com/acme/shop/issues/12", "issues"),
        ("https://github.com/a-c_m.e/s.h-o_p/issues/1", "issues"),
        ("https://github.com/acme/shop/pull/12/", "pull"),
        ("https://github.com/acme/shop/pull/12/files/a..b", "pull"),
        ("https://github.com/acme/shop/pull/12?a=b#c", "pull"),
        ("https://github.com/acme/shop/issues/12#comment 1 ü", "issues"),
        ("https://github.com/acme/shop/issues/" + "9" * 40, "issues"),
    ],
)
def test_github(url: str, place: str) -> None:
    """Pull requests and issues by their number, with whatever follows."""
    assert parse_link(url) == Link(url, "github", place)


@pytest.mark.parametrize(
    ("url", "host", "key"),
    [
        ("https://acme.atlassian.net/browse/SHOP-1", "acme.atlassian.net", "SHOP-1"),
        ("https://ac-me2.atlassian.net/browse/S2P-10?focus=1", "ac-me2.atlassian.net", "S2P-10"),
        ("https://acme.atlassian.net/browse/SHOP-1/", "acme.atlassian.net", "SHOP-1"),
        ("https://acme.atlassian.net/browse/SHOP-1#x", "acme.atlassian.net", "SHOP-1"),
    ],
)
def test_jira(url: str, host: str, key: str) -> None:
    """Issues by their key."""
    assert parse_link(url) == Link(url, "jira", host, key)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "acme",
        "http://github.com/acme/shop/pull/1",
        "HTTPS://github.com/acme/shop/pull/1",
        "https://github.com/acme/shop/pulls/1",
        "https://github.com/acme/shop/issue/1",
        "https://github.com/acme/shop/pull/",
        "https://github.com/acme/shop/pull/1x",
        "https://github.com/acme/shop/pull/x1",
        "https://github.com/acme/shop/pull/\u0661",
        "https://github.com/acme/pull/1",
        "https://github.com/acme/shop/x/pull/1",
        "https://github.com//shop/pull/1",
        "https://github.com/acme?/shop/pull/1",
        "https://github.com/ac me/shop/pull/1",
        " https://github.com/acme/shop/pull/1",
        "https://github.com/acme/shop/pull/1 ",
        "https://github.com/acme/shop/pull/1\n",
        "https://github.com/acme/shop/pull/1?\n",
        "https://github.com/acme/shop/pull/1?\0",
        "https://api.github.com/acme/shop/pull/1",
        "https://github.com.evil.example/acme/shop/pull/1",
        "https://evil.example/github.com/acme/shop/pull/1",
        "https://github.com@evil.example/acme/shop/pull/1",
        "https://github.com:443/acme/shop/pull/1",
        "https://gitlab.com/acme/shop/issues/1",
        "http://acme.atlassian.net/browse/SHOP-1",
        "https://atlassian.net/browse/SHOP-1",
        "https://.atlassian.net/browse/SHOP-1",
        "https://a/x.atlassian.net/browse/SHOP-1",
        "https://evil.example?.atlassian.net/browse/SHOP-1",
        "https://acme.atlassian.net.evil.example/browse/SHOP-1",
        "https://acme.atlassian.net/browse/shop-1",
        "https://acme.atlassian.net/browse/2SHOP-1",
        "https://acme.atlassian.net/browse/SHOP",
        "https://acme.atlassian.net/browse/SHOP-",
        "https://acme.atlassian.net/browse/SHOP-1a",
        "https://acme.atlassian.net/browse/--raw",
        "https://acme.atlassian.net/browse/SHOP-1\n",
        "https://acme.atlassian.net/projects/SHOP-1",
    ],
)
def test_all_else_is_nobodys(url: str) -> None:
    """Above all what only looks like one of them."""
    assert parse_link(url) is None
