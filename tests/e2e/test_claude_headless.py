"""Real ``claude -p`` sessions against a scripted model: what the companion makes of them."""

import json
import os
import shutil
import signal
import sys
import time
import uuid
from pathlib import Path
from typing import Dict, List

import pytest

from companion.core.clock import parse_iso
from tests.e2e.claude_world import ClaudeWorld
from tests.e2e.conftest import MakeWorld
from tests.e2e.world import Card, Json, Run, card_text, say, use, wait_until

pytestmark = pytest.mark.e2e

ONE_RUN = ["running", "ready_for_review", "closed"]
RESUMED_RUN = ["idle", "running", "ready_for_review", "closed"]

VOLATILE = {"session_id", "uuid"}
"""Keys of the CLI's JSON result that differ from run to run; so do those that end in ``_ms``."""


def new_card(world: ClaudeWorld, name: str) -> Card:
    """A card that does not exist yet."""
    return Card(world.board / name, str(uuid.uuid4()))


def write_step(card: Card, path: str = "") -> Json:
    """The model writes that card, with its uuid."""
    return use("Write", file_path=path or str(card.path), content=card_text(card.uuid, card.path.stem))


def stable(run: Run) -> Json:
    """The CLI's JSON result without what differs between any two runs."""
    return {k: v for k, v in run.json().items() if k not in VOLATILE and not k.endswith("_ms")}


def log_lines(world: ClaudeWorld, card_uuid: str) -> List[Dict[str, str]]:
    """The companion's log lines of one card."""
    log = world.home / ".local/state/mdello/companion.jsonl"
    records = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    return [record for record in records if record.get("cardUuid") == card_uuid]


@pytest.mark.parametrize("transport", ["http", "command"])
def test_a_prompt_and_a_write_link_their_cards(make_world: MakeWorld, transport: str) -> None:
    """Either transport: the named card and the written card follow the session to its end."""
    world = make_world()
    world.mdello("install", "claude", "--transport", transport)
    world.start_companion()
    named, written = world.card("named.md"), new_card(world, "written.md")
    marker = world.script("write", write_step(written), say("Written."))
    session = str(uuid.uuid4())
    with world.stream() as stream:
        run = world.headless(f"{marker} Work on {named.path}", "--session-id", session)
        assert run.json()["result"] == "Written."
        stream.wait_for(named.uuid, ONE_RUN, session)
        stream.wait_for(written.uuid, ONE_RUN, session)
        world.headless("And again", "--resume", session)
        stream.wait_for(named.uuid, ONE_RUN + RESUMED_RUN, session)
        stream.wait_for(written.uuid, ONE_RUN + RESUMED_RUN, session)


@pytest.mark.parametrize("transport", ["http", "command"])
def test_without_the_companion_a_run_is_the_same(make_world: MakeWorld, transport: str) -> None:
    """Companion stopped: same result, same output in both forms, exit code 0, nothing on stderr."""
    world = make_world()
    world.mdello("install", "claude", "--transport", transport)
    named, target = world.card("named.md"), new_card(world, "target.md")
    marker = world.script("write", write_step(target), say("Written."))
    prompt = f"{marker} Work on {named.path}"

    def both_forms() -> List[Run]:
        runs = []
        for form in ("json", "text"):
            target.path.unlink(missing_ok=True)
            runs.append(world.headless(prompt, form=form))
            assert target.path.read_text("utf-8") == card_text(target.uuid, "target")
        return runs

    world.start_companion()
    with_json, with_text = both_forms()
    world.stop_companion()
    without_json, without_text = both_forms()

    assert with_text == without_text == Run(0, "Written.\n", "")
    assert (with_json.code, with_json.stderr) == (without_json.code, without_json.stderr) == (0, "")
    assert stable(with_json) == stable(without_json)
    assert stable(with_json)["result"] == "Written."


def test_a_companion_that_hangs_delays_a_run_but_changes_nothing(world: ClaudeWorld) -> None:
    """It accepts and never answers: every hook gives up in time, also the one at the session's end."""
    assert world.headless("Hello", form="text") == Run(0, "Done.\n", "")
    world.pause_companion()
    assert world.headless("Hello", form="text") == Run(0, "Done.\n", "")


@pytest.mark.parametrize("transport", ["http", "command"])
def test_a_card_of_two_megabytes_is_linked(make_world: MakeWorld, transport: str) -> None:
    """The hook of a Write carries the file several times over."""
    world = make_world()
    world.mdello("install", "claude", "--transport", transport)
    world.start_companion()
    big = new_card(world, "big.md")
    text = card_text(big.uuid, "big") + "All work and no play.\n" * 100_000
    write = use("Write", file_path=str(big.path), content=text)
    world.headless(f"{world.script('big', write, say('Written.'))} Write a lot")
    assert big.path.read_text("utf-8") == text
    wait_until(lambda: world.linked() == {big.uuid: "closed"}, "the big card")


@pytest.mark.parametrize("state", ["kept", "lost"])
def test_after_a_restart_resume_restores_both_cards(world: ClaudeWorld, state: str) -> None:
    """The cards of a resumed session are back, from the log or, when it is lost, from the transcript."""
    named, written = world.card("named.md"), new_card(world, "written.md")
    # Relative, as models like to write: the transcript keeps it so.
    marker = world.script("write", write_step(written, "../board/written.md"), say("Written."))
    session = str(uuid.uuid4())
    world.headless(f"{marker} Work on {named.path}", "--session-id", session)
    both = {named.uuid: "closed", written.uuid: "closed"}
    wait_until(lambda: world.linked() == both, "both cards closed")

    world.stop_companion()
    if state == "lost":
        shutil.rmtree(world.home / ".local/state/mdello")
    world.start_companion()
    assert world.linked() == (both if state == "kept" else {})
    with world.stream() as stream:
        world.headless("And again", "--resume", session)
        stream.wait_for(named.uuid, RESUMED_RUN, session)
        stream.wait_for(written.uuid, RESUMED_RUN, session)


def test_a_card_written_without_uuid_is_linked_after_repair(world: ClaudeWorld, tmp_path: Path) -> None:
    """Unknown at first, not repaired in the middle of the turn, then linked with its real history."""
    bare, release = Card(world.board / "bare.md", ""), tmp_path / "release"
    marker = world.script("bare", write_step(bare), say("Written.", wait_for=str(release)))
    process = world.headless_in_background(f"{marker} Make a card")
    wait_until(lambda: world.without_uuid() == [str(bare.path)], "a remembered link")
    assert world.associations() == []
    assert bare.path.name in world.mdello("status", code=None).stdout
    assert bare.path.name in world.mdello("doctor", code=None).stdout

    before = bare.path.read_bytes()
    refused = world.mdello("board", "repair", code=None)
    assert refused.code != 0
    assert bare.path.name in refused.stdout + refused.stderr
    assert bare.path.read_bytes() == before

    release.touch()
    assert world.finish(process).json()["result"] == "Written."
    world.wait_for_event("SessionEnd")
    assert world.associations() == []
    with world.stream() as stream:
        repaired_at = time.time()
        world.mdello("board", "repair")
        wait_until(lambda: list(world.linked().values()) == ["closed"], "a link to the repaired card")
        (association,) = world.associations()
        card_uuid = str(association["cardUuid"])
        assert card_uuid.encode() in bare.path.read_bytes()
        assert stream.statuses(card_uuid)[-1:] == ["closed"]
    history = log_lines(world, card_uuid)
    assert [line["status"] for line in history] == ONE_RUN
    times = [parse_iso(line["updatedAt"]) for line in history]
    assert all(moment is not None and moment < repaired_at for moment in times)


def test_a_uuid_that_the_agent_adds_links_the_card(world: ClaudeWorld) -> None:
    """The agent writes a card without uuid and gives it one later in the same turn."""
    bare, card_uuid = Card(world.board / "bare.md", ""), str(uuid.uuid4())
    edit = use(
        "Edit",
        file_path=str(bare.path),
        old_string="title: bare",
        new_string=f"uuid: {card_uuid}\ntitle: bare",
    )
    marker = world.script("mend", write_step(bare), edit, say("Mended."))
    assert world.headless(f"{marker} Make a card").json()["result"] == "Mended."
    wait_until(lambda: world.linked() == {card_uuid: "closed"}, "a link to the mended card")
    assert [line["status"] for line in log_lines(world, card_uuid)] == ONE_RUN


def test_a_fork_takes_the_cards_along(world: ClaudeWorld) -> None:
    """A forked session is a new one; what was worked on before is in its copied transcript."""
    named, written = world.card("named.md"), new_card(world, "written.md")
    marker = world.script("write", write_step(written), say("Written."))
    session, fork = str(uuid.uuid4()), str(uuid.uuid4())
    world.headless(f"{marker} Work on {named.path}", "--session-id", session)
    with world.stream() as stream:
        world.headless("And again", "--resume", session, "--fork-session", "--session-id", fork)
        # The copy appears behind the first prompt, and this turn has no event between it and Stop.
        stream.wait_for(named.uuid, ONE_RUN[1:], fork)
        stream.wait_for(written.uuid, ONE_RUN[1:], fork)
        assert stream.statuses(named.uuid, session) == []


def test_a_companion_started_late_finds_what_came_before(make_world: MakeWorld, tmp_path: Path) -> None:
    """Prompt and Write went unseen: the session is found by its record, both cards in its file."""
    world = make_world()
    world.mdello("install", "claude")
    named, written, release = world.card("named.md"), new_card(world, "written.md"), tmp_path / "release"
    marker = world.script("late", write_step(written), say("Written.", wait_for=str(release)))
    process = world.headless_in_background(f"{marker} Work on {named.path}")
    wait_until(written.path.exists, "the written card")
    world.start_companion()
    both = {named.uuid: "running", written.uuid: "running"}
    wait_until(lambda: world.linked() == both, "cards of a session that has told nothing yet")
    with world.stream() as stream:
        release.touch()
        assert world.finish(process).code == 0
        stream.wait_for(named.uuid, ONE_RUN[1:])
        stream.wait_for(written.uuid, ONE_RUN[1:])


def test_a_failed_edit_links_nothing(world: ClaudeWorld) -> None:
    """An Edit that the CLI refuses is no work on that card, live or after a resume."""
    named, untouched = world.card("named.md"), world.card("untouched.md")
    edit = use("Edit", file_path=str(untouched.path), old_string="no such text", new_string="x")
    marker = world.script("fail", edit, say("It failed."))
    session = str(uuid.uuid4())
    world.headless(f"{marker} Work on {named.path}", "--session-id", session)
    world.headless("And again", "--resume", session)
    wait_until(lambda: world.linked() == {named.uuid: "closed"}, "the named card alone")


def test_an_api_error_settles_the_session(world: ClaudeWorld) -> None:
    """StopFailure stands for Stop: the card does not stay running."""
    named = world.card("named.md")
    error: Json = {"error": {"status": 429, "type": "rate_limit_error", "message": "Too much"}}
    marker = world.script("error", error)
    with world.stream() as stream:
        world.headless(f"{marker} Work on {named.path}")
        stream.wait_for(named.uuid, ONE_RUN)


def test_a_home_with_space_quotes_and_umlaut_works(make_world: MakeWorld) -> None:
    """The installed commands survive a home that shells and URLs dislike, and so does a board in it."""
    world = make_world(home_name='Zoë\'s "own" home')
    inside = world.home / "Zoe\u0308's board"  # Decomposed: the other normal form.
    world.mdello("board", "init", str(inside))
    world.mdello("install", "claude")
    world.start_companion()
    named, written = world.card("named.md"), Card(inside / "writ ten.md", str(uuid.uuid4()))
    marker = world.script("write", write_step(written), say("Written."))
    session = str(uuid.uuid4())
    with world.stream() as stream:
        flags = ("--add-dir", str(inside))
        run = world.headless(f"{marker} Work on {named.path}", "--session-id", session, *flags)
        assert (run.code, run.stderr) == (0, "")
        stream.wait_for(named.uuid, ONE_RUN)
        world.headless("And again", "--resume", session)
        stream.wait_for(named.uuid, ONE_RUN + RESUMED_RUN)
    assert world.linked() == {named.uuid: "closed", written.uuid: "closed"}


def test_claude_config_dir_is_honoured(make_world: MakeWorld) -> None:
    """With CLAUDE_CONFIG_DIR set, plugin and transcripts live there and nothing appears in the home."""
    world = make_world()
    folder = world.root / "config elsewhere"
    folder.mkdir()
    world.extra_environ["CLAUDE_CONFIG_DIR"] = str(folder)
    world.trust(folder)
    world.mdello("install", "claude")
    world.start_companion()
    named = world.card("named.md")
    session = str(uuid.uuid4())
    with world.stream() as stream:
        world.headless(f"Work on {named.path}", "--session-id", session)
        stream.wait_for(named.uuid, ONE_RUN)
        world.headless("And again", "--resume", session)
        stream.wait_for(named.uuid, ONE_RUN + RESUMED_RUN)
    assert (folder / "skills" / "mdello-companion").is_dir()
    assert not (world.home / ".claude").exists()
    world.stop_companion()
    world.mdello("purge")
    world.mdello("backfill", "claude")
    world.start_companion()
    assert list(world.linked()) == [named.uuid]


WITHOUT_CURL = """
import runpy, shutil, sys
which = shutil.which
shutil.which = lambda name, *a, **k: None if name.endswith("curl") else which(name, *a, **k)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a program as if this machine had no curl; it may be found outside of PATH, too."""


def path_without_curl(folder: Path) -> str:
    """A PATH with every program of the real one except curl."""
    folder.mkdir()
    for place in os.environ.get("PATH", os.defpath).split(os.pathsep):
        for program in Path(place).glob("*") if place else ():
            beside = folder / program.name
            if program.name != "curl" and not beside.is_symlink():
                beside.symlink_to(program)
    return str(folder)


def test_without_curl_our_own_file_posts(make_world: MakeWorld, tmp_path: Path) -> None:
    """No curl on PATH: session start and end travel through the built file, and quietly when it is down."""
    world = make_world()
    world.extra_environ["PATH"] = path_without_curl(tmp_path / "bin")
    installed = world.run(sys.executable, "-c", WITHOUT_CURL, str(world.pyz), "install", "claude")
    assert installed.code == 0, installed
    hooks = (world.home / ".claude/skills/mdello-companion/hooks/hooks.json").read_text("utf-8")
    assert hooks.count("hook-post claude") == 2
    world.start_companion()
    named = world.card("named.md")
    session = str(uuid.uuid4())
    with world.stream() as stream:
        world.headless(f"Work on {named.path}", "--session-id", session)
        stream.wait_for(named.uuid, ONE_RUN)
        world.headless("And again", "--resume", session)
        stream.wait_for(named.uuid, ONE_RUN + RESUMED_RUN)
    world.stop_companion()
    assert world.headless("Hello", form="text") == Run(0, "Done.\n", "")


def test_kill_9_in_the_middle_of_a_turn_disturbs_nobody(world: ClaudeWorld, tmp_path: Path) -> None:
    """The agent goes on without the companion; after its restart all is right before the next event."""
    named, written = world.card("named.md"), new_card(world, "written.md")
    first, second = tmp_path / "first", tmp_path / "second"
    held = {**write_step(written), "wait_for": str(first)}
    marker = world.script("held", held, say("Written.", wait_for=str(second)))
    session = str(uuid.uuid4())
    process = world.headless_in_background(f"{marker} Work on {named.path}", "--session-id", session)
    wait_until(lambda: world.linked() == {named.uuid: "running"}, "a running card")

    world.stop_companion(signal.SIGKILL)
    first.touch()
    wait_until(written.path.exists, "the written card")
    world.start_companion()
    # Its Write went unseen; the transcript tells of it.
    both = {named.uuid: "running", written.uuid: "running"}
    wait_until(lambda: world.linked() == both, "both cards")
    with world.stream() as stream:
        second.touch()
        run = world.finish(process)
        assert (run.code, run.json()["result"], run.stderr) == (0, "Written.", "")
        stream.wait_for(named.uuid, ONE_RUN[1:], session)
        world.headless("And again", "--resume", session)
        stream.wait_for(written.uuid, [*ONE_RUN[1:], *RESUMED_RUN], session)
