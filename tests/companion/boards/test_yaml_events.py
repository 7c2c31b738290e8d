"""The draft keeps events in order and can take back what was read on trial."""

from companion.boards.yaml_events import ALIAS, DOCUMENT, MAPPING, SCALAR, SEQUENCE, Draft, Properties


def test_what_was_read_on_trial_can_be_taken_back() -> None:
    """Events and place both."""
    draft = Draft("abc")
    draft.add(DOCUMENT)
    trial = draft.trial()
    draft.at.pos = 2
    draft.add_scalar("ab", True)
    draft.take_back(trial)
    assert [event.kind for event in draft.events] == [DOCUMENT]
    assert draft.at.pos == 0


def test_a_collection_can_begin_in_front_of_what_was_read() -> None:
    """Only the colon behind a key tells that a mapping has begun."""
    draft = Draft("a: b")
    trial = draft.trial()
    draft.add_scalar("a", True)
    draft.open(MAPPING, None, before=trial)
    assert [event.kind for event in draft.events] == [MAPPING, SCALAR]
    assert draft.is_mapping(trial)


def test_properties_go_with_their_node() -> None:
    """Anchor and tag; an empty node may have them too."""
    props = Properties()
    assert not props
    props.anchor, props.tag = "x", "!!str"
    draft = Draft("")
    draft.open(SEQUENCE, props)
    draft.add_empty(props)
    draft.add(ALIAS, "x")
    assert [(event.anchor, event.tag, event.text) for event in draft.events] == [
        ("x", "!!str", ""),
        ("x", "!!str", ""),
        ("", "", "x"),
    ]
