"""Which devices a container gets. Pure.

Comes in: a request for so many devices of a resource, what is healthy, what is free. Goes out: the devices, a question
to the plugin, or a problem in the kubelet's words. Next: `claims`, which decides what a problem means for the pod.
Source: pkg/kubelet/cm/devicemanager/manager.go (devicesToAllocate).

Of several devices that are equal the first by name are taken, so that the same state always gives the same answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from heapq import nsmallest
from types import MappingProxyType
from typing import Literal, NamedTuple

from chronolet.devices.topology import Nodes, grouped

Error = Literal[
    "request_changed",
    "unregistered_resource",
    "no_healthy_devices",
    "recorded_devices_unhealthy",
    "insufficient_devices",
    "plugin_error",
]


class Problem(NamedTuple):
    """Why devices cannot be had. `message` is what the kubelet would say."""

    error: Error
    message: str
    recorded: int = 0
    requested: int = 0
    available: int = 0


class Request(NamedTuple):
    """What one container wants of one resource. `recorded` are the devices that it has been given before, None: never.

    `running`: it was found running by an agent that has just begun, and so has what it needs.
    """

    uid: str
    container: str
    resource: str
    requested: int
    recorded: Sequence[str] | None = None
    running: bool = False


class Chosen(NamedTuple):
    """These devices, in order."""

    devices: Sequence[str]


class Question(NamedTuple):
    """To the plugin: which `size` of these, `must_include` among them? `aligned`: they are those near the affinity."""

    available: Sequence[str]
    must_include: Sequence[str]
    size: int
    aligned: bool


def problem_of(request: Request, healthy: Collection[str] | None) -> Problem | None:
    """What stands in the way before any device is chosen. `healthy` is None where no plugin is registered.

    The health is looked at before the number that is needed: also a request for none fails without healthy devices.
    """
    resource, recorded = request.resource, request.recorded
    if recorded is not None and len(recorded) != request.requested:
        return _changed(request, len(recorded))
    if request.running:
        return None
    if healthy is None:
        return Problem("unregistered_resource", f"cannot allocate unregistered device {resource}")
    if not healthy:
        message = f"no healthy devices present; cannot allocate unhealthy devices {resource}"
        return Problem("no_healthy_devices", message)
    if recorded is not None and not all(device in healthy for device in recorded):
        message = f"previously allocated devices are no longer healthy; cannot allocate unhealthy devices {resource}"
        return Problem("recorded_devices_unhealthy", message)
    return None


def _changed(request: Request, recorded: int) -> Problem:
    message = (
        f'pod "{request.uid}" container "{request.container}" changed request for resource "{request.resource}" '
        f"from {recorded} to {request.requested}"
    )
    return Problem("request_changed", message, recorded=recorded, requested=request.requested)


class Stock(NamedTuple):
    """What there is of a resource: devices that its pod may use again, devices that are free and healthy.

    `affinity` are the NUMA nodes that the container is to be near to, None where nothing is known of that.
    """

    free: Collection[str]
    reusable: Collection[str] = ()
    nodes: Nodes = MappingProxyType({})
    affinity: Collection[int] | None = None


def selection(
    resource: str, needed: int, stock: Stock, *, offers: bool, preferred: Iterable[str] | None = None
) -> Chosen | Question | Problem:
    """So many devices of the resource. `offers`: the plugin wants to be asked; `preferred` is what it said then."""
    taken = nsmallest(needed, stock.reusable)
    rest = needed - len(taken)
    if not rest:
        return Chosen(taken)
    if len(stock.free) < rest:
        return _shortage(resource, rest, len(stock.free))
    if stock.affinity is None and not offers:
        return Chosen([*taken, *nsmallest(rest, stock.free)])
    return _by_affinity(needed, taken, stock, offers=offers, preferred=preferred)


def _by_affinity(
    needed: int, taken: list[str], stock: Stock, *, offers: bool, preferred: Iterable[str] | None
) -> Chosen | Question:
    """What is near first; within that, or within what is left, as the plugin prefers."""
    free = sorted(stock.free)
    groups = grouped(free, stock.nodes, stock.affinity)
    enough = needed - len(taken) < len(groups.aligned)
    if not enough:
        taken = _filled(taken, groups.aligned, needed)
    if len(taken) == needed:
        return Chosen(taken)
    among = groups.aligned if enough else free
    if offers and preferred is None:
        return Question(sorted({*among, *taken}), taken, needed, enough)
    allowed = set(among)
    taken = _filled(taken, [device for device in preferred or () if device in allowed], needed)
    order = groups.aligned if enough else (*groups.unaligned, *groups.without_topology)
    return Chosen(_filled(taken, order, needed))


def _shortage(resource: str, requested: int, available: int) -> Problem:
    message = f"requested number of devices unavailable for {resource}. Requested: {requested}, Available: {available}"
    return Problem("insufficient_devices", message, requested=requested, available=available)


def _filled(taken: Sequence[str], more: Iterable[str], needed: int) -> list[str]:
    """What is taken, and as many more as are needed; none twice."""
    return list(dict.fromkeys((*taken, *more)))[: max(needed, len(taken))]
