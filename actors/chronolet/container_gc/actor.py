"""The container_gc actor kind: one entity for the node.

Input: the effect workers, or none when only history is folded. Output: `Kind`. Next: `node`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chronolet.container_gc import signals
from chronolet.container_gc.decider import DECIDER
from chronolet.container_gc.state import State
from chronolet.kernel.kind import Effect, Job, Kind, signals_of
from chronolet_schemas import container_gc, kernel, manifests, pod

NODE = "node"
"""Key of the kind's only entity."""


def _node(_message: Any) -> Sequence[str]:
    return (NODE,)


def kind(
    effects: Mapping[type[Effect], Job] | None = None, standing: Mapping[type[Effect], Job] | None = None
) -> Kind[State]:
    """Build the Kind. Without workers it can only fold events."""
    begins = (pod.SpecAccepted, pod.PodAdopted, pod.SandboxStartRequested)
    ends = (pod.SandboxStopRequested, pod.CgroupReleased, pod.PodEnded)
    subscribed = (*begins, *ends, manifests.FolderRead, kernel.BallastGivenUp)
    return Kind(
        name="container_gc",
        shards=1,
        state=State,
        format=1,
        decider=DECIDER,
        signals=signals_of(signals),
        commands={container_gc.CollectContainers: _node},
        subscribes=dict.fromkeys(subscribed, _node),
        precedence=9,
        at_start=(NODE,),
        effects=effects or {},
        standing=standing or {},
    )
