"""What the node's admission will say of pods that are about to be applied.

Comes in: qos' state, pods. Goes out: a line for each pod that will be rejected, or will wait, or runs where its labels
say otherwise. Next: `apply`. The node decides again when the pod starts: what is said here may have changed by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from chronolet.cli.session import Session
from chronolet.kernel.storage.store import HistoryMissing
from chronolet.pod.admission.node_policy import Policy, policy_of, rejection, warning
from chronolet.pod.admission.node_share import WAITING_FOR_PORTS
from chronolet.qos.decider import NODE_PORTS
from chronolet.qos.state import State
from chronolet.rules.names.host_ports import host_ports, taken
from chronolet_schemas.podspec import Pod
from chronolet_schemas.resources import HostPort


class Foreseen(NamedTuple):
    """About the pod of this key. `rejected`: it will never run as it is."""

    pod: str
    message: str
    rejected: bool

    def __str__(self) -> str:
        return f"pod {self.pod}: {self.message}"


def of(node: Session, pods: Sequence[Pod]) -> Sequence[Foreseen]:
    """By the node's log; nothing where that cannot be read as a whole, which keeps no pod from being applied."""
    try:
        state = node.state("qos").states["qos"].get("node", State())
    except HistoryMissing:
        return ()
    return tuple(foreseen(state, pods))


def foreseen(state: State, pods: Sequence[Pod]) -> Iterator[Foreseen]:
    """In the order of the pods; one that comes first has its ports before the next one."""
    policy = policy_of(state.node) if state.node is not None else Policy()
    waits = state.node is None or state.node.wait_for_host_ports
    names = {one.key for one in pods}
    held: list[tuple[str, Sequence[HostPort]]] = [
        (one.pod, one.needs.host_ports)
        for _, one in sorted(state.shares.items())
        if one.phase != "waiting" and one.pod not in names
    ]
    for pod in pods:
        said = rejection(policy, pod)
        if said is not None:
            yield Foreseen(pod.key, f"it will be rejected: {said.reason}: {said.message}", rejected=True)
            continue
        if (unmatched := warning(policy, pod)) is not None:
            yield Foreseen(pod.key, unmatched.message, rejected=False)
        ports = tuple(host_ports(pod.spec))
        if (conflict := taken(ports, held)) is not None:
            what = (
                f"waits until that pod is gone ({WAITING_FOR_PORTS})" if waits else f"will be rejected ({NODE_PORTS})"
            )
            said_of_port = f"host port {conflict.wanted} is held by pod {conflict.holder}: it {what}"
            yield Foreseen(pod.key, said_of_port, rejected=not waits)
        else:
            held.append((pod.key, ports))
