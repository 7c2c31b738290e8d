"""Associations in memory: order and indexes."""

from dataclasses import replace

from adapters.contract import Status
from companion.sessions.association import Association
from companion.sessions.index import Holdings


def _record(card: str, session: str) -> Association:
    return Association(f"/b/{card}.md", "pi", session, Status.IDLE, "t", "b", card)


def test_lookups_by_card_and_session_keep_the_order_of_first_appearance() -> None:
    """A later record of a known key replaces it in place."""
    held = Holdings()
    for record in [_record("a", "1"), _record("b", "1"), _record("a", "2"), _record("b", "2")]:
        held.put(record)
    closed = replace(_record("a", "1"), status=Status.CLOSED)
    held.put(closed)
    assert held.all() == [closed, _record("b", "1"), _record("a", "2"), _record("b", "2")]
    assert held.of_card("a") == [closed, _record("a", "2")]
    assert held.of_session("pi", "1") == [closed, _record("b", "1")]
    assert held.of_session("claude", "1") == []
    assert (len(held), held.cards(), held.sessions()) == (4, 2, 2)
    assert closed.key in held and held.get(closed.key) is closed


def test_dropping_leaves_no_trace_in_the_indexes() -> None:
    """A dropped key is gone from everywhere; dropping it twice is no error."""
    held = Holdings()
    for record in [_record("a", "1"), _record("a", "2")]:
        held.put(record)
    held.drop(_record("a", "1").key)
    held.drop(_record("a", "1").key)
    assert (held.of_card("a"), held.sessions()) == ([_record("a", "2")], 1)
    held.drop_where(lambda each: each.session_id == "2")
    assert (len(held), held.cards(), held.sessions()) == (0, 0, 0)


def test_every_change_is_counted() -> None:
    """A replaced record is one; dropping what is not there is none."""
    held = Holdings()
    seen = [held.changes]
    held.put(_record("a", "1"))
    seen.append(held.changes)
    held.put(_record("a", "1"))
    seen.append(held.changes)
    held.drop(_record("a", "1").key)
    seen.append(held.changes)
    held.fold([])
    seen.append(held.changes)
    assert len(set(seen)) == len(seen)
    held.drop(_record("a", "1").key)
    assert held.changes == seen[-1]


def test_a_legacy_record_is_found_by_its_path() -> None:
    """Without a uuid the path is the identity."""
    held = Holdings()
    legacy = replace(_record("a", "1"), card_uuid="", board_uuid="")
    held.fold([_record("z", "9")])
    held.fold([legacy])
    assert held.all() == held.of_card("/b/a.md") == [legacy]
