"""The prober kind: one entity per probe of a container, with a standing worker while the container is probed.

Input: the worker's job, or none if events are only folded. Output: `Kind`. Next: `node`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from chronolet.kernel.kind import Effect, EventDriven, Kind, signals_of
from chronolet.prober import signals
from chronolet.prober.decider import DECIDER
from chronolet.prober.state import State
from chronolet_schemas import pleg, pod, prober

SHARDS = 4


def key(pod: str, container: str, probe: prober.ProbeName) -> str:
    """Return the entity's key, which begins with the pod's key."""
    return f"{pod}/{container}/{probe}"


def _one(event: pod.ProbingRequested | pod.ProbingWithdrawn | pleg.ProbeKillReleased) -> Sequence[str]:
    return (key(event.pod, event.container, event.probe),)


def _all(event: pod.ContainerEvent) -> Sequence[str]:
    return tuple(key(event.pod, event.container, probe) for probe in get_args(prober.ProbeName))


def kind(standing: Mapping[type[Effect], EventDriven] | None = None) -> Kind[State]:
    """Build the prober Kind. `standing`: the job of RunProbe, bound to its handlers."""
    return Kind(
        name="prober",
        shards=SHARDS,
        state=State,
        format=1,
        decider=DECIDER,
        signals=signals_of(signals),
        subscribes={
            pod.ProbingRequested: _one,
            pod.ProbingWithdrawn: _one,
            pod.ContainerProbed: _all,
            pod.ContainerStopRequested: _all,
            pod.ContainerExited: _all,
            pod.RestartScheduled: _all,
            pleg.ProbeKillReleased: _one,
        },
        creates=frozenset((pod.ProbingRequested,)),
        standing=standing or {},
    )
