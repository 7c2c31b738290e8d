"""Targets as a browser's URL parser would read them."""

from typing import Optional

import pytest

from companion.web.target import parse_target


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/settings", "/settings"),
        ("/", "/"),
        ("/x/../settings", "/settings"),
        ("/x/./../settings", "/settings"),
        ("/../../settings", "/settings"),
        ("/%2e%2E/settings", "/settings"),
        ("/x/%2e./settings", "/settings"),
        ("/.%2e/settings", "/settings"),
        ("/%2e/settings", "/settings"),
        ("\\settings", None),
        ("/x\\..\\settings", "/settings"),
        ("/settings/", "/settings/"),
        ("/settings/.", "/settings/"),
        ("/settings/x/..", "/settings/"),
        ("/settings#part", "/settings"),
        ("/settings#a?b", "/settings"),
        ("//settings", "//settings"),
        ("/a//b", "/a//b"),
        ("/%73ettings", "/%73ettings"),
        ("/%252e%252e/settings", "/%252e%252e/settings"),
        ("/...", "/..."),
        ("*", "/*"),
        ("settings", None),
        ("example:80", None),
        ("", None),
        ("http://localhost/a/../b", "/b"),
        ("HTTP://localhost", "/"),
        ("ftp://localhost/", None),
    ],
)
def test_paths_are_normalised(text: str, path: Optional[str]) -> None:
    """Dot segments go, in every spelling; nothing else is decoded or joined."""
    target = parse_target(text)
    assert (target.path if target else None) == path


def test_the_absolute_form_tells_its_host() -> None:
    """So that the guard can look at it."""
    target = parse_target("http://evil.example:1/settings?x=y")
    assert target is not None
    assert (target.authority, target.path, target.query) == ("evil.example:1", "/settings", {"x": "y"})


def test_the_first_value_of_a_parameter_counts() -> None:
    """Decoded as forms are: plus is a space, UTF-8 with replacement, empty values stay."""
    target = parse_target("/e?a=1&a=2&b=x+y%20z&c=&d&e=%C3%BC%FF&=f;g=h#i=j")
    assert target is not None
    assert target.values["a"] == ["1", "2"]
    assert target.query == {"a": "1", "b": "x y z", "c": "", "d": "", "e": "ü\ufffd", "": "f;g=h"}
