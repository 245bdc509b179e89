"""Finds the outcomes that the segments lack, from the segments' numbers and counts. Pure.

Input: the `Head` of each segment, in any order. Output: `Gap`s. Next: `cli.over_time`, which prints them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from chronolet.rules.probes.segments.segment import Lost, Segment


class Head(NamedTuple):
    """A segment without its outcomes; see `Segment`."""

    process: str
    started: int
    number: int
    upto: int
    begin: int
    end: int
    before: int
    outcomes: int
    lost: Lost | None
    ended: bool

    @property
    def total(self) -> int:
        """How many outcomes the process had in its segments up to the end of this one."""
        return self.before + self.outcomes


class Gap(NamedTuple):
    """Outcomes of a process that no segment has, from `first` to `last` (milliseconds since the epoch).

    `why`: `dropped` by the process, mostly as Redis was away; `missing`: their segments were written, but are gone;
    `older`: as `missing`, but those of the process's beginning, such as outcomes that are older than the setting keeps;
    `unwritten`: the process was killed, or Redis was away, before it wrote its last segment. Then `outcomes` and `last`
    are unknown (None).
    """

    process: str
    first: int
    last: int | None
    outcomes: int | None
    why: Literal["dropped", "missing", "older", "unwritten"]


def head_of(segment: Segment) -> Head:
    """Return a segment's head."""
    return Head(
        segment.process,
        segment.started,
        segment.number,
        segment.upto,
        segment.begin,
        segment.end,
        segment.before,
        segment.outcomes,
        segment.lost,
        segment.ended,
    )


def gaps(heads: Iterable[Head], is_running: Callable[[str, int], bool]) -> list[Gap]:
    """Return the gaps in order of time. `is_running`: whether the process of this name, which began to record at this
    time, runs still, so that its last segment is yet to come.
    """
    found: list[Gap] = []
    ordered = sorted(set(heads), key=lambda one: (one.process, one.started, one.number, one.upto))
    for (process, started), group in itertools.groupby(ordered, key=lambda one: (one.process, one.started)):
        found += _of_process(list(group), running=is_running(process, started))
    return sorted(found, key=lambda gap: (gap.first, gap.process, gap.why))


def _of_process(heads: list[Head], *, running: bool) -> Iterator[Gap]:
    process, former = heads[0].process, heads[0]
    if former.number > 1:
        yield Gap(process, former.started, former.begin, former.before, "older")
    for head in heads:
        if head.number > former.upto + 1:
            yield Gap(process, former.end, head.begin, head.before - former.total, "missing")
        if head.lost is not None:
            yield Gap(process, head.lost.first, head.lost.last, head.lost.outcomes, "dropped")
        former = head
    if not former.ended and not running:
        yield Gap(process, former.end, None, None, "unwritten")
