"""The real Codex with our hooks: statuses as they happen, and the same links from its rollouts."""

import json
import signal

import pytest

from tests.e2e.codex_world import CodexServer, CodexWorld, patch_of
from tests.e2e.test_backfill import assert_the_same, read_again
from tests.e2e.world import Json, say, wait_until

pytestmark = pytest.mark.e2e

CHANGE = ("@@", "-column: todo", "+column: done")
ASKED = ["running", "waiting_for_input", "running"]


def call(tool: str, **arguments: object) -> Json:
    """A scripted call of one of the tools for agents."""
    return {"blocks": [{"tool": tool, "space": "collaboration", "input": arguments}]}


def shell(command: str) -> Json:
    """A scripted shell command."""
    script = f"text(JSON.stringify(await tools.exec_command({{cmd: {json.dumps(command)}}})));"
    return {"blocks": [{"tool": "exec", "input": script}]}


def test_a_run_links_what_it_names_and_changes(codex_world: CodexWorld) -> None:
    """From the prompt to the session's end. A sub-agent's edit is its session's; a patch that fails
    links nothing; backfill finds the same, compressed too."""
    world = codex_world
    named, patched, moved, failed, agents, typed = (
        world.card(f"{name}.md") for name in ("named", "patched", "moved", "failed", "agents", "typed")
    )
    change = "\n".join(CHANGE)
    kid = world.script("kid", patch_of(f"*** Update File: {agents.path}", *CHANGE), say("Ok."))
    target = moved.path.with_name("new place.md")
    work = world.script(
        "work",
        patch_of(f"*** Update File: ../board/{patched.path.name}", *CHANGE),
        patch_of(f"*** Update File: {moved.path}", f"*** Move to: {target}", *CHANGE),
        patch_of(f"*** Update File: {failed.path}", "@@", "-not there", "+x"),
        shell(
            f"apply_patch <<'E'\n*** Begin Patch\n*** Update File: {typed.path}\n{change}\n*** End Patch\nE"
        ),
        call("spawn_agent", task_name="kid", message=f"{kid} {failed.path}"),
        call("wait_agent", timeout_ms=10_000),
        say("Ready."),
    )
    with world.stream() as stream:
        done = world.codex(f"{work} Work on {named.path}, please.")
        assert done.code == 0 and '"Ready."' in done.stdout, done
        stream.wait_for(named.uuid, ["running", "ready_for_review", "closed"])
    for card in (patched.path, target, agents.path, typed.path):
        assert "column: done" in card.read_text("utf-8")
    told = assert_the_same(world, "codex", [named, patched, moved, agents, typed])
    assert told["incomplete"] is False
    assert [each["reason"] for each in told["skipped"]] == ["1 sub-agent logs: no sessions of their own"]
    assert {one["harness"] for one in world.associations()} == {"codex"}
    for rollout in world.folder.rglob("rollout-*.jsonl"):
        if world.run("zstd", "-q", "--rm", str(rollout)).code:
            pytest.skip("no zstd")
    told = read_again(world, "codex")
    assert (told["incomplete"], told["added"], told["unknown"]) == (False, 5, {})


def test_what_is_not_trusted_is_not_run(codex_world: CodexWorld) -> None:
    """Doctor says so; with the user's trust in each of our hooks it says nothing, and they run."""
    card = codex_world.card("a.md")
    assert "Say /hooks in Codex" in codex_world.mdello("doctor", code=None).stdout
    assert codex_world.run_in(codex_world.command(f"see {card.path}"), codex_world.project).code == 0
    assert codex_world.associations() == []
    assert len(codex_world.trust()) == 9
    assert "Say /hooks" not in codex_world.mdello("doctor", code=None).stdout
    assert codex_world.run_in(codex_world.command(f"see {card.path}"), codex_world.project).code == 0
    wait_until(lambda: codex_world.linked() == {card.uuid: "closed"}, "link")


def test_waiting_interrupting_forking_and_resuming(codex_world: CodexWorld) -> None:
    """A permission is waited for until its call ends; an interrupt ends the work; a fork has the cards
    of what it continues."""
    world = codex_world
    named, asked, later = (world.card(f"{name}.md") for name in ("named", "asked", "later"))
    world.trust()
    ask = world.script("ask", patch_of(f"*** Update File: {asked.path}", *CHANGE), say("Ok."))
    hold = world.script("hold", say("Late.", wait_for=str(world.root / "never")))
    limits = {"cwd": str(world.project), "approvalPolicy": "untrusted", "sandbox": "read-only"}
    with world.stream() as stream, CodexServer(world) as server:
        thread = server.ask("thread/start", **limits)["thread"]["id"]

        def prompt(text: str) -> str:
            told = server.ask("turn/start", threadId=thread, input=[{"type": "text", "text": text}])
            return str(told["turn"]["id"])

        prompt(f"{ask} see {named.path}")
        request = server.wait_for("item/fileChange/requestApproval")
        stream.wait_for(named.uuid, ASKED[:2])
        server.send({"id": request["id"], "result": {"decision": "accept"}})
        server.wait_for("turn/completed")
        stream.wait_for(named.uuid, [*ASKED, "ready_for_review"])
        turn = prompt(f"{hold} go on")
        stream.wait_for(named.uuid, [*ASKED, "ready_for_review", "running"])
        server.ask("turn/interrupt", threadId=thread, turnId=turn)
        stream.wait_for(named.uuid, [*ASKED, "ready_for_review", "running", "ready_for_review"])
        thread = fork = server.ask("thread/fork", threadId=thread)["thread"]["id"]
        prompt(f"{world.script('more', say('Ok.'))} see {later.path}")
        server.wait_for("turn/completed")
        wait_until(lambda: {named.uuid, asked.uuid, later.uuid} <= of_session(world, fork), "fork's cards")
    wait_until(lambda: set(world.linked().values()) == {"closed"}, "end")
    assert_the_same(world, "codex", [named, asked, later])


def of_session(world: CodexWorld, session_id: str) -> "set[str]":
    """The cards of one session."""
    return {str(one["cardUuid"]) for one in world.associations() if one["sessionId"] == session_id}


def test_a_killed_codex_closes_its_session(codex_world: CodexWorld) -> None:
    """Its hooks name its process."""
    card = codex_world.card("a.md")
    marker = codex_world.script("hold", say("Late.", wait_for=str(codex_world.root / "never")))
    command = codex_world.command("--dangerously-bypass-hook-trust", f"{marker} see {card.path}")
    process = codex_world.start(command)
    wait_until(lambda: codex_world.linked() == {card.uuid: "running"}, "link")
    process.send_signal(signal.SIGKILL)
    wait_until(lambda: codex_world.linked() == {card.uuid: "closed"}, "end")


def test_a_failed_turn_is_seen(codex_world: CodexWorld) -> None:
    """No hook tells of it; the end of the process does."""
    card = codex_world.card("a.md")
    error: Json = {"error": {"status": 400, "type": "invalid_request_error", "message": "no"}}
    marker = codex_world.script("fail", error)
    assert codex_world.codex(f"{marker} see {card.path}").code == 1
    wait_until(lambda: codex_world.linked() == {card.uuid: "closed"}, "end")
    assert json.loads((codex_world.folder / "hooks.json").read_text("utf-8"))["hooks"]
