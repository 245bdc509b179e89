"""What the node has of each resource. Pure.

Comes in: State. Goes out: counts, devices. Next: metrics, `get devices`, PodResources.
Source: pkg/kubelet/cm/devicemanager/manager.go (GetCapacity, GetAllocatableDevices, sanitizeNodeAllocatable,
UpdateAllocatedResourcesStatus).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chronolet.devices.state import Resource, State
from chronolet_schemas.devices import HEALTHY, UNHEALTHY


def capacity(state: State) -> dict[str, int]:
    """How many devices there are of each resource, well or not."""
    return {name: len(_counted(one)) for name, one in sorted(state.resources.items(), key=_name)}


def allocatable(state: State) -> dict[str, tuple[str, ...]]:
    """The healthy devices of each resource, held or not."""
    return {name: tuple(sorted(one.healthy())) for name, one in sorted(state.resources.items(), key=_name)}


def allocated(state: State) -> dict[str, tuple[str, ...]]:
    """The devices of each resource that are held."""
    return {name: tuple(sorted(table)) for name, table in sorted(state.used.items(), key=_name)}


def node_allocatable(state: State) -> dict[str, int]:
    """What the node says that pods may have: never less than what they have."""
    return at_least({name: len(ids) for name, ids in allocatable(state).items()}, allocated(state))


def at_least(counts: Mapping[str, int], held: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The counts, raised to what is held."""
    return dict(counts) | {name: max(counts.get(name, 0), len(ids)) for name, ids in held.items()}


def health(state: State, resource: str, device: str) -> str:
    """The health of one device as its container's status tells it; what is not listed any more is unhealthy."""
    known = state.resources.get(resource)
    return HEALTHY if known is not None and device in known.healthy() else UNHEALTHY


def _counted(resource: Resource) -> Mapping[str, object]:
    return {} if resource.remembered else resource.devices


def _name(item: tuple[str, object]) -> str:
    return item[0]
