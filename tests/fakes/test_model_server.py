"""The scripted model, seen as the CLI sees it."""

import http.client
import json
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import pytest

PROGRAM = Path(__file__).with_name("model_server.py")

SCRIPTS = {
    "talk": [{"blocks": [{"text": "One"}]}, {"blocks": [{"tool": "Write", "input": {"file_path": "/x.md"}}]}],
    "fail": [{"error": {"status": 429, "type": "rate_limit_error", "message": "Too much"}}],
}
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


def ask(port: int, messages: List[object], **more: object) -> Tuple[int, str]:
    """Status and body of one request."""
    body: Dict[str, object] = {"messages": messages, "tools": [{"name": "Write"}], "stream": True, **more}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", "/v1/messages?beta=true", json.dumps(body))
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
