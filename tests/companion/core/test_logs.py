"""Log lines: to stderr only, in the contract's form, and only as much as was asked for."""

import json
import logging
from typing import Dict, Iterator

import pytest

from companion.core import logs


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """What a test configures ends with it."""
    root, details = logging.getLogger(), logging.getLogger("mdello.events")
    handlers, level, details_level = root.handlers[:], root.level, details.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    details.setLevel(details_level)


def test_debug_lines_have_prefix_message_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    """One line each, whatever the details hold."""
    logs.configure(debug=True)
    logs.debug_event("association recorded", {"path": "/b/é\n.md", "n": 1, "odd": {1}})
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith('[mdello-companion] association recorded {"path":"/b/é\\n.md","n":1,')
    assert err.count("\n") == 1
    assert json.loads(err.partition("recorded ")[2])["odd"] == "{1}"


def test_without_debug_events_are_silent_and_warnings_plain(capsys: pytest.CaptureFixture[str]) -> None:
    """The usual case."""
    logs.configure(debug=False)
    logs.debug_event("association recorded", {})
    logging.getLogger("companion.x").info("not shown")
    logging.getLogger("companion.x").warning("disk %s", "full")
    assert capsys.readouterr() == ("", "[mdello-companion] disk full\n")


def test_details_that_cost_something_are_made_only_when_they_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A function is called with debug on, and not at all without."""
    made = []

    def details() -> Dict[str, object]:
        made.append(1)
        return {"n": len(made)}

    logs.configure(debug=False)
    logs.debug_event("x", details)
    assert made == []
    logs.configure(debug=True)
    logs.debug_event("x", details)
    assert capsys.readouterr().err == '[mdello-companion] x {"n":1}\n'


def test_an_exception_is_shown_with_its_trace(capsys: pytest.CaptureFixture[str]) -> None:
    """A fault of ours can be found."""
    logs.configure(debug=False)
    try:
        raise ValueError("why")
    except ValueError:
        logging.getLogger("companion.x").exception("It failed")
    err = capsys.readouterr().err
    assert err.startswith("[mdello-companion] It failed\nTraceback") and "ValueError: why" in err


def test_configuring_twice_shows_each_line_once(capsys: pytest.CaptureFixture[str]) -> None:
    """The second call replaces the first."""
    logs.configure(debug=False)
    logs.configure(debug=True)
    logs.debug_event("x", {})
    assert capsys.readouterr().err == "[mdello-companion] x {}\n"
