"""What the end of a transcript says about its session."""

import json
import os
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import fileend
from adapters.claude import tail
from adapters.contract import Mark, Tail
from tests.another_user import as_nobody, as_root_only, open_to_all
from tests.conftest import ROOT

TRANSCRIPTS = ROOT / "tests/fixtures/claude/transcripts"
SESSION = "00000000-0000-4000-8000-000000000001"
Entry = Dict[str, Any]


def entry(kind: str, **more: Any) -> Entry:
    """What all entries have."""
    common = {"isSidechain": False, "cwd": "/home/dev/project", "sessionId": SESSION, "userType": "external"}
    return {"parentUuid": None, "type": kind, "timestamp": "2026-12-01T12:30:00.250Z", **common, **more}


def prompt(text: Any = "Please go on.", **more: Any) -> Entry:
    """What a person typed."""
    typed = {"origin": {"kind": "human"}, "promptSource": "typed", "promptId": "p1"}
    return entry("user", message={"role": "user", "content": text}, **{**typed, **more})


def reply(*blocks: Entry, stop: Any = "tool_use", reply_id: Any = "msg_1", **more: Any) -> Entry:
    """What the model said, or one block of it."""
    message = {"id": reply_id, "role": "assistant", "content": list(blocks), "stop_reason": stop}
    return entry("assistant", message=message, **more)


def text(words: str = "Done.") -> Entry:
    return {"type": "text", "text": words}


def call(name: str = "Bash", call_id: Any = "toolu_1") -> Entry:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}}


def result(call_id: Any = "toolu_1", **more: Any) -> Entry:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": "ok"}
    return entry("user", message={"role": "user", "content": [block]}, **{"toolUseResult": {}, **more})


def refused(**more: Any) -> Entry:
    return result(**{"toolDenialKind": "user-rejected", "toolUseResult": "User rejected tool use", **more})


def system(subtype: Any, **more: Any) -> Entry:
    return entry("system", subtype=subtype, **more)


def attachment() -> Entry:
    return entry("attachment", attachment={"type": "hook_success", "content": '"user"'}, cwd="/other")


def write(path: Path, *entries: Any) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in entries))
    return path


def tail_of(folder: Path, *entries: Any) -> Optional[Tail]:
    return tail.read_tail(write(folder / f"{SESSION}.jsonl", *entries), SESSION)


LAST = {"type": "last-prompt", "lastPrompt": "go on", "leafUuid": "u", "sessionId": SESSION}
INTERRUPTED = "[Request interrupted by user]"
INTERRUPTED_TOOL = "[Request interrupted by user for tool use]"
LOCAL = "<command-name>/model</command-name>\n<command-message>model</command-message>"

CASES: Dict[str, Any] = {
    # Nobody has said anything.
    "an empty file": ([], Mark.EMPTY),
    "records only": ([LAST, attachment()], Mark.EMPTY),
    "after /clear": ([prompt("<local-command-caveat>x", isMeta=True), prompt(LOCAL)], Mark.EMPTY),
    # The agent owes something.
    "a prompt": ([prompt()], Mark.WORKING),
    "a prompt of blocks": ([prompt([text("look"), {"type": "image", "source": {}}])], Mark.WORKING),
    "a picture": ([prompt([{"type": "image", "source": {}}])], Mark.WORKING),
    "a headless prompt": ([prompt(origin=None, promptSource="sdk")], Mark.WORKING),
    "a user's own command": ([prompt("<command-message>card</command-message>")], Mark.WORKING),
    "a background task reports": (
        [
            reply(text(), stop="end_turn"),
            prompt("<task-notification>x", origin={"kind": "task-notification"}),
        ],
        Mark.WORKING,
    ),
    "a call": ([prompt(), reply(call())], Mark.WORKING),
    "text in front of a call": ([prompt(), reply(text("Writing."))], Mark.WORKING),
    "text that is being written": ([prompt(), reply(text("Wri"), stop=None)], Mark.WORKING),
    "a pause of the model": ([prompt(), reply(text(), stop="pause_turn")], Mark.WORKING),
    "a result": ([reply(call()), result()], Mark.WORKING),
    "a failed result": ([reply(call()), result(toolUseResult="Error: exit 2")], Mark.WORKING),
    "a refusal by a rule": (
        [reply(call()), refused(permissionDecision={"decision": "reject", "source": "config"})],
        Mark.WORKING,
    ),
    "a refusal with words": (
        [
            reply(call()),
            refused(
                userFeedback="use ls instead",
                permissionDecision={"decision": "reject", "source": "user_reject", "reasonCode": "unknown"},
            ),
        ],
        Mark.WORKING,
    ),
    "such a refusal in an older version": (
        [reply(call()), refused(toolUseResult="Error: The person said: use ls")],
        Mark.WORKING,
    ),
    "results of some calls": ([reply(call()), reply(call(call_id="toolu_2")), result()], Mark.WORKING),
    # A question is open.
    "a question": ([prompt(), reply(call("AskUserQuestion"))], Mark.ASKING),
    "a plan": ([prompt(), reply(call("ExitPlanMode"))], Mark.ASKING),
    "a question beside another call": (
        [reply(call("AskUserQuestion")), reply(call(call_id="toolu_2"))],
        Mark.ASKING,
    ),
    "a question beside a call that has ended": (
        [reply(call("AskUserQuestion")), reply(call(call_id="toolu_2")), result("toolu_2")],
        Mark.ASKING,
    ),
    "an answered question": ([reply(call("AskUserQuestion")), result()], Mark.WORKING),
    "an answered question beside another call": (
        [reply(call("AskUserQuestion")), reply(call(call_id="toolu_2")), result()],
        Mark.WORKING,
    ),
    "a question of an earlier reply": (
        [reply(call("AskUserQuestion")), reply(call(call_id="toolu_2"), reply_id="msg_2"), result("toolu_2")],
        Mark.WORKING,
    ),
    "a question in front of a prompt": (
        [reply(call("AskUserQuestion")), prompt(), result("x")],
        Mark.WORKING,
    ),
    # The person stopped it.
    "Esc": ([prompt(), prompt([text(INTERRUPTED)])], Mark.INTERRUPTED),
    "Esc as plain text": ([prompt(), prompt(INTERRUPTED)], Mark.INTERRUPTED),
    "a refusal": ([reply(call()), refused(), prompt([text(INTERRUPTED_TOOL)])], Mark.INTERRUPTED),
    "a refusal whose second line is to come": ([reply(call()), refused()], Mark.INTERRUPTED),
    "a refused question": ([reply(call("AskUserQuestion")), refused()], Mark.INTERRUPTED),
    "a prompt after Esc": ([prompt([text(INTERRUPTED)]), prompt()], Mark.WORKING),
    # The turn is over.
    "an answer": ([prompt(), reply(text(), stop="end_turn")], Mark.ENDED),
    "a stop sequence": ([prompt(), reply(text(), stop="stop_sequence")], Mark.ENDED),
    "too long an answer": ([prompt(), reply(text(), stop="max_tokens")], Mark.ENDED),
    "a refusal of the model": ([prompt(), reply(stop="refusal")], Mark.ENDED),
    "an error of the service": (
        [prompt(), reply(text("API Error: 500"), stop="stop_sequence", isApiErrorMessage=True)],
        Mark.ENDED,
    ),
    "such an error without a reason": (
        [prompt(), reply(text("API Error"), stop=None, isApiErrorMessage=True)],
        Mark.ENDED,
    ),
    "the end of a turn": ([prompt(), reply(text(), stop=None), system("turn_duration")], Mark.ENDED),
    "stop hooks have run": ([prompt(), system("stop_hook_summary")], Mark.ENDED),
    # What decides nothing, behind an end and behind a prompt.
    "noise behind an end": (
        [
            *(prompt(), reply(text(), stop="end_turn"), attachment(), LAST, prompt("<bash-input>ls")),
            *(prompt("<bash-stdout>x"), prompt("Reminder", isMeta=True), system("local_command")),
            *(prompt("So far", isCompactSummary=True), prompt("Task", isSidechain=True)),
            *(prompt("<local-command-stdout>x"), system("informational"), prompt(""), prompt([])),
        ],
        Mark.ENDED,
    ),
    "a compaction within a turn": (
        [
            prompt(),
            reply(call()),
            result(),
            system("compact_boundary"),
            prompt("So far", isCompactSummary=True),
        ],
        Mark.WORKING,
    ),
}


@pytest.mark.parametrize(("entries", "mark"), CASES.values(), ids=CASES.keys())
def test_the_newest_entry_that_decides_does(tmp_path: Path, entries: List[Entry], mark: Mark) -> None:
    """Alone, and with what a session writes without anything having happened."""
    found = tail_of(tmp_path, *entries)
    assert found is not None and found.mark is mark
    assert found.said
    again = tail_of(tmp_path, LAST, *entries, attachment(), LAST, [], "text", None)
    assert again is not None and again.mark is mark


@pytest.mark.parametrize(
    ("name", "mark", "said"),
    [
        ("ordinary", Mark.WORKING, "a tool call without a result"),
        ("fork", Mark.WORKING, "a prompt without an answer"),
        ("compacted", Mark.WORKING, "a prompt without an answer"),
        ("with-agent", Mark.WORKING, "a tool's result"),
        ("agent-a1b2", Mark.EMPTY, "nobody has said anything yet"),
        ("refused", Mark.INTERRUPTED, "an interruption by the user"),
    ],
)
def test_whole_transcripts(name: str, mark: Mark, said: str) -> None:
    """In the shapes of the real program."""
    found = tail.read_tail(TRANSCRIPTS / f"{name}.jsonl", SESSION)
    assert found is not None and (found.mark, found.said) == (mark, said)


def test_time_and_folder_are_told(tmp_path: Path) -> None:
    """The time of the entry that decides; the folder of the newest that has one."""
    found = tail_of(
        tmp_path,
        prompt(cwd="/home/dev/old", timestamp="2026-12-01T12:00:00.000Z"),
        system("informational", cwd="/home/dev/new", timestamp="2026-12-01T13:00:00.000Z"),
    )
    assert found is not None
    assert (found.at_s, found.cwd) == (1796126400.0, "/home/dev/new")
    found = tail_of(tmp_path, prompt(cwd="a\0b", timestamp="soon"))
    assert found == Tail(Mark.WORKING, None, "a prompt without an answer", None)


def test_a_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    """It is being written: what stands in front of it is true until then."""
    path = write(tmp_path / "t.jsonl", prompt(), reply(text(), stop="end_turn"))
    with path.open("a") as file:
        file.write(json.dumps(prompt())[:-20])
    found = tail.read_tail(path, SESSION)
    assert found is not None and found.mark is Mark.ENDED
    with path.open("a") as file:
        file.write(json.dumps(prompt())[-20:])  # complete, but for its line break
    found = tail.read_tail(path, SESSION)
    assert found is not None and found.mark is Mark.WORKING


def test_long_records_behind_the_entry_are_passed_over(tmp_path: Path) -> None:
    """As far as the limit; farther away nothing is known, and a file without entries is not empty."""
    blob = {"type": "api-request-blob", "message": {"role": "user", "content": "x" * 300_000}}
    found = tail_of(tmp_path, reply(text(), stop="end_turn"), blob, blob)
    assert found is not None and found.mark is Mark.ENDED
    assert tail_of(tmp_path, reply(text(), stop="end_turn"), *[blob] * 4) is None


def test_a_line_that_is_too_long_is_not_held(tmp_path: Path) -> None:
    """Nor is a huge file read."""
    assert tail_of(tmp_path, reply(text(), stop="end_turn"), prompt("x" * fileend.LIMIT_BYTES)) is None
    path = tmp_path / "sparse.jsonl"
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + json.dumps(prompt()).encode() + b"\n")
    found = tail.read_tail(path, SESSION)
    assert found is not None and found.mark is Mark.WORKING


@as_root_only
def test_a_file_that_may_not_be_read_is_an_os_error(tmp_path: Path) -> None:
    """As are one that is gone, a folder, and a name that cannot be."""
    path = write(tmp_path / "t.jsonl", prompt())
    open_to_all(tmp_path)
    path.chmod(0)

    def kind() -> str:
        try:
            tail.read_tail(path, SESSION)
        except OSError as exc:
            return type(exc).__name__
        return ""

    assert as_nobody(kind) == "PermissionError"
    for odd in (tmp_path / "gone", tmp_path, tmp_path / "n\0l"):
        with pytest.raises(OSError):
            tail.read_tail(odd, SESSION)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
SHAPES = [
    prompt(),
    reply(call()),
    reply(text(), stop="end_turn"),
    result(),
    refused(),
    system("turn_duration"),
]


@given(shape=st.sampled_from(SHAPES), data=st.data())
def test_no_value_surprises(
    shape: Entry, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever stands in a member, of the entry, its message or a block: a mark or none."""
    odd = json.loads(json.dumps(shape))
    places = [odd]
    if "message" in odd:
        places.append(odd["message"])
        places += [block for block in odd["message"]["content"] if isinstance(block, dict)]
    place = data.draw(st.sampled_from(places))
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(JSON)
    found = tail_of(tmp_path_factory.mktemp("t"), prompt(), odd, result())
    assert found is None or isinstance(found.mark, Mark)


# --- where it is ---------------------------------------------------------------------------------


def test_the_transcript_is_in_a_folder_of_any_project(tmp_path: Path) -> None:
    """The newest, when a session was moved; logs of sub-agents are farther down, links do not count."""
    for age, project in enumerate(("-home-dev-a", "-home-dev-b")):
        (tmp_path / project / SESSION / "subagents").mkdir(parents=True)
        path = write(tmp_path / project / f"{SESSION}.jsonl")
        os.utime(path, (age, age))
    (tmp_path / "-link").symlink_to("-home-dev-a")
    (tmp_path / f"{SESSION}.jsonl").write_text("")
    write(tmp_path / "-home-dev-a" / SESSION / "subagents" / "agent-a1.jsonl")
    assert tail.session_file(tmp_path, SESSION) == tmp_path / "-home-dev-b" / f"{SESSION}.jsonl"
    assert tail.session_file(tmp_path, "agent-a1") is None
    assert tail.session_file(tmp_path, "other") is None
    assert tail.session_file(tmp_path / "gone", SESSION) is None


@pytest.mark.parametrize(
    "odd", ["", ".", "..", "../x", "a/b", "a\\b", "a\0b", "*", "x" * 200, "\ud800", "s\n"]
)
def test_a_foreign_id_leads_nowhere(tmp_path: Path, odd: str) -> None:
    """Only what can be an id is looked for."""
    (tmp_path / "-p").mkdir()
    write(tmp_path / "x.jsonl")
    write(tmp_path / "-p" / "s.jsonl")
    assert tail.session_file(tmp_path, odd) is None
    assert tail.session_file(tmp_path, "s") is not None
