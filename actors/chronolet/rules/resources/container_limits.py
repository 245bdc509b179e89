"""The kernel limits of one container, given the node's settings. Pure.

Input: a container or its pod's needs, the settings. Output: the container's CPU limit; values for its cgroup for which
container runtimes have no options. Next: `pod` writes them once the container is running, `qos` enforces them. Source:
pkg/kubelet/kuberuntime (kuberuntime_container_linux.go), keps/sig-node/2570-memory-qos.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import msgspec

from chronolet.rules.resources import resources
from chronolet.rules.resources.cgroups import QUOTA_PERIOD_MICROSECONDS, Values
from chronolet_schemas.podspec import Container
from chronolet_schemas.resources import ContainerNeeds, PodNeeds

_PAGE = 4096


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """The node's settings for container limits. `throttling`: the fraction of the way from memory request to memory
    limit at which memory.high is set, None if it is not set; `unlimited_bytes`: replaces a missing memory limit.
    """

    cpu: bool = True
    period_us: int = QUOTA_PERIOD_MICROSECONDS
    reservation: Literal["None", "TieredReservation"] = "None"
    throttling: Fraction | None = None
    unlimited_bytes: int = 0


def cpu_milli(container: Container, holding: Holding) -> int:
    """Return the container's CPU limit in milli CPUs; 0 means no limit."""
    return resources.limits(container).get("cpu", 0) if holding.cpu else 0


def additional(needs: PodNeeds, name: str, holding: Holding) -> Values:
    """Return the values to write to the container's cgroup in addition to the runtime's. Huge pages of a size are
    limited to the container's own request if any container of the pod requests that size; otherwise, the pod's cgroup
    limits them.
    """
    own = needs.containers.get(name, ContainerNeeds())
    request = own.memory_request_bytes
    protected = request if request and holding.reservation == "TieredReservation" else None
    guaranteed = needs.qos_class == "Guaranteed"
    pages = sorted({size for one in needs.containers.values() for size in one.huge_pages})
    return Values(
        memory_min_bytes=protected if guaranteed else None,
        memory_low_bytes=None if guaranteed else protected,
        memory_high_bytes=_memory_high(request, own.memory_limit_bytes, holding),
        huge_pages=tuple((resources.page_size(size), own.huge_pages.get(size, 0)) for size in pages),
    )


def _memory_high(request: int, limit: int, holding: Holding) -> int | None:
    """Return memory.high in bytes; None if throttling is off, if request and limit are equal, or if the result is not
    above the request.
    """
    most = limit or holding.unlimited_bytes
    if holding.throttling is None or request == limit != 0:
        return None
    high = int(request + (most - request) * holding.throttling) // _PAGE * _PAGE
    return high if high > request else None
