"""When a container is probed. Pure.

Comes in: times in milliseconds. Goes out: times. Next: `decider` asks for the first probe, the worker for the next one.
Source: pkg/kubelet/prober/worker.go (run, doProbe).

    started_at + delay ... from_at: the first probe ... from_at + period ... from_at + 2 periods ...

A worker that begins anew (the agent was restarted, another process took over) goes on at the times of the one before.
"""

from __future__ import annotations

import math
import zlib

from chronolet.prober.wanted import RunProbe

SHARED_PART = 0.01
SHARED_SECONDS = 0.1
"""A probe may begin so much of its period later than its time, and never more than this, to begin with others."""
LONG_SECONDS = 10.0
LONG_SHARED_SECONDS = 0.5
"""One with a period of so long, the usual one or more, may begin so much later."""
FIRST_SHARED_SECONDS = 0.01
"""So much at most the first one of a container, for which its readiness may wait."""


def first_at(*, started_at: int, delay: int, period: int, now: int, seed: str) -> int:
    """When a run of a container is probed first.

    One that has run for longer than a period when it is heard of (it was adopted, or its spec has changed) waits for a
    part of the period, so that not all of them are probed at once. The kubelet draws lots for it; here `seed` decides.
    """
    earliest = min(started_at, now) + delay  # a start that is still to come was told by another clock
    if now - earliest <= period:
        return earliest
    return now + spread(seed, period)


def spread(seed: str, period: int) -> int:
    """A part of the period: for many seeds they spread evenly over it."""
    return zlib.crc32(seed.encode()) % period


def begins_at(probe: RunProbe, now: int, *, process_age: int | None = None) -> int:
    """When a worker that begins now probes first.

    `process_age` is for how long its process has run, in milliseconds; None means longer than any period. While that
    is less than a period, a container that could be probed before the process began waits for a part of the period,
    since many workers begin together when a process does (worker.go, run). One that has started since is probed at
    once, where the kubelet makes it wait too. A run that was probed before keeps its times, which are spread already.
    """
    delay = probe.definition.initial_delay_seconds * 1000
    period = probe.period_milliseconds
    age = period if process_age is None else process_age
    if not probe.anchored and age < period and probe.from_at < now - age:
        return now + spread(f"{probe.id}/{probe.probe}", period)
    return next_at(probe.from_at, anchored=probe.anchored, delay=delay, period=period, now=now)


def next_at(from_at: int, *, anchored: bool, delay: int, period: int, now: int) -> int:
    """When to probe next: at `from_at` or as soon as possible after it; `anchored`, a whole number of periods before or
    after it. Never longer from now than it may be at all, for the clock may have been put back since.
    """
    if anchored:
        return now + (from_at - now) % period
    return max(now, min(from_at, now + delay + period))


def shared(when: float, period: float, most: float = math.inf) -> float:
    """The moment at or after `when` that all probes of a period share, at most `most` later; in seconds, by any clock.

    A thread that wakes up for one probe pays more for waking up than for the probe: those whose times are close begin
    together.
    """
    usual = LONG_SHARED_SECONDS if period >= LONG_SECONDS else min(period * SHARED_PART, SHARED_SECONDS)
    step = min(usual, most)
    return max(math.ceil(when / step) * step, when)
