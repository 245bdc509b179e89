"""The kube_events actor kind: one entity for the node, subscribed to every recorded KubeEvent.

Input: the workers and the policy, or neither when only history is folded. Output: `Kind`. Next: `node`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chronolet.kernel.kind import Effect, Job, Kind, signals_of
from chronolet.kube_events import signals
from chronolet.kube_events.decider import decider
from chronolet.kube_events.policy import Policy
from chronolet.kube_events.state import State
from chronolet_schemas import kube_events

NODE = "node"
"""Key of the kind's only entity."""


def _node(_event: kube_events.Recorded) -> Sequence[str]:
    return (NODE,)


def kind(effects: Mapping[type[Effect], Job] | None = None, policy: Policy | None = None) -> Kind[State]:
    """Build the Kind. `effects` are the jobs that carry out Deliver; without them, the Kind can only fold events."""
    return Kind(
        name="kube_events",
        shards=1,
        state=State,
        format=1,
        decider=decider(policy or Policy()),
        signals=signals_of(signals),
        timeless=frozenset((signals.RecordedBatch,)),
        subscribes={kube_events.Recorded: _node},
        batches={kube_events.Recorded: signals.batch},
        at_start=(NODE,),
        effects=effects or {},
    )
