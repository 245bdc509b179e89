"""The devices actor kind: one entity per node, which owns the node's devices.

Input: the node's policy and the workers, or no workers when only history is folded. Output: `Kind`. Next: `node`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chronolet.devices import signals
from chronolet.devices.context import Policy
from chronolet.devices.decider import decider
from chronolet.devices.state import State
from chronolet.kernel.kind import Effect, EventDriven, Job, Kind, signals_of
from chronolet_schemas import pod

NODE = "node"
"""Key of the kind's only entity."""


def _node(_event: pod.PodEvent) -> Sequence[str]:
    return (NODE,)


def kind(
    policy: Policy | None = None,
    effects: Mapping[type[Effect], Job] | None = None,
    standing: Mapping[type[Effect], Job | EventDriven] | None = None,
) -> Kind[State]:
    """Build the Kind. `effects` and `standing` come from `effects.jobs` and `effects.standing`; without them, the Kind
    can only fold events.
    """
    return Kind(
        name="devices",
        shards=1,
        state=State,
        format=1,
        decider=decider(policy or Policy()),
        signals=signals_of(signals),
        subscribes={
            pod.DevicesRequested: _node,
            pod.DevicesReleased: _node,
            pod.PreStartRequested: _node,
            pod.PodEnded: _node,
        },
        at_start=(NODE,),
        effects=effects or {},
        standing=standing or {},
    )
