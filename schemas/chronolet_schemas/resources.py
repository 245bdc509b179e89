"""What a pod takes of a node, as plain numbers that several kinds speak of."""

from __future__ import annotations

from typing import Literal

import msgspec

from chronolet_schemas.envelope import Message

QosClass = Literal["Guaranteed", "Burstable", "BestEffort"]
"""How well a pod is protected when resources are short, best first."""


class ContainerNeeds(Message, frozen=True, kw_only=True):
    """What one container asks for and may use of memory, 0 for nothing said; `huge_pages` as in `PodNeeds`."""

    memory_request_bytes: int = 0
    memory_limit_bytes: int = 0
    huge_pages: dict[str, int] = msgspec.field(default_factory=dict)


class HostPort(Message, frozen=True, kw_only=True):
    """A port of the node that a container takes. `ip` 0.0.0.0 is every address."""

    ip: str = "0.0.0.0"  # noqa: S104 - written down, not listened on
    protocol: str = "TCP"
    port: int

    def __str__(self) -> str:
        return f"{self.ip}:{self.port}/{self.protocol}"


class PodNeeds(Message, frozen=True, kw_only=True):
    """What a pod asks for and may use. A limit is None where not all of its containers have one.

    `huge_pages` are limits in bytes by resource name (`hugepages-2Mi`). `containers`, by name, are those that say
    anything of memory. `host_ports` are those of its app containers and sidecars.
    """

    qos_class: QosClass
    cpu_request_milli: int = 0
    memory_request_bytes: int = 0
    cpu_limit_milli: int | None = None
    memory_limit_bytes: int | None = None
    huge_pages: dict[str, int] = msgspec.field(default_factory=dict)
    containers: dict[str, ContainerNeeds] = msgspec.field(default_factory=dict)
    host_ports: tuple[HostPort, ...] = ()
