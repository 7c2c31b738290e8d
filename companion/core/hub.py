"""Publish and subscribe between the ledger and whoever listens, with bounded queues.

A publisher never waits: a frame is offered to each subscriber's queue, and a subscriber whose
queue is full is closed (it reconnects and gets a fresh snapshot). Frames are encoded once and
shared. The last frames are kept so that a listener that was away can have what it missed.
"""

import threading
from collections import deque
from typing import Callable, Deque, List, NamedTuple, Optional

# A browser tab that is 1,000 frames behind is not reading any more. At about 400 bytes a frame
# this is below half a megabyte per listener, shared between listeners in truth.
QUEUE_FRAMES = 1_000
# How far back ``Last-Event-ID`` can reach.
REPLAY_FRAMES = 2_000


class Frame(NamedTuple):
    """One published thing."""

    number: int
    """Position in this hub's life, from 1; the part of the event id after the dash."""
    topic: str
    """Who gets it: a board's uuid."""
    name: str
    """SSE event name: ``association`` or ``snapshot``."""
    data: bytes
    """JSON on a single line, UTF-8."""


class Subscription:
    """One listener's bounded queue. Made by :meth:`Hub.subscribe`."""

    def __init__(self, topic: str, on_overflow: Callable[[], None]) -> None:
        self.topic = topic
        self.on_overflow = on_overflow
        """Called once, by a publisher and outside every lock of ours, after an overflow."""
        self._ready = threading.Condition()  # Guards the queue and the flag.
        self._queue: Deque[Frame] = deque()
        self._closed = False
        self.overflown = False
        """Whether it was closed because its reader was too slow."""

    def offer(self, frame: Frame) -> bool:
        """Queue a frame without waiting. False (and closed for good) when the queue is full."""
        with self._ready:
            if self._closed:
                return False
            if len(self._queue) < QUEUE_FRAMES:
                self._queue.append(frame)
                self._ready.notify()
                return True
            self._closed = self.overflown = True
            self._queue.clear()
            self._ready.notify()
            return False

    def take(self, timeout_s: float) -> List[Frame]:
        """All frames queued so far, waiting at most ``timeout_s`` for the first; may be empty."""
        with self._ready:
            if not self._queue and not self._closed:
                self._ready.wait(timeout_s)
            frames = list(self._queue)
            self._queue.clear()
            return frames

    def close(self) -> None:
        """Wake the listener for the last time. May be called twice."""
        with self._ready:
            self._closed = True
            self._ready.notify()

    @property
    def closed(self) -> bool:
        """Whether no further frame will come."""
        return self._closed


class Hub:
    """All subscriptions of this process."""

    def __init__(self, instance: str) -> None:
        self.instance = instance
        """A name for this process's life: ids of another life are never mistaken for ours."""
        self._lock = threading.Lock()  # Guards everything below.
        self._subscriptions: List[Subscription] = []
        self._number = 0
        self._recent: Deque[Frame] = deque(maxlen=REPLAY_FRAMES)
        self._closed = False

    def publish(self, topic: str, name: str, data: bytes) -> None:
        """Offer a frame to every subscriber of the topic; never waits."""
        overflown = []
        with self._lock:
            self._number += 1
            frame = Frame(self._number, topic, name, data)
            if name != "snapshot":  # A snapshot repeats state; what was missed are the changes.
                self._recent.append(frame)
            listeners = [each for each in self._subscriptions if each.topic == topic]
            for listener in listeners:
                if not listener.offer(frame):
                    self._subscriptions.remove(listener)
                    if listener.overflown:  # Otherwise it is being unsubscribed just now.
                        overflown.append(listener)
        for listener in overflown:
            listener.on_overflow()

    def subscribe(
        self,
        topic: str,
        snapshot: Callable[[], bytes],
        last_event_id: Optional[str],
        on_overflow: Callable[[], None],
    ) -> Subscription:
        """A subscription that already holds what the listener missed, then a fresh snapshot.

        Missed frames are given only for an id of this life that is still within reach, and only
        when they all fit: a queue that overflows at once would send its reader round in circles.
        Snapshot and queue are handed over under one lock, so that nothing falls between.
        """
        subscription = Subscription(topic, on_overflow)
        with self._lock:
            for frame in self._missed(topic, last_event_id):
                subscription.offer(frame)
            subscription.offer(Frame(self._number, topic, "snapshot", snapshot()))
            if self._closed:
                subscription.close()
            else:
                self._subscriptions.append(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Forget a subscription. May be called twice, and after an overflow."""
        subscription.close()
        with self._lock:
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)

    def topics(self) -> List[str]:
        """Topics that somebody listens to, each once, in order of first subscription."""
        with self._lock:
            return list(dict.fromkeys(each.topic for each in self._subscriptions))

    def listeners(self) -> int:
        """How many subscriptions are open."""
        with self._lock:
            return len(self._subscriptions)

    def close(self) -> None:
        """End every subscription, now and in future."""
        with self._lock:
            self._closed = True
            for subscription in self._subscriptions:
                subscription.close()
            self._subscriptions.clear()

    def event_id(self, frame: Frame) -> str:
        """The SSE id of a frame: ``<instance>-<number>``."""
        return f"{self.instance}-{frame.number}"

    def _missed(self, topic: str, last_event_id: Optional[str]) -> List[Frame]:
        after = self._number_of(last_event_id)
        if after is None:
            return []
        missed = [frame for frame in self._recent if frame.number > after and frame.topic == topic]
        return missed if len(missed) < QUEUE_FRAMES else []  # One place is the snapshot's.

    def _number_of(self, event_id: Optional[str]) -> Optional[int]:
        instance, _, number = (event_id or "").rpartition("-")
        if instance != self.instance or not (number.isascii() and number.isdigit()) or len(number) > 15:
            return None
        wanted = int(number)
        oldest = self._recent[0].number if self._recent else self._number + 1
        full = len(self._recent) == REPLAY_FRAMES
        return None if wanted > self._number or (full and wanted < oldest - 1) else wanted
