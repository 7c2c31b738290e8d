"""The table of events."""

from adapters.codex import events


def test_what_is_subscribed_to_is_known_once() -> None:
    """And nothing that comes with each of the model's requests."""
    assert len(set(events.EVENTS)) == len(events.EVENTS)
    assert set(events.SUBSCRIBED) <= set(events.EVENTS)
    assert "PreModelRequest" not in events.SUBSCRIBED
