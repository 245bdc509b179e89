"""What a segment has: the raw outcomes of one process's probes over a bounded time, as runs of equal outcomes. Pure.

Input: none. Output: `Segment`, `Run`, `ProbeKey`, `Lost`. Next: `recorder`, which makes segments; `encoding`, which
gives them their bytes; `merging`; `gaps`.
"""

from __future__ import annotations

import math
from array import array
from typing import NamedTuple

from msgspec import Struct

_STEPS = 4
"""Codes of durations per doubling: neighbours differ by a fifth."""
LONGEST_CODE = 255


class ProbeKey(NamedTuple):
    """One probe of one run of a container. `pod` is namespace/name, `id` the beginning of the container's id, `probe`
    for example `Liveness`.
    """

    pod: str
    uid: str
    container: str
    attempt: int
    id: str
    probe: str


class Lost(NamedTuple):
    """The number of outcomes that were dropped, which began from `first` to `last` (milliseconds since the epoch)."""

    first: int
    last: int
    outcomes: int


class Run(Struct):
    """Consecutive outcomes of one probe with the same outcome, code and output.

    Of a run of successes, only the first output is recorded: no decision depends on the others. `differing`: how many
    of the successes had another output than `output`; more than there were, if segments with other outputs were merged.
    """

    outcome: str
    code: str
    output: str
    starts: array[int]
    """When each probe began, in milliseconds since the epoch, in the order of their ends."""
    took: bytearray
    """How long each probe took, as `duration_code`."""
    differing: int = 0

    def continues(self, later: Run) -> bool:
        """Whether the outcomes of `later`, the probe's next ones, belong to this run."""
        same = (self.outcome, self.code) == (later.outcome, later.code)
        return same and (self.output == later.output or self.outcome == "success")

    def extend(self, later: Run) -> None:
        """Append the outcomes of a run for which `continues` holds."""
        if later.output != self.output:
            self.differing += len(later.starts)  # at most: an output that was not recorded may equal this one's
        else:
            self.differing += later.differing
        self.starts.extend(later.starts)
        self.took += later.took


class Segment(Struct):
    """The outcomes of one process from `begin` to `end`, in milliseconds since the epoch by its clock.

    A process numbers its segments from 1. Those from `number` to `upto` are in this one: several if it was merged.
    """

    process: str
    started: int
    """When the process began to record, in milliseconds since the epoch: tells processes of the same name apart."""
    number: int
    upto: int
    begin: int
    end: int
    before: int
    """How many outcomes this process had in its segments before this one."""
    lost: Lost | None
    """The outcomes that the process dropped, mostly during this segment."""
    ended: bool
    """Whether this is the last segment of a process that has ended in order."""
    runs: dict[ProbeKey, list[Run]]

    @property
    def outcomes(self) -> int:
        """The number of outcomes."""
        return sum(len(run.starts) for runs in self.runs.values() for run in runs)


def joined(first: Lost | None, second: Lost | None) -> Lost | None:
    """Return two losses as one."""
    if first is None or second is None:
        return first or second
    return Lost(min(first.first, second.first), max(first.last, second.last), first.outcomes + second.outcomes)


def duration_code(milliseconds: int) -> int:
    """Return the code of a duration: its logarithm in steps of a fifth, from 0 (0 ms) to 255."""
    return min(round(_STEPS * math.log2(max(milliseconds, 0) + 1)), LONGEST_CODE)


def duration(code: int) -> int:
    """Return the duration of a code in milliseconds, which is at most a tenth more or less than the original one."""
    return round(float(2 ** (code / _STEPS))) - 1
