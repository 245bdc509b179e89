"""Measure by how much the agent and the machine were delayed, during one attempt and over the last few seconds.

Input: a heartbeat on the probes' thread, `pressure`. Output: a `Delay` for each attempt; what the machine is short of.
Next: `probing` adds the delay to readings; the prober's worker asks for shortages. `rules.probes.judgement` interprets
delays.

The heartbeat is active while attempts are made, and stops after a while without any. A late beat means that the probes'
thread did not run, for whatever reason: other threads, a busy processor, a stopped process.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from chronolet.adapters.probes.pressure import Waited
from chronolet.ports.pods.probes import Cancellable, Reading
from chronolet.rules.probes.judgement import Delay, Shares, short_of
from chronolet_schemas.prober import Shortage

BEAT_SECONDS = 0.2
HISTORY_SECONDS = 10.0
LEAST_HISTORY_SECONDS = 1.0
"""Minimum length of a history from which shortages can be inferred."""
REST_AFTER_SECONDS = 60.0
_IN_TIME_SECONDS = 0.02
"""A beat that is late by no more than this counts as on time."""
_GRACE_SECONDS = 0.11
"""An attempt may end this long after its time-out without counting as delayed: `lanes.GRACE_SECONDS` plus a margin."""


class Scheduler(Protocol):
    """The part of `scheduling.loop.Loop` that the heartbeat needs."""

    def at(self, when: float, action: Callable[[], None]) -> Cancellable:
        """Call an action at a time of the loop's clock."""


class Source(Protocol):
    """The part of `pressure.Pressure` that the heartbeat needs."""

    def waited(self) -> Waited:
        """Return the current totals."""


class Sample(NamedTuple):
    """Accumulated delays at the time `at`, in seconds. `late` is the total lateness of all heartbeats."""

    at: float
    late: float
    waited: Waited


class Mark(NamedTuple):
    """The start of an attempt, with the last sample before it."""

    at: float
    sample: Sample


class Delays:
    """Measures delays. Must be used on the probes' thread, except for `mark`."""

    def __init__(self, loop: Scheduler, source: Source, clock: Callable[[], float] = time.monotonic) -> None:
        self._loop = loop
        self._source = source
        self._clock = clock
        self._beats = False
        self._due = 0.0
        self._late = 0.0
        self._used_at = 0.0
        self._last = Sample(clock(), 0.0, Waited())
        self._history: deque[Sample] = deque()

    def wake(self) -> None:
        """Start the heartbeat before an attempt, if it is not active."""
        self._used_at = self._clock()
        if not self._beats:
            self._beats = True
            self._history.clear()
            self._note()
            self._next()

    def mark(self) -> Mark:
        """Return the current time and the last sample, from which `since` computes a delay. Thread-safe."""
        return Mark(self._clock(), self._last)

    def since(self, mark: Mark, reading: Reading, timeout_seconds: float) -> Delay:
        """Return the delay of an attempt that has just ended. The pressure files are read only after a time-out,
        because a delay can explain no other outcome.
        """
        now, before = self._clock(), mark.sample
        overdue = self._overdue(now)
        waited = self._source.waited() if reading.timed_out else self._last.waited
        part = min((now - mark.at) / max(now - before.at, 1e-6), 1.0)
        lost = [part * (after - known) for after, known in zip(waited, before.waited, strict=True)]
        late = self._late + overdue - before.late
        read_late = reading.seconds - timeout_seconds - _GRACE_SECONDS if reading.timed_out else overdue
        return Delay(
            agent=_milliseconds(max(late, lost[0])),
            read_late=_milliseconds(read_late),
            engine=_milliseconds(reading.engine_seconds),
            cpu=_milliseconds(lost[1]),
            memory=_milliseconds(lost[2]),
            io=_milliseconds(lost[3]),
        )

    def short_of(self) -> tuple[Shortage, ...]:
        """Return the resources that the machine was short of in the last few seconds; empty if the heartbeat has not
        been active for long enough.
        """
        now = self._clock()
        if not self._beats or now - self._history[0].at < LEAST_HISTORY_SECONDS:
            return ()
        first, waited = self._history[0], self._source.waited()
        passed = now - first.at
        queue, cpu, memory, io = ((after - before) / passed for after, before in zip(waited, first.waited, strict=True))
        late = (self._late + self._overdue(now) - first.late) / passed
        return short_of(Shares(agent=max(late, queue), cpu=cpu, memory=memory, io=io))

    # -- heartbeat ---------------------------------------------------------------------------------------------------

    def _next(self) -> None:
        self._due = self._clock() + BEAT_SECONDS
        self._loop.at(self._due, self._beat)

    def _beat(self) -> None:
        now = self._clock()
        self._late += self._overdue(now)
        if now - self._used_at > REST_AFTER_SECONDS + (now - self._due):
            self._beats = False
            return
        self._note()
        self._next()

    def _overdue(self, now: float) -> float:
        """Return how late the next beat already is, in seconds."""
        late = now - self._due if self._beats else 0.0
        return late if late > _IN_TIME_SECONDS else 0.0

    def _note(self) -> None:
        self._last = Sample(self._clock(), self._late, self._source.waited())
        self._history.append(self._last)
        # Keep one older sample: after the process was stopped for a long time, it is the only one to compare with.
        while len(self._history) > 1 and self._last.at - self._history[1].at > HISTORY_SECONDS:
            self._history.popleft()


def _milliseconds(seconds: float) -> int:
    return max(round(seconds * 1000), 0)
