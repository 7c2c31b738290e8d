"""The real Pi with our client, against a scripted model: what the board hears, and what the person sees."""

import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Dict, Iterator, List

import pytest

from tests.e2e import agent_cli
from tests.e2e.conftest import fetched
from tests.e2e.pi_world import PiWorld
from tests.e2e.world import Card, Json, Run, free_port, say, use, wait_until

pytestmark = pytest.mark.e2e

ONCE = ["idle", "running", "ready_for_review", "closed"]

ASKING = """\
// A person's own extension: asks things, and starts Pi's extensions anew.
export default function (pi) {
  pi.registerCommand("pick", { handler: (_, ctx) => ctx.ui.select("Pick one", ["A", "B"]) });
  pi.registerCommand("again", { handler: (_, ctx) => ctx.reload() });
  pi.on("tool_call", async (event, ctx) => {
    if (event.toolName === "bash") await ctx.ui.confirm("Run it?", event.input.command);
  });
}
"""


def edit(card: Card, path: str = "") -> Json:
    """A scripted change of a card's title."""
    name = card.path.stem
    edits = [{"oldText": f"title: {name}", "newText": f"title: {name} (done)"}]
    return use("edit", path=path or str(card.path), edits=edits)


def gate(world: PiWorld, name: str = "gate") -> Path:
    """A file that a scripted reply waits for."""
    return world.root / name


def session_of(world: PiWorld, card: Card) -> Json:
    """The one association of a card."""
    (found,) = (one for one in world.associations() if one["cardUuid"] == card.uuid)
    return found


# --- a run, and the runs after it -----------------------------------------------------------------


def test_a_prompt_an_edit_and_a_finished_turn(pi_world: PiWorld) -> None:
    """Every status in order, for the card that was named and for the one that was changed; no other."""
    named, changed, read, failed = (pi_world.card(f"{name}.md") for name in ("named", "done", "read", "no"))
    missing = use("edit", path=str(failed.path), edits=[{"oldText": "not there", "newText": "x"}])
    marker = pi_world.script("work", use("read", path=str(read.path)), missing, edit(changed), say("Ready."))
    with pi_world.stream() as stream:
        run = pi_world.pi(f"{marker} Use /tmp/x and work on {named.path}, please.")
        assert run == Run(0, "Ready.\n", "")
        stream.wait_for(named.uuid, ONCE)
        stream.wait_for(changed.uuid, ONCE[1:])
    assert "(done)" in changed.path.read_text("utf-8")
    assert set(pi_world.linked()) == {named.uuid, changed.uuid}
    one = session_of(pi_world, named)
    assert one["harness"] == "pi"
    file = Path(str(one["sessionFile"]))
    assert file.parent.parent == pi_world.agent_folder / "sessions"
    assert json.loads(file.read_text("utf-8").splitlines()[0])["id"] == one["sessionId"]


@pytest.mark.parametrize("way", ["-c", "--session"])
def test_a_continued_session_has_its_cards_again(pi_world: PiWorld, way: str) -> None:
    """Named and changed ones, from its own history, although Pi calls it a startup."""
    named, changed = pi_world.card("named.md"), pi_world.card("changed.md")
    relative = Path("..") / "board" / changed.path.name
    marker = pi_world.script("work", edit(changed, str(relative)), say("Ready."))
    pi_world.pi(f"{marker} Work on {named.path}")
    before = session_of(pi_world, named)
    pi_world.stop_companion()
    (pi_world.home / ".local/state/mdello/companion.jsonl").unlink()  # It knows of nothing any more.
    pi_world.start_companion()
    more = ["-c"] if way == "-c" else ["--session", str(before["sessionFile"])]
    with pi_world.stream() as stream:
        assert pi_world.pi(*more, "And again").code == 0
        stream.wait_for(named.uuid, ONCE, str(before["sessionId"]))
        stream.wait_for(changed.uuid, ONCE, str(before["sessionId"]))


def test_a_failed_model_is_to_be_looked_at(pi_world: PiWorld) -> None:
    """An error ends the turn as an answer does."""
    named = pi_world.card("named.md")
    error: Json = {"error": {"status": 400, "type": "invalid_request_error", "message": "No."}}
    with pi_world.stream() as stream:
        run = pi_world.pi(f"{pi_world.script('bad', error)} Work on {named.path}")
        assert run.code == 1
        stream.wait_for(named.uuid, ONCE)


def test_a_session_that_is_not_kept_has_no_file(pi_world: PiWorld) -> None:
    """--no-session: the link says nothing of a file."""
    named = pi_world.card("named.md")
    pi_world.pi("--no-session", f"Work on {named.path}")
    assert "sessionFile" not in session_of(pi_world, named)
    assert pi_world.linked() == {named.uuid: "closed"}


def test_a_proxy_in_the_environment_is_not_asked(pi_world: PiWorld) -> None:
    """Pi and its Node go through it; what we say to this machine does not."""
    named = pi_world.card("named.md")
    nobody = f"http://127.0.0.1:{free_port()}"
    proxies = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"), nobody)
    pi_world.extra_environ = {**proxies, "NODE_USE_ENV_PROXY": "1"}
    with pi_world.stream() as stream:
        pi_world.pi(f"Work on {named.path}")
        stream.wait_for(named.uuid, ONCE)


def test_a_terminated_run_is_closed(pi_world: PiWorld) -> None:
    """SIGTERM in the middle of a reply: Pi aborts the run, which settles, and ends."""
    named = pi_world.card("named.md")
    marker = pi_world.script("held", say("Late.", wait_for=str(gate(pi_world))))
    with pi_world.stream() as stream:
        process = pi_world.start(pi_world.command("-p", f"{marker} Work on {named.path}"))
        stream.wait_for(named.uuid, ["idle", "running"])
        process.send_signal(signal.SIGTERM)
        stream.wait_for(named.uuid, ONCE)
    assert pi_world.finish(process).code == 143


def test_a_killed_run_is_closed(pi_world: PiWorld) -> None:
    """Without a word of Pi: its process is gone."""
    named = pi_world.card("named.md")
    marker = pi_world.script("held", say("Late.", wait_for=str(gate(pi_world))))
    with pi_world.stream() as stream:
        process = pi_world.start(pi_world.command("-p", f"{marker} Work on {named.path}"))
        stream.wait_for(named.uuid, ["idle", "running"])
        process.kill()
        stream.wait_for(named.uuid, ["idle", "running", "closed"])


# --- over RPC -------------------------------------------------------------------------------------


def test_one_session_after_another_in_one_process(pi_world: PiWorld) -> None:
    """/new closes one and opens the next; going back opens the first again, with its card."""
    first, second = pi_world.card("first.md"), pi_world.card("second.md")
    with pi_world.stream() as stream, pi_world.rpc() as pi:
        pi.prompt(f"Work on {first.path}")
        before = pi.state()
        assert pi.ask("new_session")["success"]
        stream.wait_for(first.uuid, ONCE)
        pi.prompt(f"Work on {second.path}")
        assert pi.ask("switch_session", sessionPath=before["sessionFile"])["success"]
        stream.wait_for(second.uuid, ONCE)
        stream.wait_for(first.uuid, [*ONCE, "idle"])
        pi.prompt("Go on")
        pi.quit()
        stream.wait_for(first.uuid, ONCE * 2)
    assert session_of(pi_world, first)["sessionId"] == before["sessionId"]
    assert session_of(pi_world, second)["sessionId"] != before["sessionId"]


def test_an_aborted_run_is_to_be_looked_at(pi_world: PiWorld) -> None:
    """The person stopped it; the session goes on."""
    named = pi_world.card("named.md")
    marker = pi_world.script("held", say("Late.", wait_for=str(gate(pi_world))))
    with pi_world.stream() as stream, pi_world.rpc() as pi:
        assert pi.ask("prompt", message=f"{marker} Work on {named.path}")["success"]
        stream.wait_for(named.uuid, ["idle", "running"])
        assert pi.ask("abort")["success"]
        stream.wait_for(named.uuid, ["idle", "running", "ready_for_review"])
        gate(pi_world).touch()
        pi.prompt("Go on")
        pi.quit()
        stream.wait_for(named.uuid, [*ONCE[:3], *ONCE[1:]])


def test_a_question_to_the_person_waits(pi_world: PiWorld) -> None:
    """In the middle of a run it runs on afterwards; behind a command the session is idle."""
    named = pi_world.card("named.md")
    pi_world.extension("asking.js", ASKING)
    marker = pi_world.script("ask", use("bash", command="true"), say("Ran."))
    with pi_world.stream() as stream, pi_world.rpc() as pi:
        pi.ask("prompt", message=f"{marker} Work on {named.path}")
        asked = pi.wait_for(lambda one: one.get("method") == "confirm", "question")
        stream.wait_for(named.uuid, ["idle", "running", "waiting_for_input"])
        pi.send("extension_ui_response", **{"id": asked["id"], "confirmed": True})
        stream.wait_for(named.uuid, ["idle", "running", "waiting_for_input", "running", "ready_for_review"])
        pi.send("prompt", message="/pick")
        asked = pi.wait_for(lambda one: one.get("method") == "select", "question")
        so_far = ["idle", "running", "waiting_for_input", "running", "ready_for_review", "waiting_for_input"]
        stream.wait_for(named.uuid, so_far)
        pi.send("extension_ui_response", **{"id": asked["id"], "value": "B"})
        stream.wait_for(named.uuid, [*so_far, "idle"])


def test_a_refused_prompt_links_nothing_and_a_steering_one_does(pi_world: PiWorld) -> None:
    """Pi tells its extensions of both."""
    named, refused, steered = (pi_world.card(f"{name}.md") for name in ("named", "refused", "steered"))
    marker = pi_world.script("held", say("Late.", wait_for=str(gate(pi_world))))
    with pi_world.stream() as stream, pi_world.rpc() as pi:
        pi.ask("prompt", message=f"{marker} Work on {named.path}")
        stream.wait_for(named.uuid, ["idle", "running"])
        assert not pi.ask("prompt", message=f"And {refused.path}")["success"]
        assert pi.ask("steer", message=f"And {steered.path}")["success"]
        stream.wait_for(steered.uuid, ["running"])
        gate(pi_world).touch()
        stream.wait_for(named.uuid, ["idle", "running", "ready_for_review"])
        pi.quit()
        stream.wait_for(steered.uuid, ["running", "ready_for_review", "closed"])
    assert set(pi_world.linked()) == {named.uuid, steered.uuid}


# --- without the companion ------------------------------------------------------------------------


def test_a_companion_that_was_killed_hears_of_it_when_it_is_back(pi_world: PiWorld) -> None:
    """No new prompt is needed: the card changed meanwhile, and the turn's end."""
    named, changed = pi_world.card("named.md"), pi_world.card("changed.md")
    marker = pi_world.script("held", {**edit(changed), "wait_for": str(gate(pi_world))}, say("Ready."))
    with pi_world.rpc() as pi:
        with pi_world.stream() as stream:
            pi.ask("prompt", message=f"{marker} Work on {named.path}")
            stream.wait_for(named.uuid, ["idle", "running"])
        pi_world.stop_companion(signal.SIGKILL)
        gate(pi_world).touch()
        pi.wait_for_count("agent_settled", 1)
        pi_world.start_companion()
        with pi_world.stream() as stream:
            stream.wait_for_newest({card.uuid: "ready_for_review" for card in (named, changed)})
        with pi_world.stream() as stream:
            pi.prompt("Go on")
            pi.quit()
            for card in (named, changed):
                stream.wait_for(card.uuid, ONCE[1:])


def test_a_companion_killed_and_restarted_in_the_middle_of_a_run(pi_world: PiWorld) -> None:
    """What comes after is heard in order, as if nothing had happened."""
    named, changed = pi_world.card("named.md"), pi_world.card("changed.md")
    marker = pi_world.script("held", {**edit(changed), "wait_for": str(gate(pi_world))}, say("Ready."))
    process = pi_world.start(pi_world.command("-p", f"{marker} Work on {named.path}"))
    wait_until(lambda: pi_world.linked() == {named.uuid: "running"}, "running")
    pi_world.stop_companion(signal.SIGKILL)
    pi_world.start_companion()
    with pi_world.stream() as stream:
        gate(pi_world).touch()
        assert pi_world.finish(process) == Run(0, "Ready.\n", "")
        stream.wait_for(named.uuid, ["ready_for_review", "closed"])
        stream.wait_for(changed.uuid, ["running", "ready_for_review", "closed"])


def test_a_hanging_companion_delays_no_turn_and_catches_up(pi_world: PiWorld) -> None:
    """Turns are over while it hangs; when it goes on, it ends with the newest state."""
    named, changed = pi_world.card("named.md"), pi_world.card("changed.md")
    marker = pi_world.script("work", edit(changed), say("Ready."))
    with pi_world.rpc() as pi:
        pi.prompt(f"Work on {named.path}")
        wait_until(lambda: pi_world.linked() == {named.uuid: "ready_for_review"}, "first turn")
        pi_world.pause_companion()
        pi.prompt(f"{marker} Go on")
        pi.prompt("And on")
        pi_world.resume_companion()
        settled = {named.uuid: "ready_for_review", changed.uuid: "ready_for_review"}
        wait_until(lambda: pi_world.linked() == settled, "newest state")
        assert pi.quit() == Run(0, "", "")
    wait_until(lambda: set(pi_world.linked().values()) == {"closed"}, "closed")


def test_a_reload_while_the_companion_is_away_ends_with_the_newest(pi_world: PiWorld) -> None:
    """Pi loads our module a second time; the "closed" of the first is not said behind the second's."""
    named = pi_world.card("named.md")
    pi_world.extension("asking.js", ASKING)
    marker = pi_world.script("held", say("Late.", wait_for=str(gate(pi_world))))
    with pi_world.rpc() as pi:
        pi.prompt(f"Work on {named.path}")
        wait_until(lambda: pi_world.linked() == {named.uuid: "ready_for_review"}, "first turn")
        pi_world.stop_companion(signal.SIGKILL)
        assert pi.ask("prompt", message="/again")["success"]
        assert pi.ask("prompt", message=f"{marker} Go on")["success"]
        pi_world.start_companion()
        wait_until(lambda: pi_world.linked() == {named.uuid: "running"}, "newest state")
        with pi_world.stream() as stream:
            gate(pi_world).touch()
            stream.wait_for(named.uuid, ["ready_for_review"])
            pi.quit()
            stream.wait_for(named.uuid, ["ready_for_review", "closed"])


# --- what the person sees -------------------------------------------------------------------------

VOLATILE = {"id", "parentId", "timestamp", "responseId", "toolCallId", "cwd", "cost"}
VOLATILE |= {"durationMs", "wall_time_seconds"}
_CHANGING = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.-]+Z|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?:msg|toolu)_\d+(?:_\d+)?"
)


def plain(value: object) -> object:
    """A value of Pi's output without what differs from run to run."""
    if isinstance(value, dict):
        return {key: "..." if key in VOLATILE else plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return _CHANGING.sub("...", value) if isinstance(value, str) else value


def parsed(line: str) -> object:
    """One line of JSON mode. Of a message under way only its kind: how far it has come is chance."""
    value = json.loads(line)
    if value["type"] == "message_start":
        return (value["type"], value["message"]["role"])
    if value["type"] == "message_update":
        return (value["type"], value["assistantMessageEvent"]["type"])
    return plain(value)


def outputs(world: PiWorld, card: Card, killed: bool = False) -> List[object]:
    """Everything that the same work prints, in both forms; ``killed``: the companion, in its middle."""
    original = card.path.read_text("utf-8")
    seen: List[object] = []
    for form in (["-p"], ["--mode", "json"]):
        held = {**edit(card), "wait_for": str(gate(world))}
        marker = world.script("work", held, use("bash", command="echo hello"), say("Ready."))
        process = world.start(world.command(*form, f"{marker} Work on {card.path}"))
        if killed:
            wait_until(lambda: world.linked()[card.uuid] == "running", "running")
            world.stop_companion(signal.SIGKILL)
        gate(world).touch()
        run = world.finish(process)
        lines = run.stdout.splitlines()
        seen.append((run.code, lines if form == ["-p"] else [parsed(line) for line in lines], run.stderr))
        card.path.write_text(original, "utf-8")
        gate(world).unlink()
        if killed:
            world.start_companion()
    return seen


def test_what_pi_prints_is_the_same_with_and_without_us(pi_world: PiWorld) -> None:
    """As text and as JSON: companion running, killed in the middle, hanging, gone, and without our client."""
    card = pi_world.card("named.md")
    seen: Dict[str, List[object]] = {"running": outputs(pi_world, card)}
    seen["killed"] = outputs(pi_world, card, killed=True)
    pi_world.pause_companion()
    seen["hanging"] = outputs(pi_world, card)
    pi_world.stop_companion(signal.SIGKILL)
    seen["gone"] = outputs(pi_world, card)
    pi_world.extra_environ = {"MDELLO_COMPANION_URL": "nonsense://"}
    seen["nonsense"] = outputs(pi_world, card)
    pi_world.mdello("uninstall", "pi")
    seen["without us"] = outputs(pi_world, card)
    assert len(str(seen["without us"])) > 2000
    for name, output in seen.items():
        assert output == seen["without us"], name


@pytest.mark.usefixtures("tmux")
def test_the_terminal_stays_quiet(pi_world: PiWorld) -> None:
    """Prompts, /new and the end, with a companion that dies in the middle: no word of ours, no error."""
    first, second = pi_world.card("first.md"), pi_world.card("second.md")
    with pi_world.terminal() as screen:
        screen.wait_for("scripted")
        with pi_world.stream() as stream:
            screen.submit(f"Work on {first.path}")
            stream.wait_for(first.uuid, ONCE[:3])
            screen.submit("/new")
            stream.wait_for(first.uuid, ONCE)
            screen.submit(f"Work on {second.path}")
            stream.wait_for(second.uuid, ONCE[:3])
        pi_world.stop_companion(signal.SIGKILL)
        screen.submit("Go on")
        wait_until(lambda: screen.text().count("Done.") >= 2, "answer")
        pi_world.start_companion()
        screen.submit("And on")
        wait_until(lambda: screen.text().count("Done.") >= 3, "answer")
        screen.submit("/quit")
        screen.wait_for_end()
        screen.text()
        assert not re.search(r"ECONN|rror|nhandled|127\.0\.0\.1", screen.seen())
    wait_until(lambda: set(pi_world.linked().values()) == {"closed"}, "closed")


# --- an older Pi ----------------------------------------------------------------------------------


@pytest.fixture
def old_world(tmp_path: Path, pyz: Path, node: Path) -> Iterator[PiWorld]:
    """A person whose Pi has its old name, and fewer events."""
    with PiWorld(tmp_path / "world", pyz, node, fetched(agent_cli.old_pi)) as world:
        world.make_board()
        world.mdello("install", "pi")
        world.start_companion()
        yield world


def test_an_older_pi_is_understood(old_world: PiWorld) -> None:
    """Runs, a continued session and /new, though nothing says that a run has settled."""
    named, changed = old_world.card("named.md"), old_world.card("changed.md")
    marker = old_world.script("work", edit(changed), say("Ready."))
    with old_world.stream() as stream:
        assert old_world.pi(f"{marker} Work on {named.path}") == Run(0, "Ready.\n", "")
        stream.wait_for(named.uuid, ONCE)
        stream.wait_for(changed.uuid, ONCE[1:])
        with old_world.rpc("-c") as pi:
            stream.wait_for(changed.uuid, [*ONCE[1:], "idle"])
            pi.ask("prompt", message="Go on")
            stream.wait_for(changed.uuid, [*ONCE[1:], *ONCE[:3]])
            assert pi.ask("new_session")["success"]
            stream.wait_for(named.uuid, ONCE * 2)
            stream.wait_for(changed.uuid, [*ONCE[1:], *ONCE])


def test_our_client_outlives_no_process(pi_world: PiWorld) -> None:
    """With a companion that hangs, Pi's end takes the one bounded wait and no more."""
    named = pi_world.card("named.md")
    pi_world.pause_companion()
    process = pi_world.start(pi_world.command("-p", f"Work on {named.path}"))
    try:
        assert process.wait(20) == 0
    except subprocess.TimeoutExpired:
        pytest.fail("Pi does not end")
    pi_world.resume_companion()
