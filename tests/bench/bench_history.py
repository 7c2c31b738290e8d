"""How fast past sessions are read, and in how much memory. Prints ratios measured in one run.

``python3 tests/bench/bench_history.py [--megabytes N]``: writes transcripts of N MB (200) and one of
1 GB into a temporary folder, which is removed again.

The mix: request records with a system prompt full of ``.md`` and the tools' schemas, some 100 KB for
each prompt, as the program writes them; repeated messages, tool output (Python's own library serves as
text), prompts, edits. One line in a few hundred leads to a card.
"""

import argparse
import json
import os
import random
import runpy
import shutil
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
from companion.history.scanner import needles_for  # noqa: E402

BOARD = "/home/dev/plans/kanban"
PROJECT = "/home/dev/project"
TARGET_RATIO = 6.0
TARGET_MB = 64
BIG_BYTES = 1_000_000_000
RUNS = 5

_CHILD = """
import json, resource, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from adapters.claude import transcript
from adapters.contract import ReadReport
from companion.history.scanner import needles_for
report = ReadReport()
session = transcript.read_session(Path(sys.argv[2]), needles_for([sys.argv[3]]), None, report)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
try:  # Linux hands the figure of the process that started us on to us; this one is our own.
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
except OSError:
    pass
print(json.dumps([peak, list(session.card_paths)]))
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
        return int(not (compare_speed(folder, megabytes * 1_000_000) & measure_memory(folder)))
    finally:
        shutil.rmtree(folder)


def compare_speed(folder: Path, size_bytes: int) -> bool:
    """The fast reader against one that parses every line, over the same warm files."""
    files = [folder / f"{number}.jsonl" for number in range(4)]
    lines = sum(write(path, size_bytes // len(files), seed) for seed, path in enumerate(files))
    total = sum(path.stat().st_size for path in files)
    slow_reader = runpy.run_path(str(ROOT / "tests/fixtures/claude/slow_reader.py"))["read"]
    needles = needles_for([BOARD])

    def fast() -> List[Tuple[str, Any, List[str]]]:
        found = [transcript.read_session(path, needles, None, ReadReport()) for path in files]
        return [(each.session_id, each.updated_at, on_board(each.card_paths)) for each in found]

    def slow() -> List[Tuple[str, Any, List[str]]]:
        return [(each[0], each[1], on_board(each[2])) for each in map(slow_reader, files)]

    fast_s = slow_s = float("inf")
    for _ in range(RUNS):  # in turn, so that both meet the same neighbours on the machine
        took_s, found = timed(fast)
        fast_s = min(fast_s, took_s)
        took_s, wanted = timed(slow)
        slow_s = min(slow_s, took_s)
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
    block = path.read_bytes()
    with path.open("ab") as stream:
        while stream.tell() < BIG_BYTES:
            stream.write(block)
    begun = time.perf_counter()
    command = [sys.executable, "-c", _CHILD, str(ROOT), str(path), BOARD]
    peak, cards = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    took_s = time.perf_counter() - begun
    size = path.stat().st_size
    print(f"history: {size / 1e9:.2f} GB in one file: {peak / 1e6:.0f} MB peak (below {TARGET_MB} MB),")
    print(f"history: {took_s:.1f} s with the start of Python, {len(on_board(cards))} cards")
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
