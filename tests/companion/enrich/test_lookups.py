"""Lookups with real programs: shared, in settling order, polled, remembered, few at a time."""

import json
import threading
import time
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Sequence

import pytest

from companion.core import hub as hub_module
from companion.core.hub import Frame
from companion.core.programs import Programs
from companion.enrich import lookups as lookups_module
from companion.enrich.lookups import AT_ONCE, Lookups
from companion.enrich.urls import Link, parse_link
from tests.fakes.fake_viewer import FakeViewer, issue, pull, ticket

PATIENCE_S = 30.0
NEVER_S = 3_600.0

Told = Dict[str, List[Dict[str, object]]]


class Reader:
    """One listener."""

    def __init__(self, lookups: Lookups, urls: Sequence[str], cut: Callable[[], None] = lambda: None) -> None:
        self._lookups = lookups
        links = [link for link in map(parse_link, urls) if link is not None]
        assert len(links) == len(urls)
        self.subscription = lookups.subscribe(links, cut)
        self._frames: List[Frame] = []

    def next(self) -> Told:
        """The next frame's data."""
        end = time.monotonic() + PATIENCE_S
        while not self._frames:
            assert time.monotonic() < end, "nothing comes"
            self._frames += self.subscription.take(0.1)
        frame = self._frames.pop(0)
        assert frame.name == "enrichments" and b"\n" not in frame.data
        told: Told = json.loads(frame.data)
        assert list(told) == ["items", "errors"]
        return told

    def settled(self, count: int) -> List[str]:
        """The URLs of so many frames with one outcome each; a failed one begins with ``!``."""
        urls = []
        for _ in range(count):
            told = self.next()
            assert len(told["items"]) + len(told["errors"]) == 1
            urls += [str(item["url"]) for item in told["items"]]
            urls += ["!" + str(error["url"]) for error in told["errors"]]
        return urls

    def leave(self) -> None:
        """Stop listening."""
        self._lookups.unsubscribe(self.subscription)


class Place:
    """Programs, and what uses them."""

    def __init__(self, folder: Path) -> None:
        self.gh = FakeViewer(folder, "gh")
        self.jira = FakeViewer(folder, "jira")
        self.environ = {"GH_PATH": str(self.gh.path), "JIRA_PATH": str(self.jira.path)}
        self.programs = Programs(self.environ)
        self.lookups = self.make()

    def make(self, poll_s: float = NEVER_S, lookup_s: float = PATIENCE_S) -> Lookups:
        """Lookups with other times."""
        self.lookups = Lookups(self.programs, poll_s, lookup_s)
        return self.lookups

    def read(self, *urls: str) -> Reader:
        """A listener; what is known already is read."""
        reader = Reader(self.lookups, urls)
        reader.next()
        return reader


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """With both programs."""
    made = Place(tmp_path / "bin")
    yield made
    made.lookups.close()
    made.programs.close()


def eventually(what: Callable[[], bool]) -> None:
    """Wait until it is true."""
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


def threads() -> List[str]:
    """Our threads that run now."""
    return [each.name for each in threading.enumerate() if each.name in ("link", "links")]


def test_items(place: Place) -> None:
    """What was found, the URL exactly as asked for, and who told it."""
    urls = [pull(1) + "/files?x=1#y", issue(2), ticket(3)]
    reader = Reader(place.lookups, urls)
    assert reader.next() == {"items": [], "errors": []}
    told = [reader.next() for _ in urls]
    assert all(each["errors"] == [] for each in told)
    items = {str(each["items"][0]["url"]): each["items"][0] for each in told}
    assert items == {
        urls[0]: {
            "number": 1,
            "title": f"About {urls[0]}",
            "status": "open",
            "ciStatus": "none",
            "url": urls[0],
            "provider": "github",
        },
        urls[1]: {
            "number": 2,
            "title": f"About {urls[1]}",
            "status": "open",
            "url": urls[1],
            "provider": "github",
        },
        urls[2]: {
            "key": "SHOP-3",
            "status": "To do",
            "title": "About SHOP-3",
            "url": urls[2],
            "provider": "jira",
        },
    }
    assert place.jira.calls() == [["issue", "view", "SHOP-3", "--raw"]]


def test_outcomes_come_in_the_order_in_which_they_settle(place: Place) -> None:
    """Not in the order of the question, and the good ones without waiting for the others."""
    urls = [pull(number) for number in range(1, 5)]
    for url in urls:
        place.gh.answer(url, wait=True)
    place.gh.answer(urls[2], wait=True, exit=1)
    reader = place.read(*urls)
    for number in (3, 1, 4, 2):
        place.gh.go_on(pull(number))
        assert reader.settled(1) == [("!" if number == 3 else "") + pull(number)]


@pytest.mark.parametrize(
    "how",
    [
        {"exit": 1},
        {"exit": 4, "stderr": "To get started, please run: gh auth login"},
        {"text": ""},
        {"text": "oops"},
        {"text": "[1]"},
        {"hex": "fffe00c3"},
        {"hex": "7b226e756d626572223affff7d"},
        {"fields": {"title": ""}},
        {"fields": {"state": "LOST"}},
        {"flood": True},
        {"hang": True},
    ],
    ids=str,
)
def test_a_lookup_that_fails_is_an_error_of_that_link_alone(place: Place, how: Dict[str, object]) -> None:
    """The others are told; nothing is remembered of the failed one."""
    place.make(lookup_s=1.0 if "hang" in how else PATIENCE_S)
    place.gh.answer(pull(1), **how)
    reader = place.read(pull(1), pull(2))
    assert sorted(reader.settled(2)) == ["!" + pull(1), pull(2)]
    again = Reader(place.lookups, [pull(1), pull(2)])
    assert [item["url"] for item in again.next()["items"]] == [pull(2)]


def test_the_form_of_an_error(place: Place) -> None:
    """URL, provider, and a word that never changes: what the program said stays here."""
    place.jira.answer("*", exit=1, stderr="secret")
    told = place.read(ticket(1)).next()
    assert told == {
        "items": [],
        "errors": [{"url": ticket(1), "provider": "jira", "error": "lookup_failed"}],
    }


def test_text_that_is_not_utf8_does_no_harm(place: Place) -> None:
    """Where it stands in a text, the text is still told."""
    place.gh.answer("*", hex=b'{"number":1,"state":"OPEN","title":"caf\xe9"}'.hex())
    assert place.read(issue(1)).next()["items"][0]["title"] == "caf\ufffd"


def test_half_a_surrogate_is_passed_on_as_it_came(place: Place) -> None:
    """As an escape, which is valid JSON."""
    place.gh.answer("*", text='{"number":1,"state":"OPEN","title":"a\\ud83d"}')
    assert place.read(issue(1)).next()["items"][0]["title"] == "a\ud83d"


def test_a_child_that_holds_the_pipes_does_not_delay_the_answer(place: Place) -> None:
    """And is gone soon."""
    place.gh.answer("*", child=True)
    assert place.read(issue(1)).settled(1) == [issue(1)]
    eventually(lambda: not place.gh.alive())


# --- missing programs ----------------------------------------------------------------------------


def test_a_missing_program_is_an_error_of_its_links(place: Place) -> None:
    """When the other one is there, its links are told; when it comes, it is used."""
    del place.environ["JIRA_PATH"]
    assert (place.lookups.enabled("github"), place.lookups.enabled("jira")) == (True, False)
    assert sorted(place.read(ticket(1), pull(1)).settled(2)) == ["!" + ticket(1), pull(1)]
    assert "jira is not installed" in place.lookups.notes()[0]
    place.environ["JIRA_PATH"] = str(place.jira.path)
    assert place.read(ticket(1)).settled(1) == [ticket(1)]
    assert place.lookups.notes() == []


def test_a_program_that_cannot_be_run_is_an_error_too(place: Place) -> None:
    """The variable is not checked before."""
    place.gh.path.chmod(0o644)
    assert place.read(pull(1)).settled(1) == ["!" + pull(1)]
    place.environ["GH_PATH"] = "/no/such/gh"
    assert place.read(pull(1)).settled(1) == ["!" + pull(1)]


# --- several listeners ---------------------------------------------------------------------------


def test_a_second_listener_gets_what_is_known_first(place: Place) -> None:
    """Then the same again, refreshed; in the order of its own question, and nothing else."""
    place.read(pull(1), pull(2), pull(3)).settled(3)
    place.gh.answer(pull(1), fields={"title": "New"})
    second = Reader(place.lookups, [pull(4), pull(2), pull(1)])
    known = second.next()
    assert [item["url"] for item in known["items"]] == [pull(2), pull(1)] and known["errors"] == []
    assert known["items"][1]["title"] == f"About {pull(1)}"
    items = [second.next()["items"][0] for _ in range(3)]
    assert {item["url"]: item["title"] for item in items}[pull(1)] == "New"


def test_two_listeners_share_one_lookup(place: Place) -> None:
    """Also one that is running already; each gets its outcome once."""
    place.gh.answer("*", wait=True)
    first = place.read(pull(1), pull(2))
    eventually(lambda: len(place.gh.calls()) == 2)
    second = place.read(pull(2), pull(3))
    place.gh.go_on()
    assert sorted(first.settled(2)) == [pull(1), pull(2)]
    assert sorted(second.settled(2)) == [pull(2), pull(3)]
    assert sorted(place.gh.things()) == [pull(1), pull(2), pull(3)]
    for reader in (first, second):
        assert reader.subscription.take(0.05) == []


def test_fifty_links_at_once(place: Place) -> None:
    """All are answered, and there are never more programs than may be."""
    urls = [pull(number) for number in range(25)] + [ticket(number) for number in range(25)]
    readers = [place.read(*urls), place.read(*reversed(urls))]
    for reader in readers:
        assert sorted(reader.settled(50)) == sorted(urls)
    assert len(place.gh.calls()) + len(place.jira.calls()) == 50
    assert 1 < max(place.gh.most_at_once(), place.jira.most_at_once()) <= AT_ONCE < 8
    eventually(lambda: threads().count("link") == 0)


def test_fifty_links_that_hang_are_all_answered(place: Place) -> None:
    """Each after its own time, and the ones among them that do not hang as well."""
    place.make(lookup_s=0.3)
    place.gh.answer("*", hang=True)
    urls = [pull(number) for number in range(40)] + [ticket(number) for number in range(10)]
    outcomes = place.read(*urls).settled(50)
    assert sorted(url.lstrip("!") for url in outcomes) == sorted(urls)
    assert all(url.startswith("!") for url in outcomes if "/pull/" in url)
    eventually(lambda: not place.gh.alive())


# --- rounds --------------------------------------------------------------------------------------


def test_links_are_looked_up_again_and_again(place: Place) -> None:
    """As long as somebody listens; what has changed is told, and what failed is tried again."""
    place.make(poll_s=0.05)
    place.gh.answer(pull(1), exit=1)
    reader = place.read(pull(1))
    assert reader.settled(2) == ["!" + pull(1)] * 2
    place.gh.answer(pull(1), fields={"state": "MERGED"})
    while True:
        told = reader.next()
        if told["items"]:
            break
    assert told["items"][0]["status"] == "merged"
    reader.settled(2)
    reader.leave()
    eventually(lambda: not threads())
    assert place.lookups.listeners() == 0
    calls = len(place.gh.calls())
    time.sleep(0.2)  # Four times the pause between two rounds.
    assert len(place.gh.calls()) == calls


def test_a_round_under_way_makes_the_next_one_wait(place: Place) -> None:
    """One slow link delays the next look at all of them; none is asked for twice at a time."""
    place.make(poll_s=0.02)
    place.gh.answer(pull(1), wait=True)
    reader = place.read(pull(1), pull(2))
    assert reader.settled(1) == [pull(2)]
    time.sleep(0.2)  # Ten times the pause between two rounds.
    assert sorted(place.gh.things()) == [pull(1), pull(2)]
    place.gh.go_on()
    assert reader.settled(1) == [pull(1)]
    assert sorted(reader.settled(2)) == [pull(1), pull(2)]


def test_each_listener_has_rounds_of_its_own(place: Place) -> None:
    """One that waits for a slow link does not stop the other."""
    place.make(poll_s=0.02)
    place.gh.answer(pull(1), hang=True)
    slow, quick = place.read(pull(1)), place.read(pull(2))
    assert quick.settled(3) == [pull(2)] * 3
    assert slow.subscription.take(0.0) == []
    assert place.gh.things().count(pull(1)) == 1


# --- leaving -------------------------------------------------------------------------------------


def test_who_leaves_in_the_middle_causes_no_more_lookups(place: Place) -> None:
    """Those in the queue are dropped; those that run end, and are remembered."""
    place.gh.answer("*", wait=True)
    urls = [pull(number) for number in range(20)]
    reader, other = place.read(*urls), place.read(urls[19])
    eventually(lambda: len(place.gh.calls()) == AT_ONCE)
    reader.leave()
    reader.leave()
    place.gh.go_on()
    assert other.settled(1) == [urls[19]]
    eventually(lambda: "link" not in threads())
    assert sorted(place.gh.things()) == sorted([*urls[:AT_ONCE], urls[19]])
    assert len(Reader(place.lookups, urls).next()["items"]) == AT_ONCE + 1


def test_who_comes_while_nobodys_lookup_runs_joins_it(place: Place) -> None:
    """It is not asked for a second time."""
    place.gh.answer("*", wait=True)
    first = place.read(pull(1))
    eventually(lambda: len(place.gh.calls()) == 1)
    first.leave()
    second = place.read(pull(1))
    place.gh.go_on()
    assert second.settled(1) == [pull(1)]
    assert len(place.gh.calls()) == 1


def test_a_reader_that_takes_nothing_is_cut_off(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, and its links are not looked up any more; others go on."""
    monkeypatch.setattr(hub_module, "QUEUE_FRAMES", 5)
    place.make(poll_s=0.02)
    cuts: List[int] = []
    stalled = Reader(place.lookups, [pull(1)], lambda: cuts.append(1))
    eventually(lambda: bool(cuts))
    assert stalled.subscription.overflown and place.lookups.listeners() == 0
    assert place.read(pull(2)).settled(2) == [pull(2)] * 2
    assert cuts == [1]
    stalled.leave()


def test_closing_ends_every_feed_at_once(place: Place) -> None:
    """With a hanging program; nothing begins afterwards, and who comes later is told what is known."""
    place.read(pull(9)).settled(1)
    place.gh.answer("*", hang=True)
    readers = [place.read(pull(1)), place.read(*map(pull, range(20)))]
    eventually(lambda: len(place.gh.calls()) == 1 + AT_ONCE)
    place.lookups.close()
    assert all(reader.subscription.closed for reader in readers)
    place.programs.close()
    eventually(lambda: not threads())
    assert len(place.gh.calls()) == 1 + AT_ONCE and not place.gh.alive()
    late = Reader(place.lookups, [pull(9)])
    assert len(late.next()["items"]) == 1 and late.subscription.closed
    assert place.lookups.facts()["github"]["failed"] == 0, "our own end is no failure"
    place.lookups.close()


# --- bounds --------------------------------------------------------------------------------------


class NoPrograms(Programs):
    """Answers at once, without a process."""

    def path(self, name: str) -> Optional[str]:
        """Wherever."""
        return f"/bin/{name}"

    def run(self, argv: Sequence[str], timeout_s: float, most_bytes: int = 0) -> str:
        """An issue."""
        return '{"number": 1, "state": "OPEN", "title": "A"}'


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest unused goes; asking for it, or finding it again, is a use."""
    monkeypatch.setattr(lookups_module, "MOST_ITEMS", 3)
    lookups = Lookups(NoPrograms({}), NEVER_S)
    urls = [issue(number) for number in range(1, 5)]
    for asked, expected in (
        (urls[0], urls[:1]),
        (urls[1], urls[:2]),
        (urls[2], urls[:3]),
        (urls[0], [urls[1], urls[2], urls[0]]),
        (urls[3], [urls[2], urls[0], urls[3]]),
    ):
        reader = Reader(lookups, [asked])
        reader.next()
        assert reader.settled(1) == [asked]
        assert list(lookups._items) == expected
    # One that is asked for comes to the end before it is found again.
    monkeypatch.setattr(Lookups, "_begin_round", lambda *_: None)
    assert Reader(lookups, [urls[2]]).next()["items"] and list(lookups._items)[-1] == urls[2]
    lookups.close()


def test_no_thread_to_be_had_is_tried_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the next tick."""
    place.make(poll_s=0.05)
    place.read(pull(1)).settled(1)  # The poller runs.
    real = threading.Thread.start
    refused: List[str] = []

    def start(thread: threading.Thread) -> None:
        if thread.name == "link" and not refused:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    assert place.read(pull(2)).settled(1) == [pull(2)]
    assert refused == ["link"]


def test_a_fault_of_ours_does_not_stop_the_others(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The link fails, the reason names the fault, and its lookup is tried again."""

    def faulty(link: Link, text: str) -> Dict[str, object]:
        raise ZeroDivisionError

    monkeypatch.setattr(lookups_module.PROVIDERS["jira"], "fields", faulty)
    assert sorted(place.read(ticket(1), ticket(2), pull(1)).settled(3)) == [
        "!" + ticket(1),
        "!" + ticket(2),
        pull(1),
    ]
    assert "ZeroDivisionError" in place.lookups.notes()[0]


# --- what is told of them ------------------------------------------------------------------------


def test_failures_are_counted_with_their_last_reason(place: Place) -> None:
    """So that a gh that is not logged in is seen; without the link, which may hold a secret."""
    nothing = {"enabled": True, "succeeded": 0, "failed": 0, "failedInARow": 0, "lastFailure": None}
    assert place.lookups.facts() == {"github": nothing, "jira": nothing}
    assert place.lookups.notes() == []
    place.gh.answer("*", exit=4, stderr=f"run: gh auth login ({pull(1)}?token=s3cret)\n")
    place.read(pull(1), pull(2)).settled(2)
    reason = "gh failed (exit code 4): run: gh auth login (<link>"
    facts = {**nothing, "failed": 2, "failedInARow": 2, "lastFailure": reason}
    assert place.lookups.facts() == {"github": facts, "jira": nothing}
    assert place.lookups.notes() == [f"Links of github: 2 lookup(s) failed in a row: {reason}"]
    place.gh.answer("*")
    place.read(pull(1)).settled(1)
    assert place.lookups.facts()["github"] == {**facts, "succeeded": 1, "failedInARow": 0}
    assert place.lookups.notes() == []
