"""The real CLI in its terminal UI, in a tmux of its own: dialogs, background work, quiet screens."""

import re
import uuid
from pathlib import Path
from typing import List

import pytest

from tests.e2e.claude_world import ClaudeWorld
from tests.e2e.conftest import MakeWorld
from tests.e2e.screen import Screen
from tests.e2e.world import Card, Json, card_text, say, use, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("tmux")]

QUESTION = "Which colour shall it have?"
ASK: Json = use(
    "AskUserQuestion",
    questions=[
        {
            "question": QUESTION,
            "header": "Colour",
            "options": [{"label": "Red", "description": "Warm"}, {"label": "Blue", "description": "Cool"}],
            "multiSelect": False,
        }
    ],
)
CHOICES = "Enter to select"
RUNNING = re.compile(r"running \w+ hooks?\b", re.IGNORECASE)
CONFIRM = "Do you want to proceed?"


def leave(screen: Screen) -> None:
    """End the session as a person does."""
    screen.submit("/exit")
    screen.wait_for_end()


def test_statuses_of_a_session_with_a_question_and_of_its_resume(world: ClaudeWorld) -> None:
    """Prompt, Write of a second card, question, end, resume: both cards show every step in order."""
    named, written = world.card("named.md"), Card(world.board / "written.md", str(uuid.uuid4()))
    write = use("Write", file_path=str(written.path), content=card_text(written.uuid, "written"))
    marker = world.script("ask", write, ASK, say("Colour taken."))
    session = str(uuid.uuid4())
    expected = ["running", "waiting_for_input", "running", "ready_for_review", "closed"]
    with world.stream() as stream:
        with world.terminal("--session-id", session) as screen:
            screen.wait_for_prompt()
            screen.submit(f"{marker} Work on {named.path}")
            screen.wait_for(QUESTION)
            stream.wait_for(named.uuid, expected[:2], session)
            screen.answer(CHOICES, "1")
            screen.wait_for("Colour taken.")
            stream.wait_for(named.uuid, expected[:4], session)
            leave(screen)
        stream.wait_for(named.uuid, expected, session)
        stream.wait_for(written.uuid, expected, session)

        expected += ["idle", "running", "ready_for_review", "closed"]
        with world.terminal("--resume", session) as screen:
            screen.wait_for_prompt()
            stream.wait_for(named.uuid, expected[:6], session)
            screen.submit(f"{world.script('more', say('More done.'))} Go on")
            screen.wait_for("More done.")
            stream.wait_for(named.uuid, expected[:8], session)
            leave(screen)
            assert lines_about_hooks(screen.seen()) == []
        stream.wait_for(named.uuid, expected, session)
        stream.wait_for(written.uuid, expected, session)


def test_a_permission_asked_and_granted(world: ClaudeWorld) -> None:
    """Waiting while the dialog is open, running as soon as the tool was allowed and has run."""
    named, written = world.card("named.md"), Card(world.board / "written.md", str(uuid.uuid4()))
    write = use("Write", file_path=str(written.path), content=card_text(written.uuid, "written"))
    marker = world.script("permit", write, say("Written."))
    dialog = "Do you want to create written.md?"
    with world.stream() as stream, world.terminal(mode="default") as screen:
        screen.wait_for_prompt()
        screen.submit(f"{marker} Work on {named.path}")
        screen.wait_for(dialog)
        stream.wait_for(named.uuid, ["running", "waiting_for_input"])
        screen.answer(dialog, "1")
        screen.wait_for("● Written.")
        stream.wait_for(named.uuid, ["running", "waiting_for_input", "running", "ready_for_review"])
        stream.wait_for(written.uuid, ["running", "ready_for_review"])


def test_closing_the_window_closes_the_session(world: ClaudeWorld, tmp_path: Path) -> None:
    """The terminal goes away in the middle of a turn; the CLI still tells its end."""
    named = world.card("named.md")
    marker = world.script("held", say("Too late.", wait_for=str(tmp_path / "never")))
    with world.stream() as stream:
        with world.terminal() as screen:
            screen.wait_for_prompt()
            screen.submit(f"{marker} Work on {named.path}")
            stream.wait_for(named.uuid, ["running"])
        stream.wait_for(named.uuid, ["running", "closed"])


def test_a_compaction_changes_nothing(world: ClaudeWorld) -> None:
    """/compact is work, and ends as it began; the screen says nothing of hooks."""
    named = world.card("named.md")
    with world.stream() as stream, world.terminal() as screen:
        screen.wait_for_prompt()
        screen.submit(f"{world.script('first', say('First done.'))} Work on {named.path}")
        screen.wait_for("First done.")
        stream.wait_for(named.uuid, ["running", "ready_for_review"])
        screen.submit("/compact")
        screen.wait_for("Compacted")
        wait_until(lambda: stream.statuses(named.uuid)[-1] == "ready_for_review", "rest")
        before = stream.statuses(named.uuid)
        # Whether it was seen at work depends on how long that took.
        assert before in (["running", "ready_for_review"], ["running", "ready_for_review"] * 2)
        screen.submit(f"{world.script('second', say('Second done.'))} Go on")
        screen.wait_for("Second done.")
        stream.wait_for(named.uuid, [*before, "running", "ready_for_review"])
        assert lines_about_hooks(screen.seen()) == []


def test_a_refused_permission_links_no_card(world: ClaudeWorld) -> None:
    """The CLI says nothing after a refusal; its own record does. The next prompt goes on as ever."""
    named, refused = world.card("named.md"), Card(world.board / "refused.md", str(uuid.uuid4()))
    write = use("Write", file_path=str(refused.path), content=card_text(refused.uuid, "refused"))
    marker = world.script("permit", write, say("Written."))
    dialog = "Do you want to create refused.md?"
    with world.stream() as stream, world.terminal(mode="default") as screen:
        screen.wait_for_prompt()
        screen.submit(f"{marker} Work on {named.path}")
        screen.answer(dialog, "Escape")
        stream.wait_for(named.uuid, ["running", "waiting_for_input", "ready_for_review"])
        screen.wait_for_prompt()
        screen.submit(f"{world.script('other', say('Other way.'))} Then do it differently")
        screen.wait_for("Other way.")
        expected = ["running", "waiting_for_input", "ready_for_review", "running", "ready_for_review"]
        stream.wait_for(named.uuid, expected)
        assert stream.statuses(refused.uuid) == []


def test_a_prompt_queued_during_a_turn(world: ClaudeWorld, tmp_path: Path) -> None:
    """Its card is linked at once, and its turn runs although it has no prompt event of its own."""
    first, second, release = world.card("first.md"), world.card("second.md"), tmp_path / "release"
    written = Card(world.board / "written.md", str(uuid.uuid4()))
    write = use("Write", file_path=str(written.path), content=card_text(written.uuid, "written"))
    one = world.script("one", say("First end.", wait_for=str(release)))
    two = world.script("two", write, say("Second end."))
    with world.stream() as stream, world.terminal() as screen:
        screen.wait_for_prompt()
        screen.submit(f"{one} Work on {first.path}")
        stream.wait_for(first.uuid, ["running"])
        screen.submit(f"{two} Then on {second.path}")
        stream.wait_for(second.uuid, ["running"])
        release.touch()
        screen.wait_for("Second end.")
        both_turns = ["running", "ready_for_review", "running", "ready_for_review"]
        stream.wait_for(first.uuid, both_turns)
        stream.wait_for(second.uuid, both_turns)
        stream.wait_for(written.uuid, ["running", "ready_for_review"])


def start_background_agent(world: ClaudeWorld, screen: Screen, card: Card, release: Path) -> None:
    """A turn that ends while the subagent it started still waits for its model."""
    world.script("inner", use("Bash", {"wait_for": str(release)}, command="ls /"), say("Inner end."))
    agent = use(
        "Agent",
        subagent_type="general-purpose",
        description="Look around",
        prompt="[[script:inner]] Look",
        run_in_background=True,
    )
    marker = world.script("outer", agent, say("Started it."), say("It came back."))
    screen.wait_for_prompt()
    screen.submit(f"{marker} Work on {card.path}")
    screen.wait_for("Started it.")
    world.wait_for_event("Stop")


def test_a_background_subagent_that_outlives_stop(world: ClaudeWorld, tmp_path: Path) -> None:
    """Not ready for review before it is done; its permission dialog after Stop counts as waiting."""
    named, release = world.card("named.md"), tmp_path / "release"
    with world.stream() as stream, world.terminal(mode="default") as screen:
        start_background_agent(world, screen, named, release)
        stream.wait_for(named.uuid, ["running"])
        release.touch()
        screen.wait_for(CONFIRM)
        stream.wait_for(named.uuid, ["running", "waiting_for_input"])
        screen.answer(CONFIRM, "1")
        screen.wait_for("It came back.")
        stream.wait_for(named.uuid, ["running", "waiting_for_input", "running", "ready_for_review"])


def screens_without_companion(world: ClaudeWorld) -> str:
    """All that a person sees of a session with tools while no companion runs, end included."""
    written = Card(world.board / "written.md", str(uuid.uuid4()))
    write = use("Write", file_path=str(written.path), content=card_text(written.uuid, "written"))
    marker = world.script("quiet", write, ASK, say("Colour taken."))
    with world.terminal() as screen:
        screen.wait_for_prompt()
        screen.submit(f"{marker} Work on {world.card('named.md').path}")
        screen.answer(CHOICES, "1")
        screen.wait_for("Colour taken.")
        leave(screen)
        screen.text()
        return screen.seen()


def lines_about_hooks(text: str) -> List[str]:
    """Screen lines that speak of hooks, but for the spinner, which tells that one is running."""
    return [line for line in text.splitlines() if re.search("hook", RUNNING.sub("", line), re.IGNORECASE)]


def test_command_transport_is_quiet_while_the_companion_is_down(make_world: MakeWorld) -> None:
    """No line of hook error, from the first prompt to the end of the session."""
    world = make_world()
    world.mdello("install", "claude", "--transport", "command")
    assert lines_about_hooks(screens_without_companion(world)) == []


def test_http_transport_shows_its_errors_while_the_companion_is_down(make_world: MakeWorld) -> None:
    """The counter-check of the test above: with http such lines are there to be seen."""
    world = make_world()
    world.mdello("install", "claude", "--transport", "http")
    assert lines_about_hooks(screens_without_companion(world)) != []


def test_statuses_over_command_transport_keep_their_order(make_world: MakeWorld) -> None:
    """Hooks that nobody waits for still arrive in the order in which they fired."""
    world = make_world()
    world.mdello("install", "claude", "--transport", "command")
    world.start_companion()
    named = world.card("named.md")
    marker = world.script("ask", ASK, say("Colour taken."))
    with world.stream() as stream, world.terminal() as screen:
        screen.wait_for_prompt()
        screen.submit(f"{marker} Work on {named.path}")
        screen.answer(CHOICES, "1")
        screen.wait_for("Colour taken.")
        leave(screen)
        stream.wait_for(named.uuid, ["running", "waiting_for_input", "running", "ready_for_review", "closed"])


def test_clear_leaves_the_cards_with_the_old_session(world: ClaudeWorld) -> None:
    """/clear closes the session; the new one begins without its cards."""
    named = world.card("named.md")
    with world.stream() as stream, world.terminal() as screen:
        screen.wait_for_prompt()
        screen.submit(f"{world.script('first', say('First done.'))} Work on {named.path}")
        screen.wait_for("First done.")
        screen.submit("/clear")
        stream.wait_for(named.uuid, ["running", "ready_for_review", "closed"])
        screen.submit(f"{world.script('second', say('Second done.'))} Something else")
        screen.wait_for("Second done.")
        world.wait_for_event("Stop")
        wait_until(lambda: world.linked() == {named.uuid: "closed"}, "the closed card alone")
