"""OpenCode started and ended, with our client: runs, resumed sessions, and a companion that is away."""

import json
import re
import signal
from typing import Dict, List, Tuple

import pytest

from tests.e2e.opencode_world import OpenCodeWorld
from tests.e2e.world import Card, Json, free_port, say, use, wait_until

pytestmark = pytest.mark.e2e

TURN = ["running", "ready_for_review"]
ONCE = [*TURN, "closed"]


def write(card: Card) -> Json:
    """A scripted reply that writes a card anew."""
    return use("write", filePath=str(card.path), content=card.path.read_text("utf-8"))


def sessions_of(world: OpenCodeWorld, card: Card) -> List[str]:
    """The sessions that a card is linked to."""
    return [str(one["sessionId"]) for one in world.associations() if one["cardUuid"] == card.uuid]


def forget_all(world: OpenCodeWorld) -> None:
    """A companion that knows of no session any more."""
    world.stop_companion()
    (world.home / ".local/state/mdello/companion.jsonl").unlink()
    world.start_companion()


# --- a run, and the runs after it -----------------------------------------------------------------


def test_a_run_and_the_runs_that_resume_it(opencode_world: OpenCodeWorld) -> None:
    """A prompt of several words comes in quotes; a resumed session begins without saying so."""
    world = opencode_world
    named, changed = world.card("named.md"), world.card("changed.md")
    marker = world.script("work", write(changed), say("Ready."))
    with world.stream() as stream:
        assert world.opencode(f'{marker} Work on "this", {named.path}').code == 0
        for card in (named, changed):
            stream.wait_for(card.uuid, ONCE)
    (session,) = sessions_of(world, named)
    for more in (["-c"], ["-s", session]):
        forget_all(world)
        with world.stream() as stream:
            assert world.opencode(*more, "Again").code == 0
            for card in (named, changed):
                stream.wait_for(card.uuid, ONCE, session)
    assert sessions_of(world, changed) == [session]


_CHANGING = re.compile(r"\b(?:ses|msg|prt|call)_\w+|\b[0-9a-f]{40}\b")


def plain(value: object) -> object:
    """A value of the output without what differs from run to run."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if key not in ("timestamp", "time")}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return _CHANGING.sub("...", value) if isinstance(value, str) else value


def output(
    world: OpenCodeWorld, marker: str, card: Card, killed: bool = False
) -> Tuple[int, List[object], str]:
    """Everything that one run prints; ``killed``: the companion, in its middle."""
    gate = world.root / "gate"
    process = world.start(world.command("run", "--format", "json", f"{marker} Work on {card.path}"))
    if killed:
        wait_until(lambda: world.linked().get(card.uuid) == "running", "running")
        world.stop_companion(signal.SIGKILL)
    gate.touch()
    run = world.finish(process)
    gate.unlink()
    return run.code, [plain(json.loads(line)) for line in run.stdout.splitlines()], run.stderr


def test_what_opencode_prints_is_the_same_with_and_without_us(opencode_world: OpenCodeWorld) -> None:
    """Companion running, hanging, killed in the middle, gone, our client taken out; and behind a proxy
    that is not there.

    The model is reached without that proxy, hence under another name than the companion.
    """
    world = opencode_world
    card = world.card("named.md")
    held = {**write(card), "wait_for": str(world.root / "gate")}
    marker = world.script("work", held, use("grep", pattern="x"), say("Ready."))
    config = world.config_folder / "opencode.json"
    config.write_text(config.read_text("utf-8").replace("//127.0.0.1:", "//localhost:"), "utf-8")
    proxy = f"http://127.0.0.1:{free_port()}"
    seen: Dict[str, Tuple[int, List[object], str]] = {}
    with world.stream() as stream:
        world.extra_environ = {"HTTP_PROXY": proxy, "http_proxy": proxy, "NO_PROXY": "localhost"}
        seen["proxy"] = output(world, marker, card)
        stream.wait_for(card.uuid, ONCE)
        world.extra_environ = {}
    world.pause_companion()
    seen["hanging"] = output(world, marker, card)
    world.stop_companion(signal.SIGKILL)
    world.start_companion()
    seen["killed"] = output(world, marker, card, killed=True)
    seen["gone"] = output(world, marker, card)
    world.mdello("uninstall", "opencode")
    seen["without"] = output(world, marker, card)
    code, lines, errors = seen["without"]
    assert (code, len(lines) > 5, errors) == (0, True, "")
    for way, one in seen.items():
        assert one == seen["without"], way


# --- without the companion ------------------------------------------------------------------------


def test_a_companion_that_was_away_hears_of_it_when_it_is_back(opencode_world: OpenCodeWorld) -> None:
    """Killed, and without its memory: no new prompt is needed. Hanging: no turn waits for it."""
    world = opencode_world
    named, changed = world.card("named.md"), world.card("changed.md")
    gate = world.root / "gate"
    marker = world.script("held", {**write(changed), "wait_for": str(gate)}, say("Ready."))
    with world.serve() as server:
        session = server.session()
        server.prompt(session, f"{marker} Work on {named.path}")
        wait_until(lambda: world.linked() == {named.uuid: "running"}, "running")
        world.stop_companion(signal.SIGKILL)
        (world.home / ".local/state/mdello/companion.jsonl").unlink()
        gate.touch()
        wait_until(lambda: server.ask("GET", "/session/status") == {}, "end of the turn")
        world.start_companion()
        settled = {named.uuid: "ready_for_review", changed.uuid: "ready_for_review"}
        with world.stream() as stream:
            stream.wait_for_newest(settled)
        world.pause_companion()
        late = world.card("late.md")
        server.work(session, f"And on {late.path}")
        server.work(session, "And on")
        world.resume_companion()
        settled[late.uuid] = "ready_for_review"
        with world.stream() as stream:
            stream.wait_for_newest(settled)


def test_a_killed_server_and_the_next_one(opencode_world: OpenCodeWorld) -> None:
    """It cannot say that it ends: that is noticed. Its session goes on in the next one, sub-agents' cards
    included."""
    world = opencode_world
    named, changed, late = (world.card(f"{name}.md") for name in ("named", "changed", "late"))
    task = world.script("sub", write(changed), say("Did it."))
    delegate = use("task", description="A part", prompt=f"{task} Go", subagent_type="general")
    held = say("Late.", wait_for=str(world.root / "gate"))
    with world.serve() as server:
        session = server.session()
        server.prompt(session, f"{world.script('main', delegate, held)} Work on {named.path}")
        running = {named.uuid: "running", changed.uuid: "running"}
        wait_until(lambda: world.linked() == running, "running")
        (child,) = server.children(session)
        wait_until(lambda: child not in str(server.ask("GET", "/session/status")), "end of the child")
        with world.stream() as stream:
            server.end(signal.SIGTERM)
            for card in (named, changed):
                stream.wait_for(card.uuid, ["closed"], session)
    with world.serve() as server, world.stream() as stream:
        server.work(child, f"Work on {late.path}")  # One whose parent only OpenCode knows.
        stream.wait_for(late.uuid, TURN, session)
        (world.root / "gate").touch()
        server.work(session, "Go on")
        wait_until(lambda: set(world.linked().values()) == {"ready_for_review"}, "end")
        assert sessions_of(world, late) == sessions_of(world, changed) == [session]


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGKILL], ids=lambda kind: kind.name)
def test_a_killed_run_is_closed(opencode_world: OpenCodeWorld, kind: signal.Signals) -> None:
    """Ctrl-C ends a run at once, without a word to its plugins."""
    world = opencode_world
    card = world.card("named.md")
    held = world.script("held", say("Late.", wait_for=str(world.root / "gate")))
    with world.stream() as stream:
        process = world.start(world.command("run", "--format", "json", f"{held} Work on {card.path}"))
        stream.wait_for(card.uuid, ["running"])
        process.send_signal(kind)
        stream.wait_for(card.uuid, ["running", "closed"])
    assert world.finish(process).code != 0


# --- the terminal ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("tmux")
def test_the_terminal(opencode_world: OpenCodeWorld) -> None:
    """A turn, and Ctrl-C; then a terminal that is closed. Nothing of ours is on the screen."""
    world = opencode_world
    card = world.card("named.md")
    # The last word, and a long one: of a line that is broken, the screen is searched for its end.
    marker = world.script("work-in-the-terminal", say("All done here."))
    with world.stream() as stream:
        with world.terminal() as screen:
            screen.wait_for("Ask anything")
            screen.submit(f"Work on {card.path} {marker}")
            screen.wait_for("All done here.")
            stream.wait_for(card.uuid, TURN)
            screen.key("C-c")
            screen.wait_for_end()
            stream.wait_for(card.uuid, ONCE)
            assert "mdello" not in screen.seen().replace(str(world.root), "")
        (session,) = sessions_of(world, card)
        with world.terminal("-s", session) as screen:
            screen.wait_for("All done here.")
            screen.submit("Go on")
            stream.wait_for(card.uuid, [*ONCE, *TURN], session)
        stream.wait_for(card.uuid, [*ONCE, *ONCE], session)  # Its terminal was closed.
