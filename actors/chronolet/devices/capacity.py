"""Count devices per resource. Pure.

Input: State. Output: counts, device ids, the health of a device. Next: metrics, `get devices`, PodResources. Source:
pkg/kubelet/cm/devicemanager/manager.go (GetCapacity, GetAllocatableDevices, sanitizeNodeAllocatable,
UpdateAllocatedResourcesStatus).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chronolet.devices.state import Resource, State
from chronolet_schemas.devices import HEALTHY, UNHEALTHY


def capacity(state: State) -> dict[str, int]:
    """Return the number of devices of each resource, healthy or not; 0 while they are only remembered
    (`Resource.remembered`).
    """
    return {name: len(_counted(one)) for name, one in sorted(state.resources.items(), key=_name)}


def allocatable(state: State) -> dict[str, tuple[str, ...]]:
    """Return the healthy devices of each resource, held or not."""
    return {name: tuple(sorted(one.healthy())) for name, one in sorted(state.resources.items(), key=_name)}


def allocated(state: State) -> dict[str, tuple[str, ...]]:
    """Return the held devices of each resource."""
    return {name: tuple(sorted(table)) for name, table in sorted(state.used.items(), key=_name)}


def node_allocatable(state: State) -> dict[str, int]:
    """Return the number of devices of each resource that the node offers to pods: the healthy ones, but never fewer
    than pods hold.
    """
    return at_least({name: len(ids) for name, ids in allocatable(state).items()}, allocated(state))


def at_least(counts: Mapping[str, int], held: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Raise each count to at least the number of held devices of its resource."""
    return dict(counts) | {name: max(counts.get(name, 0), len(ids)) for name, ids in held.items()}


def health(state: State, resource: str, device: str) -> str:
    """Return the health of one device as shown in its container's status; a device that is no longer listed is
    unhealthy.
    """
    known = state.resources.get(resource)
    return HEALTHY if known is not None and device in known.healthy() else UNHEALTHY


def _counted(resource: Resource) -> Mapping[str, object]:
    return {} if resource.remembered else resource.devices


def _name(item: tuple[str, object]) -> str:
    return item[0]
