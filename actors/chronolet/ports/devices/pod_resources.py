"""The PodResources port, through which monitoring agents learn which pod uses which devices.

Output: plain records. Implementations: `adapters.pod_resources` serves them over gRPC; `node` reads them from the log.
Source: k8s.io/kubelet/pkg/apis/podresources/v1.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

Method = Literal["list", "get", "get_allocatable"]
Version = Literal["v1", "v1alpha1"]

Counted = Callable[[Version, Method, bool], None]
"""Called for each request; the last argument is whether it failed."""


class ResourceDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One device. `nodes`: its NUMA nodes, if its plugin reports any."""

    resource: str
    id: str
    nodes: tuple[int, ...] = ()


class ContainerResources(msgspec.Struct, frozen=True, kw_only=True):
    """A container and its devices."""

    name: str
    devices: tuple[ResourceDevice, ...] = ()


class PodResources(msgspec.Struct, frozen=True, kw_only=True):
    """A pod with its app containers and sidecars. `active`: whether a container is running or may still start."""

    name: str
    namespace: str
    active: bool = True
    containers: tuple[ContainerResources, ...] = ()


class NodeResources(msgspec.Struct, frozen=True, kw_only=True):
    """The devices of a node. `allocatable`: all devices that pods may use, whether in use or not."""

    pods: tuple[PodResources, ...] = ()
    allocatable: tuple[ResourceDevice, ...] = ()


class UnreadableError(Exception):
    """The records cannot be read now; the message gives the reason."""


class PodResourcesServer(Protocol):
    """The server from which monitoring agents read these records."""

    def serve(self, stop: threading.Event) -> None:
        """Serve until `stop` is set."""
