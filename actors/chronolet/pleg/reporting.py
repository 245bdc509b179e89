"""The KubeEvents that accompany pleg's events, with the kubelet's reasons and texts where the kubelet has such events.
Pure.

Input: the node's name, the State before an event, the event. Output: `kube_events.Recorded`, none for most events.
Next: `decider` appends them to the event. Source: pkg/kubelet/nodestatus/setters.go (ReadyCondition, MachineInfo),
kubelet.go (BirthCry), pod_workers.go (podWorkerLoop).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from chronolet.pleg.state import State
from chronolet_schemas import kube_events, pleg, prober
from chronolet_schemas.envelope import Event


def kube_events_for(node: str, state: State, event: Event) -> Iterator[kube_events.Recorded]:
    """Yield the KubeEvents for `event`: those that the kubelet would record, and those about kills that are held back,
    which it does not have. A node with an unhealthy PLEG is not ready.
    """
    match event:
        case pleg.StreamFollowed():
            yield from _followed(node, state, event)
        case pleg.RelistWorking() if not state.relist:
            yield _became(node, "NodeReady")
        case pleg.Healthy():
            yield _became(node, "NodeReady")
        case pleg.Unhealthy():
            yield _became(node, "NodeNotReady")
        case pleg.ProbeKillsHeldBack():
            yield _of_node(
                node, "Warning", "ProbeKillsHeldBack", held_back(event.pods, event.short_of, event.kills_per_minute)
            )
        case pleg.ProbeKillsResumed():
            yield _of_node(node, "Normal", "ProbeKillsResumed", _resumed(event))
        case pleg.PodUnreadable():
            yield _unreadable(event)
        case _:
            return


def held_back(pods: int, short_of: Sequence[prober.Shortage], kills_per_minute: int) -> str:
    """Return the text that explains why kills are held back."""
    resources = ", ".join(_SHORT_OF[one] for one in short_of)
    return (
        f"Probes of {pods} pods failed at the same time while the machine was short of {resources}: containers are "
        f"stopped for failed probes only after a delay, at most {kills_per_minute} per minute"
    )


_SHORT_OF: dict[prober.Shortage, str] = {
    "agent": "time for the agent",
    "cpu": "CPU",
    "memory": "memory",
    "io": "disk I/O",
}


def _resumed(event: pleg.ProbeKillsResumed) -> str:
    return (
        "Containers are stopped for failed probes immediately again; of the stops that were held back "
        f"{event.released} were carried out and {event.dropped} dropped"
    )


def _followed(node: str, state: State, event: pleg.StreamFollowed) -> Iterator[kube_events.Recorded]:
    if event.first:
        yield _of_node(node, "Normal", "Starting", "Starting chronolet.")
    if event.boot_id and state.boot_id not in ("", event.boot_id):
        yield _of_node(node, "Warning", "Rebooted", f"Node {node} has been rebooted, boot id: {event.boot_id}")


def _became(node: str, reason: str) -> kube_events.Recorded:
    return _of_node(node, "Normal", reason, f"Node {node} status is now: {reason}")


def _of_node(node: str, severity: Literal["Normal", "Warning"], reason: str, message: str) -> kube_events.Recorded:
    return kube_events.Recorded(object_kind="Node", name=node, severity=severity, reason=reason, message=message)


def _unreadable(event: pleg.PodUnreadable) -> kube_events.Recorded:
    namespace, _, name = event.pod.partition("/")
    return kube_events.Recorded(
        object_kind="Pod",
        namespace=namespace,
        name=name,
        uid=event.uid,
        severity="Warning",
        reason="FailedSync",
        message=f"error determining status: {event.error}",
    )
