"""Group devices by NUMA node and find the nodes that suit a request. Pure.

Input: the NUMA nodes of devices. Output: groups of devices, hints, an affinity. Next: `allocation`, `stock`. Source:
pkg/kubelet/cm/devicemanager/manager.go (filterByAffinity), topology_hints.go; pkg/kubelet/cm/topologymanager/policy.go
(the best merged hint).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

Nodes = Mapping[str, Sequence[int]]
"""The NUMA nodes of each device; empty if the device reported none."""


class Groups(NamedTuple):
    """Devices grouped by whether they are on the affinity's NUMA nodes."""

    aligned: Sequence[str]
    unaligned: Sequence[str]
    without_topology: Sequence[str]


class Hint(NamedTuple):
    """NUMA nodes that can satisfy a request; `preferred` if no smaller set could do so, even with all devices free."""

    nodes: frozenset[int]
    preferred: bool


def grouped(available: Iterable[str], nodes: Nodes, affinity: Collection[int] | None) -> Groups:
    """Group the available devices; aligned devices are taken first. Without an affinity, all devices are in
    `without_topology`.
    """
    if affinity is None:
        return Groups((), (), tuple(available))
    aligned: list[str] = []
    unaligned: list[str] = []
    without: list[str] = []
    for device in available:
        near = nodes.get(device, ())
        group = without if not near else unaligned if set(near).isdisjoint(affinity) else aligned
        group.append(device)
    return Groups(aligned, unaligned, without)


def hints(
    *, numa_nodes: Sequence[int], nodes: Nodes, usable: Collection[str], reusable: Collection[str] = (), requested: int
) -> Sequence[Hint] | None:
    """Return each combination of NUMA nodes with at least `requested` usable devices and all reusable ones.

    None if no device reports a NUMA node, so that there is no preference. `nodes` covers all devices of the resource.
    """
    if not any(nodes.values()):
        return None
    smallest = len(numa_nodes)
    found: list[frozenset[int]] = []
    for combination in _combinations(numa_nodes):
        if _count(nodes, nodes, combination) >= requested:
            smallest = min(smallest, len(combination))
        held = _count(usable, nodes, combination) >= requested
        if held and _count(reusable, nodes, combination) == len(reusable):
            found.append(combination)
    return [Hint(one, len(one) == smallest) for one in found]


def _combinations(numa_nodes: Sequence[int]) -> Iterator[frozenset[int]]:
    for size in range(1, len(numa_nodes) + 1):
        for combination in combinations(numa_nodes, size):
            yield frozenset(combination)


def _count(devices: Iterable[str], nodes: Nodes, combination: frozenset[int]) -> int:
    return sum(1 for device in devices if not combination.isdisjoint(nodes.get(device, ())))


def best(of_each: Sequence[Sequence[Hint] | None], numa_nodes: Sequence[int]) -> frozenset[int] | None:
    """Return the affinity that best suits all resources of a container; None if no resource has a preference.

    The affinity is the smallest set of nodes that all resources prefer, else the smallest set that all can use, else
    all nodes.
    """
    known = [hints for hints in of_each if hints is not None]
    if not known:
        return None
    merged = [
        Hint(frozenset.intersection(*(hint.nodes for hint in one)), all(hint.preferred for hint in one))
        for one in product(*known)
    ]
    useful = sorted((one for one in merged if one.nodes), key=lambda one: (not one.preferred, len(one.nodes)))
    return useful[0].nodes if useful else frozenset(numa_nodes)
