"""Watches the renewal counters of other processes: a counter that does not move for a time-to-live proves a death.

Input: the counters, read from the store when members are surveyed or free shards are searched. Output: the counter of
each process that is proven dead, for `Store.acquire`, which checks that the counter still has not moved.
Next: `claims`, `sharing`, `membership`.

Only this machine's clock since boot measures the time, so neither the server's clock nor the expiry of a key can make a
live process look dead. Neither can a server that comes back with old data: a counter that changes in any way has moved.
If the counters were not read for more than half a time-to-live, one may have moved and been set back in the meantime
(by a failover to a replica), so the watch starts over after such a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import structlog

from chronolet.kernel.ownership.lease import seconds_since_boot

log = structlog.get_logger("chronolet.kernel")


KEPT_TIMES = 10
"""How long a process stays watched after a caller last asked about it, in times-to-live. Callers that share a watch ask
about different processes.
"""


class Watched(NamedTuple):
    """A process's counter (empty: it has none), the time when it was first read, and when a caller last asked."""

    counter: str
    since: float
    asked_at: float


class CounterWatch:
    """The counters that this process has read. `seconds`: the time-to-live of a lease."""

    def __init__(self, seconds: float, now: Callable[[], float] = seconds_since_boot) -> None:
        self._seconds = seconds
        self._now = now
        self._asked_at = self._read_at = float("-inf")
        self._watched: dict[str, Watched] = {}

    def read(self, renewals: Callable[[], Mapping[str, str]], owners: Iterable[str]) -> Mapping[str, str]:
        """Return the counter of each process that is proven dead, among `owners` and the processes that callers asked
        about recently. `renewals` reads all counters from the store; `owners` is iterated afterwards.

        A counter's time without a move begins when the reply of its first reading arrives, and ends when the request of
        the latest one is sent: the server may have read the counter at any time between request and reply.
        """
        asked_at = self._now()
        counters = renewals()
        answered_at = self._now()
        self._asked_at = asked_at
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

    def next_proof(self) -> float | None:
        """Return the seconds until a reading may prove the next death, if the counter still has not moved by then. None
        if all counters had moved within half a time-to-live at the last reading, or that time has passed.
        """
        now = self._now()
        left = (
            one.since + self._seconds - now
            for one in self._watched.values()
            if self._asked_at - one.since > self._seconds / 2
        )
        return min((seconds for seconds in left if seconds > 0), default=None)

    def _next(self, owner: str, counter: str, now: float, asked_at: float) -> Watched:
        """Return what is watched after a reading. A counter that was removed, by a takeover of another shard, has not
        moved.
        """
        seen = self._watched.get(owner)
        if seen is None or counter not in ("", seen.counter):
            return Watched(counter, now, asked_at)
        return seen._replace(asked_at=asked_at)
