"""Choose the devices for a container. Pure.

Input: a request for a number of devices of a resource, the healthy and the free devices. Output: the devices, a call to
the plugin, or a problem in the kubelet's words. Next: `waiting`, which decides what a problem means for the pod.
Source: pkg/kubelet/cm/devicemanager/manager.go (devicesToAllocate).

Equally suitable devices are taken in the order of their names, so the same state always yields the same choice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from heapq import nsmallest
from types import MappingProxyType
from typing import Literal, NamedTuple

from chronolet.devices.claims.topology import Nodes, grouped

Error = Literal[
    "request_changed",
    "unregistered_resource",
    "no_healthy_devices",
    "recorded_devices_unhealthy",
    "insufficient_devices",
    "plugin_error",
]


class Problem(NamedTuple):
    """Why devices cannot be allocated. `message` is the kubelet's text."""

    error: Error
    message: str
    recorded: int = 0
    requested: int = 0
    available: int = 0


class Request(NamedTuple):
    """One container's request for one resource. `recorded`: the devices allocated to it earlier, None if there are
    none.

    `running`: a newly started agent found the container running, so it already has its devices.
    """

    uid: str
    container: str
    resource: str
    requested: int
    recorded: Sequence[str] | None = None
    running: bool = False


class Chosen(NamedTuple):
    """The chosen devices, the most suitable first."""

    devices: Sequence[str]


class Question(NamedTuple):
    """A call to the plugin: which `size` of the `available` devices does it prefer? Its response must include
    `must_include`.

    `aligned`: apart from `must_include`, `available` contains only devices on the affinity's NUMA nodes.
    """

    available: Sequence[str]
    must_include: Sequence[str]
    size: int
    aligned: bool


def problem_of(request: Request, healthy: Collection[str] | None) -> Problem | None:
    """Return what rules out an allocation before any device is chosen; None if nothing does.

    `healthy` is None if no plugin is registered. Health is checked before the count: a request for zero devices also
    fails if no device is healthy.
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
    """The supply of a resource: `reusable` devices of the same pod, and `free` devices, which are healthy.

    `affinity`: the NUMA nodes to prefer, None if there is no preference.
    """

    free: Collection[str]
    reusable: Collection[str] = ()
    nodes: Nodes = MappingProxyType({})
    affinity: Collection[int] | None = None


def selection(
    resource: str, needed: int, stock: Stock, *, offers: bool, preferred: Iterable[str] | None = None
) -> Chosen | Question | Problem:
    """Return the `needed` devices, or the call to the plugin that has to precede the choice, or why there are too few.

    `offers`: the plugin supports GetPreferredAllocation; `preferred` is its answer, None if it has not been asked.
    """
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
    """Take devices on the affinity's NUMA nodes first.

    If there are more than enough of them, choose among them by the plugin's preference; otherwise take all of them and
    choose the remaining devices by preference.
    """
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
    """Return `taken` followed by `more` without duplicates, up to `needed` devices."""
    return list(dict.fromkeys((*taken, *more)))[: max(needed, len(taken))]
