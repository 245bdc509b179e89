"""The pod kind: its subscriptions, its commands and the workers that run its effects.

Input: the workers, or none if events are only folded. Output: `Kind`. Next: `node`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chronolet.kernel.kind import Effect, Job, Kind, signals_of
from chronolet.pod import signals
from chronolet.pod.admission.node_policy import Policy
from chronolet.pod.decider import decider
from chronolet.pod.planning.backoff import KUBELET, Limits
from chronolet.pod.state import FORMAT, SHARDS, State
from chronolet_schemas import devices, manifests, pleg, pod, prober, qos

_AboutPod = (
    manifests.PodApplied
    | manifests.PodWithdrawn
    | manifests.PullSecretsChanged
    | pleg.ContainerEvent
    | pod.AdoptPod
    | prober.ResultChanged
    | devices.ClaimEvent
    | qos.PodEvent
)


def _pod(event: _AboutPod) -> Sequence[str]:
    return (event.pod,)


def kind(
    effects: Mapping[type[Effect], Job] | None = None,
    participants: frozenset[str] = frozenset(),
    policy: Policy | None = None,
    limits: Limits = KUBELET,
) -> Kind[State]:
    """Build the pod Kind. `effects`: the workers from `effects.jobs(...)`, bound to a runtime. `participants`: the
    kinds that this node hosts for admission and probing. `policy`: the node's own checks, made before requests to those
    kinds. `limits`: those of the restart back-off.
    """
    return Kind(
        name="pod",
        shards=SHARDS,
        state=State,
        format=FORMAT,
        decider=decider(participants, policy or Policy(), limits),
        signals=signals_of(signals),
        subscribes={
            manifests.PodApplied: _pod,
            manifests.PodWithdrawn: _pod,
            manifests.PullSecretsChanged: _pod,
            pleg.ContainerStarted: _pod,
            pleg.ContainerDied: _pod,
            prober.ResultChanged: _pod,
            devices.DevicesAllocated: _pod,
            devices.DevicesPending: _pod,
            devices.DevicesRefused: _pod,
            devices.PreStartDone: _pod,
            devices.PreStartFailed: _pod,
            qos.CgroupReady: _pod,
            qos.PodRefused: _pod,
            qos.HostPortsAwaited: _pod,
        },
        commands={pod.AdoptPod: _pod},
        creates=frozenset((manifests.PodApplied,)),
        precedence=1,
        effects=effects or {},
    )
