"""An adaptive concurrency limit for a lane of one-shots (jobs), derived from how long they take.

Input: for each job that ends, its name, its duration and the number of concurrent jobs. Output: the limit. Next:
`lanes`.

Little's law: the number of jobs that a server is working on equals its throughput times the duration of one job on an
idle server. With exactly that many jobs, the server is still idle at times, because jobs wait for each other's locks;
with many more, each job merely takes longer. The limit is `GAIN` times the load measured while jobs were waiting. So it
grows while the server can handle more, and shrinks when the server slows down.

The duration of a job on an idle server is the median over the jobs of the same name that ran alone in the last ten
minutes, or at any time if those are too few. If a name has too few measurements, the median of all names in the lane is
used. A batch may begin with a head start: for a limited time its first job runs alone, and each job that ends makes
room for two. If jobs have been waiting for ten minutes without a break and too few of them ran alone in that time, the
limit drops to one until enough have run alone, but for at most a minute.

A job that has been running for longer than `patience_seconds` may be hung. It no longer counts against the limit, and
another job runs in its place. This applies to at most `MOST_LATE` jobs at a time, and never more than `most` jobs run
in total.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections import deque
from collections.abc import Callable, Collection

GAIN = 4.0
"""Ratio of the limit to the measured load. Measured with Docker 20.10 on two processors: with a ratio of 1.3, the limit
settles at two concurrent jobs (a load of 1.4), although eight concurrent jobs give a load of 1.9.
"""
LEAST = 2
"""Default minimum of the limit: one job that is being served, and one that is ready."""
MEMORY_SECONDS = 600.0
MEASURING_SECONDS = 60.0
"""Maximum time for which the limit stays at one: it is possible that none of the jobs is ever measured."""
ENOUGH = 3
"""Minimum number of durations, measured on an idle server, for a median."""
_KEPT = 15
PATIENCE_SECONDS = 10.0
MOST_LATE = 8
"""Maximum number of late jobs that are replaced by other jobs: the extra load that an engine is trusted to handle
without being measured.
"""


class Pace:
    """A limit between `least` and `most`, initially `first` (see `initial_limit`); 1 while durations are measured
    again. The caller serialises the calls.
    """

    def __init__(
        self,
        most: int,
        first: int,
        *,
        least: int = LEAST,
        head_start_seconds: float = 0.0,
        patience_seconds: float = PATIENCE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.head_start_seconds = head_start_seconds
        """Maximum duration of a batch's head start, during which the first job runs alone and the number of concurrent
        jobs then grows by one for each job that ends. So the rest of the batch does not delay the first job or the
        work that depends on it.
        """
        self.patience_seconds = patience_seconds
        """A job that has been running for longer than this no longer counts against the limit."""
        self._most = most
        self._least = min(least, most)
        self._limit = min(max(first, self._least), most)
        self._clock = clock
        self._alone: dict[str, deque[tuple[float, float]]] = {}
        self._waiting_since: float | None = None
        """When the current uninterrupted period of waiting jobs began; moved forward when enough jobs have run alone.
        """
        self._window_began: float | None = None
        self._done = 0
        self._work = 0.0

    @property
    def limit(self) -> int:
        """Number of jobs that may run now."""
        return 1 if self._remeasures(self._clock()) else self._limit

    @property
    def most_with_late(self) -> int:
        """Number of jobs that may run in total when some of them are late."""
        return min(self._most, self._limit + MOST_LATE)

    def waits(self, *, waiting: bool) -> None:
        """Record whether the limit keeps any job waiting. Call this whenever that may have changed."""
        if not waiting:
            self._waiting_since = None
        elif self._waiting_since is None:
            self._waiting_since = self._clock()

    def ended(self, name: str, seconds: float, *, concurrent: int) -> None:
        """Record the duration of a finished job. `concurrent`: highest number of other jobs that ran at the same
        time.
        """
        now = self._clock()
        if not concurrent:
            self._learn(name, seconds, now)
        if self._waiting_since is None or self._remeasures(now):
            self._window_began = None
        elif (usual := self._usual(name, now)) is None:
            return
        elif self._window_began is None:
            self._begin(now)
        else:
            self._count(usual, now)

    def _remeasures(self, now: float) -> bool:
        """Whether durations are being measured again, at a limit of one: the known ones are out of date, and with a
        higher limit no job would run alone.
        """
        if self._waiting_since is None:
            return False
        return (now - self._waiting_since) % (MEMORY_SECONDS + MEASURING_SECONDS) >= MEMORY_SECONDS

    def _learn(self, name: str, seconds: float, now: float) -> None:
        measured = self._alone.setdefault(name, deque(maxlen=_KEPT))
        measured.append((now, seconds))
        if self._waiting_since is not None and len(_fresh(measured, now)) >= ENOUGH:
            self._waiting_since = now

    def _usual(self, name: str, now: float) -> float | None:
        """Return how long a job of this name takes on an idle server; None if that is not known."""
        own = _median(self._alone.get(name, ()), now)
        return own if own is not None else _median([*itertools.chain(*self._alone.values())], now)

    def _begin(self, now: float) -> None:
        self._window_began, self._done, self._work = now, 0, 0.0

    def _count(self, usual: float, now: float) -> None:
        assert self._window_began is not None  # noqa: S101 - for the type checker
        self._done += 1
        self._work += usual
        elapsed = now - self._window_began
        if self._done >= 2 * self._limit and elapsed > 0:
            carried = self._work / elapsed
            self._limit = min(self._most, max(self._least, round(carried * GAIN)))
            self._begin(now)


def initial_limit(processors: int) -> int:
    """Return the limit to start with, before anything is measured: it assumes that the server can carry one job per
    processor.
    """
    return round(processors * GAIN)


def _fresh(measured: Collection[tuple[float, float]], now: float) -> list[float]:
    return [seconds for at, seconds in measured if now - at < MEMORY_SECONDS]


def _median(measured: Collection[tuple[float, float]], now: float) -> float | None:
    """Return the median of the fresh durations, or of all of them if too few are fresh; None if there are too few."""
    fresh = _fresh(measured, now)
    durations = fresh if len(fresh) >= ENOUGH else [seconds for _, seconds in measured]
    return statistics.median(durations) if len(durations) >= ENOUGH else None
