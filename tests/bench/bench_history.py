"""How fast past sessions are read, and in how much memory. Prints ratios measured in one run.

``python3 tests/bench/bench_history.py [--megabytes N]``: writes sessions of N MB (200) for each agent, and
stores of 1 GB, into a temporary folder, which is removed again.

The mix: request records with a system prompt full of ``.md`` and the tools' schemas, some 100 KB for
each prompt, as the program writes them; repeated messages, tool output (Python's own library serves as
text), prompts, edits. One line in a few hundred leads to a card. Pi writes no request records, so there is
less to pass over; OpenCode keeps the same in the rows of a database.
"""

import argparse
import json
import os
import random
import runpy
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from adapters.claude import transcript  # noqa: E402
from adapters.contract import ReadReport  # noqa: E402
from adapters.opencode import history as opencode  # noqa: E402
from adapters.pi import history as pi  # noqa: E402
from companion.history.scanner import needles_for  # noqa: E402

BOARD = "/home/dev/plans/kanban"
PROJECT = "/home/dev/project"
TARGET_RATIO = 6.0
PI_TARGET_RATIO = 3.5
"""Lower, for nothing of what Pi writes can be passed over unseen."""
TARGET_MB = 64
BIG_BYTES = 1_000_000_000
RUNS = 5

_CHILD = """
import json, resource, sys
sys.path.insert(0, sys.argv[1])
from importlib import import_module
from pathlib import Path
from adapters.contract import ReadReport
from companion.history.scanner import needles_for
agent = import_module("adapters." + sys.argv[4])
found = agent.read_sessions(Path(sys.argv[2]), needles_for([sys.argv[3]]), 0, ReadReport())
cards = [card for session in found for card in session.card_paths]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
try:  # Linux hands the figure of the process that started us on to us; this one is our own.
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
except OSError:
    pass
print(json.dumps([peak, cards]))
"""


def main() -> int:
    """Run the comparison; 1 when a bar is missed or the results differ."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=200)
    megabytes = parser.parse_args().megabytes
    folder = Path(tempfile.mkdtemp(prefix="mdello-bench-"))
    try:
        if shutil.disk_usage(folder).free < 2 * BIG_BYTES:
            print("history: skipped, less than 2 GB free in", folder)
            return 0
        good = compare_speed(folder, megabytes * 1_000_000) & measure_memory(folder)
        good &= compare_pi(folder, megabytes * 1_000_000) & measure_pi(folder)
        good &= measure_opencode(folder, megabytes * 1_000_000)
        return int(not good)
    finally:
        shutil.rmtree(folder)


Found = List[Tuple[str, Any, List[str]]]
"""Of each session its id, the time of its last entry and its cards on the board."""


def raced(fast: Callable[[], Found], slow: Callable[[], Found]) -> Tuple[float, Found, float, Found]:
    """(shortest time in seconds, what was found) of both."""
    fast_s = slow_s = float("inf")
    for _ in range(RUNS):  # in turn, so that both meet the same neighbours on the machine
        took_s, found = timed(fast)
        fast_s = min(fast_s, took_s)
        took_s, wanted = timed(slow)
        slow_s = min(slow_s, took_s)
    return fast_s, found, slow_s, wanted


def repeat(path: Path) -> None:
    """Append a file to itself until it has 1 GB."""
    block = path.read_bytes()
    with path.open("ab") as stream:
        while stream.tell() < BIG_BYTES:
            stream.write(block)


def compare_speed(folder: Path, size_bytes: int) -> bool:
    """The fast reader against one that parses every line, over the same warm files."""
    files = [folder / f"{number}.jsonl" for number in range(4)]
    lines = sum(write(path, size_bytes // len(files), seed) for seed, path in enumerate(files))
    total = sum(path.stat().st_size for path in files)
    slow_reader = runpy.run_path(str(ROOT / "tests/fixtures/claude/slow_reader.py"))["read"]
    needles = needles_for([BOARD])

    def fast() -> Found:
        found = [transcript.read_session(path, needles, None, ReadReport()) for path in files]
        return [(each.session_id, each.updated_at, on_board(each.card_paths)) for each in found]

    def slow() -> Found:
        return [(each[0], each[1], on_board(each[2])) for each in map(slow_reader, files)]

    fast_s, found, slow_s, wanted = raced(fast, slow)
    hits = sum(len(each[2]) for each in found)
    ratio = slow_s / fast_s
    print(f"history: {total / 1e6:.0f} MB, {lines} lines, {hits} cards; {total / fast_s / 1e9:.2f} GB/s")
    print(f"history: {ratio:.1f}x a scan with json.loads of every line (at least {TARGET_RATIO:.0f}x)")
    print(f"history: results {'identical to' if found == wanted else 'DIFFER from'} that scan's")
    for path in files:
        path.unlink()
    return found == wanted and ratio >= TARGET_RATIO


def measure_memory(folder: Path) -> bool:
    """Peak memory of a process of its own that reads one transcript of 1 GB."""
    path = folder / "big.jsonl"
    write(path, 20_000_000, 7)
    repeat(path)
    return read_apart("Claude Code", "claude.transcript", path)


def compare_pi(folder: Path, size_bytes: int) -> bool:
    """Pi's reader against one that parses every line, over the same warm files."""
    files = [folder / f"pi-{number}.jsonl" for number in range(4)]
    for seed, path in enumerate(files):
        write_pi(path, size_bytes // len(files), seed)
    total = sum(path.stat().st_size for path in files)
    slow_reader = runpy.run_path(str(ROOT / "tests/fixtures/pi/slow_reader.py"))["read"]
    needles = needles_for([BOARD])

    def fast() -> Found:
        found = [pi.read_session(path, needles, None, ReadReport()) for path in files]
        return [(each.session_id, each.updated_at, on_board(each.card_paths)) for each in found]

    def slow() -> Found:
        return [(each[0], each[1], on_board(each[2])) for each in map(slow_reader, files)]

    fast_s, found, slow_s, wanted = raced(fast, slow)
    ratio = slow_s / fast_s
    hits = sum(len(each[2]) for each in found)
    print(f"history: Pi: {total / 1e6:.0f} MB, {hits} cards; {total / fast_s / 1e9:.2f} GB/s, {ratio:.1f}x")
    print(
        f"history: Pi: at least {PI_TARGET_RATIO}x; results {'identical' if found == wanted else 'DIFFERENT'}"
    )
    for path in files:
        path.unlink()
    return found == wanted and ratio >= PI_TARGET_RATIO


def measure_pi(folder: Path) -> bool:
    """Peak memory for one session of 1 GB of Pi's."""
    path = folder / "big-pi.jsonl"
    write_pi(path, 20_000_000, 7)
    repeat(path)
    return read_apart("Pi", "pi", path)


def measure_opencode(folder: Path, size_bytes: int) -> bool:
    """Speed and peak memory for a database of 1 GB; its results against those of a plain reader."""
    small = folder / "small.db"
    write_opencode(small, size_bytes // 4)
    slow_reader = runpy.run_path(str(ROOT / "tests/fixtures/opencode/slow_reader.py"))["read"]

    def fast() -> Dict[str, List[str]]:
        found = opencode.read_sessions(small, needles_for([BOARD]), 0, ReadReport())
        return {each.session_id: sorted(on_board(each.card_paths)) for each in found}

    took_s, found = timed(fast)
    slow_s, wanted = timed(lambda: slow_reader(small))
    same = found == {name: sorted(on_board(paths)) for name, paths in wanted.items()}
    size = small.stat().st_size
    print(f"history: OpenCode: {size / 1e6:.0f} MB, {size / took_s / 1e9:.2f} GB/s, {slow_s / took_s:.1f}x")
    print(f"history: OpenCode: results {'identical' if same else 'DIFFERENT'}")
    small.unlink()
    write_opencode(folder / "opencode.db", BIG_BYTES)
    return read_apart("OpenCode", "opencode", folder / "opencode.db") and same


def read_apart(title: str, module: str, path: Path) -> bool:
    """Read in a process of its own, tell time and peak memory, remove the file."""
    begun = time.perf_counter()
    command = [sys.executable, "-c", _CHILD, str(ROOT), str(path), BOARD, module]
    peak, cards = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    took_s = time.perf_counter() - begun
    size = path.stat().st_size
    print(f"history: {title}: {size / 1e9:.2f} GB: {peak / 1e6:.0f} MB peak (below {TARGET_MB} MB),")
    print(f"history: {title}: {took_s:.1f} s with the start of Python, {len(on_board(cards))} cards")
    path.unlink()
    return bool(peak < TARGET_MB * 1e6)


def timed(work: Callable[[], Any]) -> Tuple[float, Any]:
    """(seconds of processor time, result)."""
    begun = time.process_time()
    result = work()
    return time.process_time() - begun, result


def on_board(paths: Any) -> List[str]:
    """The paths that lie in the board's folder."""
    return [path for path in paths if os.path.dirname(os.path.normpath(path)) == BOARD]


def write(path: Path, size_bytes: int, seed: int) -> int:
    """One transcript of about this size; the number of its lines."""
    count = 0
    with path.open("wb") as stream:
        for entry in entries(random.Random(seed), f"session-{seed}"):
            stream.write(json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
            count += 1
            if stream.tell() >= size_bytes:
                return count
    return count


def entries(dice: random.Random, session: str) -> Iterator[Dict[str, Any]]:
    """Turn after turn without end, each a little later than the one before."""
    texts = library()
    clock = 1_790_000_000
    turn = 0

    def output(longest: int) -> str:
        text = dice.choice(texts)
        start = dice.randrange(max(1, len(text) - 200))
        part = text[start : start + int(longest ** dice.uniform(0.5, 1.0))]
        if dice.random() < 0.5:
            return part
        return "".join(f"{number:6}\u2192{line}\n" for number, line in enumerate(part.splitlines(), 1))

    def common(kind: str) -> Dict[str, Any]:
        nonlocal clock
        clock += dice.randint(1, 30)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(clock)) + f".{dice.randrange(1000):03d}Z"
        return {
            "type": kind, "uuid": f"{dice.getrandbits(128):032x}", "timestamp": stamp,
            "userType": "external", "entrypoint": "cli", "cwd": PROJECT, "sessionId": session,
            "version": "2.1.332", "gitBranch": "main",
        }  # fmt: skip

    def entry(kind: str, **content: Any) -> Dict[str, Any]:
        return {
            "parentUuid": f"{dice.getrandbits(128):032x}",
            "isSidechain": False,
            **content,
            **common(kind),
        }

    def prompt(text: str) -> Dict[str, Any]:
        return entry("user", message={"role": "user", "content": text}, promptSource="typed")

    def call(name: str, call_id: str, given: Dict[str, Any]) -> Dict[str, Any]:
        block = {"type": "tool_use", "id": call_id, "name": name, "input": given}
        usage = {"input_tokens": 4, "cache_read_input_tokens": 90123, "output_tokens": 312, "iterations": []}
        message = {"id": f"msg_{dice.getrandbits(96):024x}", "type": "message", "role": "assistant"}
        message.update(model="a-model", content=[block], stop_reason="tool_use", usage=usage)  # type: ignore
        return entry("assistant", message=message)

    def result(call_id: str, text: str, details: Any) -> Dict[str, Any]:
        block = {"tool_use_id": call_id, "type": "tool_result", "content": text}
        whole = entry("user", message={"role": "user", "content": [block]})
        behind = [whole.pop(name) for name in LAST_NAMES]
        return {**whole, "toolUseResult": details, **dict(zip(LAST_NAMES, behind))}

    def requests(message: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
        names = {"sessionId": session, "hash": f"{dice.getrandbits(256):064x}"}
        yield {"type": "api-request-blob", **names, "message": message}
        stamp = common("x")["timestamp"]
        record = {"type": "api-request", "sessionId": session, "id": names["hash"][:32], "timestamp": stamp}
        system = [{"type": "text", "text": SYSTEM_PROMPT}]
        params = {"model": "a-model", "system": system, "tools": TOOLS, "max_tokens": 32000}
        yield {**record, "params": params, "keep": dice.randrange(99)}

    while True:
        turn += 1
        on_card = turn % 20 == 0
        told = f"please go on with {BOARD}/card-{turn % 400}.md" if on_card else output(400)
        yield prompt(told)
        yield from requests({"role": "user", "content": told})
        snapshot = {"type": "prompt_snapshot", "systemPrompt": SYSTEM_PROMPT, "tools": TOOLS}
        yield entry("attachment", attachment=snapshot)
        for step in range(dice.randint(2, 8)):
            call_id = f"toolu_{dice.getrandbits(96):024x}"
            text = output(30_000)
            name = PROJECT + f"/src/module_{turn}_{step}.py"
            if on_card and step == 0:
                name = f"{BOARD}/new-{turn % 400}.md"
            if step % 3 == 1:
                yield call("Edit", call_id, {"file_path": name, "old_string": text[:300], "new_string": "x"})
                yield result(call_id, f"The file {name} has been updated.", edited(name, text))
            elif step % 3 == 0:
                yield call("Write", call_id, {"file_path": name, "content": text})
                details: Dict[str, Any] = {"type": "create", "filePath": name, "content": text}
                yield result(call_id, f"File created successfully at: {name}", details)
            else:
                yield call("Bash", call_id, {"command": "cat keyboard.py notes.md", "description": "look"})
                yield result(call_id, text, {"stdout": text, "stderr": "", "interrupted": False})
                yield from requests({"role": "user", "content": [{"type": "tool_result", "content": text}]})
            yield {"type": "last-prompt", "lastPrompt": told[:80], "sessionId": session}
            yield {"type": "mode", "mode": "normal", "sessionId": session}


def write_pi(path: Path, size_bytes: int, seed: int) -> None:
    """One session of Pi's of about this size."""
    dice, number = random.Random(seed), 0
    header = {
        "type": "session",
        "version": 3,
        "id": f"session-{seed}",
        "timestamp": "2026-01-01",
        "cwd": PROJECT,
    }
    with path.open("wb") as stream:
        stream.write(json.dumps(header, separators=(",", ":")).encode() + b"\n")
        for message in pi_messages(dice):
            number += 1
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(1_790_000_000 + number))
            names = {"id": f"{dice.getrandbits(32):08x}", "parentId": f"{dice.getrandbits(32):08x}"}
            entry = {"type": "message", **names, "timestamp": stamp, "message": message}
            stream.write(json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
            if stream.tell() >= size_bytes:
                return


def pi_messages(dice: random.Random) -> Iterator[Dict[str, Any]]:
    """Prompts, calls and results without end, as Pi keeps them."""
    for turn, step, told, call, name, given, text in turns(dice):
        if step == 0:
            yield {"role": "user", "content": [{"type": "text", "text": told}], "timestamp": turn}
        block = {"type": "toolCall", "id": call, "name": name, "arguments": given}
        usage = {"input": 100, "output": 100, "cacheRead": 900, "totalTokens": 1100, "cost": {"total": 0}}
        yield {"role": "assistant", "content": [block], "model": "a-model", "usage": usage, "timestamp": turn}
        content = [
            {"type": "text", "text": text if name == "bash" else f"Successfully wrote to {given['path']}"}
        ]
        details = {"diff": text[:2000]} if name == "edit" else {}
        result = {"role": "toolResult", "toolCallId": call, "toolName": name, "content": content}
        yield {**result, "details": details, "isError": False, "timestamp": turn}


def turns(dice: random.Random) -> Iterator[Tuple[int, int, str, str, str, Dict[str, Any], str]]:
    """(turn, step, prompt, call, tool, its arguments, output) of steps without end."""
    texts = library()
    turn = 0
    while True:
        turn += 1
        on_card = turn % 20 == 0
        told = f"please go on with {BOARD}/card-{turn % 400}.md" if on_card else dice.choice(texts)[:400]
        for step in range(dice.randint(2, 8)):
            text = dice.choice(texts)
            start = dice.randrange(max(1, len(text) - 200))
            text = text[start : start + int(30_000 ** dice.uniform(0.5, 1.0))]
            path = f"{BOARD}/new-{turn % 400}.md" if on_card and step == 0 else f"{PROJECT}/module_{step}.py"
            name = ("write", "edit", "bash")[step % 3]
            given: Dict[str, Any] = {"path": path, "content": text} if name == "write" else {"path": path}
            if name == "bash":
                given = {"command": f"cat {BOARD}/*.md" if on_card else "make"}
            yield turn, step, told, f"call_{dice.getrandbits(48):012x}", name, given, text


def write_opencode(path: Path, size_bytes: int) -> None:
    """A database of about this size: a session for every 500 kB, one in twenty of them a sub-agent's."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        """PRAGMA synchronous = OFF; BEGIN;
        CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, time_updated integer);
        CREATE TABLE message (id text PRIMARY KEY, session_id text, data text);
        CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, data text);
        CREATE INDEX part_session_idx ON part (session_id);"""
    )
    written = number = 0

    def add(session: str, role: str, *parts: Dict[str, Any]) -> None:
        nonlocal written, number
        number += 1
        message = {"role": role, "time": {"created": number}, "path": {"cwd": PROJECT, "root": "/"}}
        connection.execute(
            "INSERT INTO message VALUES (?, ?, ?)", (f"m{number:09}", session, json.dumps(message))
        )
        for place, part in enumerate(parts):
            data = json.dumps(part, separators=(",", ":"), ensure_ascii=False)
            written += len(data)
            row = (f"p{number:09}{place}", f"m{number:09}", session, data)
            connection.execute("INSERT INTO part VALUES (?, ?, ?, ?)", row)

    session, left_bytes = "", 0
    for turn, step, told, call, name, given, text in turns(random.Random(3)):
        if written >= left_bytes:
            session, left_bytes = f"s{turn}-{step}", written + 500_000
            parent = "s1-0" if turn % 20 == 2 else None
            connection.execute("INSERT INTO session VALUES (?, ?, ?, ?)", (session, parent, PROJECT, turn))
        if step == 0:
            add(session, "user", {"type": "text", "text": told})
        asked = {"filePath" if key == "path" else key: value for key, value in given.items()}
        state = {
            "status": "completed",
            "input": asked,
            "output": text,
            "title": "t",
            "metadata": {"diff": text},
        }
        called = {"type": "tool", "tool": name, "callID": call, "state": state}
        add(session, "assistant", {"type": "step-start"}, called, {"reason": "stop", "type": "step-finish"})
        if written >= size_bytes:
            break
    connection.execute("COMMIT")
    connection.close()


def edited(name: str, text: str) -> Dict[str, Any]:
    """What the program notes of an edit: the file as it was, and the changed lines with others around."""
    lines = [f" {line}" for line in text.splitlines()[:60]]
    patch = [{"oldStart": 1, "oldLines": len(lines), "newStart": 1, "newLines": 9, "lines": lines}]
    return {"filePath": name, "originalFile": text, "structuredPatch": patch, "userModified": False}


LAST_NAMES = ("userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch")

SYSTEM_PROMPT = "\n".join(
    f'- Rule {number} \u2014 read CLAUDE.md and ~/.claude/memory/topic-{number}.md before you "{verb}".'
    for number, verb in enumerate(["write", "read", "plan", "commit", "answer"] * 30)
)

TOOLS = [
    {
        "name": name,
        "description": f"{name}: does one thing.\n\nUsage:\n"
        + "".join(f'- Say "what" it is for ({number}).\n- See docs/{name}.md.\n' for number in range(12)),
        "input_schema": {
            "type": "object",
            "properties": {
                field: {"type": "string", "description": f"The {field} of it, absolute, not relative"}
                for field in ("file_path", "content", "description", "pattern")
            },
            "required": ["file_path"],
            "additionalProperties": False,
        },
    }
    for name in (
        *("Bash", "BashOutput", "Edit", "ExitPlanMode", "Glob", "Grep", "KillShell", "NotebookEdit"),
        *("Read", "Skill", "SlashCommand", "Task", "TodoWrite", "WebFetch", "WebSearch", "Write"),
    )
]


def library() -> List[str]:
    """Texts to serve as tool output: modules of Python's own library."""
    names = ("argparse", "ast", "difflib", "inspect", "pathlib", "subprocess", "tarfile", "typing")
    texts = []
    for name in names:
        path = Path(os.__file__).with_name(f"{name}.py")
        if path.exists():
            texts.append(path.read_text(encoding="utf-8", errors="replace"))
    return texts


if __name__ == "__main__":
    raise SystemExit(main())
