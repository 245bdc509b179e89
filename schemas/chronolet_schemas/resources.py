"""What a pod requires of a node, as plain numbers that several kinds use."""

from __future__ import annotations

from typing import Literal

import msgspec

from chronolet_schemas.envelope import Message

QosClass = Literal["Guaranteed", "Burstable", "BestEffort"]
"""A pod's QoS class. The classes are listed in order, starting with the one that is best protected when resources are
short.
"""


class ContainerNeeds(Message, frozen=True, kw_only=True):
    """Memory request and limit of one container, 0 if not set. `huge_pages` has the same meaning as in `PodNeeds`."""

    memory_request_bytes: int = 0
    memory_limit_bytes: int = 0
    huge_pages: dict[str, int] = msgspec.field(default_factory=dict)


class HostPort(Message, frozen=True, kw_only=True):
    """A port of the node that a container uses. `ip` 0.0.0.0 means every address."""

    ip: str = "0.0.0.0"  # noqa: S104 - data, not a listening address
    protocol: str = "TCP"
    port: int

    def __str__(self) -> str:
        return f"{self.ip}:{self.port}/{self.protocol}"


class PodNeeds(Message, frozen=True, kw_only=True):
    """Requests and limits of a pod. A pod limit is None unless the pod's own resources set it or all containers have
    that limit.

    `huge_pages` maps resource names (`hugepages-2Mi`) to limits in bytes. `containers` maps names to those containers
    that have a memory request, a memory limit or a huge page limit. `host_ports` are the host ports of app containers
    and sidecars.
    """

    qos_class: QosClass
    cpu_request_milli: int = 0
    memory_request_bytes: int = 0
    cpu_limit_milli: int | None = None
    memory_limit_bytes: int | None = None
    huge_pages: dict[str, int] = msgspec.field(default_factory=dict)
    containers: dict[str, ContainerNeeds] = msgspec.field(default_factory=dict)
    host_ports: tuple[HostPort, ...] = ()
