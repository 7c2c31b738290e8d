"""A model on loopback that answers by script: what the agents' CLIs talk to in the end-to-end tests.

It speaks three protocols, ``POST /v1/messages``, ``/v1/chat/completions`` and ``/v1/responses``, from the
same scripts. (In the last one a tool whose ``input`` is a text is called as a custom tool, and ``space`` is
the namespace of a function.)

Run as a program::

    python3 model_server.py --scripts FILE [--log FILE]

It binds an ephemeral port on 127.0.0.1, prints the number on one line and serves until it is ended.
FILE holds a JSON object: script name to list of steps. A prompt chooses its script by carrying
``[[script:NAME]]``; the step is the number of assistant messages after the newest user text that
carries such a marker. So the server keeps no state of a talk: a resumed session, a subagent (its task
carries a marker of its own) and two sessions at once all find their place. FILE is read again for
every request, so a test may write a script when it needs it.

One step is one reply::

    {"blocks": [{"text": "Hello"}, {"tool": "Write", "input": {...}}]}
    {"error": {"status": 429, "type": "rate_limit_error", "message": "Slow down"}}

and may carry ``"wait_for": PATH``: the reply is held back until that file exists (30 s at most), which
lets a test act in the middle of a turn without guessing times. Beyond the last step, and without a
marker, the answer is the text ``Done.``. A request without tools is a side job of the CLI (a title, a
summary) and gets a short text.

``--log FILE`` appends one JSON line per request: method, path, script, step.
"""

import argparse
import itertools
import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

MARKER = re.compile(r"\[\[script:([A-Za-z0-9_-]+)\]\]")
HOLD_LIMIT_S = 30.0
POLL_S = 0.02

Json = Dict[str, object]


class Place(NamedTuple):
    """Where in which script a talk stands; the script is empty when no marker was found."""

    script: str
    step: int


def user_texts(message: Mapping[str, object]) -> List[str]:
    """The texts of one user message; tool results are not the user's text."""
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    return [str(block.get("text", "")) for block in blocks if block.get("type") == "text"]


def find_place(messages: List[Json]) -> Place:
    """The script named last by the user, and how many replies it had already."""
    replies = 0
    for message in reversed(messages):
        if message.get("role") == "assistant":
            replies += 1
        if message.get("role") != "user":
            continue  # Where tool results are messages of their own, they are not the user's either.
        found = MARKER.findall("\n".join(user_texts(message)))
        if found:
            return Place(found[-1], replies)
    return Place("", 0)


class Events:
    """Server-sent events of one streamed reply, in the order the CLI expects them."""

    def __init__(self, model: str, number: int) -> None:
        self._model = model
        self._id = f"msg_{number:06d}"
        self._number = number

    def of(self, blocks: List[Json]) -> List[Tuple[str, Json]]:
        """All events for these blocks, each as (name, data)."""
        uses_tool = any("tool" in block for block in blocks)
        events = [("message_start", self._start())]
        for index, block in enumerate(blocks):
            events += self._tool(index, block) if "tool" in block else self._text(index, block)
        delta = {"stop_reason": "tool_use" if uses_tool else "end_turn", "stop_sequence": None}
        events.append(
            ("message_delta", {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}})
        )
        events.append(("message_stop", {"type": "message_stop"}))
        return events

    def _start(self) -> Json:
        message: Json = {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 11, "output_tokens": 1},
        }
        return {"type": "message_start", "message": message}

    def _text(self, index: int, block: Json) -> List[Tuple[str, Json]]:
        delta = {"type": "text_delta", "text": block["text"]}
        return self._block(index, {"type": "text", "text": ""}, delta)

    def _tool(self, index: int, block: Json) -> List[Tuple[str, Json]]:
        # Unique over the life of the server: the CLI pairs results with calls by this id.
        tool_id = f"toolu_{self._number:06d}_{index}"
        head: Json = {"type": "tool_use", "id": tool_id, "name": block["tool"], "input": {}}
        delta: Json = {"type": "input_json_delta", "partial_json": json.dumps(block.get("input", {}))}
        return self._block(index, head, delta)

    def _block(self, index: int, head: Json, delta: Json) -> List[Tuple[str, Json]]:
        start = {"type": "content_block_start", "index": index, "content_block": head}
        change = {"type": "content_block_delta", "index": index, "delta": delta}
        stop = {"type": "content_block_stop", "index": index}
        return [
            ("content_block_start", start),
            ("content_block_delta", change),
            ("content_block_stop", stop),
        ]


def chat_chunks(model: str, number: int, blocks: List[Json]) -> List[Json]:
    """One streamed reply in the other protocol: the data of its events; the last has the usage alone."""
    head: Json = {"id": f"chat_{number:06d}", "object": "chat.completion.chunk", "created": 1, "model": model}
    deltas: List[Tuple[Json, Optional[str]]] = [({"role": "assistant", "content": ""}, None)]
    calls = 0
    for block in blocks:
        if "tool" in block:
            function = {"name": block["tool"], "arguments": json.dumps(block.get("input", {}))}
            call = {
                "index": calls,
                "id": f"call_{number:06d}_{calls}",
                "type": "function",
                "function": function,
            }
            deltas.append(({"tool_calls": [call]}, None))
            calls += 1
        else:
            deltas.append(({"content": block["text"]}, None))
    deltas.append(({}, "tool_calls" if calls else "stop"))
    choices = [[{"index": 0, "delta": delta, "finish_reason": end}] for delta, end in deltas]
    usage = {"prompt_tokens": 11, "completion_tokens": 9, "total_tokens": 20}
    return [*({**head, "choices": one} for one in choices), {**head, "choices": [], "usage": usage}]


def messages_of_items(items: object) -> List[Json]:
    """The input of the third protocol as messages: each reply of ours, a call too, is an assistant's."""
    messages: List[Json] = []
    for item in items if isinstance(items, list) else []:
        kind, role = item.get("type"), item.get("role")
        if kind in ("function_call", "custom_tool_call"):
            messages.append({"role": "assistant", "content": ""})
        elif kind in ("message", "agent_message", None):
            parts = item.get("content")
            texts = [str(parts)]
            if isinstance(parts, list):  # What one agent tells another is not readable for a client.
                texts = [str(part.get("text") or part.get("encrypted_content")) for part in parts]
            messages.append({"role": role or "user", "content": "\n".join(texts)})
    return messages


def response_events(number: int, blocks: List[Json]) -> List[Json]:
    """One streamed reply in the third protocol. A reply has either one text or one call."""
    items = [_response_item(f"{number:06d}_{index}", block) for index, block in enumerate(blocks)]
    head: Json = {"id": f"resp_{number:06d}", "output": []}
    events: List[Json] = [{"type": "response.created", "response": head}]
    for index, item in enumerate(items):
        for kind in ("added", "done"):
            events.append({"type": f"response.output_item.{kind}", "output_index": index, "item": item})
    usage = {
        **{"input_tokens": 11, "output_tokens": 9, "total_tokens": 20},
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return [*events, {"type": "response.completed", "response": {**head, "usage": usage}}]


def _response_item(identity: str, block: Json) -> Json:
    given = block.get("input", {})
    if "tool" not in block:
        part = {"type": "output_text", "text": block["text"], "annotations": []}
        item: Json = {"type": "message", "role": "assistant", "id": f"msg_{identity}", "content": [part]}
    elif isinstance(given, str):
        item = {"type": "custom_tool_call", "id": f"ctc_{identity}", "name": block["tool"], "input": given}
    else:
        item = {"type": "function_call", "id": f"fc_{identity}", "name": block["tool"]}
        item["arguments"] = json.dumps(given)
    if "tool" in block:
        item["call_id"] = f"call_{identity}"
    if "space" in block:
        item["namespace"] = block["space"]
    return {**item, "status": "completed"}


class ModelServer(ThreadingHTTPServer):
    """The server's few facts; each request is one thread."""

    daemon_threads = True

    def __init__(self, scripts: Path, log: Optional[Path]) -> None:
        super().__init__(("127.0.0.1", 0), ModelHandler)
        self.scripts = scripts
        self.numbers = itertools.count(time.time_ns() // 1_000_000_000 % 1_000_000)
        """Message numbers: not from zero, so that two servers in one test make different ids."""
        self._log = log
        self._log_lock = threading.Lock()  # Whole lines only.

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was ended in the middle of a reply is part of many tests, and no news."""

    def step_at(self, place: Place) -> Json:
        """The step for a place; the plain last answer beyond the end of a script."""
        steps = json.loads(self.scripts.read_text("utf-8")).get(place.script, [])
        if place.step < len(steps):
            step: Json = steps[place.step]
            return step
        return {"blocks": [{"text": "Done."}]}

    def note(self, record: Json) -> None:
        """One line for the test's log of requests."""
        if self._log is not None:
            with self._log_lock, self._log.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(record) + "\n")


class ModelHandler(BaseHTTPRequestHandler):
    """The few routes that the CLI asks for."""

    protocol_version = "HTTP/1.1"
    server: ModelServer

    def do_HEAD(self) -> None:
        """A reachability probe."""
        self._send(200, "application/json", b"")

    def do_GET(self) -> None:
        """Lists of models and the like: an empty list says enough."""
        self._send_json(200, {"data": [], "has_more": False})

    def do_POST(self) -> None:
        """A message, a token count, or something that may be ignored."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        if path == "/v1/messages/count_tokens":
            self._send_json(200, {"input_tokens": 42})
        elif path in ("/v1/messages", "/v1/chat/completions"):
            self._message(body)
        elif path == "/v1/responses":
            self._message({**body, "tools": ["some"], "messages": messages_of_items(body.get("input"))})
        else:
            self._send_json(200, {})

    def _message(self, body: Json) -> None:
        if not body.get("tools"):
            self.server.note({"path": self.path, "script": "", "side_job": True})
            self._reply(body, [{"text": "A side job"}])
            return
        messages = body.get("messages")
        place = find_place(messages if isinstance(messages, list) else [])
        self.server.note({"path": self.path, "script": place.script, "step": place.step})
        step = self.server.step_at(place)
        self._hold(step)
        error, blocks = step.get("error"), step.get("blocks")
        if isinstance(error, dict):
            self._error(error)
        elif isinstance(blocks, list):
            self._reply(body, blocks)

    def _hold(self, step: Json) -> None:
        path = step.get("wait_for")
        if not isinstance(path, str):
            return
        until = time.monotonic() + HOLD_LIMIT_S
        while not Path(path).exists() and time.monotonic() < until:
            time.sleep(POLL_S)

    def _error(self, error: Json) -> None:
        status = error.get("status", 500)
        inner = {"type": error.get("type", "api_error"), "message": error.get("message", "Scripted error")}
        self._send_json(status if isinstance(status, int) else 500, {"type": "error", "error": inner})

    def _reply(self, body: Json, blocks: List[Json]) -> None:
        model, number = str(body.get("model", "scripted")), next(self.server.numbers)
        if self.path.startswith("/v1/chat/"):
            frames = "".join(f"data: {json.dumps(data)}\n\n" for data in chat_chunks(model, number, blocks))
            self._send(200, "text/event-stream", f"{frames}data: [DONE]\n\n".encode())
            return
        if self.path.startswith("/v1/responses"):
            data_of = response_events(number, blocks)
            frames = "".join(f"event: {data['type']}\ndata: {json.dumps(data)}\n\n" for data in data_of)
            self._send(200, "text/event-stream", frames.encode())
            return
        events = Events(model, number).of(blocks)
        if not body.get("stream"):
            self._send_json(200, self._whole(events))
            return
        frames = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
        self._send(200, "text/event-stream", frames.encode())

    def _whole(self, events: List[Tuple[str, Json]]) -> Json:
        message = events[0][1]["message"]
        assert isinstance(message, dict)
        texts = [data["delta"] for name, data in events if name == "content_block_delta"]
        content = [{"type": "text", "text": d.get("text", "")} for d in texts if isinstance(d, dict)]
        return {**message, "content": content, "stop_reason": "end_turn"}

    def _send_json(self, status: int, data: Json) -> None:
        self._send(status, "application/json", json.dumps(data).encode())

    def _send(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        if status >= 400:
            self.send_header("x-should-retry", "false")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Silence: the test reads ``--log``."""


def main() -> int:
    """Serve until ended; the port is the only line on stdout."""
    parser = argparse.ArgumentParser(description="A scripted model on loopback.")
    parser.add_argument("--scripts", type=Path, required=True)
    parser.add_argument("--log", type=Path)
    arguments = parser.parse_args()
    server = ModelServer(arguments.scripts, arguments.log)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
