"""``/sessions`` and ``/sessions/<harness>/<id>``."""

import json
import os
import time
from typing import Any, Dict, List
from urllib.parse import quote

import pytest

from companion.core.processes import ProcessTable
from tests.companion.web.world import BOARD, World

ODD = "a/b ü?#%2e.."


def report(world: World, session: str, status: str, path: str, process: str = "") -> None:
    """A client reports."""
    body = {"markdownPath": path, "harness": "pi", "sessionId": session, "status": status}
    headers = (("Mdello-Process", process),) if process else ()
    with world.talk() as talk:
        assert talk.ask("POST", "/associations", json.dumps(body).encode(), headers=headers).status == 202


def ask(world: World, path: str) -> Any:
    """The JSON answer; it must be there."""
    with world.talk() as talk:
        answer = talk.ask("GET", path)
    assert answer.status == 200, answer.error()
    return answer.json()


def test_who_needs_a_person_stands_first(world: World) -> None:
    """Then by time; the closed ones only when asked for. With their cards, if they have some."""
    for session, status in {
        "idle": "idle",
        "old": "running",
        "new": "running",
        "done": "ready_for_review",
        "asks": "waiting_for_input",
        "over": "closed",
    }.items():
        report(world, session, status, world.card_a if session != "idle" else "/nowhere.md")
        time.sleep(0.01)
        world.watcher.look()
    rows: List[Dict[str, Any]] = ask(world, "/sessions")["sessions"]
    assert [row["sessionId"] for row in rows] == ["asks", "done", "new", "old", "idle"]
    card = {"boardUuid": BOARD, "cardUuid": "card-a", "cardPath": world.card_a}
    assert [row["cards"] for row in rows] == [[card]] * 4 + [[]]
    assert (rows[0]["rule"], rows[0]["status"]) == ("event", "waiting_for_input")
    rows = ask(world, "/sessions?closed=1")["sessions"]
    assert rows[-1]["sessionId"] == "over"


def test_of_one_session_everything_is_told(world: World) -> None:
    """The verdict, each piece of evidence with its age, what is missing."""
    report(world, ODD, "running", world.card_a, str(os.getpid()))
    world.watcher.look()
    told: Dict[str, Any] = ask(world, f"/sessions/pi/{quote(ODD, safe='')}")
    assert (told["harness"], told["sessionId"], told["status"]) == ("pi", ODD, "running")
    assert (told["rule"], told["sure"], told["contradicts"]) == ("event", "certain", [])
    assert [card["cardUuid"] for card in told["cards"]] == ["card-a"]
    evidence = told["evidence"]
    (process,) = evidence["processes"]
    assert (process["pid"], process["life"]) == (os.getpid(), "alive")
    assert (evidence["event"]["name"], evidence["event"]["status"]) == ("report", "running")
    assert 0 <= evidence["event"]["ageSeconds"] < 60 and 0 <= process["ageSeconds"] < 60


@pytest.mark.parametrize("path", ["/sessions/pi/nobody", "/sessions/nobody/s", "/sessions/pi/%00"])
def test_an_unknown_session_is_not_found(world: World, path: str) -> None:
    """With words, and never another one in its place."""
    report(world, "nobody else", "running", world.card_a)
    with world.talk() as talk:
        answer = talk.ask("GET", path)
    assert answer.status == 404 and answer.error().startswith("Nothing is known of")


def test_a_session_without_an_id_is_no_path(world: World) -> None:
    """Nor is one without a harness."""
    for path in ("/sessions/", "/sessions/pi", "/sessions/pi/", "/sessions//s"):
        with world.talk() as talk:
            answer = talk.ask("GET", path)
        assert (answer.status, answer.error()) == (404, "Not found")


def test_what_programs_started_is_left_out_unless_it_works_on_a_card(world: World) -> None:
    """By the agent's own records: a fan-out may be hundreds. Each can be asked for."""
    folder = world.settings.home / ".claude" / "sessions"
    folder.mkdir(parents=True)
    begun = ProcessTable().find(os.getpid())
    parent = ProcessTable().find(os.getppid())
    assert begun is not None and parent is not None
    for process, session in ((begun, "linked"), (parent, "fan-out")):
        record = {
            "pid": process.pid,
            "procStart": process.begun,
            "sessionId": session,
            "entrypoint": "sdk-py",
        }
        (folder / f"{process.pid}.json").write_text(json.dumps(record))
    body = {"markdownPath": world.card_a, "harness": "claude", "sessionId": "linked", "status": "running"}
    with world.talk() as talk:
        assert talk.ask("POST", "/associations", json.dumps(body).encode()).status == 202
    world.watcher.look()
    shown = {query: [row["sessionId"] for row in ask(world, f"/sessions{query}")["sessions"]]
             for query in ("", "?automated=1")}  # fmt: skip
    assert shown == {"": ["linked"], "?automated=1": ["linked", "fan-out"]}
    assert ask(world, "/sessions/claude/fan-out")["automated"] is True
