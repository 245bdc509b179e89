"""The manifests actor kind: one entity for the node, which handles the commands of `apply` and `delete` and watches a
folder.

Input: the workers, or none when only history is folded. Output: `Kind`. Next: `node`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chronolet.kernel.kind import Effect, Job, Kind, signals_of
from chronolet.manifests import signals
from chronolet.manifests.decider import DECIDER
from chronolet.manifests.state import State
from chronolet_schemas import manifests

NODE = "node"
"""Key of the kind's only entity."""


def _node(_command: manifests.ApplyPods | manifests.DeletePods | manifests.AdoptPods) -> Sequence[str]:
    return (NODE,)


def kind(standing: Mapping[type[Effect], Job] | None = None) -> Kind[State]:
    """Build the Kind. `standing` are the jobs that carry out its effects; without them, it can only fold events."""
    return Kind(
        name="manifests",
        shards=1,
        state=State,
        format=1,
        decider=DECIDER,
        signals=signals_of(signals),
        timeless=signals_of(signals) | {manifests.ApplyPods, manifests.DeletePods, manifests.AdoptPods},
        commands={manifests.ApplyPods: _node, manifests.DeletePods: _node, manifests.AdoptPods: _node},
        precedence=6,
        at_start=(NODE,),
        standing=standing or {},
    )
