"""The qos kind: one entity per node, with two standing effects.

Input: the workers, or none if events are only folded. Output: `Kind`. Next: `node`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chronolet.kernel.kind import Effect, Job, Kind, signals_of
from chronolet.qos import signals
from chronolet.qos.decider import DECIDER
from chronolet.qos.state import State
from chronolet_schemas import pod

NODE = "node"
"""Key of the only entity."""


def _node(_event: pod.PodEvent) -> Sequence[str]:
    return (NODE,)


def kind(standing: Mapping[type[Effect], Job] | None = None) -> Kind[State]:
    """Build the qos Kind. `standing`: the jobs of LookAtNode and KeepTree, bound to cgroups."""
    return Kind(
        name="qos",
        shards=1,
        state=State,
        format=1,
        decider=DECIDER,
        signals=signals_of(signals),
        subscribes={
            pod.CgroupRequested: _node,
            pod.ContainerStarted: _node,
            pod.CgroupReleased: _node,
            pod.PodEnded: _node,
        },
        at_start=(NODE,),
        standing=standing or {},
    )
