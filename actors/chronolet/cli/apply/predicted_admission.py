"""Predicts the node's admission of pods before they are applied.

Input: the state of `qos`, pods. Output: a line for each pod that will be rejected, will wait, or will run although the
node's labels do not match. Next: `apply`. The node decides again when the pod starts, possibly differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from chronolet.cli.session import Session
from chronolet.kernel.storage.store import HistoryMissing
from chronolet.pod.admission.node_policy import Policy, policy_of, rejection, warning
from chronolet.pod.admission.waiting import WAITING_FOR_PORTS
from chronolet.qos.decider import NODE_PORTS
from chronolet.qos.state import State
from chronolet.rules.names.host_ports import host_ports, taken
from chronolet_schemas.podspec import Pod
from chronolet_schemas.resources import HostPort


class Foreseen(NamedTuple):
    """The predicted outcome for one pod. `rejected`: whether the node would reject the pod."""

    pod: str
    message: str
    rejected: bool

    def __str__(self) -> str:
        return f"pod {self.pod}: {self.message}"


def of(node: Session, pods: Sequence[Pod]) -> Sequence[Foreseen]:
    """Predict the admission of `pods` from the node's log.

    Return an empty sequence if the log is incomplete, which does not prevent an apply.
    """
    try:
        state = node.state("qos").states["qos"].get("node", State())
    except HistoryMissing:
        return ()
    return tuple(foreseen(state, pods))


def foreseen(state: State, pods: Sequence[Pod]) -> Iterator[Foreseen]:
    """Predict the admission of `pods` in the given order: an earlier pod gets its host ports before a later one."""
    policy = policy_of(state.node) if state.node is not None else Policy()
    waits = state.node is None or state.node.wait_for_host_ports
    names = {one.key for one in pods}
    held: list[tuple[str, Sequence[HostPort]]] = [
        (one.pod, one.needs.host_ports)
        for _, one in sorted(state.shares.items())
        if one.phase != "waiting" and one.pod not in names
    ]
    for pod in pods:
        rejected = rejection(policy, pod)
        if rejected is not None:
            yield Foreseen(pod.key, f"it will be rejected: {rejected.reason}: {rejected.message}", rejected=True)
            continue
        if (unmatched := warning(policy, pod)) is not None:
            yield Foreseen(pod.key, unmatched.message, rejected=False)
        ports = tuple(host_ports(pod.spec))
        if (conflict := taken(ports, held)) is not None:
            outcome = (
                f"waits until that pod is gone ({WAITING_FOR_PORTS})" if waits else f"will be rejected ({NODE_PORTS})"
            )
            message = f"host port {conflict.wanted} is held by pod {conflict.holder}: it {outcome}"
            yield Foreseen(pod.key, message, rejected=not waits)
        else:
            held.append((pod.key, ports))
