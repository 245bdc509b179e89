"""Finds the devices that a claim may be given now, and the NUMA nodes that suit it. Pure.

Input: Context, a claim, a resource. Output: `allocation.Stock`. Next: `waiting`, which chooses from it. Source:
pkg/kubelet/cm/devicemanager/manager.go (devicesToAllocate), topology_hints.go (GetTopologyHints).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from chronolet.devices.claims import topology
from chronolet.devices.claims.allocation import Stock
from chronolet.devices.context import Context
from chronolet.devices.state import Claim, State


def stock_for(context: Context, claim: Claim, resource: str) -> Stock:
    """Return the supply of a resource for this claim. NUMA nodes are included only if the policy uses topology."""
    free = available(context.state, resource, context.healthy(resource) or {})
    reusable = _reusable(context.state, claim, resource)
    if context.policy.topology == "none":
        return Stock(free, reusable)
    return Stock(free, reusable, nodes_of(context.state, resource), _affinity(context, claim))


def available(state: State, resource: str, healthy: Iterable[str]) -> list[str]:
    """Return the healthy devices that no claim holds."""
    held = state.holders(resource)
    return [device for device in healthy if device not in held]


def nodes_of(state: State, resource: str) -> topology.Nodes:
    """Return the NUMA nodes of every device of a resource."""
    known = state.resources.get(resource)
    return {} if known is None else {device: one.nodes for device, one in known.devices.items()}


def _reusable(state: State, claim: Claim, resource: str) -> frozenset[str]:
    """Return the devices of the pod's init containers that are held neither by a sidecar or app container nor by the
    claim itself.
    """
    left: set[str] = set()
    taken: set[str] = set()
    for other in state.of_pod(claim.uid):
        own = other.devices().get(resource, ())
        (left if other.role == "init" and other.container != claim.container else taken).update(own)
    return frozenset(left - taken)


def _affinity(context: Context, claim: Claim) -> frozenset[int] | None:
    """Return the NUMA nodes that best suit all resources of the claim; None if no resource has a preference."""
    nodes = {name: nodes_of(context.state, name) for name in claim.wants}
    numa = sorted({node for table in nodes.values() for near in table.values() for node in near})
    return topology.best([_hints(context, claim, name, nodes[name], numa) for name in sorted(nodes)], numa)


def _hints(
    context: Context, claim: Claim, resource: str, nodes: topology.Nodes, numa: Sequence[int]
) -> Sequence[topology.Hint] | None:
    recorded = claim.recorded(resource)
    usable: Collection[str]
    if recorded is not None:
        usable, reusable = recorded, frozenset[str]()
    else:
        reusable = _reusable(context.state, claim, resource)
        usable = {*available(context.state, resource, context.healthy(resource) or {}), *reusable}
    return topology.hints(
        numa_nodes=numa, nodes=nodes, usable=usable, reusable=reusable, requested=claim.wants[resource]
    )
