"""Decides whether a probe's time-out may be caused by a stalled machine or agent instead of the container. Pure.

Input: an attempt's time-out, and the delays measured during the attempt. Output: the resources whose shortage explains
the time-out. Next: `prober.workers` (for attempts), `adapters.probes.delays` (for the whole machine). The kubelet has
nothing similar. Times are in milliseconds.

Only a time-out can be explained by a stall. A refused connection, an HTTP status or an exit code comes from the program
and always counts.
"""

from __future__ import annotations

import msgspec

from chronolet_schemas.prober import Shortage

OWN_SHARE = 0.25
"""A stall of the agent or the engine explains a time-out if it lasts at least this share of the time-out."""
MACHINE_SHARE = 0.5
"""A shortage of CPU, memory or I/O explains a time-out if tasks waited for the resource for at least this share of the
time-out. The share is larger than `OWN_SHARE`, because these may have been unrelated tasks.
"""


class Delay(msgspec.Struct, frozen=True, kw_only=True):
    """The delays of one attempt.

    `late`: how long after its scheduled time it started because the agent was not running. `read_late`: time from its
    deadline until the agent noticed its end. `agent`: time in which the probes' thread was not running, according to
    its heartbeat or its run queue. `engine`: time for which the engine did not answer. `cpu`, `memory`, `io`: time in
    which tasks waited for the resource, from pressure stall information.
    """

    late: int = 0
    read_late: int = 0
    agent: int = 0
    engine: int = 0
    cpu: int = 0
    memory: int = 0
    io: int = 0


NO_DELAY = Delay()


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """Fractions of an interval, from 0 to 1, in which the agent was not running or tasks waited for a resource."""

    agent: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0
    io: float = 0.0


SHORT = Shares(agent=0.2, cpu=0.6, memory=0.1, io=0.4)
"""If a fraction reaches its value here, the machine counts as short of the resource. The values are about the medians
measured on a machine that is busy but not overloaded.
"""


def own(delay: Delay) -> int:
    """Return how long the agent or the engine delayed the attempt."""
    return delay.late + max(delay.agent, delay.read_late, delay.engine)


def stalled(delay: Delay) -> int:
    """Return the longest of the attempt's delays, whatever its cause."""
    return max(own(delay), delay.cpu, delay.memory, delay.io)


def explained_by(delay: Delay, timeout: int) -> tuple[Shortage, ...]:
    """Return the shortages that explain a time-out; empty if none does."""
    found: list[Shortage] = ["agent"] if own(delay) >= OWN_SHARE * timeout else []
    machine: tuple[tuple[Shortage, int], ...] = (("cpu", delay.cpu), ("memory", delay.memory), ("io", delay.io))
    found += [name for name, lost in machine if lost >= MACHINE_SHARE * timeout]
    return tuple(found)


def short_of(shares: Shares, limits: Shares = SHORT) -> tuple[Shortage, ...]:
    """Return the resources that the machine is short of, according to `shares`, measured over the last few seconds."""
    names: tuple[Shortage, ...] = ("agent", "cpu", "memory", "io")
    return tuple(name for name in names if getattr(shares, name) >= getattr(limits, name))
