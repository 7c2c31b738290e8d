"""What counts in a message, and which records have to be parsed to know it."""

import json
from typing import Any, Dict, List, Optional

import pytest

from adapters.bytesearch import Needles
from adapters.contract import ReadReport
from adapters.opencode.messages import (
    LONGEST_BYTES,
    Found,
    Sieve,
    Writer,
    edited,
    inner_parts,
    said,
    time_ms,
    writer_of,
)
from tests.adapters.opencode.stores import text, tool
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("message", "writer"),
    [
        ({"role": "user", "time": {"created": 5}}, Writer(True, None, 5.0)),
        ({"role": "assistant", "path": {"cwd": "/p", "root": "/"}}, Writer(False, "/p", 0.0)),
        (
            {"role": "assistant", "metadata": {"time": {"created": 7}, "assistant": {"path": {"cwd": "/p"}}}},
            Writer(False, "/p", 7.0),
        ),
        ({"role": 5, "time": "now", "path": [], "metadata": 3}, Writer(False, None, 0.0)),
        ({"role": "user", "time": {"created": True}, "path": {"cwd": ""}}, Writer(True, None, 0.0)),
    ],
)
def test_writer(message: Dict[str, Any], writer: Writer) -> None:
    """In every shape so far; odd types tell nothing."""
    assert writer_of(message) == writer


@pytest.mark.parametrize(
    ("part", "paths"),
    [
        (text("see /b/a.md"), ("/b/a.md",)),
        (text('"see /b/a.md"'), ("/b/a.md",)),
        (text("/b/a.md", synthetic=False), ("/b/a.md",)),
        (text("/b/a.md", synthetic=True), ()),
        (text(5), ()),
        ({"type": "reasoning", "text": "/b/a.md"}, ()),
        ({"type": "file", "url": "file:///b/a%20b.MD"}, ("/b/a b.MD",)),
        ({"type": "file", "url": "file:///b/a.md", "synthetic": True}, ()),
        ({"type": "file", "url": "file://[/b/a.md"}, ()),
        ({"type": "file", "url": 5}, ()),
    ],
)
def test_said(part: Dict[str, Any], paths: Any) -> None:
    """Only what the user wrote: no text that the program put in."""
    assert said(part) == paths


def test_the_same_cards_as_the_client_finds() -> None:
    """In one session with all that either of them has to tell apart; the client's test has it too."""
    table = json.loads((ROOT / "tests/fixtures/opencode/messages.json").read_text(encoding="utf-8"))
    named: List[str] = []
    changed: List[str] = []
    for message in table["messages"]:
        writer = writer_of(message["info"])
        for part in message["parts"]:
            named += said(part) if writer.is_user else ()
            changed += edited(part, writer.cwd or table["directory"])
    assert (named, changed) == (table["named"], table["edited"])


@pytest.mark.parametrize(
    ("part", "cwd", "paths"),
    [
        (tool("write", "/b/a.md"), None, ("/b/a.md",)),
        (tool("edit", "/b/A.MD"), None, ("/b/A.MD",)),
        (tool("edit", "../b/a.md"), "/home/p", ("/home/b/a.md",)),
        (tool("edit", "a.md"), None, ()),
        (tool("edit", "/b/a.md", "error"), None, ()),
        (tool("edit", "/b/a.md", "running"), None, ()),
        (tool("edit", "/b/a.md", ["completed"]), None, ()),
        (tool("read", "/b/a.md"), None, ()),
        (tool("bash", "/b/a.md"), None, ()),
        (tool(["edit"], "/b/a.md"), None, ()),
        (tool("edit", 5), None, ()),
        (tool("edit", "/b/\ud800.md"), None, ()),
        ({"type": "tool", "tool": "edit", "state": "completed"}, None, ()),
        (
            {"type": "tool", "name": "write", "state": {"status": "completed", "input": {"path": "/b/a.md"}}},
            None,
            ("/b/a.md",),
        ),
    ],
)
def test_edited(part: Dict[str, Any], cwd: Optional[str], paths: Any) -> None:
    """Edits that are complete; relative ones where a folder is known."""
    assert edited(part, cwd) == paths


def test_parts_within_a_message() -> None:
    """The oldest versions kept calls as invocations, and whether one failed elsewhere."""

    def invocation(identity: str, state: str = "result", name: str = "write") -> Dict[str, Any]:
        call = {
            "toolCallId": identity,
            "toolName": name,
            "state": state,
            "args": {"filePath": f"/b/{identity}.md"},
        }
        return {"type": "tool-invocation", "toolInvocation": call}

    message = {
        "parts": [
            text("/b/t.md"),
            invocation("ok"),
            invocation("failed"),
            invocation("open", "call"),
            None,
            5,
        ],
        "metadata": {"tool": {"failed": {"error": True}, "ok": {"title": "t"}}},
    }
    parts = list(inner_parts(message))
    assert [said(part) for part in parts] == [("/b/t.md",), (), (), ()]
    assert [edited(part, None) for part in parts] == [(), ("/b/ok.md",), (), ()]
    assert list(inner_parts({"parts": 5, "content": [{"type": "text"}]})) == [{"type": "text"}]


def sieve(*needles: bytes) -> Sieve:
    return Sieve(Needles(needles), ReadReport())


@pytest.mark.parametrize(
    ("data", "passes"),
    [
        (b'{"type":"text","text":"see /board/a.md"}', True),
        (b'{"text":"see /board/a.md","type":"text"}', True),
        (b'{ "type" : "text", "text":"see /board/a.md"}', True),
        (b'{"type":"text","text":"see /elsewhere/a.md"}', False),
        (b'{"type":"text","text":"see /board/a.txt"}', False),
        (b'{"type":"reasoning","text":"see /board/a.md"}', False),
        (b'{"snapshot":"/board/a.md","type":"step-start"}', False),
        (b'{"type":"patch","files":["/board/a.md"]}', False),
        (b'{"type":"tool","tool":"read","state":{"input":{"filePath":"/board/a.md"}}}', False),
        (b'{"type":"tool","callID":"c","tool":"write","state":{"input":{"filePath":"/board/a.md"}}}', True),
        (b'{"type":"tool","tool":"write","state":{"input":{"filePath":"/elsewhere/a.md"}}}', False),
        (b'{"type":"tool","tool":"write","state":{"input":{"filePath":"a.md"}}}', True),
        (b'{"type":"tool","tool":"write","state":{"input":{"content":"x","filePath": "../a.MD"}}}', True),
        (b'{"type":"tool","tool":"write","state":{"input":{"filePath":"\\/elsewhere\\/a.md"}}}', False),
        (
            b'{"type":"tool","tool":"apply_patch","state":{"metadata":{"files":[{"filePath":"/board/a.md"}]}}}',
            True,
        ),
        (b'{"type":"tool","tool":"apply_patch","state":{"metadata":{"files":[{"movePath":"a.md"}]}}}', True),
        (b'{"type":"file","mime":"text/plain","url":"file:///bo%61rd/a.md"}', True),
        (b'{"type":"file","mime":"image/png","url":"data:image/png;base64,eA==","filename":"a.md"}', False),
    ],
)
def test_which_parts_are_parsed(data: bytes, passes: bool) -> None:
    """Those that may name a card on a board; a relative path may whatever it holds."""
    assert (sieve(b"/board").part(data) is not None) is passes


def test_what_is_counted() -> None:
    """Parts by the hundred thousand: understood, damaged, unknown, too long."""
    report = ReadReport()
    filter_ = Sieve(Needles(()), report)
    for data in (b'{"type":"text","text":"/b/a.md"}', b'{"type":"text","text":"/b/a.md', None, 5, "text"):
        filter_.part(data)
    for _ in range(2):
        filter_.part(b'{"type":"hologram","text":"/b/a.md"}')
    filter_.part(b'{"type":"text","text":"/b/a.md%s"}' % (b"x" * LONGEST_BYTES))
    assert (report.records, report.damaged, report.unknown) == (4, 4, {"part hologram": 2})
    assert filter_.too_long == 1


def test_a_hundred_unknown_types_are_remembered() -> None:
    """Not more: a damaged database could hold a million."""
    report = ReadReport()
    for number in range(150):
        Sieve(Needles(()), report).count(f"type-{number}")
    assert len(report.unknown) == 100


def test_candidates_stand_in_the_order_of_their_places() -> None:
    """By message, then by part, each path once."""
    found = Found()
    found.add((2.0, "m2", "p1"), ("/b/c.md", "/b/a.md"))
    found.add((1.0, "m1", "p2"), ("/b/b.md",))
    found.add((1.0, "m1", "p1"), ("/b/a.md",))
    found.add((0.0, "m0", "p0"), ())
    assert found.candidates() == ("/b/a.md", "/b/b.md", "/b/c.md")


@pytest.mark.parametrize(
    ("value", "known"),
    [
        (5, 5.0),
        (1.5, 1.5),
        *((odd, 0.0) for odd in (None, True, "5", 0, -1, 10**400, float("inf"), float("nan"), 10**15)),
    ],
)
def test_times(value: object, known: float) -> None:
    """What is none, or beyond any calendar, is unknown; nothing stops at it."""
    assert time_ms(value) == known
    assert writer_of({"time": {"created": value}}).created_ms == known
