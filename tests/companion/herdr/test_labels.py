"""When herdr is asked, what is remembered of it, and who waits: nobody, but a new stream for a moment."""

import threading
from typing import AbstractSet, Callable, Dict, Iterator, List, Set

import pytest

from adapters.registry import ADAPTERS
from companion.core.programs import Programs
from companion.herdr import labels as module
from companion.herdr.labels import HerdrLabels
from tests.companion.web.talk import PATIENCE_S, eventually
from tests.fakes.fake_herdr import FakeHerdr

NEVER_S = 3600.0
SHOP = ("Shop", "Basket")

MakeLabels = Callable[..., HerdrLabels]


@pytest.fixture
def told() -> List[Set[str]]:
    """What was told to the ledger, call by call."""
    return []


@pytest.fixture
def make_labels(programs: Programs, told: List[Set[str]]) -> Iterator[MakeLabels]:
    """Makes and starts them, with times of the test's choice."""
    made: List[HerdrLabels] = []

    def make(wait_s: float = PATIENCE_S, timeout_s: float = PATIENCE_S) -> HerdrLabels:
        labels = HerdrLabels(programs, ADAPTERS, wait_s, timeout_s)
        labels.start(lambda sessions: told.append(set(sessions)))
        made.append(labels)
        return labels

    yield make
    programs.close()
    for labels in made:
        labels.close()


@pytest.fixture
def labels(make_labels: MakeLabels) -> HerdrLabels:
    """Labels of a herdr for which a stream waits as long as it takes."""
    return make_labels()


def settled(labels: HerdrLabels) -> None:
    """Wait until nothing is wanted and nothing runs."""
    eventually(lambda: not labels._wanted and labels._begun == labels._ended)


def in_thread(work: Callable[[], object]) -> threading.Thread:
    """Something that may have to wait."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def joined(thread: threading.Thread) -> bool:
    """Whether it ends."""
    thread.join(PATIENCE_S)
    return not thread.is_alive()


# --- when herdr is asked -------------------------------------------------------------------------


def test_a_subscription_costs_one_sync(herdr: FakeHerdr, labels: HerdrLabels) -> None:
    """Three commands, whatever is held, and its labels are there when the stream opens."""
    herdr.run_session("s1")
    labels.refresh(["s1", "s2", "s2"])
    assert sorted(herdr.calls()) == ["agent list", "tab list", "workspace list"]
    assert labels.table() == {"s1": SHOP}
    labels.refresh([])
    assert herdr.syncs() == 2


def test_known_sessions_and_reads_cost_nothing(herdr: FakeHerdr, labels: HerdrLabels) -> None:
    """Known is what has labels, and what was held when a stream opened; also what cannot be known."""
    herdr.run_session("labelled")
    labels.refresh(["held"])
    for session in ("labelled", "held", None):
        labels.recorded(session)
        labels.table()
    settled(labels)
    assert herdr.syncs() == 1


def test_an_unknown_session_costs_one_sync_until_the_next_subscription(
    herdr: FakeHerdr, labels: HerdrLabels
) -> None:
    """That it was not found is remembered."""
    labels.refresh([])
    for _ in range(3):
        labels.recorded("unknown")
        settled(labels)
    assert herdr.syncs() == 2
    labels.refresh([])
    labels.recorded("unknown")
    settled(labels)
    assert herdr.syncs() == 4


def test_an_unknown_session_is_looked_for_without_any_stream(herdr: FakeHerdr, labels: HerdrLabels) -> None:
    """Somebody may read the list."""
    herdr.run_session("s1")
    labels.recorded("s1")
    eventually(lambda: labels.table() == {"s1": SHOP})


def test_syncs_at_the_same_time_are_one(herdr: FakeHerdr, labels: HerdrLabels) -> None:
    """Two streams and a change wait for the same three commands."""
    herdr.run_session("s1")
    herdr.misbehave(agent="wait")
    streams = [in_thread(lambda: labels.refresh([])) for _ in range(2)]
    eventually(lambda: herdr.syncs() == 1 and labels._waiting == 2)
    labels.recorded("s1")
    herdr.go_on()
    assert all(joined(each) for each in streams)
    settled(labels)
    assert herdr.syncs() == 1


def test_who_asks_while_herdr_answers_is_looked_for_once_more(herdr: FakeHerdr, labels: HerdrLabels) -> None:
    """Its list may have been made before that session was there. One more look does for all of them."""
    herdr.run_session("s1")
    herdr.misbehave(tab="wait")
    labels.recorded("s1")
    eventually(lambda: herdr.syncs() == 1)
    labels.recorded("s2")
    labels.recorded("s3")
    herdr.run_session("s2", tab="Checkout")
    herdr.go_on()
    eventually(lambda: labels.table() == {"s1": SHOP, "s2": ("Shop", "Checkout")})
    settled(labels)
    assert herdr.syncs() == 2


def test_without_herdr_nothing_runs(
    herdr: FakeHerdr, environ: Dict[str, str], labels: HerdrLabels, told: List[Set[str]]
) -> None:
    """And nothing is wrong. One that is installed later is found with the next session."""
    environ.clear()
    herdr.run_session("s2")
    labels.refresh(["s1"])
    labels.recorded("s1")
    labels.recorded("other")
    settled(labels)
    assert (herdr.calls(), labels.table(), labels.problem, told) == ([], {}, None, [])
    environ["PATH"] = str(herdr.folder)
    labels.recorded("s2")
    eventually(lambda: labels.table() == {"s2": SHOP})
    assert herdr.syncs() == 1


def test_nothing_runs_before_the_start(herdr: FakeHerdr, programs: Programs) -> None:
    """What was asked before is looked for then."""
    herdr.run_session("s1")
    labels = HerdrLabels(programs, ADAPTERS, NEVER_S)
    labels.refresh(["s0"])
    labels.recorded("s1")
    assert herdr.calls() == []
    labels.start(lambda sessions: None)
    eventually(lambda: labels.table() == {"s1": SHOP})
    labels.close()


def test_what_was_looked_for_is_bounded(
    herdr: FakeHerdr, labels: HerdrLabels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest may be looked for once more."""
    monkeypatch.setattr(module, "MOST_CHECKED", 3)
    labels.refresh(["a", "b", "c", "d"])
    assert list(labels._checked) == ["b", "c", "d"]
    for session in ("d", "e", "b"):
        labels.recorded(session)
        settled(labels)
    assert list(labels._checked) == ["d", "e", "b"]
    assert herdr.syncs() == 3


# --- what is told --------------------------------------------------------------------------------


def test_labels_that_come_change_and_go_are_told(
    herdr: FakeHerdr, labels: HerdrLabels, told: List[Set[str]]
) -> None:
    """Each session concerned, and no other; a sync that finds nothing new tells nothing."""
    herdr.run_session("s1")
    herdr.run_session("s2")
    labels.recorded("s1")
    settled(labels)
    table = labels.table()
    labels.recorded("x")
    settled(labels)
    assert labels.table() is table
    herdr.tabs[1]["label"] = "Checkout"
    herdr.save()
    labels.recorded("y")
    settled(labels)
    herdr.agents.pop(0)
    herdr.save()
    labels.recorded("z")
    settled(labels)
    eventually(lambda: told == [{"s1", "s2"}, {"s2"}, {"s1"}])


def test_who_subscribes_tells_it_all(herdr: FakeHerdr, labels: HerdrLabels, told: List[Set[str]]) -> None:
    """Every stream gets a snapshot anyhow: nothing is told twice."""
    herdr.run_session("s1")
    labels.refresh([])
    settled(labels)
    assert labels.table() and not told


def test_a_fault_of_who_is_told_ends_nothing(herdr: FakeHerdr, programs: Programs) -> None:
    """The next labels come all the same."""

    def tell(sessions: AbstractSet[str]) -> None:
        raise ZeroDivisionError

    labels = HerdrLabels(programs, ADAPTERS)
    labels.start(tell)
    for session in ("s1", "s2"):
        herdr.run_session(session)
        labels.recorded(session)
        eventually(lambda session=session: session in labels.table())
    programs.close()
    labels.close()


# --- a herdr that fails, is slow, or hangs -------------------------------------------------------


@pytest.mark.parametrize("mode", ["fail", "garbage"])
@pytest.mark.parametrize("command", ["agent", "tab", "workspace"])
def test_a_failed_sync_empties_the_labels(
    herdr: FakeHerdr, labels: HerdrLabels, mode: str, command: str
) -> None:
    """One command of three is enough. It is said why, until herdr is well again."""
    herdr.run_session("s1")
    labels.refresh([])
    assert labels.table() and labels.problem is None
    herdr.misbehave(**{command: mode})
    labels.refresh([])
    assert labels.table() == {}
    assert labels.problem is not None and "herdr" in labels.problem
    herdr.misbehave()
    labels.refresh([])
    assert labels.table() and labels.problem is None


def test_a_failed_sync_is_told_to_the_debug_log(
    herdr: FakeHerdr, labels: HerdrLabels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the contract's words."""
    said = []
    monkeypatch.setattr(module, "debug_event", lambda message, details: said.append((message, details)))
    labels.refresh([])
    herdr.misbehave(agent="garbage")
    labels.refresh([])
    assert said == [
        ("herdr state sync failed", {"error": "herdr answered with something else than JSON"}),
    ]


def test_a_program_that_is_not_there_is_told(environ: Dict[str, str], labels: HerdrLabels) -> None:
    """A configured path is taken unchecked."""
    environ["HERDR_PATH"] = "/nowhere/herdr"
    labels.refresh([])
    assert labels.problem == "herdr cannot be started: No such file or directory"
    environ.clear()
    labels.refresh([])
    assert labels.problem is None


def test_a_bug_of_ours_is_told_too(
    herdr: FakeHerdr, labels: HerdrLabels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not end the thread."""
    herdr.run_session("s1")
    monkeypatch.setattr(module, "label_table", lambda *_: 1 / 0)
    labels.refresh([])
    assert labels.problem is not None and "division" in labels.problem
    monkeypatch.undo()
    labels.refresh([])
    assert labels.table() == {"s1": SHOP}


def test_a_slow_herdr_is_waited_for_once_and_not_for_long(
    herdr: FakeHerdr, make_labels: MakeLabels, told: List[Set[str]]
) -> None:
    """Its labels come later, and are told then. The next stream does not wait for it at all."""
    labels = make_labels(wait_s=0.05)
    herdr.run_session("s1")
    herdr.misbehave(agent="wait")
    labels.refresh([])
    assert labels.table() == {}
    herdr.go_on()
    eventually(lambda: told == [{"s1"}])
    assert labels.table() == {"s1": SHOP}
    (herdr.folder / "go").unlink()
    labels._wait_s = NEVER_S
    assert joined(in_thread(lambda: labels.refresh([])))
    herdr.go_on()
    settled(labels)
    (herdr.folder / "go").unlink()
    herdr.misbehave()
    labels.refresh([])  # It is waited for again.
    assert herdr.syncs() == 3


def test_who_joins_a_sync_waits_only_for_the_rest_of_it(herdr: FakeHerdr, make_labels: MakeLabels) -> None:
    """A hanging herdr that was asked for a change long ago delays no stream."""
    labels = make_labels(wait_s=NEVER_S)
    herdr.misbehave(agent="hang")
    labels.recorded("s1")
    eventually(lambda: herdr.syncs() == 1)
    labels._begun_s -= NEVER_S
    assert joined(in_thread(lambda: labels.refresh([])))


def test_a_hanging_herdr_is_given_up(herdr: FakeHerdr, make_labels: MakeLabels) -> None:
    """Its labels are gone then, and it is said why."""
    labels = make_labels(timeout_s=0.5)
    herdr.misbehave(agent="hang")
    labels.refresh([])
    assert labels.problem == "herdr did not end within 0.5 s"


def test_a_hanging_herdr_does_not_keep_us(herdr: FakeHerdr, programs: Programs) -> None:
    """Neither the thread, nor a stream that waits; a second end and later questions are harmless."""
    labels = HerdrLabels(programs, ADAPTERS, NEVER_S, NEVER_S)
    labels.start(lambda sessions: None)
    herdr.misbehave(agent="hang", tab="hang", workspace="hang")
    stream = in_thread(lambda: labels.refresh([]))
    eventually(lambda: herdr.syncs() == 1)
    programs.close()
    labels.close(PATIENCE_S)
    assert labels._thread is not None and not labels._thread.is_alive()
    assert joined(stream)
    labels.close()
    labels.refresh(["s1"])
    labels.recorded("s2")
    assert herdr.syncs() == 1
