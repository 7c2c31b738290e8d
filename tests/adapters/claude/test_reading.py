"""The reader that searches bytes against one that parses every line: the same, whatever is written."""

import json
import os
import runpy
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters import jsonl
from adapters.claude import transcript
from adapters.contract import ReadReport
from companion.history.scanner import needles_for
from tests.adapters.spelling import written

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures/claude"
slow_read = runpy.run_path(str(FIXTURES / "slow_reader.py"))["read"]

BOARDS = ["/home/dev/board", "/srv/B\u00fccher/\u770b\u677f", "/x/kb"]
FOLDERS = [
    *("/home/dev/board", "/home/dev//board", "/home/dev/./board", "/home/x/../dev/board", "/home/dev/boards"),
    *("/srv/B\u00fccher/\u770b\u677f", "/srv/Bu\u0308cher/\u770b\u677f", "/x/kb", "/x//kb", "/keyboard", ""),
]
RELATIVE = ["", "board/", "./board/", "../board/", "sub/../", "kb/", "\u770b\u677f/"]
NAMES = ["card.md", "a b.md", "it.MD", "\u00fc.md", "card.txt", ".md", 'q"x.md', "\U0001f600.md"]
STAMPS = [f"2026-01-0{day}T00:00:00.000Z" for day in range(1, 9)] + ["2027", "", "zz", "2026-01-01T\u00e9"]
CWDS: List[Any] = [
    "/home/dev/board",
    "/home/dev",
    "/srv/B\u00fccher",
    "/x",
    "/home/dev/board/sub",
    None,
    5,
    "",
]

sampled = st.sampled_from
paths = st.builds("{}/{}".format, sampled(FOLDERS), sampled(NAMES))
tool_paths = st.builds("{}{}".format, sampled(RELATIVE), sampled(NAMES)) | paths | sampled([5, None])
words = sampled(["look at ", "<command-message>x</command-message><command-args>", "</command-args>", "\n"])
texts = st.lists(words | paths | st.text(max_size=8), max_size=5).map("".join)
texts |= st.builds("{}{}".format, sampled(["<bash-input>", "[Request interrupted by user", "key"]), texts)
ids = sampled(["c1", "c2", "c3", "\u00fc", 'x"y', "", 5])
stamps = sampled(STAMPS)
blocks = st.one_of(
    st.fixed_dictionaries({"type": sampled(["text"]), "text": texts}),
    st.fixed_dictionaries(
        {
            "type": sampled(["tool_use"]),
            "id": ids,
            "name": sampled(["Write", "Edit", "MultiEdit", "Read", "write"]),
            "input": st.fixed_dictionaries({"file_path": tool_paths, "content": texts}),
        }
    ),
    st.fixed_dictionaries(
        {"type": sampled(["tool_result"]), "tool_use_id": ids, "content": texts},
        optional={"is_error": sampled([True, False])},
    ),
    st.fixed_dictionaries({"type": sampled(["odd"]), "timestamp": stamps, "message": texts}),
)
messages = st.fixed_dictionaries(
    {"role": sampled(["user", "assistant"]), "content": texts | st.lists(blocks, max_size=4)},
    optional={"timestamp": stamps, "usage": st.dictionaries(sampled(["a", "timestamp"]), stamps, max_size=2)},
)
entries = st.fixed_dictionaries(
    {},
    optional={
        "parentUuid": sampled([None, "u-1", 'u"1', "a{b"]),
        "isSidechain": sampled([False, False, False, True]),
        "type": sampled(["user", "assistant", "user", "api-request-blob", "system", "attachment", "new", 5]),
        "attachment": st.fixed_dictionaries({"timestamp": stamps, "message": texts}),
        "message": messages | texts,
        "isMeta": sampled([True, False]),
        "isCompactSummary": sampled([True, False]),
        "origin": sampled([None, {"kind": "human"}, {"kind": "task-notification"}]),
        "promptSource": sampled(["typed", "system"]),
        "uuid": sampled(["u-2"]),
        "timestamp": stamps | st.sampled_from([5, None]),
        "toolUseResult": texts | st.fixed_dictionaries({"filePath": tool_paths, "content": texts}),
        "cwd": sampled(CWDS),
        "sessionId": sampled(["s-1", "s-2", "", 5]),
        "session_id": sampled(["s-3"]),
        "tags": st.lists(texts, max_size=2),
    },
)


@st.composite
def lines(draw: Any) -> bytes:
    """One line: an entry in some order and spelling, or something damaged."""
    entry: Dict[str, Any] = draw(entries)
    if draw(st.booleans()):
        entry = {name: entry[name] for name in draw(st.permutations(list(entry)))}
    text = json.dumps(
        entry,
        ensure_ascii=draw(st.booleans()),
        separators=draw(sampled([(",", ":"), (", ", ": "), (" , ", " : ")])),
    )
    return written(draw, text)


@settings(max_examples=400)
@given(
    content=st.lists(lines(), max_size=14),
    last_end=st.booleans(),
    block_bytes=sampled([16, 100, 1000, 256 * 1024]),
    boards=st.sampled_from([BOARDS[:1], BOARDS[1:2], BOARDS[2:], BOARDS[:2], BOARDS]),
    cwd=sampled([None, None, "/home/dev/board", "/home/dev"]),
)
def test_same_as_parsing_every_line(
    tmp_path_factory: pytest.TempPathFactory,
    content: List[bytes],
    last_end: bool,
    block_bytes: int,
    boards: List[str],
    cwd: Optional[str],
) -> None:
    """Escapes, orders, block edges, damage: id, time and cards on the boards agree."""
    path = tmp_path_factory.getbasetemp() / "generated.jsonl"
    path.write_bytes(b"\n".join(content) + (b"\n" if last_end else b""))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "BLOCK_BYTES", block_bytes)
        fast = transcript.read_session(path, needles_for(boards), cwd, ReadReport())
        everything = transcript.read_session(path, (), cwd, ReadReport())
    session, newest, cards, _ = slow_read(path, cwd)
    if is_log(path):
        assert (fast.session_file, fast.card_paths) == (None, ())
        return
    assert (fast.session_id, fast.updated_at) == (session, newest)
    assert on_boards(fast.card_paths, boards) == on_boards(cards, boards)
    assert everything.updated_at == newest
    assert list(everything.card_paths) == cards


def is_log(path: Path) -> bool:
    """Whether the first entry of a user or an assistant is a sub-agent's."""
    for line in path.read_bytes().split(b"\n"):
        try:
            entry = jsonl.parse(line)
        except ValueError:
            continue
        if not isinstance(entry, dict) or "attachment" in entry:
            continue
        if entry.get("type") in ("user", "assistant"):
            return entry.get("isSidechain") is True
    return False


def on_boards(paths: Any, boards: List[str]) -> List[str]:
    """The paths of cards that lie directly in one of the folders."""

    def folder(path: str) -> str:
        return os.path.dirname(os.path.normpath(path))

    return [path for path in paths if path.endswith(".md") and folder(path) in boards]


@pytest.mark.parametrize("name", sorted(path.name for path in (FIXTURES / "transcripts").iterdir()))
@pytest.mark.parametrize("block_bytes", [16, 333, 256 * 1024])
def test_same_for_every_fixture(name: str, block_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files written by hand, wherever the blocks are cut."""
    monkeypatch.setattr(jsonl, "BLOCK_BYTES", block_bytes)
    path = FIXTURES / "transcripts" / name
    session, newest, cards, damaged = slow_read(path)
    report = ReadReport()
    found = transcript.read_session(path, needles_for(BOARDS[:1]), None, report)
    if name.startswith("agent-"):
        assert found.session_file is None
        return
    assert (found.session_id, found.updated_at) == (session, newest)
    assert on_boards(found.card_paths, BOARDS) == on_boards(cards, BOARDS)
    assert report.damaged == damaged


def test_few_lines_are_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a transcript as the program writes it, only lines that lead to a card are parsed."""
    parsed: List[bytes] = []

    def parse(line: bytes) -> object:
        parsed.append(line)
        return jsonl.parse(line)

    monkeypatch.setattr("adapters.linereading.parse", parse)
    stamp = "2026-01-02T03:04:{:02}.000Z"
    tail: Dict[str, Any] = {"cwd": "/home/dev/project", "sessionId": "s"}

    def entry(number: int, text: str) -> bytes:
        head = {"parentUuid": "p", "isSidechain": False, "type": "user"}
        message = {"role": "user", "content": text}
        whole = {**head, "message": message, "timestamp": stamp.format(number), "toolUseResult": {}, **tail}
        return json.dumps(whole, separators=(",", ":")).encode()

    def record(number: int) -> bytes:
        whole = {
            "type": "api-request",
            "sessionId": "s",
            "timestamp": stamp.format(number),
            "p": "/board/x.md",
        }
        return json.dumps(whole, separators=(",", ":")).encode()

    content = [line for number in range(50) for line in (entry(number, "no card.md"), record(number))]
    content[20] = entry(20, "see /home/dev/board/card.md")
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\n".join(content))
    found = transcript.read_session(path, needles_for(["/home/dev/board"]), None, ReadReport())
    assert found.updated_at == stamp.format(49)
    assert found.card_paths == ("/home/dev/board/card.md",)
    assert len(parsed) <= 3


def test_pieces(tmp_path: Path) -> None:
    """A line above the limit, with what matters at any place, gives what a shorter one gives."""
    message = {"role": "user", "content": "see /home/dev/board/card.md"}
    parts: List[Tuple[str, Any]] = [
        ("message", message),
        ("timestamp", "2026-01-02T03:04:05.000Z"),
        ("big", {"n": "x" * 3_000_000}),
        ("sessionId", "s"),
    ]
    for turn in range(4):
        order = parts[turn:] + parts[:turn]
        path = tmp_path / f"{turn}.jsonl"
        first = {"type": "user", "sessionId": "s", "message": {"role": "user", "content": "hello"}}
        path.write_text("".join(json.dumps(each) + "\n" for each in (first, dict(order))))
        found = transcript.read_session(path, needles_for(["/home/dev/board"]), None, ReadReport())
        assert found.card_paths == ("/home/dev/board/card.md",)
        assert found.updated_at == "2026-01-02T03:04:05.000Z"
