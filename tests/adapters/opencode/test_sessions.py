"""Sessions of several stores, each once; sub-agents belong to whoever sent them."""

from typing import Dict, List, Optional, Tuple

import pytest

from adapters.contract import ReadReport
from adapters.opencode.messages import Found
from adapters.opencode.sessions import Head, Index, Unreadable, iso_utc, read_family


def head(name: str, updated_ms: float = 1000, parent: str = "", file: str = "/db") -> Head:
    return Head(name, parent, None, updated_ms, file)


class Store:
    """A store in memory; a session of which nothing is known cannot be read."""

    def __init__(self, path: str, *heads: Head, cards: Optional[Dict[str, Tuple[str, str]]] = None) -> None:
        self.path = path
        self._heads = heads
        self._cards = cards or {}

    def heads(self) -> List[Head]:
        if not self._heads:
            raise Unreadable("file is locked")
        return list(self._heads)

    def collect(self, head: Head, with_text: bool, found: Found) -> None:
        if head.session_id not in self._cards:
            raise Unreadable("page 5 is damaged")
        said, edited = self._cards[head.session_id]
        found.add((0.0, "", ""), (said,) if with_text else ())
        found.add((1.0, "", ""), (edited,))


def families(*stores: Store, since: float = 0) -> List[List[Tuple[str, str]]]:
    index = Index(ReadReport())
    for store in stores:
        index.add(store)
    return [[(each.session_id, each.file) for each, _ in family] for family in index.families(since)]


def test_each_session_once_the_newest_copy() -> None:
    """Of equal ones that of the store that was added first; the oldest session first."""
    database = Store("/db", head("a", 1), head("b", 2), head("c", 9))
    files = Store("/s", head("a", 2, file="/s/a"), head("b", 2, file="/s/b"), head("d", 1, file="/s/d"))
    assert families(database, files) == [[("d", "/s/d")], [("a", "/s/a")], [("b", "/db")], [("c", "/db")]]


def test_window_looks_at_the_newest_copy_of_the_session_itself() -> None:
    """Its edge included; a sub-agent's time does not count."""
    store = Store("/db", head("old", 999), head("edge", 1000), head("kid", 5000, "old"))
    assert families(store, since=1000) == [[("edge", "/db")]]


def test_sub_agents_stand_behind_their_session_however_deep() -> None:
    """A sub-agent's own sub-agents too, in whatever order they are listed."""
    store = Store("/db", head("c", 1, "b"), head("b", 1, "a"), head("a", 5), head("other", 9))
    assert families(store) == [[("a", "/db"), ("c", "/db"), ("b", "/db")], [("other", "/db")]]


def test_sub_agents_without_their_session_are_told() -> None:
    """Deleted parents, and parents in a circle; old ones are no news."""
    report = ReadReport()
    index = Index(report)
    lost = [
        head("a", 9, "gone"),
        head("b", 9, "c"),
        head("c", 9, "b"),
        head("d", 9, "d"),
        head("e", 1, "gone"),
    ]
    index.add(Store("/db", *lost))
    assert index.families(5) == []
    assert report.skipped == [("/db", "4 sessions of sub-agents whose own session is not there")]


def test_store_that_cannot_be_listed_is_told_and_others_are_read() -> None:
    """And nothing may be concluded from what is missing."""
    report = ReadReport()
    index = Index(report)
    index.add(Store("/locked"))
    index.add(Store("/db", head("a")))
    assert len(index.families(0)) == 1
    assert report.skipped == [("/locked", "file is locked")]
    assert report.incomplete


def test_family_is_one_session_without_the_words_told_to_sub_agents() -> None:
    """What they edited counts."""
    store = Store(
        "/db", head("a"), cards={"a": ("/b/said.md", "/b/x.md"), "kid": ("/b/told.md", "/b/kid.md")}
    )
    report = ReadReport()
    found = read_family([(head("a", 1_796_088_000_250), store), (head("kid", 1, "a"), store)], report)
    assert (found.session_id, found.session_file) == ("a", "/db")
    assert found.updated_at == "2026-12-01T01:20:00.250Z"
    assert found.card_paths == ("/b/said.md", "/b/x.md", "/b/kid.md")
    assert report == ReadReport()


def test_session_that_cannot_be_read_is_told_and_still_one() -> None:
    """It is there, so it is scanned; what it worked on is not known."""
    report = ReadReport()
    found = read_family([(head("a"), Store("/db", head("a")))], report)
    assert (found.session_id, found.card_paths) == ("a", ())
    assert report.skipped == [("/db", "session a: page 5 is damaged")]
    assert report.incomplete
    assert read_family([], report).session_file is None


@pytest.mark.parametrize(
    ("unix_ms", "stamp"),
    [
        (1_796_067_919_492, "2026-11-30T19:45:19.492Z"),
        (1000.0, "1970-01-01T00:00:01.000Z"),
        (0, None),
        (-5, None),
        (1e30, None),
        (float("nan"), None),
        (float("inf"), None),
    ],
)
def test_times(unix_ms: float, stamp: Optional[str]) -> None:
    """Milliseconds since 1970; nonsense is no time."""
    assert iso_utc(unix_ms) == stamp


def test_sessions_without_a_time_are_told() -> None:
    """Whether they are new cannot be said, so nothing may be concluded from leaving them out."""
    report = ReadReport()
    index = Index(report)
    index.add(Store("/db", head("a", 0), head("b", 0, "a"), head("c", 9)))
    assert [family[0][0].session_id for family in index.families(5)] == ["c"]
    assert ("/db", "1 sessions of which no time is known") in report.skipped
    assert report.incomplete
