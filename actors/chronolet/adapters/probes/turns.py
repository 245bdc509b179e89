"""Whose turn it is where places are few: everybody has as much of them, whatever others do with theirs. Pure.

Comes in: who waits, and how long each kept a place. Goes out: who is next. Next: `threads`. Fair queueing by start
tags: `now` is a clock that counts use, not time. Who has used little is served at once, who keeps places for long waits
until all others have had as much; nobody waits for ever.
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


class Turns(Generic[T]):
    """Those that wait. Who asks twice is one and the same asker; an empty name is like no other."""

    def __init__(self) -> None:
        self._now = 0.0
        self._used: dict[str, float] = {}
        self._serial = itertools.count()
        self._waiting: list[tuple[float, int, str, T]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def known(self) -> int:
        """Of how many it is remembered what they used."""
        return len(self._used)

    def add(self, who: str, item: T) -> None:
        """It waits from now on."""
        entry = (self._tag(who), next(self._serial), who, item)
        bisect.insort(self._waiting, entry, key=_tag_of)

    def drop(self, item: T) -> None:
        """It waits no more, if it did."""
        self._waiting = [one for one in self._waiting if one[3] is not item]

    def clear(self) -> Sequence[T]:
        """Nobody waits any more; who did."""
        waited, self._waiting = self._waiting, []
        return [one[3] for one in waited]

    def take(self, may: Callable[[str], bool]) -> T | None:
        """The next of those that may have a place now."""
        for number, (tag, _, who, item) in enumerate(self._waiting):
            if may(who):
                del self._waiting[number]
                self._now = max(self._now, tag)
                return item
        return None

    def used(self, who: str, seconds: float) -> None:
        """Somebody has had a place for so long."""
        if who:
            self._used[who] = self._tag(who) + seconds
        if len(self._used) > _MOST_KNOWN:
            self._used = {one: tag for one, tag in self._used.items() if tag > self._now}

    def rest(self) -> None:
        """Nobody waits and all places are free: there is nothing to be made up for."""
        self._now = 0.0
        self._used.clear()

    def _tag(self, who: str) -> float:
        return max(self._now, self._used.get(who, 0.0))
