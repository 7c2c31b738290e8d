"""What the end of a Pi session's file says about the session."""

import json
import os
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import fileend
from adapters.contract import Mark, Tail
from adapters.pi import tail
from tests.another_user import as_nobody, as_root_only, open_to_all
from tests.conftest import ROOT

FIXTURES = ROOT / "tests/fixtures/pi/history"
TIME = "2026-12-01T12:30:00.250Z"
TIME_S = 1796128200.25
Entry = Dict[str, Any]


def header(session_id: str = "s", cwd: Any = "/home/dev/project") -> Entry:
    return {"type": "session", "version": 3, "id": session_id, "timestamp": TIME, "cwd": cwd}


def message(role: Any, content: Any = None, **more: Any) -> Entry:
    inner = {"role": role, "content": content or [{"type": "text", "text": "words"}], "timestamp": 1, **more}
    return {"type": "message", "id": "i", "parentId": "p", "timestamp": TIME, "message": inner}


def answer(reason: Any, *blocks: Entry) -> Entry:
    return message("assistant", list(blocks), stopReason=reason, model="fake-model")


def write(path: Path, *entries: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def tail_of(folder: Path, *entries: Any) -> Optional[Tail]:
    return tail.read_tail(write(folder / "2026_s.jsonl", *entries), "s")


CALL = {"type": "toolCall", "id": "call_1", "name": "write", "arguments": {"path": "/a.md"}}
RESULT = message("toolResult", toolCallId="call_1", toolName="write", isError=False)
NOISE = [
    {"type": "model_change", "id": "m", "timestamp": TIME, "provider": "fake", "modelId": "fake-model"},
    {"type": "custom", "id": "c", "timestamp": TIME, "customType": "x", "data": {"role": "user"}},
    message("system"),
    message("bashExecution", command="ls"),
    message("branchSummary"),
    {"type": "session_info", "id": "n", "timestamp": TIME, "name": '"user"'},
]

CASES: Dict[str, Any] = {
    "a header": ([], Mark.EMPTY),
    "nobody has spoken": (NOISE, Mark.EMPTY),
    "a prompt": ([answer("stop"), message("user")], Mark.WORKING),
    "an old prompt": ([message("user", "plain")], Mark.WORKING),
    "a call": ([message("user"), answer("toolUse", CALL)], Mark.WORKING),
    "a result": ([answer("toolUse", CALL), RESULT], Mark.WORKING),
    "an answer": ([message("user"), answer("stop")], Mark.ENDED),
    "too long an answer": ([message("user"), answer("length")], Mark.ENDED),
    "an error": ([message("user"), answer("error")], Mark.ENDED),
    "Esc": ([message("user"), answer("aborted")], Mark.INTERRUPTED),
    "an unknown end": ([message("user"), answer("paused")], Mark.ENDED),
    "an unknown end with a call": ([message("user"), answer(["stop"], CALL)], Mark.WORKING),
}


@pytest.mark.parametrize(("entries", "mark"), CASES.values(), ids=CASES.keys())
def test_the_newest_message_decides(tmp_path: Path, entries: List[Entry], mark: Mark) -> None:
    """Alone, and with what else Pi writes."""
    for each in ([header(), *entries], [header(), *NOISE, *entries, *NOISE, [], "user", None]):
        found = tail_of(tmp_path, *each)
        assert found is not None and found.said
        assert (found.mark, found.cwd) == (mark, "/home/dev/project")
        assert found.at_s == (None if mark is Mark.EMPTY else TIME_S)


@pytest.mark.parametrize("name", ["0.30.2", "0.31.1", "0.73.1", "1.6.0", "1.6.0-fork"])
def test_what_real_versions_left(name: str) -> None:
    """Each ends with an answer."""
    found = tail.read_tail(FIXTURES / f"{name}.jsonl", "")
    assert found is not None and found.mark is Mark.ENDED
    assert found.cwd and found.at_s


def test_a_torn_or_far_end_is_not_believed(tmp_path: Path) -> None:
    """Half a line is passed over; behind a line that is too long nothing is known."""
    path = write(tmp_path / "t.jsonl", header(), answer("stop"))
    with path.open("a") as file:
        file.write(json.dumps(message("user"))[:-5])
    found = tail.read_tail(path, "s")
    assert found is not None and found.mark is Mark.ENDED
    assert tail_of(tmp_path, header(), answer("stop"), message("user", "x" * fileend.LIMIT_BYTES)) is None


@as_root_only
def test_a_file_that_may_not_be_read_is_an_os_error(tmp_path: Path) -> None:
    """As is one that is gone."""
    path = write(tmp_path / "t.jsonl", header())
    open_to_all(tmp_path)
    path.chmod(0)

    def kind() -> str:
        try:
            tail.read_tail(path, "s")
        except OSError as exc:
            return type(exc).__name__
        return ""

    assert as_nobody(kind) == "PermissionError"
    with pytest.raises(FileNotFoundError):
        tail.read_tail(tmp_path / "gone", "s")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(shape=st.sampled_from([header(), message("user"), answer("stop", CALL), RESULT]), data=st.data())
def test_no_value_surprises(
    shape: Entry, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever stands in a member of an entry or its message: a mark or none."""
    odd = json.loads(json.dumps(shape))
    place = data.draw(st.sampled_from([odd, *([odd["message"]] if "message" in odd else [])]))
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(JSON)
    found = tail_of(tmp_path_factory.mktemp("t"), odd, odd)
    assert found is None or isinstance(found.mark, Mark)


# --- where it is ---------------------------------------------------------------------------------


def test_a_session_is_found_by_name_and_header(tmp_path: Path) -> None:
    """In the root or in a project's folder; the newest of several; no links, and nothing farther down."""
    for age, name in enumerate(("1_s.jsonl", "--p--/2_s.jsonl", "--q--/3_s.jsonl")):
        os.utime(write(tmp_path / name, header()), (age, age))
    write(tmp_path / "--p--/deep/4_s.jsonl", header())
    (tmp_path / "--p--/5_s.jsonl").symlink_to(tmp_path / "1_s.jsonl")
    write(tmp_path / "--p--/6_s.jsonl", header("other"))
    (tmp_path / "--p--/7_s.jsonl").write_bytes(b"")
    assert tail.session_file(tmp_path, "s") == tmp_path / "--q--/3_s.jsonl"
    assert tail.session_file(tmp_path, "other") is None
    assert tail.session_file(tmp_path / "gone", "s") is None


def test_an_id_may_be_any_text(tmp_path: Path) -> None:
    """Users name sessions; one name may be the end of another."""
    path = write(tmp_path / "--p--" / "1_a_b.jsonl", header("a_b"))
    assert tail.session_file(tmp_path, "a_b") == path
    assert tail.session_file(tmp_path, "b") is None
    dotted = write(tmp_path / "--p--" / "1_v1.2 x.jsonl", header("v1.2 x"))
    assert tail.session_file(tmp_path, "v1.2 x") == dotted


@pytest.mark.parametrize("odd", ["", "..", "../p/1_s", "a/b", "a\0b", "*", "\ud800"])
def test_a_foreign_id_leads_nowhere(tmp_path: Path, odd: str) -> None:
    """It is compared with names, never made one."""
    write(tmp_path / "--p--" / "1_s.jsonl", header())
    assert tail.session_file(tmp_path, odd) is None
