"""Failure history of a process's hosts: the number of failures and the back-off of each shard.

Input: failures. Output: back-offs, which double with each failure up to a maximum, and the event that a shard's next
host records. The caller passes the time. Next: `supervisor`.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from chronolet.kernel.timing import Timing
from chronolet_schemas import kernel
from chronolet_schemas.keys import Shard


class Failure(Struct):
    """Consecutive failures of one shard's hosts."""

    count: int = 0
    last: float = 0.0
    unreported: str = ""
    """The last error; empty once a host records it as an event."""


class Failures:
    """Failure history of every shard, kept for the life of the process."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._of: dict[Shard, Failure] = {}

    def add(self, shard: Shard, error: str, now: float) -> float:
        """Count a failure and return the back-off in seconds: 0 for the first failure, and for the first after
        `Timing.host_steady_seconds` without one. `now`: monotonic seconds.
        """
        timing, failure = self._timing, self._of.setdefault(shard, Failure())
        failure.count = 1 if now - failure.last > timing.host_steady_seconds else failure.count + 1
        failure.last, failure.unreported = now, error
        if failure.count == 1:
            return 0.0
        back_off = timing.host_first_back_off_seconds * 2.0 ** (failure.count - 2)
        return min(back_off, timing.host_longest_back_off_seconds)

    def of(self, shards: Iterable[Shard]) -> frozenset[Shard]:
        """Return those of `shards` whose hosts have failed before. Their next hosts decide one message per step for a
        while.
        """
        return frozenset(shard for shard in shards if shard in self._of)

    def note(self, shard: Shard) -> kernel.HostRestarted | None:
        """Return the event that the shard's next host must record, or None if there is none."""
        failure = self._of.get(shard)
        if failure is None or not failure.unreported:
            return None
        return kernel.HostRestarted(error=failure.unreported, restarts=failure.count)

    def reported(self, shard: Shard) -> None:
        """Clear the event that `note` returns, because a host that records it has been started."""
        if shard in self._of:
            self._of[shard].unreported = ""
