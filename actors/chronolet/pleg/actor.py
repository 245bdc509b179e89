"""The pleg kind: one entity for the node, with two standing effects.

Input: the workers, or none if events are only folded. Output: `Kind`. Next: `node`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from chronolet.kernel.kind import Effect, Job, Kind, signals_of
from chronolet.pleg import signals
from chronolet.pleg.decider import decider
from chronolet.pleg.probe_kills.holding_back import Policy
from chronolet.pleg.state import State
from chronolet_schemas import pleg, prober
from chronolet_schemas.envelope import Message

NODE = "node"
"""Key of the only entity."""


def _node(_message: Message) -> Sequence[str]:
    return (NODE,)


def kind(
    standing: Mapping[type[Effect], Job] | None = None,
    node: str = "",
    policy: Policy = Policy(),  # noqa: B008 - frozen
    ahead: Callable[[], None] | None = None,
) -> Kind[State]:
    """Build the pleg Kind for the node named `node`.

    `standing`: the jobs of FollowRuntime and Relist, bound to a runtime. `policy`: how kills for failed probes are held
    back. `ahead`: starts the first listing during recovery.
    """
    return Kind(
        name="pleg",
        shards=1,
        state=State,
        format=1,
        decider=decider(node, policy),
        signals=signals_of(signals),
        timeless=frozenset(
            (
                signals.ContainerObserved,
                signals.OomKilled,
                signals.Relisted,
                signals.StreamOpened,
                signals.StreamBroken,
                pleg.AdoptContainers,
            )
        ),
        subscribes={prober.ProbeUnjudged: _node, prober.KillAsked: _node, prober.KillWithdrawn: _node},
        commands={pleg.AdoptContainers: _node},
        at_start=(NODE,),
        precedence=0,
        ahead=ahead,
        standing=standing or {},
    )
