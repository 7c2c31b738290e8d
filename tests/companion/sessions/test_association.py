"""The record: identity, normalisation, JSON."""

from dataclasses import replace
from typing import Any, Dict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract import Status
from companion.sessions.association import Association, InvalidAssociation, from_json
from companion.sessions.lines import json_bytes

FULL: Dict[str, object] = {
    "boardUuid": "b",
    "cardUuid": "c",
    "cardPath": "/x/a.md",
    "harness": "claude",
    "sessionId": "s",
    "sessionFile": "/f",
    "status": "running",
    "updatedAt": "2026-01-01T00:00:00.000Z",
}


def test_a_full_record_survives_in_the_contracts_key_order() -> None:
    """Reading and writing give the same."""
    assert list(from_json(FULL).to_json().items()) == list(FULL.items())


_TEXTS = st.text(st.characters(exclude_categories=()))  # Halves of surrogate pairs too.


@given(
    st.builds(
        Association,
        *[_TEXTS] * 3,
        st.sampled_from(Status),
        *[_TEXTS] * 3,
        session_file=st.none() | _TEXTS,
    )
)
def test_the_encoded_record_is_what_the_general_encoder_makes_of_it(record: Association) -> None:
    """Byte by byte, and made only once; a changed copy has its own."""
    assert record.encoded == json_bytes(record.to_json())
    assert record.encoded is record.encoded
    assert replace(record, updated_at="later").encoded == json_bytes(
        {**record.to_json(), "updatedAt": "later"}
    )


@pytest.mark.parametrize("field", sorted(Association.__dataclass_fields__))
def test_only_the_time_does_not_count_as_news(field: str) -> None:
    """Every other field does."""
    record = from_json(FULL)
    value: Any = Status.CLOSED if field == "status" else "other"
    assert record.same_but_for_time(replace(record, **{field: value})) is (field == "updated_at")


def test_unknown_fields_are_dropped_and_absent_ones_have_no_key() -> None:
    """Display names of older companions, fields of newer ones."""
    least = {key: FULL[key] for key in ("cardPath", "sessionId", "status", "updatedAt")}
    assert from_json({**least, "herdrTab": "t", "x": 1}).to_json() == {**least, "harness": "unknown"}


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("cardPath", [None, "", "a.md", "/a.MD", "/a.txt", 5, "C:/a.md"]),
        ("harness", ["", 5, []]),
        ("sessionId", [None, "", 5]),
        ("sessionFile", [None, 5]),
        ("status", [None, "busy", "", 5, []]),
        ("updatedAt", [None, 5]),
        ("boardUuid", [None, 5]),
        ("cardUuid", [None, 5]),
    ],
)
def test_a_bad_value_makes_the_record_invalid_and_is_named(field: str, values: "list[object]") -> None:
    """Null counts as present."""
    for value in values:
        with pytest.raises(InvalidAssociation, match=field):
            from_json({**FULL, field: value})


@pytest.mark.parametrize("record", [None, [], "x", 5, True])
def test_only_an_object_is_a_record(record: object) -> None:
    """Any JSON may stand in the log."""
    with pytest.raises(InvalidAssociation):
        from_json(record)


@pytest.mark.parametrize(("old", "new"), [("active", Status.IDLE), ("inactive", Status.CLOSED)])
def test_legacy_statuses(old: str, new: Status) -> None:
    """As older logs have them."""
    assert from_json({**FULL, "status": old}).status is new


def test_there_are_five_statuses() -> None:
    """Spelled as on the wire."""
    for word in ("idle", "running", "waiting_for_input", "ready_for_review", "closed"):
        assert from_json({**FULL, "status": word}).to_json()["status"] == word
    assert len(Status) == 5


def test_an_empty_session_file_is_valid() -> None:
    """It is a string; that it counts as not given is the ledger's business."""
    assert from_json({**FULL, "sessionFile": ""}).session_file == ""


def test_no_harness_is_renamed() -> None:
    """``claude-code`` is another harness than ``claude``."""
    assert from_json({**FULL, "harness": "claude-code"}).harness == "claude-code"
    assert from_json({**FULL, "harness": None}).harness == "unknown"


def test_board_and_path_are_no_part_of_identity() -> None:
    """So it survives moves; harness and session are; a legacy record is its path."""
    record = from_json(FULL)
    assert record.moved_to("b2", "c", "/y/z.md").key == record.key == ("c", "claude", "s")
    assert replace(record, harness="pi").key != record.key
    assert replace(record, card_uuid="").key == ("/x/a.md", "claude", "s")


def test_records_are_compared_but_for_their_time() -> None:
    """Any other difference counts."""
    record = from_json(FULL)
    assert record.same_but_for_time(replace(record, updated_at="later"))
    assert not record.same_but_for_time(replace(record, session_file=None))
    assert not record.same_but_for_time(replace(record, status=Status.IDLE))
