"""``/enrichments``, with small programs in the place of gh and jira."""

import json
import socket
import time
from pathlib import Path
from typing import Callable, Dict, Iterator, List
from urllib.parse import quote

import pytest

from companion.web.limits import Limits
from tests.companion.web.talk import Talk, eventually
from tests.companion.web.world import SITE, World
from tests.fakes.fake_viewer import FakeViewer, issue, pull, ticket

Told = Dict[str, List[Dict[str, object]]]


class Linked(World):
    """A companion with a gh and a jira."""

    def __init__(self, folder: Path, limits: Limits, poll_s: float) -> None:
        super().__init__(folder, limits, poll_s=poll_s)
        self.gh = FakeViewer(folder / "bin", "gh")
        self.jira = FakeViewer(folder / "bin", "jira")
        self.environ.update(GH_PATH=str(self.gh.path), JIRA_PATH=str(self.jira.path))

    def subscribe(self, *urls: str) -> Talk:
        """An open stream about these links, its head read."""
        talk = self.talk()
        talk.send(f"GET {path(*urls)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        status, headers = talk.head()
        assert (status, headers["content-type"]) == (200, "text/event-stream")
        assert (headers["cache-control"], headers["connection"]) == ("no-cache", "keep-alive")
        return talk


MakeLinked = Callable[..., Linked]


@pytest.fixture
def make_linked(tmp_path: Path) -> Iterator[MakeLinked]:
    """Makes and starts a companion with a gh and a jira."""
    worlds: List[Linked] = []

    def make(limits: Limits = Limits(), poll_s: float = 3_600.0) -> Linked:  # noqa: B008 - frozen
        worlds.append(Linked(tmp_path, limits, poll_s))
        worlds[-1].start()
        return worlds[-1]

    yield make
    for each in worlds:
        each.stop()


@pytest.fixture
def linked(make_linked: MakeLinked) -> Linked:
    """One whose second round is an hour away."""
    return make_linked()


def path(*urls: str) -> str:
    """The path of a subscription."""
    return "/enrichments?" + "&".join(f"url={quote(url, safe='')}" for url in urls)


def told(talk: Talk) -> Told:
    """The next event's data."""
    event = talk.event()
    assert (event.name, event.id) == ("enrichments", "")
    value = event.json()
    assert isinstance(value, dict)
    return value


def settled(talk: Talk, count: int) -> List[str]:
    """The URLs of so many events with one outcome each; a failed one begins with ``!``."""
    urls = []
    for _ in range(count):
        event = told(talk)
        assert len(event["items"]) + len(event["errors"]) == 1
        urls += [str(item["url"]) for item in event["items"]]
        urls += ["!" + str(error["url"]) for error in event["errors"]]
    return urls


# --- the question --------------------------------------------------------------------------------


def test_without_any_provider_all_is_a_conflict(world: World) -> None:
    """Looked at first, whatever else is wrong."""
    with world.talk() as talk:
        for url in ("/enrichments", "/enrichments?url=junk", path(pull(1))):
            answer = talk.ask("GET", url)
            assert (answer.status, answer.error()) == (409, "no_enrichment_providers")


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?",
        "?url=",
        "?URL=" + quote(pull(1)),
        "?url=junk",
        "?url=http://github.com/acme/shop/pull/1",
        "?url=https://github.com/acme/shop",
        f"?url={quote(pull(1))}&url=junk",
        f"?url={quote(pull(1))}&url=",
        "?" + "&".join(f"url={quote(pull(number))}" for number in range(51)),
    ],
)
def test_questions_that_cannot_be_answered(linked: Linked, query: str) -> None:
    """None, too many, or a single one that is not supported; nothing is run."""
    with linked.talk() as talk:
        answer = talk.ask("GET", "/enrichments" + query)
        assert (answer.status, answer.error()) == (400, "Invalid or unsupported enrichment URLs")
    assert linked.gh.calls() == [] and linked.lookups.listeners() == 0


def test_each_link_counts_once(linked: Linked) -> None:
    """However often and however encoded it stands there; fifty different ones are not too many."""
    urls = [pull(number) for number in range(50)]
    with linked.subscribe(*urls, *urls, urls[0]) as talk:
        assert told(talk) == {"items": [], "errors": []}
        assert sorted(settled(talk, 50)) == sorted(urls)
    assert len(linked.gh.calls()) == 50
    assert linked.gh.most_at_once() <= 8


def test_links_keep_their_order_and_their_spelling(linked: Linked) -> None:
    """First what is known, in the order of the question."""
    urls = [pull(2) + "?a=1&b=%C3%BC#c+d", ticket(1), issue(3)]
    with linked.subscribe(*urls) as talk:
        told(talk)
        assert sorted(settled(talk, 3)) == sorted(urls)
    with linked.subscribe(urls[2], urls[0], urls[2], urls[1]) as talk:
        assert [item["url"] for item in told(talk)["items"]] == [urls[2], urls[0], urls[1]]
    assert linked.jira.calls()[0] == ["issue", "view", "SHOP-1", "--raw"]


def test_one_provider_is_enough(linked: Linked) -> None:
    """A link of the other one is not refused: its lookups fail."""
    del linked.environ["JIRA_PATH"]
    with linked.subscribe(ticket(1), pull(1)) as talk:
        told(talk)
        assert sorted(settled(talk, 2)) == ["!" + ticket(1), pull(1)]


def test_a_page_of_our_site_may_listen(linked: Linked) -> None:
    """The stream carries the headers that let it read; a foreign one is refused before a lookup."""
    origin = (("Origin", SITE),)
    with linked.talk() as talk:
        lines = f"GET {path(pull(1))} HTTP/1.1\r\nHost: localhost\r\nOrigin: {SITE}\r\n\r\n"
        status, headers = talk.send(lines.encode()).head()
        assert (status, headers["access-control-allow-origin"]) == (200, SITE)
        assert settled_after_first(talk) == [pull(1)]
    calls = len(linked.gh.calls())
    with linked.talk() as talk:
        assert talk.ask("GET", path(pull(2)), headers=(("Origin", "https://evil.example"),)).status == 403
        assert talk.ask("POST", path(pull(2)), b"", headers=origin).status == 405
        assert talk.ask("GET", "/enrichments?url=junk", headers=origin).headers["vary"] == "Origin"
    assert len(linked.gh.calls()) == calls


def settled_after_first(talk: Talk) -> List[str]:
    """The first event, then one outcome."""
    told(talk)
    return settled(talk, 1)


# --- the stream ----------------------------------------------------------------------------------


def test_a_frame_as_it_stands(linked: Linked) -> None:
    """A name, data on one line, and no id: there is nothing to go on from."""
    linked.jira.answer("*", fields={"fields": {"summary": "Ü", "status": {"name": "Done"}}})
    with linked.subscribe(ticket(7)) as talk:
        assert talk.block() == 'event: enrichments\ndata: {"items":[],"errors":[]}'
        head, _, data = talk.block().partition("\ndata: ")
    assert head == "event: enrichments"
    item = {"key": "SHOP-7", "status": "Done", "title": "Ü", "url": ticket(7), "provider": "jira"}
    assert json.loads(data) == {"items": [item], "errors": []}


def test_a_failed_lookup_is_told_as_such(linked: Linked) -> None:
    """Without the program's words."""
    linked.gh.answer("*", exit=4, stderr="gh auth login")
    with linked.subscribe(pull(1)) as talk:
        told(talk)
        error = {"url": pull(1), "provider": "github", "error": "lookup_failed"}
        assert told(talk) == {"items": [], "errors": [error]}


def test_outcomes_are_told_as_they_settle(linked: Linked) -> None:
    """In that order."""
    urls = [pull(1), ticket(2), pull(3)]
    linked.gh.answer("*", wait=True)
    linked.jira.answer("*", wait=True)
    with linked.subscribe(*urls) as talk:
        told(talk)
        for url, mark in ((pull(3), pull(3)), (ticket(2), "SHOP-2"), (pull(1), pull(1))):
            linked.gh.go_on(mark)
            assert settled(talk, 1) == [url]


def test_a_page_hears_again_and_again_until_it_leaves(make_linked: MakeLinked) -> None:
    """A second one hears what is known first; after they have left nothing is asked any more."""
    linked = make_linked(poll_s=0.05)
    first = linked.subscribe(pull(1))
    assert told(first) == {"items": [], "errors": []}
    assert settled(first, 1) == [pull(1)]
    with linked.subscribe(pull(1)) as second:
        assert [item["url"] for item in told(second)["items"]] == [pull(1)]
        assert settled(second, 1) == [pull(1)]
    assert settled(first, 2) == [pull(1)] * 2
    first.close()
    eventually(lambda: linked.lookups.listeners() == 0)
    eventually(lambda: not linked.gh.alive())
    calls = len(linked.gh.calls())
    assert calls >= 3
    time.sleep(0.2)  # Four times the pause between two rounds.
    assert len(linked.gh.calls()) == calls


def test_a_page_that_leaves_in_the_middle_is_noticed_soon(make_linked: MakeLinked) -> None:
    """Although nothing is to be written and the next sign of life is far off: its queue is dropped."""
    linked = make_linked(Limits(heartbeat_s=3_600.0))
    linked.lookups._lookup_s = 3_600.0
    linked.gh.answer("*", wait=True)
    talk = linked.subscribe(*map(pull, range(50)))
    told(talk)
    eventually(lambda: len(linked.gh.calls()) >= 4)
    talk.sock.shutdown(socket.SHUT_RDWR)
    talk.close()
    eventually(lambda: linked.lookups.listeners() == 0)
    linked.gh.go_on()
    eventually(lambda: not linked.gh.alive())
    assert len(linked.gh.calls()) <= 8


def test_silence_is_filled_with_comments(make_linked: MakeLinked) -> None:
    """As on the other streams."""
    linked = make_linked(Limits(heartbeat_s=0.05))
    linked.gh.answer("*", hang=True)
    with linked.subscribe(pull(1)) as talk:
        told(talk)
        assert [talk.block(), talk.block()] == [": still here", ": still here"]


def test_both_kinds_of_streams_share_one_limit(make_linked: MakeLinked) -> None:
    """Who finds no place leaves no lookups behind."""
    linked = make_linked(Limits(streams=1))
    linked.gh.answer("*", hang=True)
    with linked.listen(), linked.talk() as talk:
        answer = talk.ask("GET", path(*map(pull, range(20))))
        assert (answer.status, answer.error()) == (503, "Too many open event streams")
        assert linked.lookups.listeners() == 0
        assert len(linked.gh.calls()) < 20


def test_stopping_with_a_program_that_hangs_leaves_nothing(linked: Linked) -> None:
    """The stream ends at once, and so does the program, with its children."""
    linked.gh.answer("*", hang=True)
    with linked.subscribe(*map(pull, range(20))) as talk:
        told(talk)
        eventually(lambda: len(linked.gh.calls()) >= 6)
        linked.stop()
        assert talk.ended()
    assert not linked.gh.alive()
    assert len(linked.gh.calls()) <= 8
