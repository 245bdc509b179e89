"""How often the hosts of a process failed, and how long each shard rests before it is tried again.

Comes in: failures. Goes out: pauses, twice as long each time, and the event that the next host tells. No clock of its
own. Next: `supervisor`.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from chronolet_schemas import kernel
from chronolet_schemas.keys import Shard

STEADY_SECONDS = 60.0
FIRST_BACK_OFF_SECONDS = 0.4
LONGEST_BACK_OFF_SECONDS = 30.0


class Failure(Struct):
    """The failures in a row of one shard's hosts."""

    count: int = 0
    last: float = 0.0
    untold: str = ""
    """The last error, until a host tells it in an event."""


class Failures:
    """Of all shards of a process, for as long as that lives."""

    def __init__(self) -> None:
        self._of: dict[Shard, Failure] = {}

    def add(self, shard: Shard, error: str, now: float) -> float:
        """One more, at a monotonic time in seconds: how many seconds to rest. The first is tried again at once."""
        failure = self._of.setdefault(shard, Failure())
        failure.count = 1 if now - failure.last > STEADY_SECONDS else failure.count + 1
        failure.last, failure.untold = now, error
        if failure.count == 1:
            return 0.0
        return min(FIRST_BACK_OFF_SECONDS * 2.0 ** (failure.count - 2), LONGEST_BACK_OFF_SECONDS)

    def of(self, shards: Iterable[Shard]) -> frozenset[Shard]:
        """Those that have ever failed: their hosts step with care."""
        return frozenset(shard for shard in shards if shard in self._of)

    def note(self, shard: Shard) -> kernel.HostRestarted | None:
        """What the next host of a shard has to tell, if anything."""
        failure = self._of.get(shard)
        if failure is None or not failure.untold:
            return None
        return kernel.HostRestarted(error=failure.untold, restarts=failure.count)

    def told(self, shard: Shard) -> None:
        """A host was started that tells it."""
        if shard in self._of:
            self._of[shard].untold = ""
