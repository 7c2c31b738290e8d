"""What the real agents' clients reported, and what backfill reads in the files of the same runs."""

import json
from typing import Any, Dict, List, Set, Tuple

import pytest

from tests.e2e import agent_cli
from tests.e2e.conftest import MakeWorld, fetched
from tests.e2e.opencode_world import OpenCodeWorld
from tests.e2e.pi_world import PiWorld
from tests.e2e.world import Card, Json, World, say, use, wait_until

pytestmark = pytest.mark.e2e

SCRIPT = """\
await tools.write({{path: "@{0}", content: {2}}});
try {{ await tools.edit({{path: "{1}", edits: [{{oldText: "not there", newText: "x"}}]}}); }} catch {{}}
return "Done.";
"""


def pairs(associations: List[Json]) -> Set[Tuple[str, str]]:
    """Session and card of each."""
    return {(str(one["sessionId"]), str(one["cardUuid"])) for one in associations}


def read_again(world: World, agent: str) -> Dict[str, Any]:
    """Put the log away, backfill with the companion stopped, start it again; what backfill said."""
    world.stop_companion()
    (world.home / ".local/state/mdello/companion.jsonl").unlink()
    (told,) = json.loads(world.mdello("backfill", agent, "--json").stdout)["harnesses"]
    world.start_companion()
    return dict(told)


def assert_the_same(world: World, agent: str, cards: List[Card]) -> Dict[str, Any]:
    """Exactly these cards by both ways, and nothing that backfill did not understand."""
    wanted = {card.uuid for card in cards}
    wait_until(lambda: wanted <= set(world.linked()), "all reports")
    live = pairs(world.associations())
    told = read_again(world, agent)
    assert {card for _, card in live} == wanted
    assert pairs(world.associations()) == live
    assert (told["damaged"], told["unknown"]) == (0, {})
    return told


def changed(card: Card) -> str:
    """The card's text with another title."""
    return card.path.read_text("utf-8").replace("title: ", "title: new ")


def test_pi(pi_world: PiWorld) -> None:
    """Named cards, every way to spell a path that Pi understands, and calls that a script made."""
    named, at, home, nested, failed, long = (
        pi_world.card(f"{name}.md") for name in ("named", "at", "home", "nested", "failed", "long")
    )
    (pi_world.home / "board").symlink_to(pi_world.board)
    script = SCRIPT.format(nested.path, failed.path, json.dumps(changed(nested)))
    steps = [
        use("write", path=f"@{at.path}", content=changed(at)),
        use("write", path=f"~/board/{home.path.name}", content=changed(home)),
        use("codemode", code=script),
        say("Ready."),
    ]
    tools = ("--tools", "+codemode")
    marker = pi_world.script("work", *steps)
    assert pi_world.pi(*tools, f"{marker} Work on {named.path}, please.").stdout == "Ready.\n"
    cards = [named, at, home, nested]
    assert all("title: new" in card.path.read_text("utf-8") for card in cards[1:])
    told = assert_the_same(pi_world, "pi", cards)
    assert (told["skipped"], told["incomplete"]) == ([], False)
    # Of a long argument Pi keeps nothing: the link stays, and backfill says that it cannot judge it.
    text = json.dumps(changed(long) + "x" * 9_000)
    script = SCRIPT.format(long.path, failed.path, text)
    marker = pi_world.script("long", use("codemode", code=script), say("Ok."))
    assert pi_world.pi(*tools, f"{marker} Go on.").stdout == "Ok.\n"
    wait_until(lambda: long.uuid in pi_world.linked(), "report")
    before = pairs(pi_world.associations())
    pi_world.stop_companion()
    (told,) = json.loads(pi_world.mdello("backfill", "pi", "--json").stdout)["harnesses"]
    assert (told["incomplete"], told["existing"], told["purged"]) == (True, len(cards) + 1, 0)
    assert "1 calls of scripts that Pi did not keep in full" in [each["reason"] for each in told["skipped"]]
    pi_world.start_companion()
    assert pairs(pi_world.associations()) == before


def test_opencode(opencode_world: OpenCodeWorld) -> None:
    """A card in the text, an attached one, and what each of the tools that change files did."""
    world = opencode_world
    named, attached, written, patched, moved, gone = (
        world.card(f"{name}.md") for name in ("named", "attached", "written", "patched", "moved", "gone")
    )
    target = moved.path.with_name("new place.md")
    change = ["@@", "-column: todo", "+column: done"]
    patch = ["*** Begin Patch", f"*** Update File: {patched.path}", *change]
    patch += [f"*** Update File: {moved.path}", f"*** Move to: {target}", *change]
    patch += [f"*** Delete File: {gone.path}", "*** End Patch"]
    text = changed(written)
    first = world.script("first", use("write", filePath=str(written.path), content=text), say("Ok."))
    second = world.script("second", use("apply_patch", patchText="\n".join(patch)), say("Ok."))
    with world.serve() as server:
        session = server.session()
        server.work(session, f"{first} see {named.path}")
        file = {"type": "file", "mime": "text/plain", "filename": "a.md", "url": attached.path.as_uri()}
        model = {"providerID": "loopback", "modelID": "gpt-5-scripted"}
        parts = [{"type": "text", "text": second}, file]
        server.ask("POST", f"/session/{session}/message", {"parts": parts, "model": model})
        assert not moved.path.exists() and "column: done" in target.read_text("utf-8")
        told = assert_the_same(world, "opencode", [named, attached, written, patched, moved])
    assert (told["skipped"], told["incomplete"]) == ([], False)


@pytest.mark.parametrize("version", [agent_cli.OLDEST, agent_cli.CURRENT])
def test_claude(make_world: MakeWorld, version: str) -> None:
    """Named cards, edits that worked, by a relative path too, and what a sub-agent changed."""
    world = make_world(cli=fetched(lambda: agent_cli.claude(version)))
    world.mdello("install", "claude")
    world.start_companion()
    named, written, edited, failed, read, sent = (
        world.card(f"{name}.md") for name in ("named", "written", "edited", "failed", "read", "sent")
    )
    inner = world.script("inner", *(_read_and_edit(sent)), say("Done."))
    steps = [
        use("Read", file_path=str(written.path)),
        use("Write", file_path=f"../board/{written.path.name}", content=changed(written)),
        *_read_and_edit(edited),
        use("Edit", file_path=str(failed.path), old_string="not there", new_string="x"),
        use("Read", file_path=str(read.path)),
        use("Agent", subagent_type="general-purpose", description="d", prompt=f"{inner} not {read.path}"),
        *[say("Ready.")] * 2,  # The newer version waits for its sub-agent in a turn of its own.
    ]
    run = world.headless(f"{world.script('work', *steps)} Work on {named.path}")
    assert run.json()["result"] == "Ready."
    told = assert_the_same(world, "claude", [named, written, edited, sent])
    assert told["incomplete"] is False
    assert [each["reason"] for each in told["skipped"]] == ["1 sub-agent logs: no sessions of their own"]


def _read_and_edit(card: Card) -> List[Json]:
    file = str(card.path)
    edit = use("Edit", file_path=file, old_string="title: ", new_string="title: new ")
    return [use("Read", file_path=file), edit]
