"""The settings by which the node is shared out among its pods.

Comes in: nothing. Goes out: their part of the table, and what is wrong with values that do not go together. Next:
`settings`. Source: cmd/kubelet/app/options, pkg/kubelet/apis/config/validation.
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
        "how many pods the node takes [default: 110]",
        number(0, 1_000_000),
        "maxPods",
        "NUMBER",
    ),
    Setting(
        "pod_max_pids",
        "--pod-max-pids",
        "CHRONOLET_POD_MAX_PIDS",
        "how many processes a pod may have, 0 or -1 for any number [default: 0]",
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
        "the cgroup in which kubepods is made [default: the topmost]",
        cgroup,
        "cgroupRoot",
        "PATH",
    ),
    Setting(
        "cgroup_driver",
        "--cgroup-driver",
        "CHRONOLET_CGROUP_DRIVER",
        "how cgroups are made and named: cgroupfs or systemd [default: as Docker does]",
        one_of("", "cgroupfs", "systemd"),
        "cgroupDriver",
        "WORD",
    ),
    Setting(
        "enforce_node_allocatable",
        "--enforce-node-allocatable",
        "CHRONOLET_ENFORCE_NODE_ALLOCATABLE",
        "pods: together they get no more than what is not reserved; none: all of the node [default: pods]",
        listed("pods", "none"),
        "enforceNodeAllocatable",
        "WORDS",
    ),
    Setting(
        "system_reserved",
        "--system-reserved",
        "CHRONOLET_SYSTEM_RESERVED",
        "kept back for the machine itself, such as cpu=200m,memory=512Mi [default: nothing]",
        quantities_of("=", *_RESERVABLE),
        "systemReserved",
        "AMOUNTS",
    ),
    Setting(
        "kube_reserved",
        "--kube-reserved",
        "CHRONOLET_KUBE_RESERVED",
        "kept back for Docker and the agent [default: nothing]",
        quantities_of("=", *_RESERVABLE),
        "kubeReserved",
        "AMOUNTS",
    ),
    Setting(
        "eviction_hard",
        "--eviction-hard",
        "CHRONOLET_EVICTION_HARD",
        "what must stay free beside the pods' requests; only memory.available counts [default: memory.available<100Mi]",
        quantities_of("<", "memory.available", "nodefs.*", "imagefs.*", "containerfs.*", "pid.available", shares=True),
        "evictionHard",
        "AMOUNTS",
    ),
    Setting(
        "qos_reserved",
        "--qos-reserved",
        "CHRONOLET_QOS_RESERVED",
        "share of the higher classes' requests that the lower classes may not use, as memory=50% [default: none]",
        quantities_of("=", "memory", shares=True),
        "qosReserved",
        "AMOUNTS",
    ),
    Setting(
        "cpu_cfs_quota",
        "--cpu-cfs-quota",
        "CHRONOLET_CPU_CFS_QUOTA",
        "false: limits of processor time are not enforced for pods [default: true]",
        boolean,
        "cpuCFSQuota",
        "BOOL",
    ),
    Setting(
        "cpu_cfs_quota_period",
        "--cpu-cfs-quota-period",
        "CHRONOLET_CPU_CFS_QUOTA_PERIOD",
        "in which a limit of processor time is given, 1ms to 1s [default: 100ms]",
        duration,
        "cpuCFSQuotaPeriod",
        "DURATION",
    ),
    Setting(
        "memory_reservation_policy",
        "--memory-reservation-policy",
        "CHRONOLET_MEMORY_RESERVATION_POLICY",
        "None, or TieredReservation: protect what is asked for (cgroup v2) [default: None]",
        one_of("None", "TieredReservation"),
        "memoryReservationPolicy",
        "WORD",
    ),
    Setting(
        "memory_throttling_factor",
        "--memory-throttling-factor",
        "CHRONOLET_MEMORY_THROTTLING_FACTOR",
        "at which part of the way from request to limit of memory a container is slowed down, as 0.9 (cgroup v2) "
        "[default: nowhere]",
        part,
        "memoryThrottlingFactor",
        "PART",
    ),
    Setting(
        "node_capacity",
        "--node-capacity",
        "CHRONOLET_NODE_CAPACITY",
        "reckon with this and not with what the machine has, for tests [default: what it has]",
        quantities_of("=", "cpu", "memory", "pid"),
        metavar="AMOUNTS",
    ),
)


def check_shares(period_ms: int, qos_reserved: Mapping[str, str]) -> None:
    """SettingsError for a value that its own form does not tell."""
    if not 1 <= period_ms <= _LONGEST_PERIOD_MS:
        raise SettingsError(f"--cpu-cfs-quota-period: found {period_ms}ms, expected a duration from 1ms to 1s")
    written = qos_reserved.get("memory", "0%")
    if not written.endswith("%") or not written[:-1].isdigit() or int(written[:-1]) > _PER_CENT:
        raise SettingsError(f"--qos-reserved: memory: found {written!r}, expected a share from 0% to 100%")
