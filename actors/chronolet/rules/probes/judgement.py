"""Whether a probe's failure says anything about its container, or only about a machine or agent that was stalled. Pure.

Input: whether an attempt timed out, its time, the delays measured while it ran. Output: yes or no, and what was
short. Next: `prober.worker` (attempts), `adapters.probes.delays` (the machine as a whole). The kubelet has nothing like
it. Times in milliseconds.

Only a time-out can be explained by a stall. A refused connection, an HTTP status, an exit code are answers of the
program: they are always judged.
"""

from __future__ import annotations

import msgspec

from chronolet_schemas.prober import Shortage

OWN_SHARE = 0.25
"""A stall of the agent, or of the engine it asks, explains a time-out from this share of the time-out on."""
MACHINE_SHARE = 0.5
"""The same for time in which tasks waited for CPU, memory or I/O: other tasks than the probed one may have waited."""


class Delay(msgspec.Struct, frozen=True, kw_only=True):
    """What delayed one attempt.

    `late`: it began so long after its time, because the agent did not run. `read_late`: its end was noticed so long
    after its deadline. `agent`: the probes' thread did not run for so long meanwhile, by its heartbeat or its run
    queue. `engine`: the engine did not answer for so long. `cpu`, `memory`, `io`: pressure stall information.
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
    """Parts of a stretch of time, 0 to 1, in which the agent did not run or tasks waited."""

    agent: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0
    io: float = 0.0


SHORT = Shares(agent=0.2, cpu=0.6, memory=0.1, io=0.4)
"""From these parts on the machine counts as short: half of what a busy but working machine shows is below them."""


def own(delay: Delay) -> int:
    """For how long the agent, or the engine that it asks, kept the attempt waiting."""
    return delay.late + max(delay.agent, delay.read_late, delay.engine)


def stalled(delay: Delay) -> int:
    """The longest of all delays."""
    return max(own(delay), delay.cpu, delay.memory, delay.io)


def explained_by(delay: Delay, timeout: int) -> tuple[Shortage, ...]:
    """What explains a time-out, empty if nothing does."""
    found: list[Shortage] = ["agent"] if own(delay) >= OWN_SHARE * timeout else []
    machine: tuple[tuple[Shortage, int], ...] = (("cpu", delay.cpu), ("memory", delay.memory), ("io", delay.io))
    found += [name for name, lost in machine if lost >= MACHINE_SHARE * timeout]
    return tuple(found)


def short_of(shares: Shares, limits: Shares = SHORT) -> tuple[Shortage, ...]:
    """What the machine is short of, by the last seconds."""
    names: tuple[Shortage, ...] = ("agent", "cpu", "memory", "io")
    return tuple(name for name in names if getattr(shares, name) >= getattr(limits, name))
