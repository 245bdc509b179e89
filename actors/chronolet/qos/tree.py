"""The desired cgroups with all their values. Pure.

Input: the node, and each pod's share of it. Output: `Cgroup`s, parents first. Next: `decider` requests that they be
kept in this state; `get cgroups` shows them next to the actual ones. Source: pkg/kubelet/cm
(qos_container_manager_linux.go, helpers_linux.go, node_container_manager_linux.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from chronolet.qos.state import Share, State
from chronolet.rules.resources.cgroups import LEAST_SHARES, UNLIMITED, Cgroup, Path, Values, pod_name, quota, shares
from chronolet.rules.resources.container_limits import Holding, additional
from chronolet.rules.resources.resources import page_size
from chronolet_schemas.qos import Node
from chronolet_schemas.resources import PodNeeds, QosClass

KUBEPODS = "kubepods"
_CLASSES: Mapping[QosClass, tuple[str, ...]] = {
    "Guaranteed": (),
    "Burstable": ("burstable",),
    "BestEffort": ("besteffort",),
}
_UNBOUNDED_PAGES = 1 << 62
_V2 = 2


class Requests(NamedTuple):
    """The sum of the requests of all pods of a class."""

    cpu_milli: int = 0
    memory_bytes: int = 0


def wanted(state: State) -> Sequence[Cgroup]:
    """Return the whole tree; empty if there are no cgroups or the node is not described yet."""
    node = state.node
    if node is None or not node.version:
        return ()
    admitted = [(uid, one) for uid, one in sorted(state.shares.items()) if one.phase != "waiting"]
    pods = (one for uid, share in admitted for one in _pod(node, uid, share))
    return (*classes(node, [one.needs for _, one in admitted]), *pods)


def pod_path(node: Node, uid: str, qos_class: QosClass) -> Path:
    """Return the path of a pod's cgroup."""
    return (*node.root, *_CLASSES[qos_class], pod_name(uid))


def _pod(node: Node, uid: str, share: Share) -> Iterator[Cgroup]:
    path = pod_path(node, uid, share.needs.qos_class)
    yield Cgroup(path=path, values=pod_values(node, share.needs))
    for name, container_id in sorted(share.containers.items()):
        values = container_values(node, share.needs, name)
        yield Cgroup(path=(*path, container_id), values=values, is_containers=True)


def classes(node: Node, pods: Iterable[PodNeeds]) -> Sequence[Cgroup]:
    """Return the cgroup above all pods and those of the classes Burstable and BestEffort, whose limits depend on the
    admitted pods.
    """
    asked = _by_class(pods)
    guaranteed, burstable = asked["Guaranteed"], asked["Burstable"]
    reserved = memory_limits(node.enforced.memory_bytes, node.memory_reserved_percent, guaranteed, burstable)
    kept = node.version == _V2 and node.memory_reservation == "TieredReservation"
    pages = tuple((page_size(name), _UNBOUNDED_PAGES) for name in sorted(node.capacity.huge_pages))
    top = Values(
        cpu_shares=shares(node.enforced.cpu_milli),
        memory_limit_bytes=node.enforced.memory_bytes,
        memory_min_bytes=guaranteed.memory_bytes + burstable.memory_bytes if kept else None,
        pids=node.enforced.pids or None,
        huge_pages=_pages(node.enforced.huge_pages),
    )
    middle = Values(
        cpu_shares=shares(burstable.cpu_milli),
        memory_limit_bytes=reserved.get("Burstable"),
        memory_low_bytes=burstable.memory_bytes if kept else None,
        huge_pages=pages,
    )
    low = Values(cpu_shares=LEAST_SHARES, memory_limit_bytes=reserved.get("BestEffort"), huge_pages=pages)
    return (
        Cgroup(path=node.root, values=top),
        Cgroup(path=(*node.root, *_CLASSES["Burstable"]), values=middle),
        Cgroup(path=(*node.root, *_CLASSES["BestEffort"]), values=low),
    )


def _by_class(pods: Iterable[PodNeeds]) -> Mapping[QosClass, Requests]:
    found: dict[QosClass, Requests] = dict.fromkeys(_CLASSES, Requests())
    for one in pods:
        so_far = found[one.qos_class]
        found[one.qos_class] = Requests(
            so_far.cpu_milli + one.cpu_request_milli, so_far.memory_bytes + one.memory_request_bytes
        )
    return found


def memory_limits(
    node_bytes: int, percent: int | None, guaranteed: Requests, burstable: Requests
) -> Mapping[QosClass, int]:
    """Return the memory limits of the two lower classes if `percent` of the requests of higher classes is reserved;
    empty if nothing is reserved or the node's memory is unknown.
    """
    if percent is None or node_bytes <= 0:
        return {}
    middle = node_bytes - guaranteed.memory_bytes * percent // 100
    low = middle - burstable.memory_bytes * percent // 100
    return {"Burstable": max(middle, 0), "BestEffort": max(low, 0)}


def bearable(wanted_bytes: int, used_bytes: int) -> int:
    """Return the limit to set after the kernel refused the desired one: the current usage if that is higher, so that
    usage at least does not grow.
    """
    return max(wanted_bytes, used_bytes)


def pod_values(node: Node, needs: PodNeeds) -> Values:
    """Return the desired values of one pod's cgroup."""
    if needs.qos_class == "BestEffort":
        return Values(
            cpu_shares=LEAST_SHARES, pids=node.pod_pids or None, huge_pages=_pod_pages(node, needs.huge_pages)
        )
    limited = needs.cpu_limit_milli is not None
    kept = node.version == _V2 and node.memory_reservation == "TieredReservation"
    asked = needs.memory_request_bytes or None
    return Values(
        cpu_shares=shares(needs.cpu_request_milli),
        cpu_quota_us=_quota(node, needs.cpu_limit_milli),
        cpu_period_us=node.quota_period_us if limited else None,
        memory_limit_bytes=needs.memory_limit_bytes,
        memory_min_bytes=asked if kept and needs.qos_class == "Guaranteed" else None,
        memory_low_bytes=asked if kept and needs.qos_class == "Burstable" else None,
        pids=node.pod_pids or None,
        huge_pages=_pod_pages(node, needs.huge_pages),
    )


def holding(node: Node) -> Holding:
    """Return the node settings that apply to container limits."""
    factor = node.memory_throttling_factor
    return Holding(
        cpu=node.enforce_cpu_limits,
        period_us=node.quota_period_us,
        reservation=node.memory_reservation,
        throttling=Fraction(factor) if factor else None,
        unlimited_bytes=node.unlimited_memory_bytes,
    )


def container_values(node: Node, needs: PodNeeds, name: str) -> Values:
    """Return those desired values of a container's cgroup that the runtime does not set."""
    found = additional(needs, name, holding(node))
    return found if node.version == _V2 else Values(huge_pages=found.huge_pages)


def _quota(node: Node, limit_milli: int | None) -> int | None:
    if limit_milli is None:
        return None
    return quota(limit_milli, node.quota_period_us) if node.enforce_cpu_limits else UNLIMITED


def _pod_pages(node: Node, asked: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
    """Return the huge page limits of a pod: exactly what it requests, for every size that the node has."""
    return _pages({name: asked.get(name, 0) for name in node.capacity.huge_pages})


def _pages(much: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
    return tuple((page_size(name), limit) for name, limit in sorted(much.items()))
