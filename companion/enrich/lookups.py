"""Looks links up while somebody listens: shared, polled, remembered, and few at a time.

A *feed* is one listener with its links. A *job* is one lookup of one URL, for all the feeds that
want it just then. Workers (threads that come and go) take the jobs in order; one more thread
starts a round of each feed when its time has come.
"""

import json
import logging
import re
import threading
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Callable, Deque, Dict, List, Optional, Protocol, Sequence

from companion.core.errors import ProgramFailed
from companion.core.hub import Frame, Subscription
from companion.core.programs import Programs
from companion.enrich import github, jira
from companion.enrich.answers import Fields
from companion.enrich.urls import Link

_log = logging.getLogger(__name__)

EVENT = "enrichments"
POLL_S = 30.0
# gh and jira take about a second; beyond this somebody's network hangs.
LOOKUP_S = 15.0
# Of the eight programs that may run at once: a click on "focus" must not wait behind fifty links.
AT_ONCE = 6
# A board has some hundred links. At about 300 bytes each, well below a megabyte.
MOST_ITEMS = 1_000

_URL = re.compile(r"[a-z]+://\S+", re.IGNORECASE)


class Provider(Protocol):
    """A module that knows one site."""

    PROGRAM: str

    def arguments(self, link: Link) -> List[str]:
        """What its program is asked."""

    def fields(self, link: Link, text: str) -> Fields:
        """What the program's answer says. ProgramFailed when it cannot be used."""


PROVIDERS: Dict[str, Provider] = {"github": github, "jira": jira}


class _Feed:
    """One listener, and how its present round stands."""

    def __init__(self, links: Sequence[Link], subscription: Subscription, due_s: float) -> None:
        self.links = links
        self.subscription = subscription
        self.due_s = due_s
        """When the next round begins, on the monotonic clock."""
        self.awaited = 0
        """Lookups of this round that are not settled yet."""


@dataclass(eq=False)
class _Job:
    link: Link
    feeds: List[_Feed] = field(default_factory=list)


@dataclass
class _Tally:
    succeeded: int = 0
    failed: int = 0
    failed_in_a_row: int = 0
    last_failure: Optional[str] = None


class Lookups:
    """All lookups of this process. Safe to use from several threads."""

    def __init__(self, programs: Programs, poll_s: float = POLL_S, lookup_s: float = LOOKUP_S) -> None:
        self._programs = programs
        self._poll_s = poll_s
        self._lookup_s = lookup_s
        self._changed = threading.Condition()  # Guards all below; told when the poller has to look up.
        self._feeds: Dict[Subscription, _Feed] = {}
        self._jobs: Dict[str, _Job] = {}  # By URL: those that run, and those in the queue.
        self._queue: Deque[_Job] = deque()
        self._workers = 0
        self._polling = False
        self._items: OrderedDict[str, Fields] = OrderedDict()  # By URL, the longest unused first.
        self._tallies = {name: _Tally() for name in PROVIDERS}
        self._closed = False

    def enabled(self, provider: str) -> bool:
        """Whether the provider's program is there."""
        return self._programs.path(PROVIDERS[provider].PROGRAM) is not None

    def subscribe(self, links: Sequence[Link], on_overflow: Callable[[], None]) -> Subscription:
        """Look these links up now and again and again, until :meth:`unsubscribe`.

        The first frame holds what is known already. Then one for each lookup, in the order in
        which they settle, with one item or one error.
        """
        subscription = Subscription("", on_overflow)
        with self._changed:
            known = [self._items[link.url] for link in links if link.url in self._items]
            for item in known:
                self._items.move_to_end(str(item["url"]))
            subscription.offer(_frame(known, []))
            if self._closed:
                subscription.close()
                return subscription
            if not self._polling:
                threading.Thread(target=self._poll, name="links", daemon=True).start()
                self._polling = True
            feed = _Feed(links, subscription, time.monotonic() + self._poll_s)
            self._feeds[subscription] = feed
            self._begin_round(feed)
            self._start_workers()
            self._changed.notify()
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Forget a listener; lookups that only it wanted are not begun. May be called twice."""
        subscription.close()
        with self._changed:
            self._forget(subscription)
            self._changed.notify()

    def listeners(self) -> int:
        """How many feeds are open."""
        with self._changed:
            return len(self._feeds)

    def facts(self) -> Dict[str, Dict[str, object]]:
        """Per provider: ``enabled``, ``succeeded``, ``failed``, ``failedInARow``, ``lastFailure``."""
        enabled = {name: self.enabled(name) for name in PROVIDERS}
        with self._changed:
            return {
                name: {
                    "enabled": enabled[name],
                    "succeeded": tally.succeeded,
                    "failed": tally.failed,
                    "failedInARow": tally.failed_in_a_row,
                    "lastFailure": tally.last_failure,
                }
                for name, tally in self._tallies.items()
            }

    def notes(self) -> List[str]:
        """A line for each provider whose lookups have failed since one last succeeded."""
        with self._changed:
            return [
                f"Links of {name}: {tally.failed_in_a_row} lookup(s) failed in a row: {tally.last_failure}"
                for name, tally in self._tallies.items()
                if tally.failed_in_a_row
            ]

    def close(self) -> None:
        """End every feed and begin no lookup any more. What runs is ended by ``Programs.close``."""
        with self._changed:
            self._closed = True
            for subscription in list(self._feeds):
                subscription.close()
                self._forget(subscription)
            self._changed.notify()

    # --- the lock is held -------------------------------------------------------------------------

    def _begin_round(self, feed: _Feed) -> None:
        if feed.awaited:  # The last one is still under way.
            return
        for link in feed.links:
            job = self._jobs.get(link.url)
            if job is None:
                job = self._jobs[link.url] = _Job(link)
                self._queue.append(job)
            job.feeds.append(feed)
            feed.awaited += 1

    def _forget(self, subscription: Subscription) -> None:
        feed = self._feeds.pop(subscription, None)
        if feed is None:
            return
        for job in self._jobs.values():
            if feed in job.feeds:
                job.feeds.remove(feed)
        for job in [each for each in self._queue if not each.feeds]:
            self._queue.remove(job)
            del self._jobs[job.link.url]

    def _start_workers(self) -> None:
        for _ in range(min(len(self._queue), AT_ONCE - self._workers)):
            try:
                threading.Thread(target=self._work, name="link", daemon=True).start()
            except RuntimeError:  # No thread is to be had now; the next tick tries again.
                _log.warning("no thread is to be had for looking links up")
                return
            self._workers += 1

    def _remember(self, url: str, item: Fields) -> None:
        self._items[url] = item
        self._items.move_to_end(url)
        if len(self._items) > MOST_ITEMS:
            self._items.popitem(last=False)

    def _count(self, provider: str, failure: str) -> None:
        tally = self._tallies[provider]
        if failure:
            tally.failed += 1
            tally.failed_in_a_row += 1
            tally.last_failure = _URL.sub("<link>", failure)  # Its tail may hold a secret.
        else:
            tally.succeeded += 1
            tally.failed_in_a_row = 0

    # --- threads ----------------------------------------------------------------------------------

    def _poll(self) -> None:
        with self._changed:
            while self._feeds:
                now = time.monotonic()
                for feed in self._feeds.values():
                    if feed.due_s <= now:
                        feed.due_s = now + self._poll_s
                        self._begin_round(feed)
                self._start_workers()
                self._changed.wait(max(0.0, min(feed.due_s for feed in self._feeds.values()) - now))
            self._polling = False

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._queue:
                    self._workers -= 1
                    return
                job = self._queue.popleft()
            item, failure = None, ""
            try:
                item = self._look_up(job.link)
            except ProgramFailed as exc:
                failure = str(exc)
            except Exception as exc:  # Foreign data met a bug of ours: the other links must not suffer.
                _log.exception("a link of %s could not be looked up", job.link.provider)
                failure = f"{type(exc).__name__} (a fault of mdello's own)"
            for subscription in self._settle(job, item, failure):
                subscription.on_overflow()

    def _look_up(self, link: Link) -> Fields:
        provider = PROVIDERS[link.provider]
        program = self._programs.path(provider.PROGRAM)
        if program is None:
            raise ProgramFailed(f"{provider.PROGRAM} is not installed")
        text = self._programs.run([program, *provider.arguments(link)], self._lookup_s)
        return {**provider.fields(link, text), "url": link.url, "provider": link.provider}

    def _settle(self, job: _Job, item: Optional[Fields], failure: str) -> List[Subscription]:
        """Remember and tell the outcome. Returns those whose reader is too slow; they are forgotten."""
        link = job.link
        error = {"url": link.url, "provider": link.provider, "error": "lookup_failed"}
        frame = _frame([], [error]) if item is None else _frame([item], [])
        slow = []
        with self._changed:
            del self._jobs[link.url]
            if not self._closed:
                self._count(link.provider, failure)
            if item is not None:
                self._remember(link.url, item)
            for feed in list(job.feeds):
                feed.awaited -= 1
                if not feed.subscription.offer(frame):
                    self._forget(feed.subscription)
                    if feed.subscription.overflown:
                        slow.append(feed.subscription)
        return slow


def _frame(items: List[Fields], errors: List[Dict[str, str]]) -> Frame:
    data = json.dumps({"items": items, "errors": errors}, separators=(",", ":"))  # ASCII, a single line
    return Frame(0, "", EVENT, data.encode("ascii"))
