"""The settings that divide the node's resources among its pods.

Input: none. Output: part of the settings table; `SettingsError` for values out of range. Next: `table`. Source:
cmd/kubelet/app/options, pkg/kubelet/apis/config/validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from chronolet.node.settings.setting import Setting
from chronolet.node.settings.values import (
    SettingsError,
    boolean,
    cgroup,
    duration,
    listed,
    number,
    one_of,
    part,
    quantities_of,
    unlimited,
)

_RESERVABLE: Final = ("cpu", "memory", "pid", "ephemeral-storage", "hugepages-*")
_LONGEST_PERIOD_MS = 1000
_PER_CENT = 100

SHARES: tuple[Setting, ...] = (
    Setting(
        "max_pods",
        "--max-pods",
        "CHRONOLET_MAX_PODS",
        "maximum number of pods on the node [default: 110]",
        number(0, 1_000_000),
        "maxPods",
        "NUMBER",
    ),
    Setting(
        "pod_max_pids",
        "--pod-max-pids",
        "CHRONOLET_POD_MAX_PIDS",
        "maximum number of processes per pod; 0 or -1: no limit [default: 0]",
        unlimited(4_194_304),
        "podPidsLimit",
        "NUMBER",
    ),
    Setting(
        "cgroups_per_qos",
        "--cgroups-per-qos",
        "CHRONOLET_CGROUPS_PER_QOS",
        "false: pods get no cgroups of their own [default: true]",
        boolean,
        "cgroupsPerQOS",
        "BOOL",
    ),
    Setting(
        "cgroup_root",
        "--cgroup-root",
        "CHRONOLET_CGROUP_ROOT",
        "cgroup in which kubepods is created [default: the root cgroup]",
        cgroup,
        "cgroupRoot",
        "PATH",
    ),
    Setting(
        "cgroup_driver",
        "--cgroup-driver",
        "CHRONOLET_CGROUP_DRIVER",
        "how cgroups are created and named: cgroupfs or systemd [default: Docker's driver]",
        one_of("", "cgroupfs", "systemd"),
        "cgroupDriver",
        "WORD",
    ),
    Setting(
        "enforce_node_allocatable",
        "--enforce-node-allocatable",
        "CHRONOLET_ENFORCE_NODE_ALLOCATABLE",
        "pods: limit all pods together to what is not reserved; none: they may use the whole node [default: pods]",
        listed("pods", "none"),
        "enforceNodeAllocatable",
        "WORDS",
    ),
    Setting(
        "system_reserved",
        "--system-reserved",
        "CHRONOLET_SYSTEM_RESERVED",
        "resources reserved for the machine itself, such as cpu=200m,memory=512Mi [default: none]",
        quantities_of("=", *_RESERVABLE),
        "systemReserved",
        "AMOUNTS",
    ),
    Setting(
        "kube_reserved",
        "--kube-reserved",
        "CHRONOLET_KUBE_RESERVED",
        "resources reserved for Docker and the agent [default: none]",
        quantities_of("=", *_RESERVABLE),
        "kubeReserved",
        "AMOUNTS",
    ),
    Setting(
        "eviction_hard",
        "--eviction-hard",
        "CHRONOLET_EVICTION_HARD",
        "resources to keep free besides the pods' requests; only memory.available counts "
        "[default: memory.available<100Mi]",
        quantities_of("<", "memory.available", "nodefs.*", "imagefs.*", "containerfs.*", "pid.available", shares=True),
        "evictionHard",
        "AMOUNTS",
    ),
    Setting(
        "qos_reserved",
        "--qos-reserved",
        "CHRONOLET_QOS_RESERVED",
        "share of the higher QoS classes' requests that lower classes must not use, such as memory=50% [default: none]",
        quantities_of("=", "memory", shares=True),
        "qosReserved",
        "AMOUNTS",
    ),
    Setting(
        "cpu_cfs_quota",
        "--cpu-cfs-quota",
        "CHRONOLET_CPU_CFS_QUOTA",
        "false: CPU limits of pods are not enforced [default: true]",
        boolean,
        "cpuCFSQuota",
        "BOOL",
    ),
    Setting(
        "cpu_cfs_quota_period",
        "--cpu-cfs-quota-period",
        "CHRONOLET_CPU_CFS_QUOTA_PERIOD",
        "period over which CPU limits are enforced, 1ms to 1s [default: 100ms]",
        duration,
        "cpuCFSQuotaPeriod",
        "DURATION",
    ),
    Setting(
        "memory_reservation_policy",
        "--memory-reservation-policy",
        "CHRONOLET_MEMORY_RESERVATION_POLICY",
        "None, or TieredReservation: protect requested memory from reclaim (cgroup v2) [default: None]",
        one_of("None", "TieredReservation"),
        "memoryReservationPolicy",
        "WORD",
    ),
    Setting(
        "memory_throttling_factor",
        "--memory-throttling-factor",
        "CHRONOLET_MEMORY_THROTTLING_FACTOR",
        "fraction of the way from memory request to limit at which a container is throttled, such as 0.9 (cgroup v2) "
        "[default: never]",
        part,
        "memoryThrottlingFactor",
        "PART",
    ),
    Setting(
        "node_capacity",
        "--node-capacity",
        "CHRONOLET_NODE_CAPACITY",
        "capacity to assume instead of the machine's, for tests [default: the machine's]",
        quantities_of("=", "cpu", "memory", "pid"),
        metavar="AMOUNTS",
    ),
)


def check_shares(period_ms: int, qos_reserved: Mapping[str, str]) -> None:
    """Raise SettingsError for a value that its parser accepts but that is out of range."""
    if not 1 <= period_ms <= _LONGEST_PERIOD_MS:
        raise SettingsError(f"--cpu-cfs-quota-period: found {period_ms}ms, expected a duration from 1ms to 1s")
    written = qos_reserved.get("memory", "0%")
    if not written.endswith("%") or not written[:-1].isdigit() or int(written[:-1]) > _PER_CENT:
        raise SettingsError(f"--qos-reserved: memory: found {written!r}, expected a share from 0% to 100%")
