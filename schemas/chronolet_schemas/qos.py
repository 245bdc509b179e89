"""The node's resources, the pods' shares of them, and the cgroups that enforce these. Source: pkg/kubelet/cm,
lifecycle.

Events about a pod name `pod` (namespace/name) and `uid`. A cgroup is named by its path in the kubelet's notation, such
as `kubepods/burstable/pod<uid>`, whatever the driver calls it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from chronolet_schemas.envelope import Event, Message
from chronolet_schemas.registry import registered
from chronolet_schemas.resources import PodNeeds

Driver = Literal["", "cgroupfs", "systemd"]
"""The cgroup driver, which determines the names of cgroups; empty means that there are no cgroups."""


NodeAffinity = Literal["warn", "enforce"]
"""What to do with a pod that does not match the node's labels: run it with a warning, or reject it like the kubelet."""


class Amounts(Message, frozen=True, kw_only=True):
    """Amounts of resources. `huge_pages` maps resource names to bytes. `pids`: 0 means unlimited."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    pids: int = 0
    huge_pages: dict[str, int] = msgspec.field(default_factory=dict)


class System(Message, frozen=True, kw_only=True):
    """System and runtime information; empty if unknown. Source: v1.NodeSystemInfo."""

    machine_id: str = ""
    system_uuid: str = ""
    boot_id: str = ""
    kernel_version: str = ""
    os_image: str = ""
    operating_system: str = ""
    architecture: str = ""
    container_runtime_version: str = ""
    agent_version: str = ""
    internal_ip: str = ""
    hostname: str = ""
    storage_bytes: int = 0


class Node(Message, frozen=True, kw_only=True):
    """The node and how it is divided: capacity, and all settings that the cgroup tree depends on.

    `enforced` is the capacity less what is reserved: the limit for all pods together. `allocatable` is further reduced
    by the hard eviction thresholds: the limit for the pods' requests. Both are calculated as in the kubelet.

    `memory_throttling_factor` is a number as text, empty for none; `unlimited_memory_bytes` replaces a missing limit in
    the calculation of a container's `memory.high`.

    `root` is the path of the agent's topmost cgroup. `lost` lists what this machine cannot do.

    Further admission settings: `labels` of the node; `node_affinity`, what to do with a pod that does not match them;
    `allowed_unsafe_sysctls`; `wait_for_host_ports`: if False, a pod whose ports are in use is rejected.
    """

    name: str = ""
    capacity: Amounts
    enforced: Amounts
    allocatable: Amounts
    max_pods: int
    version: Literal[0, 1, 2]
    driver: Driver
    root: tuple[str, ...] = ()
    enforce_cpu_limits: bool = True
    quota_period_us: int = 100_000
    pod_pids: int = 0
    """Maximum number of processes of a pod; 0 means unlimited."""
    memory_reserved_percent: int | None = None
    memory_reservation: Literal["None", "TieredReservation"] = "None"
    memory_throttling_factor: str = ""
    unlimited_memory_bytes: int = 0
    lost: tuple[str, ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    node_affinity: NodeAffinity = "warn"
    allowed_unsafe_sysctls: tuple[str, ...] = ()
    wait_for_host_ports: bool = True
    system: System = System()


@registered
class NodeDescribed(Event, frozen=True, kw_only=True):
    """The properties of the node, recorded for the first time or after a change."""

    node: Node


class PodEvent(Event, frozen=True, kw_only=True):
    """Base class for events about a pod's share of the node."""

    pod: str
    uid: str

    def subject(self) -> str:
        return f"pod/{self.uid}"


@registered
class PodAwaited(PodEvent, frozen=True, kw_only=True):
    """The pod requested its share before the node was known; the answer follows once the node is known. `running`:
    whether the pod is already running, so that it is not refused.
    """

    needs: PodNeeds
    running: bool = False


@registered
class PodAdmitted(PodEvent, frozen=True, kw_only=True):
    """Intent: the node has room for what the pod needs; create or change its cgroup."""

    needs: PodNeeds


@registered
class PodRefused(PodEvent, frozen=True, kw_only=True):
    """The node does not admit the pod: it has no room for it, or a host port that the pod needs is in use.

    `reason` is OutOfcpu, OutOfmemory, OutOfpods, OutOfhugepages-<size> or NodePorts.
    """

    reason: str
    message: str


@registered
class HostPortsAwaited(PodEvent, frozen=True, kw_only=True):
    """The pod waits: a port of the node that it needs is in use by the pod `holder` (namespace/name).

    First come, first served, ordered by `asked_at`; the pod has no share while it waits. Repeated when `message`
    changes.
    """

    needs: PodNeeds
    holder: str
    message: str
    asked_at: int


@registered
class CgroupReady(PodEvent, frozen=True, kw_only=True):
    """The pod's cgroup has its desired values. Containers start beneath `parent`; if it is empty, the runtime decides
    where.
    """

    parent: str = ""


@registered
class PodReleased(PodEvent, frozen=True, kw_only=True):
    """The pod gives up its share: its cgroup is removed."""


@registered
class ContainerKept(PodEvent, frozen=True, kw_only=True):
    """Intent: the container `id` is running; give its own cgroup the values that the runtime cannot set.

    Applies until the container's successor is running, or the pod is released.
    """

    container: str
    id: str


class CgroupEvent(Event, frozen=True, kw_only=True):
    """Base class for events about one cgroup."""

    cgroup: str

    def subject(self) -> str:
        return f"cgroup/{self.cgroup}"


class Change(Message, frozen=True, kw_only=True):
    """A restored file of a cgroup: the value found, and the desired value. An empty `file` means that the cgroup itself
    was missing.
    """

    file: str = ""
    found: str = ""
    wanted: str = ""


@registered
class CgroupRestored(CgroupEvent, frozen=True, kw_only=True):
    """The cgroup had been changed or removed by a third party; it has its desired state again."""

    changes: tuple[Change, ...]


@registered
class CgroupRemoved(CgroupEvent, frozen=True, kw_only=True):
    """A cgroup without a pod was removed. `killed` is the number of processes in it, which were killed."""

    killed: int = 0


@registered
class CgroupFailing(CgroupEvent, frozen=True, kw_only=True):
    """The cgroup cannot be brought to its desired state. Recorded once per error; retried continually."""

    error: str


@registered
class CgroupWorking(CgroupEvent, frozen=True, kw_only=True):
    """The cgroup has its desired state again, after CgroupFailing."""
