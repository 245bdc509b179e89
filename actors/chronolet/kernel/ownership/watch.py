"""Watches the renewal counters of other processes: one that does not move for a time-to-live proves a death.

Input: the counters, read from the store each time free shards are searched. Output: the counter of each process that is
proven dead, for `Store.acquire`, which checks that it still has not moved. Next: `claims`.

Only this machine's clock since boot measures the time, so neither the server's clock nor the expiry of a key can make a
live process look dead; nor can a server that comes back with old data: a counter that changes in any way has moved. A
counter that was not read for half a time-to-live may have moved and been set back in between (a failover to a replica):
after such a gap the watch starts over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import structlog

from chronolet.kernel.ownership.lease import seconds_since_boot

log = structlog.get_logger("chronolet.kernel")


KEPT_TIMES = 10
"""For how many times-to-live a process stays watched that no caller asks about: callers that share a watch ask about
different processes.
"""


class Watched(NamedTuple):
    """A process's counter (empty: it has none), the time when it was first read, and when a caller last asked."""

    counter: str
    since: float
    asked_at: float


class CounterWatch:
    """The counters that one process has seen. `seconds`: the time-to-live of a lease."""

    def __init__(self, seconds: float, now: Callable[[], float] = seconds_since_boot) -> None:
        self._seconds = seconds
        self._now = now
        self._read_at = float("-inf")
        self._watched: dict[str, Watched] = {}

    def read(self, renewals: Callable[[], Mapping[str, str]], owners: Iterable[str]) -> Mapping[str, str]:
        """Read the counters of these processes, and of those that were asked about lately; return the counters of those
        that are proven dead. `owners` is iterated after the reading.

        The first reading of a counter counts from after its reply, a later one until before its request: the server may
        have read it at any time in between.
        """
        asked_at = self._now()
        counters = renewals()
        answered_at = self._now()
        gap = answered_at - self._read_at
        if gap > self._seconds / 2 and self._watched:
            log.info("renewal counters were not read for too long, watching them again", seconds=round(gap, 1))
            self._watched.clear()
        self._read_at = answered_at
        asked = dict.fromkeys(owners, answered_at)
        kept = answered_at - KEPT_TIMES * self._seconds
        lately = {owner: one.asked_at for owner, one in self._watched.items() if one.asked_at > kept}
        self._watched = {
            owner: self._next(owner, counters.get(owner, ""), answered_at, at) for owner, at in (lately | asked).items()
        }
        return {owner: one.counter for owner, one in self._watched.items() if asked_at - one.since >= self._seconds}

    def _next(self, owner: str, counter: str, now: float, asked_at: float) -> Watched:
        """The watched counter after a reading. A removed one has not moved: a takeover of another shard removed it."""
        seen = self._watched.get(owner)
        if seen is None or counter not in ("", seen.counter):
            return Watched(counter, now, asked_at)
        return seen._replace(asked_at=asked_at)
