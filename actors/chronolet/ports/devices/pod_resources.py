"""Which pod has which devices, as monitoring agents read it.

Comes in: nothing. Goes out: plain records. Implementations: `adapters.pod_resources` serves them by gRPC; `node` reads
them from the log. Source: k8s.io/kubelet/pkg/apis/podresources/v1.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

Method = Literal["list", "get", "get_allocatable"]
Version = Literal["v1", "v1alpha1"]

Counted = Callable[[Version, Method, bool], None]
"""Told of each call, and whether it failed."""


class ResourceDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One device. `nodes` are its NUMA nodes, where its plugin says some."""

    resource: str
    id: str
    nodes: tuple[int, ...] = ()


class ContainerResources(msgspec.Struct, frozen=True, kw_only=True):
    """A container and its devices."""

    name: str
    devices: tuple[ResourceDevice, ...] = ()


class PodResources(msgspec.Struct, frozen=True, kw_only=True):
    """A pod with its app containers and sidecars. `active`: something of it runs, or may yet."""

    name: str
    namespace: str
    active: bool = True
    containers: tuple[ContainerResources, ...] = ()


class NodeResources(msgspec.Struct, frozen=True, kw_only=True):
    """All of a node. `allocatable` are the devices that pods may have, whoever has them."""

    pods: tuple[PodResources, ...] = ()
    allocatable: tuple[ResourceDevice, ...] = ()


class UnreadableError(Exception):
    """They cannot be read now; the message says why."""


class PodResourcesServer(Protocol):
    """Where they are read."""

    def serve(self, stop: threading.Event) -> None:
        """Until `stop`."""
