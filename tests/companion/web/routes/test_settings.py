"""``/settings``."""

import json
from typing import Dict

import pytest

from tests.companion.web.world import World

OFF = {
    "autofocus": False,
    "githubEnabled": False,
    "herdrEnabled": False,
    "jiraEnabled": False,
    "linkEnrichment": False,
}


def save(world: World, body: bytes) -> object:
    """Post a body that must be accepted."""
    with world.talk() as talk:
        answer = talk.ask("POST", "/settings", body)
    assert answer.status == 200
    return answer.json()


def test_there_are_exactly_five_switches(world: World) -> None:
    """All booleans, in this order; here without any outside program."""
    with world.talk() as talk:
        answer = talk.ask("GET", "/settings")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.body == json.dumps(OFF, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("program", "name"), [("gh", "githubEnabled"), ("herdr", "herdrEnabled"), ("jira", "jiraEnabled")]
)
def test_what_is_enabled_follows_the_programs(world: World, program: str, name: str) -> None:
    """One that a variable names counts unchecked, one on the path when it can be run; read-only."""
    world.environ[f"{program.upper()}_PATH"] = "/no/such/program"
    with world.talk() as talk:
        assert talk.ask("GET", "/settings").json() == {**OFF, name: True}
        world.environ.clear()
        path = world.folder / "bin" / program
        path.parent.mkdir()
        path.write_text("#!/bin/sh\n")
        world.environ["PATH"] = str(path.parent)
        assert talk.ask("GET", "/settings").json() == OFF
        path.chmod(0o755)
        assert save(world, b'{"autofocus": true, "%b": false}' % name.encode()) == {
            **OFF,
            "autofocus": True,
            name: True,
        }


@pytest.mark.parametrize("name", ["autofocus", "linkEnrichment"])
def test_a_switch_is_stored(world: World, name: str) -> None:
    """In the file, beside whatever else stands there, and nothing is added."""
    path = world.settings.config_path
    before: Dict[str, object] = {"mine": [1], **json.loads(path.read_text())}
    path.write_text(json.dumps(before))
    assert save(world, b'{"%b": true}' % name.encode()) == {**OFF, name: True}
    assert json.loads(path.read_text()) == {**before, name: True}
    assert save(world, b'{"%b": false}' % name.encode()) == OFF


def test_of_two_switches_only_the_first_is_stored(world: World) -> None:
    """autofocus, whatever the order in the body."""
    assert save(world, b'{"linkEnrichment": true, "autofocus": true}') == {**OFF, "autofocus": True}


def test_a_switch_that_is_no_boolean_is_passed_over(world: World) -> None:
    """The other one still counts."""
    assert save(world, b'{"autofocus": 1, "linkEnrichment": true}') == {**OFF, "linkEnrichment": True}


@pytest.mark.parametrize(
    "body",
    [b"{}", b'{"autofocus": 1}', b'{"autofocus": null, "linkEnrichment": "true"}', b"[]", b"null", b"true"],
)
def test_what_names_no_switch_is_refused(world: World, body: bytes) -> None:
    """And nothing is stored."""
    with world.talk() as talk:
        answer = talk.ask("POST", "/settings", body)
        assert (answer.status, answer.error()) == (400, "Invalid settings")
        assert talk.ask("GET", "/settings").json() == OFF


def test_hand_made_values_count_only_when_they_are_true(world: World) -> None:
    """The file may be edited while we run."""
    world.settings.config_path.write_text('{"autofocus": "yes", "linkEnrichment": true}')
    with world.talk() as talk:
        assert talk.ask("GET", "/settings").json() == {**OFF, "linkEnrichment": True}


def test_a_file_that_cannot_be_written_is_told(world: World) -> None:
    """As our failure, naming the file."""
    folder = world.settings.config_path.parent
    world.settings.config_path.unlink()
    folder.rmdir()
    folder.write_text("a file where the folder should be")
    with world.talk() as talk:
        answer = talk.ask("POST", "/settings", b'{"autofocus": true}')
    assert answer.status == 500 and str(world.settings.config_path) in answer.error()
