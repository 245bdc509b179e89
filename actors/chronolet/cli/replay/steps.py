"""Groups the entries of the log into steps: what an actor committed at once. Pure.

Input: entries, in their order. Output: `Step`. Next: `frames`.

The log does not mark where a step ends. All entries of a step have one writer and one time, so consecutive entries with
the same ones count as a step. Two commits of one actor within a millisecond are shown as one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from chronolet_schemas.envelope import Entry, Position
from chronolet_schemas.times import time_of

_FOREIGN = ""
"""The type of an entry that another program has written."""

_CLOCK_JUMPED = "kernel.ClockJumped@"
LONGEST_SECONDS = 3_600.0
"""The longest pause between two steps."""


class Step(NamedTuple):
    """Entries that an actor committed at once; at least one."""

    entries: tuple[Entry, ...]

    @property
    def position(self) -> Position:
        """The position of the last entry."""
        return self.entries[-1].position

    @property
    def milliseconds(self) -> int:
        """When the step was committed, in milliseconds since the epoch."""
        return time_of(self.entries[-1])


def steps(entries: Iterable[Entry]) -> Iterator[Step]:
    """Yield the steps. Each is complete once the entry that follows it has been read."""
    for _, found in itertools.groupby(entries, _commit):
        yield Step(tuple(found))


def _commit(entry: Entry) -> tuple[str, int, int, int]:
    """Return what the entries of one step have in common. An entry of another program is always alone."""
    alone = entry.position.n if entry.type == _FOREIGN else -1
    # While positions are ahead of the clock, steps with different times have positions with the same time.
    return entry.actor, entry.position.milliseconds, time_of(entry), alone


class Pace:
    """Computes the pauses between steps so that they follow each other as they were recorded, `speed` times as fast."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._last: int | None = None

    def seconds_before(self, step: Step) -> float:
        """Return the pause before the step; 0 before the first, and where the clock was set. At most LONGEST_SECONDS,
        as not every clock step is recorded.
        """
        last, self._last = self._last, step.milliseconds
        if last is None or any(one.type.startswith(_CLOCK_JUMPED) for one in step.entries):
            return 0.0
        return min(max(0, step.milliseconds - last) / 1000 / self._speed, LONGEST_SECONDS)
