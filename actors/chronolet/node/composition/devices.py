"""Builds the devices kind with its gRPC workers, and serves PodResources from the log.

Input: settings, the log, metrics. Output: `Kind`, `NodeResources`. Next: `kinds`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

from chronolet.adapters.device_plugins.plugins import GrpcDevicePlugins
from chronolet.adapters.pod_resources.server import GrpcPodResources
from chronolet.devices import actor as devices
from chronolet.devices import effects
from chronolet.devices.state import State
from chronolet.history.entries import ArchiveReader
from chronolet.history.state import Moment, state_at
from chronolet.kernel.kind import Kind
from chronolet.kernel.storage.store import HistoryMissing, Store, StoreBroken, StoreUnreachable
from chronolet.node.metrics.devices import DeviceMetrics
from chronolet.node.settings.policies import devices_policy
from chronolet.node.settings.table import Settings
from chronolet.pod import actor as pod
from chronolet.pod.state import State as PodState
from chronolet.pod.status.status import pod_status
from chronolet.ports.devices.pod_resources import (
    ContainerResources,
    NodeResources,
    PodResources,
    ResourceDevice,
    UnreadableError,
)
from chronolet_schemas.envelope import Position

_PATIENCE_SECONDS = 5.0


def kind(settings: Settings, store: Store, archive: ArchiveReader, metrics: DeviceMetrics) -> Kind[State]:
    """Build the devices kind with its workers."""
    log, folder = LogReader(store, archive), settings.kubelet_dir
    deps = effects.DevicesDependencies(
        plugins=GrpcDevicePlugins(folder / "device-plugins", folder / "plugins_registry"),
        resources=GrpcPodResources(folder / "pod-resources", log.resources, metrics.count_request),
        live_pods=log.live_pods,
        observe_allocate=metrics.allocate_took,
        max_plugins=settings.max_device_plugins,
    )
    return devices.kind(devices_policy(settings), effects.jobs(deps), effects.standing(deps))


class LogReader:
    """Reads the current pods and devices from the log. Usable from any thread."""

    def __init__(self, store: Store, archive: ArchiveReader) -> None:
        self._store = store
        self._archive = archive
        self._reading = threading.Lock()
        self._read: tuple[Position, NodeResources] | None = None

    def live_pods(self) -> tuple[str, ...]:
        """Return the uids of all pods."""
        moment = state_at(self._store, self._archive, (pod.kind(),))
        return tuple(sorted(state.uid for state in moment.states["pod"].values() if state.uid))

    def resources(self) -> NodeResources:
        """Return which pods hold which devices, and which devices can be allocated. Raises UnreadableError if the log
        cannot be read, or is still being read for another request after five seconds.
        """
        if not self._reading.acquire(timeout=_PATIENCE_SECONDS):
            raise UnreadableError("the log is still being read for another request: retry")
        try:
            return self._resources()
        except (StoreUnreachable, StoreBroken, HistoryMissing, OSError) as error:
            raise UnreadableError(str(error)) from error
        finally:
            self._reading.release()

    def _resources(self) -> NodeResources:
        """Return the resources. The log is folded again only if it has grown, because monitoring agents call often and
        concurrently.
        """
        if self._read is None or self._read[0] != self._store.last():
            moment = state_at(self._store, self._archive, (pod.kind(), devices.kind()))
            self._read = (moment.position, node_resources(moment))
        return self._read[1]


def node_resources(moment: Moment) -> NodeResources:
    """Return all pods with their devices, and all allocatable devices. Source: pkg/kubelet/cm/devicemanager/manager.go
    (GetDevices, GetAllocatableDevices), pkg/kubelet/apis/podresources/server_v1.go.
    """
    state: State = moment.states["devices"].get(devices.NODE, State())
    pods: Mapping[str, PodState] = moment.states["pod"]
    return NodeResources(
        pods=tuple(_pod(key, one, state) for key, one in sorted(pods.items()) if one.uid),
        allocatable=tuple(_allocatable(state)),
    )


def _pod(key: str, one: PodState, state: State) -> PodResources:
    namespace, _, name = key.partition("/")
    return PodResources(
        name=name,
        namespace=namespace,
        active=_is_active(one),
        containers=tuple(
            ContainerResources(name=container.name, devices=tuple(_held(one.uid, container.name, state)))
            for container in one.of_kind("sidecar", "app")
        ),
    )


def _is_active(one: PodState) -> bool:
    """Return whether the pod has not finished, or still has a live container. Source: pkg/kubelet/kubelet_pods.go
    (filterOutInactivePods).
    """
    return pod_status(one).phase not in ("Succeeded", "Failed") or any(each.alive for each in one.containers)


def _held(uid: str, container: str, state: State) -> Iterator[ResourceDevice]:
    """Yield the container's devices: those that plugins allocated, and those that it had when it was adopted."""
    claim = state.claims.get(f"{uid}/{container}")
    if claim is None:
        return
    own = claim.adopted | {resource: one.devices for resource, one in claim.held.items()}
    for resource, names in sorted(own.items()):
        for name in sorted(names):
            yield _device(resource, name, state)


def _allocatable(state: State) -> Iterator[ResourceDevice]:
    for resource, one in sorted(state.resources.items()):
        for name in sorted(one.healthy()):
            yield _device(resource, name, state)


def _device(resource: str, name: str, state: State) -> ResourceDevice:
    known: Any = state.resources[resource].devices if resource in state.resources else {}
    return ResourceDevice(resource=resource, id=name, nodes=known[name].nodes if name in known else ())
