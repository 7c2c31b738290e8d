"""The status of real sessions where no event tells it: Esc, kill -9, a refusal, a second terminal.

Each case waits for the status on ``/events`` and looks which rule gave it. How long the companion took
stands in the test's output (``-s``).
"""

import json
import os
import signal
import sys
import time
import uuid
from pathlib import Path
from typing import Dict, List
from urllib.parse import quote

import pytest

from tests.e2e.claude_world import ClaudeWorld
from tests.e2e.conftest import MakeWorld
from tests.e2e.stream import EventStream
from tests.e2e.test_claude_terminal import ASK, CHOICES, CONFIRM, QUESTION, leave, start_background_agent
from tests.e2e.world import Card, Json, card_text, say, use, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("tmux")]


def rule(world: ClaudeWorld, session: str) -> str:
    """The rule of the session's verdict."""
    found = world.get(f"/sessions/claude/{quote(session)}")
    assert isinstance(found, dict)
    return str(found["rule"])


def wait_for_rule(world: ClaudeWorld, session: str, expected: str) -> None:
    """Wait until that rule decides."""
    wait_until(lambda: rule(world, session) == expected, f"rule {expected}")


def only_session(world: ClaudeWorld) -> str:
    """The id of the one session that there is."""
    (found,) = {str(one["sessionId"]) for one in world.associations()}
    return found


def expect(stream: EventStream, card: Card, expected: List[str], what: str) -> None:
    """Wait for these statuses of a card, and print how long that took."""
    began = time.monotonic()
    stream.wait_for(card.uuid, expected)
    print(f"\n{what}: {expected[-1]} after {time.monotonic() - began:.2f} s")


def held(world: ClaudeWorld, name: str) -> str:
    """A turn whose model never answers: the script's marker."""
    return world.script(name, say("Too late.", wait_for=str(world.root / "never")))


def pids(world: ClaudeWorld) -> List[int]:
    """The agent's processes, by its own records."""
    return [int(path.stem) for path in (world.home / ".claude" / "sessions").glob("*.json")]


def test_escape_while_the_model_answers(world: ClaudeWorld) -> None:
    """No event follows: the agent's own record tells."""
    card = world.card("named.md")
    with world.stream() as stream, world.terminal() as screen:
        screen.wait_for_prompt()
        screen.submit(f"{held(world, 'held')} Work on {card.path}")
        stream.wait_for(card.uuid, ["running"])
        wait_for_rule(world, only_session(world), "record_busy")
        screen.key("Escape")
        expect(stream, card, ["running", "ready_for_review"], "Esc in an answer")
        assert rule(world, only_session(world)) == "interrupted"
        screen.submit(f"{world.script('more', say('More done.'))} Go on")
        screen.wait_for("More done.")
        stream.wait_for(card.uuid, ["running", "ready_for_review"] * 2)


def test_escape_while_a_tool_runs(world: ClaudeWorld) -> None:
    """As above, in the middle of a command."""
    card = world.card("named.md")
    wait = f"while ! test -e {world.root / 'never'}; do sleep 0.1; done"
    marker = world.script("slow", use("Bash", command=wait), say("Slept."))
    with world.stream() as stream, world.terminal("--allowedTools", "Bash") as screen:
        screen.wait_for_prompt()
        screen.submit(f"{marker} Work on {card.path}")
        stream.wait_for(card.uuid, ["running"])
        world.wait_for_event("PreToolUse")
        wait_for_rule(world, only_session(world), "record_busy")
        screen.key("Escape")
        expect(stream, card, ["running", "ready_for_review"], "Esc in a tool")


@pytest.mark.parametrize("busy", [True, False], ids=["in mid-turn", "at rest"])
def test_kill_9(world: ClaudeWorld, busy: bool) -> None:
    """Nothing is told, and the agent's record stays as it was."""
    card = world.card("named.md")
    marker = held(world, "held") if busy else world.script("quick", say("Done."))
    before = ["running"] if busy else ["running", "ready_for_review"]
    with world.stream() as stream, world.terminal() as screen:
        screen.wait_for_prompt()
        screen.submit(f"{marker} Work on {card.path}")
        stream.wait_for(card.uuid, before)
        session = only_session(world)
        (pid,) = pids(world)
        os.kill(pid, signal.SIGKILL)
        expect(stream, card, [*before, "closed"], "kill -9")
        assert rule(world, session) == "process_gone"


def test_kill_9_of_the_oldest_version(make_world: MakeWorld, oldest_cli: Path) -> None:
    """As the current one."""
    world = make_world(cli=oldest_cli)
    world.mdello("install", "claude")
    world.start_companion()
    card = world.card("named.md")
    with world.stream() as stream, world.terminal() as screen:
        screen.wait_for_prompt()
        screen.submit(f"{held(world, 'held')} Work on {card.path}")
        stream.wait_for(card.uuid, ["running"])
        wait_for_rule(world, only_session(world), "record_busy")
        (pid,) = pids(world)
        os.kill(pid, signal.SIGKILL)
        expect(stream, card, ["running", "closed"], "kill -9 of the oldest")


def test_control_c_twice(world: ClaudeWorld) -> None:
    """In mid-turn: the first stops the turn, the second leaves."""
    card = world.card("named.md")
    with world.stream() as stream, world.terminal() as screen:
        screen.wait_for_prompt()
        screen.submit(f"{held(world, 'held')} Work on {card.path}")
        stream.wait_for(card.uuid, ["running"])
        wait_for_rule(world, only_session(world), "record_busy")
        screen.key("C-c")
        expect(stream, card, ["running", "ready_for_review"], "Ctrl-C")
        screen.key("C-c")
        screen.key("C-c")
        expect(stream, card, ["running", "ready_for_review", "closed"], "Ctrl-C twice")


def test_a_refused_permission_and_a_refused_question(world: ClaudeWorld) -> None:
    """The person has dealt with it, and no event says so."""
    card, refused = world.card("named.md"), Card(world.board / "refused.md", str(uuid.uuid4()))
    write = use("Write", file_path=str(refused.path), content=card_text(refused.uuid, "refused"))
    marker = world.script("permit", write, say("Written."))
    expected = ["running", "waiting_for_input"]
    with world.stream() as stream, world.terminal(mode="default") as screen:
        screen.wait_for_prompt()
        screen.submit(f"{marker} Work on {card.path}")
        stream.wait_for(card.uuid, expected)
        screen.answer("Do you want to create refused.md?", "Escape")
        expected += ["ready_for_review"]
        expect(stream, card, expected, "a refused permission")
        assert rule(world, only_session(world)) == "interrupted"
        screen.submit(f"{world.script('ask', ASK, say('Colour taken.'))} Ask me")
        screen.wait_for(QUESTION)
        expected += ["running", "waiting_for_input"]
        stream.wait_for(card.uuid, expected)
        screen.answer(CHOICES, "Escape")
        expected += ["ready_for_review"]
        expect(stream, card, expected, "a refused question")


def test_a_granted_tool_that_runs_long_is_at_work(world: ClaudeWorld, tmp_path: Path) -> None:
    """Between the answer and the tool's end no event comes; it does not wait for the person any more."""
    card, release = world.card("named.md"), tmp_path / "release"
    command = f"touch {tmp_path / 'begun'}; while ! test -e {release}; do sleep 0.1; done"
    marker = world.script("slow", use("Bash", command=command), say("Waited."))
    with world.stream() as stream, world.terminal(mode="default") as screen:
        screen.wait_for_prompt()
        screen.submit(f"{marker} Work on {card.path}")
        stream.wait_for(card.uuid, ["running", "waiting_for_input"])
        screen.answer(CONFIRM, "1")
        expect(stream, card, ["running", "waiting_for_input", "running"], "a permission granted")
        assert rule(world, only_session(world)) == "record_busy"
        release.touch()
        screen.wait_for("Waited.")
        stream.wait_for(card.uuid, ["running", "waiting_for_input", "running", "ready_for_review"])


def test_two_parallel_tools_of_which_one_waits(world: ClaudeWorld, tmp_path: Path) -> None:
    """As long as its dialog is open, whatever the other one does."""
    card, marker_file = world.card("named.md"), tmp_path / "ran"
    both: Json = {
        "blocks": [
            {"text": "Two at once."},
            {"tool": "Read", "input": {"file_path": str(card.path)}},
            {"tool": "Bash", "input": {"command": f"touch {marker_file}"}},
        ]
    }
    marker = world.script("both", both, say("Both done."))
    with world.stream() as stream, world.terminal(mode="default") as screen:
        screen.wait_for_prompt()
        screen.submit(f"{marker} Work on {card.path}")
        screen.wait_for(CONFIRM)
        expect(stream, card, ["running", "waiting_for_input"], "one of two waits")
        wait_for_rule(world, only_session(world), "record_waiting")
        assert stream.statuses(card.uuid) == ["running", "waiting_for_input"]
        screen.answer(CONFIRM, "1")
        screen.wait_for("Both done.")
        stream.wait_for(card.uuid, ["running", "waiting_for_input", "running", "ready_for_review"])


def test_a_background_agent_is_no_end_of_work(world: ClaudeWorld, tmp_path: Path) -> None:
    """After the main Stop the agent's record may say idle; the session works on until its agent is back."""
    card, release = world.card("named.md"), tmp_path / "release"
    with world.stream() as stream, world.terminal(mode="acceptEdits") as screen:
        start_background_agent(world, screen, card, release)
        stream.wait_for(card.uuid, ["running"])
        time.sleep(3.0)  # Long enough for a wrong verdict to show.
        print(f"\nbehind Stop: {rule(world, only_session(world))}")
        assert stream.statuses(card.uuid) == ["running"]
        release.touch()
        screen.answer(CONFIRM, "1")
        screen.wait_for("It came back.")
        assert stream.statuses(card.uuid)[-1:] != ["closed"]
        wait_until(lambda: stream.statuses(card.uuid)[-1] == "ready_for_review", "end of work")


def test_clear_and_compact(world: ClaudeWorld) -> None:
    """A cleared session is closed and stays so; a compaction ends as it began."""
    card = world.card("named.md")
    with world.stream() as stream, world.terminal() as screen:
        screen.wait_for_prompt()
        screen.submit(f"{world.script('first', say('First done.'))} Work on {card.path}")
        screen.wait_for("First done.")
        stream.wait_for(card.uuid, ["running", "ready_for_review"])
        session = only_session(world)
        screen.submit("/compact")
        screen.wait_for("Compacted")
        wait_until(lambda: stream.statuses(card.uuid)[-1] == "ready_for_review", "rest after /compact")
        screen.submit("/clear")
        wait_until(lambda: stream.statuses(card.uuid)[-1] == "closed", "end by /clear")
        time.sleep(3.0)  # Longer than a process may outlive its end.
        assert stream.statuses(card.uuid)[-1] == "closed"
        assert rule(world, session) in ("ended", "left")


def test_resumed_in_a_second_terminal(world: ClaudeWorld) -> None:
    """One session in two processes: it is closed when both have ended."""
    card, session = world.card("named.md"), str(uuid.uuid4())
    with world.stream() as stream, world.terminal("--session-id", session) as first:
        first.wait_for_prompt()
        first.submit(f"{world.script('one', say('One done.'))} Work on {card.path}")
        first.wait_for("One done.")
        stream.wait_for(card.uuid, ["running", "ready_for_review"])
        with world.terminal("--resume", session) as second:
            second.wait_for_prompt()
            wait_until(lambda: len(pids(world)) == 2, "two records")
            leave(second)
            wait_until(lambda: len(pids(world)) == 1, "one record")
        wait_until(lambda: stream.statuses(card.uuid)[-1] == "ready_for_review", "the other terminal")
        print(f"\n{stream.statuses(card.uuid)}")
        leave(first)
        wait_until(lambda: stream.statuses(card.uuid)[-1] == "closed", "the end")


def test_killed_and_ended_while_the_companion_was_away(world: ClaudeWorld) -> None:
    """Its first snapshot tells what is true now."""
    card = world.card("named.md")
    with world.terminal() as screen:
        screen.wait_for_prompt()
        screen.submit(f"{held(world, 'held')} Work on {card.path}")
        wait_until(lambda: world.linked() == {card.uuid: "running"}, "the link")
        (pid,) = pids(world)
        world.stop_companion(signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
        screen.wait_for_end()
        world.start_companion()
        assert world.linked() == {card.uuid: "closed"}


POLICIES: Dict[str, Json] = {
    "disableAllHooks": {"disableAllHooks": True},
    "allowedHttpHookUrls": {"allowedHttpHookUrls": []},
    "the plugin is disabled": {"enabledPlugins": {"mdello-companion@skills-dir": False}},
}
"""What doctor says, by what stands in the settings."""


def work_without_hooks(world: ClaudeWorld) -> None:
    """A session with a Write, a question and an end, all of which must show on both cards."""
    named, written = world.card("named.md"), Card(world.board / "written.md", str(uuid.uuid4()))
    write = use("Write", file_path=str(written.path), content=card_text(written.uuid, "written"))
    marker = world.script("ask", write, ASK, say("Colour taken."))
    with world.stream() as stream, world.terminal() as screen:
        screen.wait_for_prompt()
        screen.submit(f"{marker} Work on {named.path}")
        screen.wait_for(QUESTION)
        stream.wait_for_newest({named.uuid: "waiting_for_input", written.uuid: "waiting_for_input"})
        screen.answer(CHOICES, "1")
        screen.wait_for("Colour taken.")
        stream.wait_for_newest({named.uuid: "ready_for_review", written.uuid: "ready_for_review"})
        leave(screen)
        stream.wait_for_newest({named.uuid: "closed", written.uuid: "closed"})


@pytest.mark.parametrize("policy", POLICIES)
def test_hooks_switched_off(world: ClaudeWorld, policy: str) -> None:
    """Sessions and their cards still appear, with their statuses; doctor names the policy and its file."""
    settings = world.home / ".claude" / "settings.json"
    settings.write_text(json.dumps(POLICIES[policy]), "utf-8")
    work_without_hooks(world)
    doctor = world.mdello("doctor", code=None).stdout
    assert policy in doctor and str(settings) in doctor, doctor


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may lay a folder over /etc, for one process")
def test_hooks_switched_off_by_an_organisation(make_world: MakeWorld, claude_cli: Path) -> None:
    """The same by a managed file, which the agent and doctor find in /etc of a mount namespace of theirs."""
    world = make_world()
    managed = "/etc/claude-code/managed-settings.json"
    layers = {name: world.root / f"etc {name}" for name in ("upper", "work")}
    for folder in layers.values():
        folder.mkdir()
    options = f"lowerdir=/etc,upperdir={layers['upper']},workdir={layers['work']}"
    wrapper = world.root / "managed"
    wrapper.write_text(
        "#!/bin/sh\n"
        "exec unshare -m sh -euc '\n"
        f'  mount -t overlay overlay -o "{options}" /etc\n'
        "  mkdir -p /etc/claude-code\n"
        f'  echo "{{\\"allowManagedHooksOnly\\": true}}" >{managed}\n'
        '  exec "$@"\n'
        '\' sh "$@"\n'
    )
    wrapper.chmod(0o755)
    agent = world.root / "claude"
    agent.write_text(f'#!/bin/sh\nexec "{wrapper}" "{claude_cli}" "$@"\n')
    agent.chmod(0o755)
    world.cli = agent
    world.mdello("install", "claude")
    world.start_companion()
    work_without_hooks(world)
    doctor = world.run(str(wrapper), sys.executable, str(world.pyz), "doctor").stdout
    assert "allowManagedHooksOnly" in doctor and managed in doctor, doctor
