"""Divides a machine's resources according to the settings. Pure.

Input: the settings, the machine's resources and abilities. Output: `Node`, or what is wrong with the settings. Next:
the worker of LookAtNode; process start, which rejects invalid settings. Source: pkg/kubelet/cm
(node_container_manager_linux.go), pkg/kubelet/eviction/helpers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from chronolet.qos import allocatable
from chronolet.qos.tree import KUBEPODS
from chronolet.rules.resources import quantities, resources
from chronolet.rules.resources.cgroups import Path
from chronolet_schemas.qos import Amounts, Driver, Node, NodeAffinity, System

_PER_CENT = 100
MEMORY_AVAILABLE = "memory.available"
NO_SYSTEM = System()
"""Placeholder for a machine that has not been inspected yet."""


class Sharing(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that divide the machine. `system_reserved`, `kube_reserved` and `capacity` are quantities by
    resource name; `capacity` overrides the machine's own capacity. `eviction_hard` are quantities or percentages by
    signal.
    """

    name: str
    above: Path = ()
    """Path of the cgroup in which `kubepods` is created."""
    driver: Driver = ""
    """Empty means the driver that the container runtime reports."""
    per_qos: bool = True
    enforce: bool = True
    system_reserved: Mapping[str, str] = {}
    kube_reserved: Mapping[str, str] = {}
    eviction_hard: Mapping[str, str] = {}
    memory_reserved_percent: int | None = None
    max_pods: int = 110
    pod_pids: int = 0
    cfs_quota: bool = True
    quota_period_us: int = 100_000
    memory_reservation: Literal["None", "TieredReservation"] = "None"
    memory_throttling_factor: str = ""
    capacity: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    node_affinity: NodeAffinity = "warn"
    allowed_unsafe_sysctls: tuple[str, ...] = ()
    wait_for_host_ports: bool = True

    @property
    def root(self) -> Path:
        """Path of `kubepods`, the cgroup that chronolet creates below `above` and that contains all its others."""
        return (*self.above, KUBEPODS)


class Means(msgspec.Struct, frozen=True, kw_only=True):
    """The cgroup version and driver with which pods' shares are enforced; version 0 means that they are not. `lost`
    lists what is not enforced.
    """

    version: Literal[0, 1, 2] = 0
    driver: Driver = ""
    lost: tuple[str, ...] = ()


def described(sharing: Sharing, machine: Amounts, means: Means, system: System = NO_SYSTEM) -> Node:
    """Return the node: the machine's resources, divided according to the settings."""
    capacity = _capacity(sharing, machine)
    reserved = _amounts(sharing.system_reserved), _amounts(sharing.kube_reserved)
    return Node(
        name=sharing.name,
        capacity=capacity,
        enforced=allocatable.enforced(capacity, *reserved) if sharing.enforce else capacity,
        allocatable=allocatable.allocatable(capacity, _kept_free(sharing, capacity), *reserved),
        max_pods=sharing.max_pods,
        version=means.version,
        driver=means.driver,
        root=sharing.root if means.version else (),
        enforce_cpu_limits=sharing.cfs_quota,
        quota_period_us=sharing.quota_period_us,
        pod_pids=sharing.pod_pids,
        memory_reserved_percent=sharing.memory_reserved_percent,
        memory_reservation=sharing.memory_reservation,
        memory_throttling_factor=sharing.memory_throttling_factor,
        unlimited_memory_bytes=allocatable.unlimited_memory(capacity, *reserved),
        lost=means.lost,
        labels=dict(sharing.labels),
        node_affinity=sharing.node_affinity,
        allowed_unsafe_sysctls=sharing.allowed_unsafe_sysctls,
        wait_for_host_ports=sharing.wait_for_host_ports,
        system=system,
    )


def problem(sharing: Sharing, machine: Amounts) -> str | None:
    """Return why the settings do not fit the machine; None if they do."""
    capacity = _capacity(sharing, machine)
    reserved = _amounts(sharing.system_reserved), _amounts(sharing.kube_reserved)
    return allocatable.problem(capacity, _kept_free(sharing, capacity), *reserved)


def _capacity(sharing: Sharing, machine: Amounts) -> Amounts:
    configured = _amounts(sharing.capacity)
    return Amounts(
        cpu_milli=configured.cpu_milli or machine.cpu_milli,
        memory_bytes=configured.memory_bytes or machine.memory_bytes,
        pids=configured.pids or machine.pids,
        huge_pages=machine.huge_pages,
    )


def _amounts(written: Mapping[str, str]) -> Amounts:
    found = resources.amounts(written)
    return Amounts(
        cpu_milli=found.get("cpu", 0),
        memory_bytes=found.get("memory", 0),
        pids=found.get("pid", 0),
        huge_pages={name: much for name, much in found.items() if name.startswith(resources.HUGE_PAGES)},
    )


def _kept_free(sharing: Sharing, capacity: Amounts) -> int:
    """Return the memory that `--eviction-hard` reserves, in bytes."""
    written = sharing.eviction_hard.get(MEMORY_AVAILABLE, "0")
    if written.endswith("%"):
        return int(capacity.memory_bytes * quantities.parse(written.removesuffix("%")) / _PER_CENT)
    return quantities.memory_bytes(written)
