"""The reader that searches bytes against one that parses every line: the same, whatever is written."""

import json
import os
import runpy
from pathlib import Path
from typing import Any, Dict, List

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters import jsonl
from adapters.contract import ReadReport
from adapters.pi import history
from companion.history.scanner import needles_for
from tests.adapters.spelling import written

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures/pi"
slow_reader = runpy.run_path(str(FIXTURES / "slow_reader.py"))
slow_read, lost = slow_reader["read"], slow_reader["lost"]

BOARDS = ["/home/dev/board", "/srv/B\u00fccher/\u770b\u677f", "/x/kb"]
FOLDERS = [
    *("/home/dev/board", "/home/dev//board", "/home/x/../dev/board", "/home/dev/boards", ""),
    *("/srv/B\u00fccher/\u770b\u677f", "/srv/Bu\u0308cher/\u770b\u677f", "/x/kb", "/x//kb", "/keyboard"),
]
RELATIVE = [
    "",
    "@",
    "@board/",
    "~/",
    "@~/board/",
    "board/",
    "./board/",
    "../board/",
    "sub/../",
    "kb/",
    "\u770b\u677f/",
]
NAMES = ["card.md", "a b.md", "it.MD", "\u00fc.md", "card.txt", ".md", 'q"x.md', "\U0001f600.md"]
STAMPS = [f"2026-01-0{day}T00:00:00.000Z" for day in range(1, 9)] + ["2027", "", "zz", "2026\u00e9", 'q"']
CWDS: List[Any] = ["/home/dev/board", "/home/dev", "/srv/B\u00fccher", "/x/kb", "/home/dev/board/s", None, 5]

sampled = st.sampled_from
paths = st.builds("{}/{}".format, sampled(FOLDERS), sampled(NAMES))
tool_paths = st.builds("{}{}".format, sampled(RELATIVE), sampled(NAMES)) | paths | sampled([5, None])
texts = st.lists(sampled(["look at ", "\n"]) | paths | st.text(max_size=8), max_size=5).map("".join)
ids = sampled(["c1", "c2", "c3", "\u00fc", 'x"y', "", 5])
stamps = sampled(STAMPS)
text_blocks = st.fixed_dictionaries({"type": sampled(["text", "image"]), "text": texts})
calls = st.fixed_dictionaries(
    {
        "type": sampled(["toolCall"]),
        "id": ids,
        "name": sampled(["write", "edit", "read", "Write"]),
        "arguments": st.fixed_dictionaries({"path": tool_paths, "content": texts}),
    }
)
contents = texts | st.lists(text_blocks | calls | sampled([None, 5]), max_size=4)
talks = st.fixed_dictionaries(
    {"role": sampled(["user", "assistant"]), "content": contents},
    optional={"timestamp": stamps | sampled([5]), "usage": st.dictionaries(sampled(["timestamp"]), stamps)},
)
nested = sampled([None, 5]) | st.fixed_dictionaries(
    {
        "id": ids,
        "name": sampled(["write", "edit", "read"]),
        "status": sampled(["ok", "ok", "error", "unfinished", 5]),
    },
    optional={"arguments": st.fixed_dictionaries({"path": tool_paths})},
)
results = st.fixed_dictionaries(
    {
        "role": sampled(["toolResult"]),
        "toolCallId": ids,
        "toolName": sampled(["write", "edit", "read"]),
        "content": contents,
    },
    optional={
        "isError": sampled([True, False, False]),
        "nestedCalls": sampled([None, {}, {"calls": 5}])
        | st.fixed_dictionaries({"calls": st.lists(nested)}, optional={"complete": st.booleans()}),
    },
)
others = st.fixed_dictionaries(
    {"role": sampled(["system", "bashExecution", "custom", "hookMessage", "new", 5]), "content": contents}
)
messages = st.fixed_dictionaries(
    {"type": sampled(["message"])},
    optional={
        "id": sampled(["e-1", 'e"1', "e{1"]),
        "parentId": sampled([None, "e-0"]),
        "timestamp": stamps | sampled([5, None]),
        "message": talks | talks | results | others | texts,
    },
)
headers = st.fixed_dictionaries(
    {"type": sampled(["session"])},
    optional={
        "version": sampled([1, 3]),
        "id": sampled(["s-1", "s-2", "", 5]),
        "timestamp": stamps,
        "cwd": sampled(CWDS),
        "parentSession": paths,
    },
)
entries = (
    messages
    | messages
    | messages
    | headers
    | st.fixed_dictionaries(
        {"type": sampled(["compaction", "custom_message", "label", "newer", 5])},
        optional={
            "timestamp": stamps,
            "summary": texts,
            "message": talks,
            "details": st.just({"a": {"b": 1}}),
        },
    )
)


@st.composite
def lines(draw: Any) -> bytes:
    """One line: an entry in some order and spelling, or something damaged."""
    entry: Dict[str, Any] = draw(entries)
    if draw(sampled([True, False, False])):
        entry = {name: entry[name] for name in draw(st.permutations(list(entry)))}
    separators = draw(sampled([(",", ":"), (",", ":"), (", ", ": "), (" , ", " : ")]))
    text = json.dumps(entry, ensure_ascii=draw(st.booleans()), separators=separators)
    return written(draw, text)


@settings(max_examples=400)
@given(
    content=st.lists(lines(), max_size=14),
    last_end=st.booleans(),
    block_bytes=sampled([16, 100, 1000, 256 * 1024]),
    boards=sampled([BOARDS[:1], BOARDS[1:2], BOARDS[2:], BOARDS[:2], BOARDS]),
    cwd=sampled([None, None, "/home/dev/board", "/home/dev"]),
    home=sampled(["/home/dev", "/home/dev/board"]),
)
def test_same_as_parsing_every_line(
    tmp_path_factory: pytest.TempPathFactory,
    content: List[bytes],
    last_end: bool,
    block_bytes: int,
    boards: List[str],
    cwd: Any,
    home: str,
) -> None:
    """Escapes, orders, block edges, damage: id, time and cards on the boards agree."""
    path = tmp_path_factory.getbasetemp() / "generated.jsonl"
    path.write_bytes(b"\n".join(content) + (b"\n" if last_end else b""))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "BLOCK_BYTES", block_bytes)
        patch.setenv("HOME", home)
        report = ReadReport()
        fast = history.read_session(path, needles_for(boards), cwd, report)
        everything = history.read_session(path, (), cwd, ReadReport())
        session, newest, cards, _ = slow_read(path, cwd)
    assert (fast.session_id, fast.updated_at) == (session, newest)
    assert on_boards(fast.card_paths, boards) == on_boards(cards, boards)
    assert everything.updated_at == newest
    assert list(everything.card_paths) == cards
    unkept = [reason for _, reason in report.skipped if "scripts" in reason]
    assert unkept == [f"{lost(path)} calls of scripts that Pi did not keep in full"] * (lost(path) > 0)


def on_boards(paths: Any, boards: List[str]) -> List[str]:
    """The paths of cards that lie directly in one of the folders."""
    at_boards = [path for path in paths if os.path.dirname(os.path.normpath(path)) in boards]
    return [path for path in at_boards if path.endswith(".md")]


@pytest.mark.parametrize("path", sorted((FIXTURES / "history").glob("*.jsonl")), ids=lambda path: path.stem)
@pytest.mark.parametrize("block_bytes", [16, 333, 256 * 1024])
def test_same_for_every_fixture(path: Path, block_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of real runs, wherever the blocks are cut."""
    monkeypatch.setattr(jsonl, "BLOCK_BYTES", block_bytes)
    session, newest, cards, damaged = slow_read(path)
    report = ReadReport()
    found = history.read_session(path, needles_for(["/home/dev/project/board"]), None, report)
    assert (found.session_id, found.updated_at) == (session, newest)
    assert list(found.card_paths) == cards
    assert (report.damaged, report.unknown, report.skipped) == (damaged, {}, [])
    assert report.records == len(path.read_bytes().splitlines())


def test_few_lines_are_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a session as the program writes it, only lines that lead to a card are parsed."""
    parsed: List[bytes] = []

    def parse(line: bytes) -> object:
        parsed.append(line)
        return jsonl.parse(line)

    monkeypatch.setattr("adapters.linereading.parse", parse)
    header = {"type": "session", "id": "s", "timestamp": stamp(0), "cwd": "/home/dev/project"}
    content = [dump(header)]
    for number in range(1, 50):
        content.append(talk(number, role="user", content="no card.md, no board"))
        output = [{"type": "text", "text": "/home/dev/board/seen.md"}]
        content.append(talk(number, role="toolResult", toolCallId="c", toolName="bash", content=output))
    content[20] = talk(20, role="user", content="see /home/dev/board/card.md")
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\n".join(content))
    found = history.read_session(path, needles_for(["/home/dev/board"]), None, ReadReport())
    assert found.updated_at == stamp(49)
    assert found.card_paths == ("/home/dev/board/card.md",)
    assert len(parsed) <= 4


def test_unknown_types_and_roles_are_counted(tmp_path: Path) -> None:
    """By name, at most a hundred names; known ones are not."""
    path = tmp_path / "t.jsonl"
    content = [dump({"type": f"kind-{number}"}) for number in range(120)]
    content = [dump({"type": "session", "id": "s"}), talk(1, role="robot"), talk(2, role="robot"), *content]
    path.write_bytes(b"\n".join(content))
    report = ReadReport()
    history.read_session(path, (), None, report)
    assert report.unknown["message of role robot"] == 2
    assert report.unknown["kind-0"] == 1
    assert len(report.unknown) == 100


def test_header_that_comes_late_is_heard_in_time(tmp_path: Path) -> None:
    """A relative path in front of it leads to a card by the folder that only it names."""
    path = tmp_path / "t.jsonl"
    call = {"type": "toolCall", "id": "c", "name": "write", "arguments": {"path": "card.md"}}
    content = [
        talk(1, role="assistant", content=[call]),
        talk(2, role="toolResult", toolCallId="c", toolName="write", content=[], isError=False),
        dump({"type": "session", "id": "s", "timestamp": stamp(3), "cwd": "/home/dev/board"}),
    ]
    path.write_bytes(b"\n".join(content))
    report = ReadReport()
    found = history.read_session(path, needles_for(["/home/dev/board"]), None, report)
    assert found.card_paths == ("/home/dev/board/card.md",)
    assert report.records == 3


@pytest.mark.parametrize("where", ["front", "middle", "end"])
def test_huge_lines(tmp_path: Path, where: str) -> None:
    """A line above the limit: an image in the user's message, the content of a file that was written."""
    big = {"type": "image", "data": "x" * 3_000_000}
    text = {"type": "text", "text": "see /home/dev/board/seen.md"}
    call = {"type": "toolCall", "id": "c", "name": "write", "arguments": {"path": "/home/dev/board/w.md"}}
    call["arguments"]["content"] = "y" * 3_000_000  # type: ignore[index]
    blocks = {"front": [big, text], "middle": [big, text, big], "end": [text, big]}[where]
    header = dump({"type": "session", "id": "s", "timestamp": stamp(0), "cwd": "/home/dev/project"})
    content = [
        talk(1, role="user", content=blocks),
        talk(2, role="assistant", content=[call]),
        talk(3, role="toolResult", toolCallId="c", toolName="write", content=[], details="z" * 3_000_000),
        talk(
            4, role="toolResult", toolCallId="d", toolName="bash", content="/home/dev/board/no.md" * 200_000
        ),
    ]
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\n".join([header, *content]))
    report = ReadReport()
    found = history.read_session(path, needles_for(["/home/dev/board"]), None, report)
    assert found.card_paths == ("/home/dev/board/seen.md", "/home/dev/board/w.md")
    assert found.updated_at == stamp(4)
    assert (report.records, report.damaged, report.skipped) == (5, 0, [])


@pytest.mark.parametrize("filling", ["", "z" * 9_000_000], ids=["as ever", "above the limit"])
@pytest.mark.parametrize(
    ("home", "path", "card"),
    [
        ("/home/dev", "@board/c.md", "/home/dev/board/c.md"),
        ("/home/dev", "~/board/c.md", "/home/dev/board/c.md"),
        ("/home/dev/board", "~/c.md", "/home/dev/board/c.md"),
    ],
)
def test_paths_as_pi_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str, path: str, card: str, filling: str
) -> None:
    """Of the model's own calls and of those that its script made, in lines of every size."""
    monkeypatch.setenv("HOME", home)
    given = {"path": path, "content": filling}
    call = {"type": "toolCall", "id": "c", "name": "write", "arguments": given}
    made = {"id": "s/1", "name": "edit", "status": "ok", "arguments": {"path": path}}
    header = dump({"type": "session", "id": "s", "timestamp": stamp(0), "cwd": "/home/dev"})
    ran: Dict[str, Any] = {"toolCallId": "s", "toolName": "codemode", "content": filling}
    worked: Dict[str, Any] = {"toolCallId": "c", "toolName": "write", "content": []}
    for content in (
        [talk(1, role="assistant", content=[call]), talk(2, role="toolResult", **worked)],
        [talk(1, role="toolResult", **ran, nestedCalls={"calls": [made]})],
    ):
        file = tmp_path / "t.jsonl"
        file.write_bytes(b"\n".join([header, *content, talk(3, role="user", content="bye")]))
        assert history.read_session(
            file, needles_for(["/home/dev/board"]), None, ReadReport()
        ).card_paths == (card,)


def dump(entry: Dict[str, Any]) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode()


def stamp(number: int) -> str:
    return f"2026-01-02T03:04:{number:02}.000Z"


def talk(number: int, **message: Any) -> bytes:
    """A message's line, as the program spells it."""
    head = {"type": "message", "id": f"e{number}", "parentId": None, "timestamp": stamp(number)}
    return dump({**head, "message": {**message, "timestamp": 1796068883000}})
