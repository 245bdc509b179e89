"""Fair queueing for scarce slots: every probe gets an equal share of slot time, no matter how much others want. Pure.

Input: the waiting probes, and how long each held a slot. Output: the probe to serve next. Next: `lanes`. Start-time
fair queueing: `now` is a virtual clock that advances with slot usage. A probe that has used little is served
immediately; a probe that holds slots for a long time waits until all others have had as much. No probe starves.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Generic, TypeVar

T = TypeVar("T")

_MOST_KNOWN = 256

_tag_of = itemgetter(0, 1)


class FairQueue(Generic[T]):
    """A queue that serves first the owner that has used the least slot time. An `owner` is a probe, and all its items
    count towards its usage; an empty owner's usage is not counted.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._used: dict[str, float] = {}
        self._serial = itertools.count()
        self._waiting: list[tuple[float, int, str, T]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def known(self) -> int:
        """Number of probes whose usage is remembered."""
        return len(self._used)

    def add(self, owner: str, item: T) -> None:
        """Add an item to the queue."""
        entry = (self._tag(owner), next(self._serial), owner, item)
        bisect.insort(self._waiting, entry, key=_tag_of)

    def drop(self, item: T) -> None:
        """Remove an item if it is waiting."""
        self._waiting = [one for one in self._waiting if one[3] is not item]

    def clear(self) -> Sequence[T]:
        """Remove and return all waiting items."""
        waited, self._waiting = self._waiting, []
        return [one[3] for one in waited]

    def take(self, may: Callable[[str], bool]) -> T | None:
        """Remove and return the next item whose owner may have a slot now; None if there is none."""
        for number, (tag, _, owner, item) in enumerate(self._waiting):
            if may(owner):
                del self._waiting[number]
                self._now = max(self._now, tag)
                return item
        return None

    def used(self, owner: str, seconds: float) -> None:
        """Record how long a probe held a slot."""
        if owner:
            self._used[owner] = self._tag(owner) + seconds
        if len(self._used) > _MOST_KNOWN:
            self._used = {one: tag for one, tag in self._used.items() if tag > self._now}

    def rest(self) -> None:
        """Forget the usage of all probes. Called when nothing is waiting and all slots are free."""
        self._now = 0.0
        self._used.clear()

    def _tag(self, owner: str) -> float:
        return max(self._now, self._used.get(owner, 0.0))
