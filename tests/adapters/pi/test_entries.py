"""What counts in a session's entries, and what does not."""

import json
from typing import Any, Dict, List, Optional

import pytest

from adapters.pi.entries import SessionEntries
from tests.conftest import ROOT

CWD = "/home/dev/board"


def message(role: str, content: Any = None, **more: Any) -> Dict[str, Any]:
    return {"type": "message", "id": "e", "message": {"role": role, "content": content, **more}}


def call(name: str, path: Any, identity: Any = "c1", kind: str = "toolCall") -> Dict[str, Any]:
    block = {"type": kind, "id": identity, "name": name, "arguments": {"path": path}}
    return message("assistant", [block])


def result(identity: Any = "c1", tool: str = "write", **more: Any) -> Dict[str, Any]:
    return message("toolResult", [], toolCallId=identity, toolName=tool, **more)


def found(*entries: Dict[str, Any], cwd: Optional[str] = CWD) -> List[str]:
    session = SessionEntries(cwd)
    for entry in entries:
        session.take(entry)
    return list(session.candidates())


def test_the_same_cards_as_the_client_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one session with all that either of them has to tell apart; the client's test has it too."""
    session = json.loads((ROOT / "tests/fixtures/pi/entries.json").read_text(encoding="utf-8"))
    monkeypatch.setenv("HOME", session["home"])
    assert found(*session["entries"], cwd=session["cwd"]) == session["cards"]


@pytest.mark.parametrize(
    "nested",
    [
        None,
        5,
        [],
        {},
        {"calls": None},
        {"calls": [None, 5, {"id": "n"}, {"id": 5, "status": "ok", "name": "edit"}]},
    ],
)
def test_damaged_nested_calls_say_nothing(nested: Any) -> None:
    """The result that holds them is read all the same."""
    assert found(call("write", "/b/a.md"), result(nestedCalls=nested)) == ["/b/a.md"]


def test_last_header_that_names_one_tells_id_and_folder() -> None:
    """A later header replaces an earlier one, member by member."""
    session = SessionEntries(None)
    for header in ({"id": "one", "cwd": "/a"}, {"id": "two"}, {"id": 3, "cwd": "/b"}, {"id": "", "cwd": 5}):
        session.take({"type": "session", **header})
    assert (session.session_id, session.cwd) == ("two", "/b")


@pytest.mark.parametrize(
    "content",
    [
        "see /b/a.md",
        [{"type": "text", "text": "see /b/a.md"}],
        [{"type": "image", "data": "/b/no.md"}, {"type": "text", "text": "/b/a.md"}, "x", None],
    ],
)
def test_user_text_in_either_form(content: Any) -> None:
    """A plain string, as older versions wrote it, or blocks."""
    assert found(message("user", content)) == ["/b/a.md"]


def test_texts_come_before_edits() -> None:
    """In the order of the contract, whatever the order of the file."""
    assert found(call("write", "/b/w.md"), result(), message("user", "/b/u.md")) == ["/b/u.md", "/b/w.md"]


@pytest.mark.parametrize("tool", ["edit", "write"])
def test_edit_counts_when_its_result_is_no_error(tool: str) -> None:
    """Also when the result says nothing about errors, and when it stands in front of the call."""
    assert found(call(tool, "/b/a.md"), result(tool=tool, isError=False)) == ["/b/a.md"]
    assert found(call(tool, "/b/a.md"), result(tool=tool)) == ["/b/a.md"]
    assert found(result(tool=tool), call(tool, "/b/a.md")) == ["/b/a.md"]
    assert found(call(tool, "/b/a.md"), result(tool=tool, isError=True)) == []
    assert found(call(tool, "/b/a.md")) == []


@pytest.mark.parametrize(
    "entries",
    [
        [call("read", "/b/a.md"), result(tool="read")],
        [call("bash", "/b/a.md"), result(tool="bash")],
        [call("Write", "/b/a.md"), result(tool="Write")],
        [call("write", "/b/a.md"), result(tool="bash")],
        [call("write", "/b/a.md"), result("c2")],
        [call("write", "/b/a.md", 5), result(5)],
        [call("write", "/b/a.md", kind="tool_use"), result()],
        [call("write", "/b/a.txt"), result()],
        [call("write", 7), result()],
        [call("write", "/b/\0.md"), result()],
        [call([], "/b/a.md"), result(tool=["write"])],  # type: ignore[arg-type]
        [message("assistant", "see /b/a.md")],
        [message("toolResult", [{"type": "text", "text": "/b/a.md"}], toolCallId="c1", toolName="read")],
        [message("bashExecution", command="cat /b/a.md", output="/b/a.md")],
        [message("custom", "/b/a.md")],
        [message("hookMessage", "/b/a.md")],
        [message("system", "/b/a.md")],
        [{"type": "custom_message", "content": "/b/a.md", "message": {"role": "user", "content": "/b/a.md"}}],
        [{"type": "compaction", "summary": "/b/a.md", "details": {"modifiedFiles": ["/b/a.md"]}}],
        [{"type": "branch_summary", "summary": "/b/a.md"}],
        [{"type": "message", "message": None}, {"type": "message"}, {"type": 5, "message": []}],
    ],
)
def test_what_is_not_counted(entries: List[Dict[str, Any]]) -> None:
    """Reads, failures, output, other people's words, odd types."""
    assert found(*entries) == []


def test_relative_paths_are_joined_to_the_folder_of_the_header() -> None:
    """Also when the header comes last; without any folder there is no path."""
    edit = [call("write", "../board/x.MD"), result()]
    assert found(*edit) == ["/home/dev/board/x.MD"]
    assert found(*edit, {"type": "session", "id": "s", "cwd": "/srv/p"}) == ["/srv/board/x.MD"]
    assert found(*edit, cwd=None) == []


def test_unsettled_calls_are_those_without_a_good_result() -> None:
    """Only of calls that could lead to a card."""
    session = SessionEntries(CWD)
    for entry in (call("write", "/b/a.md"), call("write", "/b/a.txt", "c2"), call("edit", "/b/b.md", "c3")):
        session.take(entry)
    session.take(result())
    assert session.unsettled == {"c3"}
