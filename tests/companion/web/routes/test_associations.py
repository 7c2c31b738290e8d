"""``/associations``."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List

import pytest

from companion.core.errors import StorageError
from tests.companion.web.talk import PATIENCE_S, Answer
from tests.companion.web.world import BOARD, OTHER_BOARD, SITE, World

IGNORED = {"ignored": True, "reason": "unknown_card"}


def post(world: World, body: object) -> Answer:
    """Post a value as JSON."""
    with world.talk() as talk:
        return talk.ask("POST", "/associations", json.dumps(body).encode())


def report(path: str, **more: object) -> Dict[str, object]:
    """What a client reports about a card."""
    return {"markdownPath": path, "harness": "pi", "sessionId": "s1", "status": "running", **more}


def held(world: World, query: str = "") -> List[Any]:
    """What is held."""
    with world.talk() as talk:
        answer = talk.ask("GET", f"/associations{query}")
    assert answer.status == 200
    records: Any = answer.json()
    return list(records)


def cards(world: World, query: str = "") -> List[str]:
    """Card uuids of what is held."""
    return [record["cardUuid"] for record in held(world, query)]


def test_a_report_is_recorded(world: World) -> None:
    """202 with the record as stored: our board, our uuid, our time."""
    answer = post(world, report(world.card_a, sessionFile="/s.jsonl", boardUuid="x", cardUuid="y", extra=1))
    record: Any = answer.json()
    assert answer.status == 202
    assert record.pop("updatedAt").endswith("Z")
    assert record == {
        "boardUuid": BOARD,
        "cardUuid": "card-a",
        "cardPath": world.card_a,
        "harness": "pi",
        "sessionId": "s1",
        "sessionFile": "/s.jsonl",
        "status": "running",
    }


def test_the_same_again_gives_the_older_record(world: World) -> None:
    """Byte for byte."""
    assert post(world, report(world.card_a)).body == post(world, report(world.card_a)).body


def test_a_missing_harness_becomes_unknown(world: World) -> None:
    """As in old logs."""
    body = report(world.card_a)
    del body["harness"]
    record: Any = post(world, body).json()
    assert record["harness"] == "unknown"


@pytest.mark.parametrize("body", [[], "text", 1, True, {}, {"markdownPath": "", "cardPath": "/x.md"}])
def test_what_names_no_card_is_ignored(world: World, body: object) -> None:
    """With 202, so that no client takes it for a failure."""
    answer = post(world, body)
    assert (answer.status, answer.json()) == (202, IGNORED)


def test_reports_are_counted_for_doctor(world: World) -> None:
    """Those that were taken, ignored ones included: they prove that the client is at work."""
    post(world, report(world.card_a))
    post(world, report("/nowhere.md"))
    post(world, report(world.card_a, status="asleep"))
    (counted,) = world.services.clients.facts().items()
    assert counted[0] == "pi"
    assert isinstance(counted[1], dict)
    assert (counted[1]["reports"], counted[1]["unknownCards"]) == (2, 1)


def test_a_session_whose_process_is_gone_is_closed(world: World) -> None:
    """Its report named the process; on all its cards, and on open streams."""
    headers = (("Content-Type", "application/json"),)
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        for path in (world.card_a, world.card_c):
            with world.talk() as talk:
                named = (*headers, ("Mdello-Process", str(process.pid)))
                assert (
                    talk.ask("POST", "/associations", json.dumps(report(path)).encode(), named).status == 202
                )
        post(world, report(world.card_b, sessionId="s2"))
        process.kill()
    until = time.monotonic() + PATIENCE_S
    expected = [("card-a", "closed"), ("card-c", "closed"), ("card-b", "running")]
    while [(one["cardUuid"], one["status"]) for one in held(world)] != expected:
        assert time.monotonic() < until, held(world)
        time.sleep(0.01)


def test_a_file_outside_boards_is_ignored(world: World, tmp_path: Path) -> None:
    """Whatever its other fields hold."""
    outside = world.make_card(tmp_path / "outside.md", "card-x")
    assert post(world, {"cardPath": outside, "status": 5}).json() == IGNORED


@pytest.mark.parametrize(
    "fate", ["renamed", "renamed and seen", "archived", "deleted", "broken", "unreadable"]
)
def test_a_card_that_is_not_where_it_was_keeps_up_with_its_session(world: World, fate: str) -> None:
    """Clients go on naming the old place. Other sessions on the card are none of their business."""
    post(world, report(world.card_a))
    post(world, report(world.card_a, sessionId="other"))
    card = Path(world.card_a)
    if fate in ("deleted", "unreadable"):
        card.unlink()
    elif fate == "broken":
        card.write_text("---\nuuid: [\n---\n")
    else:
        (card.parent / "archive").mkdir()
        card.rename(card.parent / ("archive" if fate == "archived" else "") / "elsewhere.md")
    if fate == "renamed and seen":
        world.ledger.reconcile()
    if fate == "unreadable":
        os.mkfifo(card)
    answer = post(world, report(str(card), status="ready_for_review"))
    assert answer.status == 400 if fate == "unreadable" else answer.json() == IGNORED
    assert [(each["sessionId"], each["status"]) for each in held(world)] == [
        ("s1", "ready_for_review"),
        ("other", "running"),
    ]
    post(world, report("relative.md", status="closed"))
    post(world, report(str(card), status="asleep"))
    assert held(world)[0]["status"] == "ready_for_review"


@pytest.mark.parametrize(
    "more", [{"sessionId": ""}, {"status": "asleep"}, {"sessionFile": None}, {"harness": ""}]
)
def test_a_broken_report_about_a_card_is_refused(world: World, more: Dict[str, object]) -> None:
    """400, and nothing is held."""
    answer = post(world, report(world.card_a, **more))
    assert (answer.status, answer.error()) == (400, "Invalid association")
    assert cards(world) == []


def test_null_is_refused(world: World) -> None:
    """Unlike all other values that are no objects."""
    answer = post(world, None)
    assert (answer.status, answer.error()) == (400, "Invalid association")


def test_a_card_that_cannot_be_read_is_told(world: World) -> None:
    """A folder with a card's name: 400 with the system's words."""
    (world.board / "dir.md").mkdir()
    answer = post(world, report(str(world.board / "dir.md")))
    assert answer.status == 400 and "directory" in answer.error()


@pytest.mark.parametrize("data", [b"", b"{", b"\xef\xbb\xbf{}", b'{"a": NaN}', b"Infinity"])
def test_what_is_no_json_is_refused(world: World, data: bytes) -> None:
    """With the parser's words."""
    with world.talk() as talk:
        answer = talk.ask("POST", "/associations", data)
    assert answer.status == 400 and answer.error().startswith("Invalid JSON: ")


@pytest.mark.parametrize("kind", ["text/plain", "", None])
def test_any_content_type_will_do(world: World, kind: str) -> None:
    """Only hooks look at it."""
    headers = (("Content-Type", kind),) if kind is not None else ()
    with world.talk() as talk:
        assert talk.ask("POST", "/associations", b"{}", headers).status == 202


def test_the_limit_is_64_kib_inclusive(world: World) -> None:
    """Counted in bytes, also when the text is not ASCII."""
    padding = "ü" * 20_000
    body = json.dumps(report(world.card_a, extra=padding), ensure_ascii=False).encode()
    body += b" " * (65_536 - len(body))
    with world.talk() as talk:
        assert talk.ask("POST", "/associations", body).status == 202
        answer = talk.ask("POST", "/associations", body + b" ")
        assert (answer.status, answer.error()) == (400, "Request body too large")
        assert talk.ask("GET", "/associations").status == 200


@pytest.mark.parametrize(
    "text", ["[" * 65_536, "[" * 32_768 + "]" * 32_768, '{"a":' * 10_000 + "1" + "}" * 10_000]
)
def test_deep_nesting_is_no_failure_of_ours(world: World, text: str) -> None:
    """It is read, or refused for what it is."""
    with world.talk() as talk:
        answer = talk.ask("POST", "/associations", text.encode())
        assert answer.status == (202 if text[-1] in "]}" else 400)


def test_long_numbers_and_lone_surrogates_are_valid(world: World) -> None:
    """The surrogate is kept as the escape it came as."""
    body = json.dumps(report(world.card_a, sessionId="\ud83d")).encode()
    body = body[:-1] + b', "n": ' + b"9" * 5_000 + b"}"
    with world.talk() as talk:
        answer = talk.ask("POST", "/associations", body)
        assert answer.status == 202 and b'"sessionId":"\\ud83d"' in answer.body
        assert b'"sessionId":"\\ud83d"' in talk.ask("GET", "/associations").body


def test_characters_torn_between_packets_are_whole(world: World) -> None:
    """And bytes that are no UTF-8 become U+FFFD."""
    body = json.dumps(report(world.card_a, sessionId="süß€"), ensure_ascii=False).encode()
    body = body.replace("€".encode(), b"\xff")
    with world.talk() as talk:
        talk.send(b"POST /associations HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body))
        for position in range(len(body)):
            talk.send(body[position : position + 1])
        answer = talk.answer()
    record: Any = json.loads(answer.body.decode("utf-8"))
    assert record["sessionId"] == "süß\ufffd"


def test_what_is_held_is_listed_in_order_and_filtered(world: World) -> None:
    """By board, by card alone too, by both; empty filters count as absent."""
    for path in (world.card_b, world.card_c, world.card_a):
        world.record(path)
    assert cards(world) == ["card-b", "card-c", "card-a"]
    assert cards(world, f"?boardUuid={BOARD}") == ["card-b", "card-a"]
    assert cards(world, "?cardUuid=card-c") == ["card-c"]
    assert cards(world, f"?boardUuid={OTHER_BOARD}&cardUuid=card-a") == []
    assert cards(world, "?boardUuid=&cardUuid=") == ["card-b", "card-c", "card-a"]


@pytest.mark.parametrize(
    ("query", "left", "removed"),
    [
        ("cardUuid=card-a", ["card-b", "card-c"], 2),
        ("harness=pi&sessionId=s1", [], 3),
        ("cardUuid=card-a&harness=pi&sessionId=s1", ["card-a", "card-b", "card-c"], 1),
        ("cardUuid=nobody", ["card-a", "card-a", "card-b", "card-c"], 0),
    ],
)
def test_forgetting(world: World, query: str, left: List[str], removed: int) -> None:
    """A card, a session everywhere, a session on one card; the events of the log are counted."""
    world.record(world.card_a, "s1")
    world.record(world.card_a, "s2")
    world.record(world.card_b, "s1" if "harness" in query and "cardUuid" not in query else "s3")
    world.record(world.card_c, "s1" if "harness" in query and "cardUuid" not in query else "s3")
    with world.talk() as talk:
        answer = talk.ask("DELETE", f"/associations?{query}")
    assert (answer.status, answer.json()) == (200, {"removedEvents": removed})
    if query == "harness=pi&sessionId=s1":
        left = ["card-a"]
    assert sorted(cards(world)) == left


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?harness=pi",
        "?sessionId=s1",
        "?cardUuid=card-a&harness=pi",
        "?cardUuid=card-a&sessionId=s1",
        "?cardUuid=&harness=pi&sessionId=",
    ],
)
def test_a_bad_selector_forgets_nothing(world: World, query: str) -> None:
    """Neither card nor session named, or half a session."""
    world.record(world.card_a)
    with world.talk() as talk:
        answer = talk.ask("DELETE", f"/associations{query}")
    assert (answer.status, answer.error()) == (400, "cardUuid or harness and sessionId are required")
    assert cards(world) == ["card-a"]


def test_a_page_asks_before_it_forgets(world: World) -> None:
    """The preflight of the default site is answered, and so is what follows it."""
    origin = (("Origin", SITE),)
    with world.talk() as talk:
        preflight = talk.ask("OPTIONS", "/associations", headers=origin)
        answer = talk.ask("DELETE", "/associations?cardUuid=card-a", headers=origin)
    assert (preflight.status, preflight.body, answer.status) == (204, b"", 200)
    for each in (preflight, answer):
        assert (each.headers["access-control-allow-origin"], each.headers["vary"]) == (SITE, "Origin")
    assert "DELETE" in preflight.headers["access-control-allow-methods"]


def test_forgetting_brings_every_stream_up_to_date(world: World) -> None:
    """Of every board, also when nothing was there to forget."""
    with world.listen() as here, world.listen(OTHER_BOARD, world.other_board) as there:
        for talk in (here, here, there):  # its own, then the one for the second subscriber
            assert talk.event().json() == []
        with world.talk() as talk:
            talk.ask("DELETE", "/associations?cardUuid=nobody")
        for talk in (here, there):
            assert (talk.event().name, world.hub.listeners()) == ("snapshot", 2)


def test_a_log_that_cannot_be_written_is_our_failure(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """500 with the reason, which the debug log has too."""
    said = []
    monkeypatch.setattr("companion.core.logs.debug_event", lambda *event: said.append(event))

    def fail(*_: str) -> int:
        raise StorageError("Cannot write /x: No space left on device")

    monkeypatch.setattr(world.ledger, "forget", fail)
    with world.talk() as talk:
        answer = talk.ask("DELETE", "/associations?cardUuid=card-a")
    reason = "Cannot write /x: No space left on device"
    assert (answer.status, answer.error()) == (500, reason)
    assert ("associations expunge failed", {"error": reason}) in said
