"""How many one-shots of a lane are worth running at a time, found out from how long they take.

Comes in: the end of each one-shot: what it was, how long it took, how many ran beside it. Goes out: the limit. Next:
`workshop`.

Little's law: the work that a server carries at once is its throughput times the time that one job takes on an idle
server. With that many jobs it still idles at times, for jobs wait for one another's locks; with many more, each job
only takes longer. The limit is `GAIN` times what was carried while jobs were waiting. So it grows while the server can
carry more, and shrinks where the server has slowed down.

How long a job takes on an idle server is the median of those of its name that ran alone, in the last ten minutes or,
where those are too few, ever. A job of an unknown name counts with the median of the lane. A batch may begin with a
head start: its first job runs alone, and each that ends makes room for two, for so long. Where jobs have been waiting
for ten minutes without a break and none ran alone meanwhile, the limit goes down to one until some have, for a minute
at most.

A job that has been at work for longer than `patience_seconds` may hang. It counts no more: another is at work in its
place. That holds for `MOST_LATE` of them at a time, and as long as no more than `most` are at work in all.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections import deque
from collections.abc import Callable, Collection

GAIN = 4.0
"""Docker 20.10 on two processors: with 1.3 it came to rest at two jobs at a time, which carry 1.4; eight carry 1.9."""
LEAST = 2
"""One that is served and one that is ready to be."""
MEMORY_SECONDS = 600.0
MEASURING_SECONDS = 60.0
"""So long at most the limit is one, for the jobs may be such that none is measured."""
ENOUGH = 3
"""So many durations on an idle server make a median."""
_KEPT = 15
PATIENCE_SECONDS = 10.0
MOST_LATE = 8
"""So many that hang are given up for others: what an engine is trusted to carry without any measurement."""


class Pace:
    """A limit between `least` and `most`; `first` before anything is known (`untried`). The caller serialises the
    calls.
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
        """How long at most the first of a batch is at work by itself, and the next ones begin two for each that ends.
        So the first is served as early as a single one, also by what follows elsewhere.
        """
        self.patience_seconds = patience_seconds
        """A job that has been at work for longer keeps no other waiting."""
        self._most = most
        self._least = min(least, most)
        self._limit = min(max(first, self._least), most)
        self._clock = clock
        self._alone: dict[str, deque[tuple[float, float]]] = {}
        self._waiting_since: float | None = None
        """Jobs wait without a break since then; later where enough have run alone meanwhile."""
        self._window_began: float | None = None
        self._done = 0
        self._work = 0.0

    @property
    def limit(self) -> int:
        """How many may be at work now."""
        return 1 if self._measures_anew(self._clock()) else self._limit

    @property
    def most_with_late(self) -> int:
        """How many may be at work in all where some of them are late."""
        return min(self._most, self._limit + MOST_LATE)

    def waits(self, *, waiting: bool) -> None:
        """Whether the limit keeps a job from running, told whenever that may have changed."""
        if not waiting:
            self._waiting_since = None
        elif self._waiting_since is None:
            self._waiting_since = self._clock()

    def ended(self, what: str, seconds: float, *, beside: int) -> None:
        """A job of this name has done its work in so long, with at most `beside` others at a time."""
        now = self._clock()
        if not beside:
            self._learn(what, seconds, now)
        if self._waiting_since is None or self._measures_anew(now):
            self._window_began = None
        elif (usual := self._usual(what, now)) is None:
            return
        elif self._window_began is None:
            self._begin(now)
        else:
            self._count(usual, now)

    def _measures_anew(self, now: float) -> bool:
        """What is known is out of date, and jobs that wait all the time leave no other way to learn."""
        if self._waiting_since is None:
            return False
        return (now - self._waiting_since) % (MEMORY_SECONDS + MEASURING_SECONDS) >= MEMORY_SECONDS

    def _learn(self, what: str, seconds: float, now: float) -> None:
        known = self._alone.setdefault(what, deque(maxlen=_KEPT))
        known.append((now, seconds))
        if self._waiting_since is not None and len(_fresh(known, now)) >= ENOUGH:
            self._waiting_since = now

    def _usual(self, what: str, now: float) -> float | None:
        """How long such a job takes on an idle server; None where nobody knows."""
        own = _median(self._alone.get(what, ()), now)
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


def untried(processors: int) -> int:
    """The limit for a server of which only the number of its processors is known: each may carry one job."""
    return round(processors * GAIN)


def _fresh(known: Collection[tuple[float, float]], now: float) -> list[float]:
    return [seconds for at, seconds in known if now - at < MEMORY_SECONDS]


def _median(known: Collection[tuple[float, float]], now: float) -> float | None:
    """Of the fresh ones, or of all where those are too few; None where all are."""
    fresh = _fresh(known, now)
    durations = fresh if len(fresh) >= ENOUGH else [seconds for _, seconds in known]
    return statistics.median(durations) if len(durations) >= ENOUGH else None
