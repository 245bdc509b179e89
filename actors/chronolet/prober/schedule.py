"""Computes when a container is probed. Pure.

Input: times in milliseconds. Output: times. Next: `decider` computes the time of the first probe, `probe_worker` that
of each further one. Source: pkg/kubelet/prober/worker.go (run, doProbe).

    started_at + delay ... from_at: the first probe ... from_at + period ... from_at + 2 periods ...

After a restart of the agent or a takeover, the new worker keeps the schedule of the previous one.
"""

from __future__ import annotations

import math
import zlib

from chronolet.prober.wanted import RunProbe

SHARED_PART = 0.01
SHARED_SECONDS = 0.1
"""To begin together with others, a probe may be delayed by SHARED_PART of its period, but by at most SHARED_SECONDS."""
LONG_SECONDS = 10.0
LONG_SHARED_SECONDS = 0.5
"""A probe with a period of at least LONG_SECONDS, the default period, may be delayed by up to LONG_SHARED_SECONDS."""
_LONGEST_MOVE = 60_000
"""A move that takes longer than this many milliseconds is treated like a crash."""
FIRST_SHARED_SECONDS = 0.01
"""For the first probe of each worker, the maximum delay to begin together with others: shorter, because the container's
readiness may depend on this probe.
"""


def first_at(*, started_at: int, delay: int, period: int, now: int, seed: str) -> int:
    """Return when a run of a container is first probed.

    If the first probe has been due for longer than a period (the container was adopted, or its spec changed), it waits
    for a part of the period, so that such containers are not all probed at the same time. The kubelet picks that part
    at random; here `seed` determines it.
    """
    earliest = min(started_at, now) + delay  # a start in the future comes from another clock
    if now - earliest <= period:
        return earliest
    return now + spread(seed, period)


def spread(seed: str, period: int) -> int:
    """Return an offset within the period, derived from `seed`; the offsets of many seeds are spread evenly."""
    return zlib.crc32(seed.encode()) % period


def begins_at(probe: RunProbe, now: int, *, process_age: int | None = None) -> int:
    """Return when a worker that starts now begins its first probe.

    `process_age`: how long the worker's process has been running, in milliseconds; None means longer than any period.
    While that is less than a period, a container that could be probed before the process began waits for a part of the
    period, because many workers start together with a process (worker.go, run). A container that started later is
    probed immediately, while the kubelet delays it too. A run that was probed before keeps its schedule, which is
    already spread.
    """
    delay = probe.definition.initial_delay_seconds * 1000
    period = probe.period_milliseconds
    age = period if process_age is None else process_age
    if not probe.anchored and age < period and probe.from_at < now - age:
        return now + spread(f"{probe.id}/{probe.probe}", period)
    return next_at(probe.from_at, anchored=probe.anchored, delay=delay, period=period, now=now)


def resumed_at(note: str, now: int, period: int) -> int | None:
    """Return when to probe next according to the note of a worker in another process, which has probed until now:
    immediately if that time has passed. None if there is no such note, or if it is not plausible because the clocks of
    the two machines differ.
    """
    if not note.isdigit() or abs(int(note) - now) > 2 * period + _LONGEST_MOVE:
        return None
    return max(int(note), now)


def next_at(from_at: int, *, anchored: bool, delay: int, period: int, now: int) -> int:
    """Return when to probe next: at `from_at` or as soon as possible after it; if `anchored`, the next time that is a
    whole number of periods away from it. Never later than delay + period from now, because the clock may have been set
    back.
    """
    if anchored:
        return now + (from_at - now) % period
    return max(now, min(from_at, now + delay + period))


def shared(when: float, period: float, most: float = math.inf) -> float:
    """Return the moment at or after `when`, at most `most` later, that all probes with this period share, in seconds of
    any clock.

    Waking the thread costs more than a probe, so probes whose times are close begin together.
    """
    usual = LONG_SHARED_SECONDS if period >= LONG_SECONDS else min(period * SHARED_PART, SHARED_SECONDS)
    step = min(usual, most)
    return max(math.ceil(when / step) * step, when)
