"""js-yaml itself, as a process that is asked over pipes: what it says decides what a card is.

``python -m tests.companion.boards.js_yaml`` (from the repository's root) records its answers to the
documents of ``yaml_cases.json`` anew.
"""

import base64
import fcntl
import json
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

from companion.boards.yaml_cursor import YamlError
from companion.boards.yaml_values import Value, key_text, load
from tests.conftest import REAL_ENVIRON
from tests.e2e.agent_cli import cache_folder

VERSION = "5.5.0"
HERE = Path(__file__).resolve().parent
CASES = HERE / "yaml_cases.json"

NPM_LIMIT_S = 300
# Of one value; aliases can make a small text a huge or an endless value. As in yaml_oracle.mjs.
_MOST_NODES = 5000

Answer = Dict[str, object]


class NodeMissing(Exception):
    """node, npm or js-yaml cannot be had here; the text says which."""


class JsYaml:
    """The running oracle."""

    def __init__(self) -> None:
        node = shutil.which("node", path=REAL_ENVIRON.get("PATH"))
        if node is None:
            raise NodeMissing("node is not installed (it runs js-yaml, which our reader is compared with)")
        module = _fetch() / "node_modules" / "js-yaml" / "dist" / "js-yaml.mjs"
        self._process = subprocess.Popen(
            [node, str(HERE / "yaml_oracle.mjs"), str(module)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def texts(self, texts: Sequence[str]) -> List[Answer]:
        """What it makes of each YAML text."""
        return self._ask([{"yaml": text} for text in texts])

    def cards(self, cards: Sequence[bytes]) -> List[Answer]:
        """What it makes of each card's bytes."""
        return self._ask([{"card": base64.b64encode(card).decode()} for card in cards])

    def _ask(self, questions: Sequence[Dict[str, str]]) -> List[Answer]:
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None and pipe_out is not None

        def feed() -> None:  # Beside the reading: both pipes are finite.
            for question in questions:
                pipe_in.write(json.dumps(question).encode() + b"\n")
            pipe_in.flush()

        feeder = threading.Thread(target=feed)
        feeder.start()
        answers = [json.loads(pipe_out.readline()) for _ in questions]
        feeder.join()
        return answers

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()


def _fetch() -> Path:
    folder = cache_folder() / f"js-yaml-{VERSION}"
    if folder.exists():
        return folder
    npm = shutil.which("npm", path=REAL_ENVIRON.get("PATH"))
    if npm is None:
        raise NodeMissing("npm is not installed (it fetches js-yaml)")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():  # Another worker may have fetched it while this one waited.
            _install(npm, folder)
    return folder


def _install(npm: str, folder: Path) -> None:
    """Fetch beside the final place, then rename: an interrupted download leaves no half a package."""
    beside = Path(tempfile.mkdtemp(prefix=folder.name + ".", dir=folder.parent))
    command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(beside)]
    try:
        done = subprocess.run(
            [*command, f"js-yaml@{VERSION}"],
            env=REAL_ENVIRON,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=NPM_LIMIT_S,
        )
        if done.returncode != 0:
            raise NodeMissing(f"npm install js-yaml failed: {done.stderr.strip()[-300:]}")
        beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


class _TooMuch(Exception):
    pass


def ours(text: str) -> Tuple[bool, object]:
    """(Whether our reader takes the text, its value described as the oracle describes values)."""
    try:
        value = load(text)
    except YamlError:
        return False, None
    try:
        return True, _described(value, [], [_MOST_NODES])
    except _TooMuch:
        return True, "?"


def _described(value: Value, parents: List[object], left: List[int]) -> object:
    left[0] -= 1
    if left[0] < 0 or any(value is parent for parent in parents):
        raise _TooMuch
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        return ["number", key_text(value)]
    inside = [*parents, value]
    if isinstance(value, list):
        return ["list", *(_described(item, inside, left) for item in value)]
    return ["map", {key: _described(item, inside, left) for key, item in value.items()}]


def theirs(answer: Answer) -> Tuple[bool, object]:
    """An oracle's answer in the same form."""
    return bool(answer["ok"]), _unordered(answer.get("value"))


def _unordered(value: object) -> object:
    """JavaScript puts number-like keys first: the order of keys is not compared."""
    if isinstance(value, list) and value[:1] == ["list"]:
        return ["list", *(_unordered(item) for item in value[1:])]
    if isinstance(value, list) and value[:1] == ["map"]:
        return ["map", {pair[0]: _unordered(pair[1]) for pair in value[1:]}]
    return value


def recorded() -> List[Tuple[str, Answer]]:
    """(Document, js-yaml's answer) as they were recorded."""
    groups: Dict[str, List[List[object]]] = json.loads(CASES.read_text(encoding="utf-8"))["groups"]
    return [(str(text), answer) for cases in groups.values() for text, answer in cases]  # type: ignore[misc]


def _record() -> None:
    kept = json.loads(CASES.read_text(encoding="utf-8"))
    oracle = JsYaml()
    for name, cases in kept["groups"].items():
        texts = [case[0] for case in cases]
        kept["groups"][name] = [[text, answer] for text, answer in zip(texts, oracle.texts(texts))]
    oracle.close()
    kept["recordedFrom"] = f"js-yaml {VERSION}"
    lines = [f'  "recordedFrom": {json.dumps(kept["recordedFrom"])},', '  "groups": {']
    for name, cases in kept["groups"].items():
        rows = ",\n".join("      " + json.dumps(case, ensure_ascii=True) for case in cases)
        lines.append(f"    {json.dumps(name)}: [\n{rows}\n    ],")
    lines[-1] = lines[-1].rstrip(",")
    CASES.write_text("{\n" + "\n".join(lines) + "\n  }\n}\n", encoding="utf-8")


if __name__ == "__main__":
    _record()
