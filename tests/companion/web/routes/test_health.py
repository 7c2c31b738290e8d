"""``/health``."""

import pytest

from companion.web import peer
from tests.companion.web.world import World


@pytest.mark.parametrize(("tells", "word"), [(True, "kernel"), (False, "unavailable")])
def test_it_says_who_we_are_and_whether_peers_are_checked(
    world: World, monkeypatch: pytest.MonkeyPatch, tells: bool, word: str
) -> None:
    """The program's own facts, and one of the web floor's."""
    monkeypatch.setattr(peer, "kernel_tells", lambda: tells)
    with world.talk() as talk:
        answer = talk.ask("GET", "/health")
    assert answer.status == 200
    assert answer.json() == {**world.health(), "peerCheck": word}


def test_it_is_guarded_like_everything_else(world: World) -> None:
    """A page that rebinds its name to us learns nothing."""
    with world.talk() as talk:
        assert talk.ask("GET", "/health", host="evil.example").status == 403
        foreign = (("Origin", "https://evil.example"),)
        assert talk.ask("GET", "/health", headers=foreign).status == 403
