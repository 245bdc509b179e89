"""Translates the resource settings into qos's terms, and checks that this machine can satisfy them.

Input: settings, the machine. Output: `Sharing`; SettingsError. Next: `parts`, `kinds`. Source:
pkg/kubelet/cm (NewContainerManager, validateNodeAllocatable).
"""

from __future__ import annotations

import platform

from chronolet.node.settings.policies import labels
from chronolet.node.settings.table import Settings
from chronolet.node.settings.values import SettingsError
from chronolet.ports.machine.cgroups import CgroupRefusal, Cgroups, Driver
from chronolet.ports.machine.host import Host
from chronolet.qos import tree
from chronolet.qos.effects import machine
from chronolet.qos.sharing import Means, Sharing, described, problem
from chronolet.rules.resources.container_limits import Holding

_MICROSECONDS = 1000
_DRIVERS: tuple[Driver, ...] = ("cgroupfs", "systemd")


def sharing(settings: Settings) -> Sharing:
    """Derive from the settings how the node's resources are divided."""
    reserved, factor = settings.qos_reserved.get("memory"), settings.memory_throttling_factor
    return Sharing(
        name=settings.node,
        above=tuple(one for one in settings.cgroup_root.split("/") if one),
        driver=settings.cgroup_driver,
        per_qos=settings.cgroups_per_qos,
        enforce="pods" in settings.enforce_node_allocatable,
        system_reserved=settings.system_reserved,
        kube_reserved=settings.kube_reserved,
        eviction_hard=settings.eviction_hard,
        memory_reserved_percent=None if reserved is None else int(reserved.removesuffix("%")),
        max_pods=settings.max_pods,
        pod_pids=settings.pod_max_pids,
        cfs_quota=settings.cpu_cfs_quota,
        quota_period_us=settings.cpu_cfs_quota_period * _MICROSECONDS,
        memory_reservation=settings.memory_reservation_policy,
        memory_throttling_factor="" if factor is None else str(factor),
        capacity=settings.node_capacity,
        labels=labels(settings, platform.machine()),
        node_affinity=settings.node_affinity,
        allowed_unsafe_sysctls=settings.allowed_unsafe_sysctls,
        wait_for_host_ports=settings.wait_for_resources,
    )


def holding(settings: Settings, host: Host) -> Holding:
    """Return the node settings that apply to container limits, from the same node description that qos uses."""
    return tree.holding(described(sharing(settings), machine(host), Means()))


def check(shared: Sharing, host: Host, cgroups: Cgroups) -> None:
    """Check the reservations against the machine, and claim the existing cgroup trees for this node.

    Raises SettingsError if more is reserved than the machine has, or if a tree belongs to another owner. Without
    `shared.per_qos`, no tree is claimed. Without a configured driver, the trees of both drivers are claimed: Docker,
    which knows the driver, may not be running yet.
    """
    if wrong := problem(shared, machine(host)):
        raise SettingsError(wrong)
    if not shared.per_qos:
        return
    for driver in (shared.driver,) if shared.driver else _DRIVERS:
        found = cgroups.tree(driver)
        try:
            if found is not None:
                found.claim(shared.root, shared.name)
        except CgroupRefusal as refusal:
            raise SettingsError(str(refusal)) from refusal
