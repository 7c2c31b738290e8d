"""The scripted model, seen as the CLI sees it."""

import http.client
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest

PROGRAM = Path(__file__).with_name("model_server.py")

SCRIPTS = {
    "talk": [{"blocks": [{"text": "One"}]}, {"blocks": [{"tool": "Write", "input": {"file_path": "/x.md"}}]}],
    "fail": [{"error": {"status": 429, "type": "rate_limit_error", "message": "Too much"}}],
}
CHAT = "/v1/chat/completions"
USER = {"role": "user", "content": [{"type": "text", "text": "[[script:talk]] go"}]}
REPLY = {"role": "assistant", "content": [{"type": "text", "text": "One"}]}
RESULT = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "t", "content": "[[script:fail]]"}],
}


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """The port of a running model."""
    scripts = tmp_path / "scripts.json"
    scripts.write_text(json.dumps(SCRIPTS), "utf-8")
    command = [sys.executable, str(PROGRAM), "--scripts", str(scripts)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield int(process.stdout.readline())
    process.kill()
    process.communicate()


def ask(
    port: int, messages: List[object], path: str = "/v1/messages?beta=true", **more: object
) -> Tuple[int, str]:
    """Status and body of one request."""
    body: Dict[str, object] = {"messages": messages, "tools": [{"name": "Write"}], "stream": True, **more}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", path, json.dumps(body))
    response = connection.getresponse()
    answer = response.status, response.read().decode()
    connection.close()
    return answer


def test_the_step_is_the_number_of_replies_so_far(port: int) -> None:
    """First request, first step; after one reply the second; beyond the script a plain end."""
    assert '"One"' in ask(port, [USER])[1]
    assert '"name": "Write"' in ask(port, [USER, REPLY])[1]
    assert '"Done."' in ask(port, [USER, REPLY, RESULT, REPLY])[1]


def test_a_tool_call_stops_for_its_tool(port: int) -> None:
    """The stop reason tells the CLI to run the tool, or that the turn is over."""
    assert '"stop_reason": "tool_use"' in ask(port, [USER, REPLY])[1]
    assert '"stop_reason": "end_turn"' in ask(port, [USER])[1]


def test_the_newest_user_text_chooses_the_script(port: int) -> None:
    """A later marker wins; one inside a tool result is not the user's."""
    fail = {"role": "user", "content": "[[script:fail]]"}
    assert ask(port, [USER, REPLY, fail])[0] == 429
    assert ask(port, [USER, REPLY, RESULT])[0] == 200


def test_a_request_without_tools_is_a_side_job(port: int) -> None:
    """Titles and summaries get some text, whatever the script says."""
    assert "A side job" in ask(port, [USER], tools=[])[1]


def test_a_whole_answer_when_no_stream_is_wanted(port: int) -> None:
    """Without ``stream`` the reply is one message object."""
    message = json.loads(ask(port, [USER], stream=False)[1])
    assert message["content"] == [{"type": "text", "text": "One"}]


def chat(port: int, *messages: object, **more: object) -> List[Any]:
    """The chunks of one streamed reply of ``/v1/chat/completions``."""
    status, text = ask(port, [{"role": "system", "content": "Be good."}, *messages], CHAT, **more)
    assert status == 200, text
    frames = [frame[len("data: ") :] for frame in text.split("\n\n") if frame]
    assert frames.pop() == "[DONE]"
    return [json.loads(frame) for frame in frames]


def test_the_other_protocol_has_the_same_scripts(port: int) -> None:
    """Text, then the end, then the usage: the user's text may be a list or a string."""
    for content in ("[[script:talk]] go", USER["content"]):
        chunks = chat(port, {"role": "user", "content": content})
        assert [c["choices"][0]["delta"].get("content") for c in chunks[:-1]] == ["", "One", None]
        assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
        assert chunks[-1]["usage"]["total_tokens"] == 20 and chunks[-1]["choices"] == []


def test_a_tool_call_of_the_other_protocol(port: int) -> None:
    """Name and arguments in one delta; a marker in a tool result, a message there, is not the user's."""
    result = {"role": "tool", "tool_call_id": "c", "content": "[[script:fail]]"}
    user = {"role": "user", "content": "[[script:talk]] go"}
    chunks = chat(port, user, {"role": "assistant", "content": "One"}, result)
    (call,) = chunks[1]["choices"][0]["delta"]["tool_calls"]
    assert call["function"] == {"name": "Write", "arguments": '{"file_path": "/x.md"}'}
    assert chunks[2]["choices"][0]["finish_reason"] == "tool_calls"


def test_side_jobs_and_errors_of_the_other_protocol(port: int) -> None:
    """A title is asked for without tools; a scripted error has its status."""
    fail = {"role": "user", "content": "[[script:fail]]"}
    assert chat(port, fail, tools=[])[1]["choices"][0]["delta"] == {"content": "A side job"}
    status, text = ask(port, [fail], CHAT)
    assert (status, json.loads(text)["error"]["message"]) == (429, "Too much")
