"""OpenCode's server with our client, against a scripted model: what the board hears of many sessions.

One server and one companion for the whole module: a start costs seconds, and that they serve many
sessions is what is to be seen. Each test has sessions and cards of its own.
"""

from pathlib import Path
from typing import Iterator, List

import pytest

from tests.e2e.opencode_world import OpenCodeServer, OpenCodeWorld
from tests.e2e.stream import EventStream
from tests.e2e.world import Card, Json, say, use, wait_until

pytestmark = pytest.mark.e2e

TURN = ["running", "ready_for_review"]
ASKED = ["running", "waiting_for_input", "running", "ready_for_review"]
QUESTION = {"question": "Which?", "header": "Pick", "options": [{"label": "A", "description": "a"}]}


@pytest.fixture(scope="module")
def world(
    tmp_path_factory: pytest.TempPathFactory, pyz: Path, opencode_program: Path
) -> Iterator[OpenCodeWorld]:
    """A person with a board, our client installed and the companion running."""
    with OpenCodeWorld(tmp_path_factory.mktemp("served") / "world", pyz, opencode_program) as world:
        world.make_board()
        world.mdello("install", "opencode")
        world.start_companion()
        yield world


@pytest.fixture(scope="module")
def server(world: OpenCodeWorld) -> Iterator[OpenCodeServer]:
    """The server, in the person's project."""
    with world.serve() as server:
        yield server
        assert server.said().count("\n") <= 2, server.said()  # Its warning and its port.


@pytest.fixture
def stream(world: OpenCodeWorld) -> Iterator[EventStream]:
    """The board in the browser."""
    with world.stream() as stream:
        yield stream


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """Of the test: cards, scripts and gates are called by it."""
    return str(request.node.name).replace("test_", "").replace("[", "_").rstrip("]")[:40]


def rewrite(card: Card, path: str = "") -> Json:
    """A scripted change of a card's title."""
    stem = card.path.stem
    text = card.path.read_text("utf-8").replace(f"title: {stem}", f"title: {stem} (done)")
    return use("write", filePath=path or str(card.path), content=text)


def bash(*commands: str) -> Json:
    """A scripted reply that runs shell commands, which the person has to allow."""
    calls = [{"tool": "bash", "input": {"command": one, "description": "x"}} for one in commands]
    return {"blocks": [{"text": "Running."}, *calls]}


def holders(world: OpenCodeWorld, card: Card) -> List[str]:
    """The sessions that a card is linked to."""
    return [str(one["sessionId"]) for one in world.associations() if one["cardUuid"] == card.uuid]


# --- turns ----------------------------------------------------------------------------------------


def test_a_prompt_an_edit_and_a_finished_turn(
    world: OpenCodeWorld, server: OpenCodeServer, stream: EventStream, name: str
) -> None:
    """The card that was named and the one that was changed; not what was read, failed or misspelt."""
    named, changed, other = (world.card(f"{name}-{part}.md") for part in "abc")
    relative = str(Path("..") / "board" / changed.path.name)
    missing = use("edit", filePath=str(other.path), oldString="not there", newString="x")
    wrong = use("Write", filePath=str(other.path), content="x")  # The tool's name is write.
    wronger = use("no_such_tool", filePath=str(other.path))
    steps = [use("read", filePath=str(other.path)), missing, wrong, wronger, rewrite(changed, relative)]
    session = server.session()
    server.work(session, f'{world.script(name, *steps, say("Ready."))} "see {named.path}"')
    stream.wait_for(named.uuid, TURN, session)
    stream.wait_for(changed.uuid, TURN, session)
    assert "(done)" in changed.path.read_text("utf-8")
    assert holders(world, other) == []
    (one,) = (one for one in world.associations() if one["cardUuid"] == named.uuid)
    assert one["harness"] == "opencode" and "sessionFile" not in one
    server.work(session, "And on")
    stream.wait_for(named.uuid, TURN * 2, session)
    server.ask("DELETE", f"/session/{session}")
    stream.wait_for(named.uuid, [*TURN * 2, "closed"], session)
    stream.wait_for(changed.uuid, [*TURN * 2, "closed"], session)


def test_files_that_are_attached_and_patches(
    world: OpenCodeWorld, server: OpenCodeServer, stream: EventStream, name: str
) -> None:
    """A card attached by name counts as named; models with one tool for all edits change cards too."""
    attached, changed, moved, gone = (world.card(f"{name}-{part}.md") for part in "abcd")
    patch = "\n".join(
        [
            "*** Begin Patch",
            f"*** Update File: {changed.path}",
            "@@",
            "-column: todo",
            "+column: done",
            f"*** Update File: {moved.path}",
            f"*** Move to: {moved.path.with_name(name + '-moved.md')}",
            "@@",
            "-column: todo",
            "+column: done",
            f"*** Delete File: {gone.path}",
            "*** End Patch",
        ]
    )
    marker = world.script(name, use("apply_patch", patchText=patch), say("Ready."))
    session = server.session()
    file = {"type": "file", "mime": "text/plain", "filename": "a.md", "url": attached.path.as_uri()}
    model = {"providerID": "loopback", "modelID": "gpt-5-scripted"}
    text = {"type": "text", "text": marker}
    server.ask("POST", f"/session/{session}/message", {"parts": [text, file], "model": model})
    for card in (attached, changed, moved):
        stream.wait_for(card.uuid, TURN, session)
    assert not gone.path.exists() and holders(world, gone) == []


def test_a_failed_model_is_to_be_looked_at(
    world: OpenCodeWorld, server: OpenCodeServer, stream: EventStream, name: str
) -> None:
    """OpenCode says twice that it is idle; a prompt of in between is taken and never answered."""
    card = world.card(f"{name}.md")
    error: Json = {"error": {"status": 400, "type": "invalid_request_error", "message": "No."}}
    session = server.session()
    server.prompt(session, f"{world.script(name, error)} Work on {card.path}")
    stream.wait_for(card.uuid, TURN, session)
    server.prompt(session, "Once more")  # In between or behind: nobody can tell.
    wait_until(lambda: len(stream.statuses(card.uuid, session)) >= 4, "second turn")
    wait_until(lambda: server.ask("GET", "/session/status") == {}, "end of all work")
    server.work(session, "And now")
    wait_until(lambda: world.linked()[card.uuid] == "ready_for_review", "end of the last turn")
    assert set(stream.statuses(card.uuid, session)) == set(TURN)


def test_a_busy_model_is_waited_for(
    world: OpenCodeWorld, server: OpenCodeServer, stream: EventStream, name: str
) -> None:
    """While OpenCode tries again, the session runs."""
    card = world.card(f"{name}.md")
    busy: Json = {"error": {"status": 429, "type": "rate_limit_error", "message": "Slow down"}}
    session = server.session()
    server.prompt(session, f"{world.script(name, busy)} Work on {card.path}")
    wait_until(lambda: '"retry"' in str(server.ask("GET", "/session/status")).replace("'", '"'), "retry")
    assert stream.statuses(card.uuid, session) == ["running"]
    world.script(name, say("Ready."))
    stream.wait_for(card.uuid, TURN, session)


def test_an_abort_and_a_new_prompt(
    world: OpenCodeWorld, server: OpenCodeServer, stream: EventStream, name: str
) -> None:
    """The reply that never came, and the one to the prompt right behind."""
    card = world.card(f"{name}.md")
    held = world.script(name, say("Late.", wait_for=str(world.root / name)))
    session = server.session()
    server.prompt(session, f"{held} Work on {card.path}")
    stream.wait_for(card.uuid, ["running"], session)
    wait_until(lambda: session in str(server.ask("GET", "/session/status")), "work")
    server.abort(session)
    server.work(session, f"{world.script(name + '2', say('Ready.'))} Now this")
    stream.wait_for(card.uuid, TURN * 2, session)
    server.abort(session)  # There is nothing to stop: and nothing new to look at.
    server.work(session, "Once more")
    stream.wait_for(card.uuid, TURN * 3, session)


# --- what the person is asked ---------------------------------------------------------------------


def test_permissions_one_by_one(
    world: OpenCodeWorld, server: OpenCodeServer, stream: EventStream, name: str
) -> None:
    """Two are open at once: the first answer ends no wait, the second does."""
    card, done = world.card(f"{name}.md"), [world.root / f"{name}{number}" for number in (1, 2)]
    marker = world.script(name, bash(*(f"touch {one}" for one in done)), say("Ready."))
    session = server.session()
    server.prompt(session, f"{marker} Work on {card.path}")
    first, second = server.wait_for_request("permission", session, 2)
    stream.wait_for(card.uuid, ASKED[:2], session)
    server.reply(first, "once")
    wait_until(lambda: any(one.exists() for one in done), "first command")
    assert stream.statuses(card.uuid, session) == ASKED[:2]
    server.reply(second, "once")
    stream.wait_for(card.uuid, ASKED, session)


def test_a_refused_permission(
    world: OpenCodeWorld, server: OpenCodeServer, stream: EventStream, name: str
) -> None:
    """The refusal of one refuses all that are open, and ends the turn."""
    card = world.card(f"{name}.md")
    session = server.session()
    server.prompt(session, f"{world.script(name, bash('true', 'false'))} Work on {card.path}")
    first, _ = server.wait_for_request("permission", session, 2)
    server.reply(first, "reject")
    stream.wait_for(card.uuid, ASKED, session)


def test_an_abort_ends_the_wait(
    world: OpenCodeWorld, server: OpenCodeServer, stream: EventStream, name: str
) -> None:
    """Nobody says that the permission is not needed any more."""
    card = world.card(f"{name}.md")
    session = server.session()
    server.prompt(session, f"{world.script(name, bash('true'))} Work on {card.path}")
    server.wait_for_request("permission", session)
    server.abort(session)
    stream.wait_for(card.uuid, ["running", "waiting_for_input", "ready_for_review"], session)
    server.work(session, f"{world.script(name + '2', say('Ready.'))} Now this")
    stream.wait_for(card.uuid, ["running", "waiting_for_input", "ready_for_review", *TURN], session)


@pytest.mark.parametrize("way", ["reply", "reject"])
def test_a_question(
    world: OpenCodeWorld, server: OpenCodeServer, stream: EventStream, name: str, way: str
) -> None:
    """Told of by a tool call and by an event, it is one wait, whichever way it ends."""
    card = world.card(f"{name}.md")
    marker = world.script(name, use("question", questions=[QUESTION]), say("Ready."))
    session = server.session()
    server.prompt(session, f"{marker} Work on {card.path}")
    (request,) = server.wait_for_request("question", session)
    stream.wait_for(card.uuid, ASKED[:2], session)
    server.ask("POST", f"/question/{request}/{way}", {"answers": [["A"]]} if way == "reply" else {})
    stream.wait_for(card.uuid, ASKED, session)


# --- sub-agents -----------------------------------------------------------------------------------


def test_a_sub_agent_works_for_its_parent(
    world: OpenCodeWorld, server: OpenCodeServer, stream: EventStream, name: str
) -> None:
    """Its cards, and what it asks the person, are the parent's; its end is not."""
    told, changed, last = (world.card(f"{name}-{part}.md") for part in "abc")
    task = world.script(f"{name}-sub", bash("true"), rewrite(changed), say("Did it."))
    prompt = f"{task} Work on {told.path}"
    delegate = use("task", description="A part", prompt=prompt, subagent_type="general")
    held = {**rewrite(last), "wait_for": str(world.root / name)}
    session = server.session()
    server.prompt(session, f"{world.script(name, delegate, held, say('Ready.'))} Go")
    stream.wait_for(told.uuid, ["running", "waiting_for_input"], session)
    (child,) = server.children(session)
    (request,) = server.wait_for_request("permission", child)
    server.reply(request, "once")
    stream.wait_for(changed.uuid, ["running"], session)
    wait_until(lambda: child not in str(server.ask("GET", "/session/status")), "end of the child")
    assert stream.statuses(told.uuid) == ASKED[:3]
    (world.root / name).touch()
    stream.wait_for(last.uuid, TURN, session)
    stream.wait_for(told.uuid, ASKED, session)
    for card in (told, changed, last):
        assert holders(world, card) == [session]
    server.work(child, "A word with you")  # The person can speak to it, too.
    stream.wait_for(told.uuid, [*ASKED, *TURN], session)
    assert holders(world, told) == [session]


# --- sessions and folders -------------------------------------------------------------------------


def test_a_folder_is_closed_by_itself(
    world: OpenCodeWorld, server: OpenCodeServer, stream: EventStream, name: str
) -> None:
    """One server, two projects; a session of the closed one has its cards again when it goes on."""
    here, there = world.card(f"{name}-a.md"), world.card(f"{name}-b.md")
    written = world.card(f"{name}-c.md")
    other = world.root / "other" / "project"
    other.mkdir(parents=True, exist_ok=True)
    marker = world.script(name, rewrite(written, f"../../board/{written.path.name}"), say("Ready."))
    first, second = server.session(), server.session(str(other))
    server.work(first, f"Work on {here.path}")
    server.work(second, f"{marker} Work on {there.path}")
    stream.wait_for(written.uuid, TURN, second)
    server.ask("POST", "/instance/dispose", folder=str(other))
    stream.wait_for(there.uuid, [*TURN, "closed"], second)
    stream.wait_for(here.uuid, TURN, first)
    server.work(second, "Go on")
    stream.wait_for(written.uuid, [*TURN, "closed", *TURN], second)
    stream.wait_for(here.uuid, TURN, first)


def test_a_fork_has_the_cards_of_its_origin(
    world: OpenCodeWorld, server: OpenCodeServer, stream: EventStream, name: str
) -> None:
    """Its history is copied after it was made, so it is read with the first prompt."""
    card = world.card(f"{name}.md")
    session = server.session()
    server.work(session, f"Work on {card.path}")
    fork = server.ask("POST", f"/session/{session}/fork")
    assert isinstance(fork, dict)
    server.work(str(fork["id"]), "Go on")
    stream.wait_for(card.uuid, TURN, session)
    stream.wait_for(card.uuid, TURN, str(fork["id"]))
