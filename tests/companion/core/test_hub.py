"""Publishing to bounded queues: order, overflow, what was missed."""

import threading
from typing import List, Optional

import pytest

from companion.core import hub as hub_module
from companion.core.hub import QUEUE_FRAMES, REPLAY_FRAMES, Hub, Subscription


def _subscribe(hub: Hub, topic: str = "b", last: Optional[str] = None) -> Subscription:
    return hub.subscribe(topic, lambda: b"[]", last, lambda: None)


def _data(subscription: Subscription) -> List[bytes]:
    return [frame.data for frame in subscription.take(0)]


def test_a_listener_gets_its_snapshot_then_frames_of_its_topic_in_order() -> None:
    """Other topics are not heard."""
    hub = Hub("life")
    listener = _subscribe(hub)
    hub.publish("b", "association", b"1")
    hub.publish("other", "association", b"2")
    hub.publish("b", "association", b"3")
    assert _data(listener) == [b"[]", b"1", b"3"]
    assert _data(listener) == []
    assert (hub.topics(), hub.listeners()) == (["b"], 1)


def test_topics_are_listed_once_in_order() -> None:
    """Two listeners of one board are one topic."""
    hub = Hub("life")
    for topic in ("b", "a", "b"):
        _subscribe(hub, topic)
    assert hub.topics() == ["b", "a"]


def test_a_full_queue_is_closed_and_costs_nobody_else_anything() -> None:
    """The stalled reader is told once, outside the hub's lock; the other one misses nothing."""
    hub = Hub("life")
    calls: List[int] = []
    stalled = hub.subscribe("b", lambda: b"[]", None, lambda: calls.append(hub.listeners()))
    brisk = _subscribe(hub)
    heard = 0
    for _ in range(QUEUE_FRAMES + 10):
        hub.publish("b", "association", b"x")
        heard += len(brisk.take(0))
    assert heard == QUEUE_FRAMES + 11
    assert calls == [1]
    assert stalled.closed and stalled.overflown and stalled.take(0) == []
    hub.unsubscribe(stalled)
    hub.unsubscribe(stalled)
    assert hub.listeners() == 1


def test_waiting_ends_with_a_frame_with_closing_or_in_time() -> None:
    """A listener's thread never hangs."""
    hub = Hub("life")
    listener = _subscribe(hub)
    listener.take(0)
    assert listener.take(0.01) == []
    threading.Timer(0.01, hub.publish, ("b", "association", b"x")).start()
    assert [frame.data for frame in listener.take(30)] == [b"x"]
    threading.Timer(0.01, listener.close).start()
    assert listener.take(30) == []
    assert listener.closed and listener.take(30) == []


def test_what_was_missed_comes_before_the_snapshot() -> None:
    """With an id of this life: the changes since, not the snapshots; ids of the topic only."""
    hub = Hub("life")
    first = _subscribe(hub)
    hub.publish("b", "association", b"1")
    seen = hub.event_id(first.take(0)[-1])
    hub.publish("b", "association", b"2")
    hub.publish("b", "snapshot", b"[2]")
    hub.publish("other", "association", b"3")
    hub.publish("b", "association", b"4")
    again = _subscribe(hub, last=seen)
    frames = again.take(0)
    assert [frame.data for frame in frames] == [b"2", b"4", b"[]"]
    assert hub.event_id(frames[-1]) == "life-5"
    assert _data(_subscribe(hub, last=hub.event_id(frames[-1]))) == [b"[]"]


@pytest.mark.parametrize(
    "last",
    [
        None,
        "",
        "life",
        "-",
        "life-",
        "life--1",
        "life-x",
        "life-99",
        "life-\u0661",
        "other-0",
        "life-" + "9" * 400,
    ],
)
def test_a_useless_id_gets_the_snapshot_alone(last: Optional[str]) -> None:
    """Of another life, of the future, or no id at all."""
    hub = Hub("life")
    hub.publish("b", "association", b"1")
    assert _data(_subscribe(hub, last=last)) == [b"[]"]


def test_an_id_out_of_reach_gets_the_snapshot_alone() -> None:
    """Frames that are kept no more cannot be told."""
    hub = Hub("life")
    for _ in range(REPLAY_FRAMES + 1):
        hub.publish("b", "association", b"x")
    assert _data(_subscribe(hub, last="life-0")) == [b"[]"]


def test_more_than_a_queue_holds_is_not_replayed() -> None:
    """A listener that would overflow at once would come back with the same id for ever."""
    hub = Hub("life")
    for _ in range(QUEUE_FRAMES):
        hub.publish("b", "association", b"x")
    late = _subscribe(hub, last="life-0")
    assert not late.closed
    assert _data(late) == [b"[]"]
    assert len(_data(_subscribe(hub, last="life-1"))) == QUEUE_FRAMES


def test_nothing_falls_between_snapshot_and_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """While others publish, every subscription's snapshot and frames are one gapless story."""
    monkeypatch.setattr(hub_module, "QUEUE_FRAMES", 1_000_000)
    hub = Hub("life")
    lock = threading.RLock()
    count = 0
    stop = threading.Event()

    def publish() -> None:
        nonlocal count
        while not stop.is_set():
            with lock:
                count += 1
                hub.publish("b", "association", str(count).encode())

    publisher = threading.Thread(target=publish)
    publisher.start()
    stories = []
    for _ in range(50):
        with lock:
            stories.append(hub.subscribe("b", lambda: str(count).encode(), None, lambda: None))
    stop.set()
    publisher.join()
    for story in stories:
        numbers = [int(data) for data in _data(story)]
        assert numbers == list(range(numbers[0], count + 1))


def test_closing_ends_every_subscription_now_and_later() -> None:
    """At shutdown."""
    hub = Hub("life")
    listener = _subscribe(hub)
    hub.close()
    hub.close()
    assert listener.closed and hub.listeners() == 0
    late = _subscribe(hub)
    assert late.closed and hub.listeners() == 0
