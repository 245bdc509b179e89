"""What the kernel is to hold one container to, by the node's settings. Pure.

Input: a container or what its pod needs, the settings. Output: its limit of processor time; values for its own
cgroup that container runtimes have no words for. Next: `pod` writes them once it runs, `qos` keeps them. Source:
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
    """The settings. `throttling` is the part of the way from request to limit at which a container is slowed down, None
    for nowhere; `unlimited_bytes` stands for a limit that there is none of.
    """

    cpu: bool = True
    period_us: int = QUOTA_PERIOD_MICROSECONDS
    reservation: Literal["None", "TieredReservation"] = "None"
    throttling: Fraction | None = None
    unlimited_bytes: int = 0


def cpu_milli(container: Container, holding: Holding) -> int:
    """Its limit of processor time in thousandths of a processor; 0 for none."""
    return resources.limits(container).get("cpu", 0) if holding.cpu else 0


def beside(needs: PodNeeds, name: str, holding: Holding) -> Values:
    """What is to be written into its cgroup beside what the runtime writes. Of huge pages it gets what it asks for and
    no more; where nobody of the pod asks for any, the pod's own cgroup sees to that.
    """
    own = needs.containers.get(name, ContainerNeeds())
    asked = own.memory_request_bytes
    protected = asked if asked and holding.reservation == "TieredReservation" else None
    guaranteed = needs.qos_class == "Guaranteed"
    pages = sorted({size for one in needs.containers.values() for size in one.huge_pages})
    return Values(
        memory_min_bytes=protected if guaranteed else None,
        memory_low_bytes=None if guaranteed else protected,
        memory_high_bytes=_slowed_at(asked, own.memory_limit_bytes, holding),
        huge_pages=tuple((resources.page_size(size), own.huge_pages.get(size, 0)) for size in pages),
    )


def _slowed_at(asked: int, limit: int, holding: Holding) -> int | None:
    """Who may use exactly what it asks for is never slowed down."""
    most = limit or holding.unlimited_bytes
    if holding.throttling is None or asked == limit != 0:
        return None
    high = int(asked + (most - asked) * holding.throttling) // _PAGE * _PAGE
    return high if high > asked else None
