"""The shell line of a command hook; that it is silent and succeeds is tried with each agent's file."""

from dataclasses import replace
from pathlib import Path

import pytest

from adapters.contract import AdapterError, InstallContext
from adapters.hookcommand import PROCESS_HEADER, Poster, line, poster

CONTEXT = InstallContext(
    Path("/home/dev"), {}, "http://127.0.0.1:51618", Path("/opt/mdello.pyz"), "/usr/bin/python3"
)
URL = "http://127.0.0.1:51618/hooks/some"


def test_curl_of_the_usual_place_comes_first() -> None:
    """So that every shell gives the same line; without any, our own file posts."""
    everywhere = replace(CONTEXT, which=lambda name: name if name.startswith("/") else f"/other/{name}")
    assert poster(everywhere, "/p").curl == "/usr/bin/curl"
    elsewhere = replace(CONTEXT, which=lambda name: None if name.startswith("/") else f"/other/{name}")
    assert poster(elsewhere, "/p") == Poster("/other/curl", "/usr/bin/python3", "/p")
    assert poster(CONTEXT, "/p").curl is None


def test_both_lines_name_the_agents_process() -> None:
    """By the shell's parent; quoting is left to the shell's own rules."""
    assert line(URL, "some", Poster("/usr/bin/curl", "", "")) == (
        "/usr/bin/curl -q -s --noproxy '*' --max-time 1 -X POST -H 'Content-Type: application/json'"
        f' -H Expect: --data-binary @- {URL} -H "{PROCESS_HEADER}: $PPID" >/dev/null 2>&1 || true'
    )
    assert line(URL, "some", Poster(None, "/usr/bin/python3", "/my files/mdello.pyz")) == (
        "/usr/bin/python3 -E -S '/my files/mdello.pyz' hook-post some 51618 \"$PPID\" >/dev/null 2>&1 || true"
    )


def test_a_path_that_json_cannot_hold_is_refused() -> None:
    """With what to do."""
    with pytest.raises(AdapterError, match="install curl"):
        line(URL, "some", Poster(None, "/py", "/h\udcff/x"))
