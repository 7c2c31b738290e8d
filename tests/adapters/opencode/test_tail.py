"""What the newest messages of an OpenCode session say about it."""

import json
import sqlite3
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract import Mark, Tail
from adapters.opencode import tail
from tests.adapters.opencode.stores import (
    DATABASES,
    NOW_MS,
    SCHEMA,
    TREES,
    Made,
    connect,
    files_of,
    left_by,
    read,
    text,
    tool,
)
from tests.another_user import as_nobody, as_root_only, open_to_all

LATER_MS = NOW_MS + 60_000
ABORTED = {"name": "MessageAbortedError", "data": {"message": "Aborted"}}
FAILED = {"name": "APIError", "data": {"message": "400"}}
REFUSED = "The user rejected permission to use this specific tool call."
WITH_WORDS = "The user rejected permission to use this specific tool call with the following feedback: no"


def part(name: str, **state: Any) -> Dict[str, Any]:
    return {"type": "tool", "tool": name, "callID": "c", "state": {"input": {}, **state}}


def answer(made: Made, *parts: Any, ended_ms: Any = None, created_ms: int = NOW_MS, **more: Any) -> None:
    """A message of the model's; without an end it is being written."""
    time = {"created": created_ms, **({"completed": ended_ms} if ended_ms else {})}
    folder = {"path": {"cwd": "/home/dev/there", "root": "/"}}
    made.message("s", *parts, role="assistant", **{"time": time, **folder, **more})


def prompt(made: Made, created_ms: int = NOW_MS) -> None:
    made.message("s", text("go on"), time={"created": created_ms})


def question(made: Made, status: str, **more: Any) -> None:
    answer(made, part("question", status=status, time={"start": LATER_MS}), **more)


Steps = Callable[[Made], None]
CASES: Dict[str, Any] = {
    "no message": (lambda made: None, Mark.EMPTY, None),
    "a prompt": (prompt, Mark.WORKING, NOW_MS),
    "an answer that is being written": (answer, Mark.WORKING, NOW_MS),
    "a tool at work": (lambda made: answer(made, part("bash", status="running")), Mark.WORKING, NOW_MS),
    "between two steps": (
        lambda made: answer(made, tool("write", "/a.md"), ended_ms=LATER_MS, finish="tool-calls"),
        Mark.WORKING,
        LATER_MS,
    ),
    "a question": (lambda made: question(made, "running"), Mark.ASKING, LATER_MS),
    "a question that is being written": (lambda made: question(made, "pending"), Mark.WORKING, NOW_MS),
    "an answered question": (lambda made: question(made, "completed"), Mark.WORKING, NOW_MS),
    "words about a question": (lambda made: answer(made, text('"question"')), Mark.WORKING, NOW_MS),
    "a dismissed question": (
        lambda made: question(
            made,
            "error",
            ended_ms=LATER_MS,
            finish="tool-calls",
        ),
        Mark.WORKING,
        LATER_MS,
    ),
    "a refusal": (
        lambda made: answer(
            made, part("bash", status="error", error=REFUSED), ended_ms=LATER_MS, finish="tool-calls"
        ),
        Mark.INTERRUPTED,
        LATER_MS,
    ),
    "a refusal with words": (
        lambda made: answer(
            made, part("bash", status="error", error=WITH_WORDS), ended_ms=LATER_MS, finish="tool-calls"
        ),
        Mark.WORKING,
        LATER_MS,
    ),
    "an answer": (
        lambda made: answer(made, text("Done."), ended_ms=LATER_MS, finish="stop"),
        Mark.ENDED,
        LATER_MS,
    ),
    "too long an answer": (
        lambda made: answer(made, ended_ms=LATER_MS, finish="length"),
        Mark.ENDED,
        LATER_MS,
    ),
    "an unknown end": (lambda made: answer(made, ended_ms=LATER_MS, finish=["x"]), Mark.ENDED, LATER_MS),
    "an error": (lambda made: answer(made, error=FAILED), Mark.ENDED, NOW_MS),
    "an error with an end": (
        lambda made: answer(made, error=FAILED, ended_ms=LATER_MS),
        Mark.ENDED,
        LATER_MS,
    ),
    "an abort": (lambda made: answer(made, error=ABORTED, ended_ms=LATER_MS), Mark.INTERRUPTED, LATER_MS),
}


def made_with(path: Path, *steps: Steps) -> Path:
    made = Made(path)
    made.session("s")
    for step in steps:
        step(made)
    return made.close()


@pytest.mark.parametrize(("step", "mark", "at_ms"), CASES.values(), ids=CASES.keys())
def test_the_newest_message_decides(tmp_path: Path, step: Steps, mark: Mark, at_ms: Optional[int]) -> None:
    """With its parts, whatever stands in front of it; other sessions do not matter."""

    def other(made: Made) -> None:
        made.session("other")
        made.message("other", text("later"), role="user", time={"created": LATER_MS})

    steps: List[Steps] = [other] if mark is Mark.EMPTY else [prompt, answer, step, other]
    found = tail.read_tail(made_with(tmp_path / "a.db", *steps), "s")
    assert found is not None and found.said
    assert (found.mark, found.at_s) == (mark, None if at_ms is None else at_ms / 1000)
    is_answer = found.mark is not Mark.EMPTY and "prompt" not in found.said
    assert found.cwd == ("/home/dev/there" if is_answer else "/home/dev/p")


@pytest.mark.parametrize(
    ("error", "mark"), [(ABORTED, Mark.INTERRUPTED), (FAILED, Mark.ENDED), (None, Mark.WORKING)]
)
def test_a_prompt_that_waited_goes_with_the_turn(tmp_path: Path, error: Any, mark: Mark) -> None:
    """An abort and an error drop it: it is stored, and never answered."""
    more = {"error": error} if error else {"finish": "stop"}
    steps: List[Steps] = [
        prompt,
        lambda made: answer(made, created_ms=NOW_MS + 10, ended_ms=NOW_MS + 30, **more),
        lambda made: prompt(made, NOW_MS + 20),
    ]
    found = tail.read_tail(made_with(tmp_path / "a.db", *steps), "s")
    assert found is not None and found.mark is mark
    steps.append(lambda made: prompt(made, NOW_MS + 40))  # one that came after it does not
    found = tail.read_tail(made_with(tmp_path / "b.db", *steps), "s")
    assert found is not None and found.mark is Mark.WORKING


@pytest.mark.parametrize("version", DATABASES)
def test_what_real_versions_left(tmp_path: Path, version: str) -> None:
    """Every session has an end, is found again by its id, and nothing is left beside the database."""
    data = left_by(version, tmp_path / "opencode")
    before = files_of(data)
    sessions, _ = read(data)
    assert sessions
    for session in sessions:
        path = tail.session_file(data, session.session_id)
        assert path is not None and str(path) == session.session_file
        found = tail.read_tail(path, session.session_id)
        assert found is not None and found.mark in (Mark.ENDED, Mark.INTERRUPTED, Mark.EMPTY)
        assert found.mark is Mark.EMPTY or found.at_s
    assert files_of(data) == before


@pytest.mark.parametrize("version", TREES)
def test_of_old_files_nothing_is_told(tmp_path: Path, version: str) -> None:
    """They are found where they are."""
    data = left_by(version, tmp_path / "opencode")
    sessions, _ = read(data)
    assert sessions
    for session in sessions:
        path = tail.session_file(data, session.session_id)
        assert path is not None and str(path) == session.session_file
        assert tail.read_tail(path, session.session_id) is None


def test_of_two_databases_the_one_that_wrote_last_counts(tmp_path: Path) -> None:
    """A build of another channel has its own; one that cannot be read is passed over."""
    for name, updated in (("opencode.db", NOW_MS), ("opencode-dev.db", LATER_MS)):
        made = Made(tmp_path / name)
        made.session("s", updated)
        made.close()
    (tmp_path / "opencode-broken.db").write_bytes(b"x" * 4096)
    assert tail.session_file(tmp_path, "s") == tmp_path / "opencode-dev.db"
    assert tail.session_file(tmp_path / "opencode.db", "s") == tmp_path / "opencode.db"
    assert tail.session_file(tmp_path, "other") is None
    assert tail.session_file(tmp_path / "gone.db", "s") is None


@pytest.mark.parametrize("odd", ["", "..", "a/b", "a\0b", "%", "' OR 1", "\ud800", "x" * 200])
def test_a_foreign_id_leads_nowhere(tmp_path: Path, odd: str) -> None:
    """Only what can be an id is asked for."""
    path = made_with(tmp_path / "opencode.db", prompt)
    assert tail.session_file(tmp_path, odd) is None
    assert tail.read_tail(path, odd) is None
    assert tail.read_tail(path, "other") is None


def test_a_live_database_is_read_while_it_is_written(tmp_path: Path) -> None:
    """What stands in the write-ahead log alone counts."""
    made = Made(tmp_path / "opencode.db")
    made.session("s")
    prompt(made)
    found = tail.read_tail(made.path, "s")
    assert found is not None and found.mark is Mark.WORKING
    answer(made, ended_ms=LATER_MS, finish="stop")
    found = tail.read_tail(made.path, "s")
    assert found is not None and found.mark is Mark.ENDED
    made.close()


def test_what_cannot_be_read_is_an_os_error(tmp_path: Path) -> None:
    """Gone, damaged, or of a name that cannot be."""
    (tmp_path / "broken.db").write_bytes(b"x" * 4096)
    for name in ("gone.db", "broken.db", "n\0l.db"):
        with pytest.raises(OSError):
            tail.read_tail(tmp_path / name, "s")


@as_root_only
def test_a_file_that_may_not_be_read_is_an_os_error(tmp_path: Path) -> None:
    """Its own kind of it."""
    path = made_with(tmp_path / "a.db", prompt)
    open_to_all(tmp_path)
    path.chmod(0)

    def kind() -> str:
        try:
            tail.read_tail(path, "s")
        except OSError as exc:
            return type(exc).__name__
        return ""

    assert as_nobody(kind) == "PermissionError"


def test_huge_records_are_not_held(tmp_path: Path) -> None:
    """A message that long says nothing; parts are looked at only for their words."""
    huge = "x" * 2_000_000
    path = made_with(tmp_path / "a.db", lambda made: answer(made, text('"question"' + huge), text(huge)))
    found = tail.read_tail(path, "s")
    assert found is not None and found.mark is Mark.WORKING
    path = made_with(tmp_path / "b.db", lambda made: answer(made, summary=huge))
    assert tail.read_tail(path, "s") is None


def test_a_database_with_few_columns_is_read(tmp_path: Path) -> None:
    """Those that the readers of its history need are enough."""
    schema = SCHEMA.replace("time_created integer,\n    data", "data").replace("directory text NOT NULL,", "")
    connection = connect(tmp_path / "a.db")
    connection.executescript(schema)
    connection.execute("INSERT INTO session (id, time_updated) VALUES ('s', 1)")
    row = ("m", "s", json.dumps({"role": "user", "time": {"created": NOW_MS}}))
    connection.execute("INSERT INTO message (id, session_id, data) VALUES (?, ?, ?)", row)
    connection.close()
    found = tail.read_tail(tmp_path / "a.db", "s")
    assert found == Tail(Mark.WORKING, NOW_MS / 1000, "a prompt without an answer", None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
MESSAGE = {"role": "assistant", "time": {"created": NOW_MS}, "error": FAILED, "path": {}, "finish": "stop"}


@given(
    key=st.sampled_from(sorted(MESSAGE)),
    value=JSON,
    state=JSON,
    stored=st.none() | st.binary(max_size=9) | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False),
)
def test_no_value_surprises(
    key: str, value: object, state: object, stored: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever stands in a member, a part or a column: a mark or none."""
    path = tmp_path_factory.mktemp("t") / "a.db"
    connection = sqlite3.connect(str(path), isolation_level=None)
    connection.executescript(SCHEMA.replace("data text NOT NULL", "data"))
    connection.execute("INSERT INTO session VALUES ('s', NULL, ?, 0, 0)", (stored or "",))
    data = json.dumps({**MESSAGE, key: value})
    connection.execute("INSERT INTO message VALUES ('m1', 's', 0, ?)", (data,))
    connection.execute("INSERT INTO message VALUES ('m2', 's', ?, ?)", (stored, stored))
    question = json.dumps({"type": "tool", "tool": "question", "state": state})
    connection.execute("INSERT INTO part VALUES ('p1', 'm1', 's', ?)", (question,))
    connection.execute("INSERT INTO part VALUES ('p2', 'm1', 's', ?)", (stored,))
    connection.close()
    found = tail.read_tail(path, "s")
    assert found is None or isinstance(found.mark, Mark)
