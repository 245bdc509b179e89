"""What the node has to give, who got of it, and the cgroups that hold them to it. Source: pkg/kubelet/cm, lifecycle.

Events about a pod name `pod` (namespace/name) and `uid`. A cgroup is named by its path in the kubelet's words, such as
`kubepods/burstable/pod<uid>`, whatever the driver calls it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from chronolet_schemas.envelope import Event, Message
from chronolet_schemas.registry import registered
from chronolet_schemas.resources import PodNeeds

Driver = Literal["", "cgroupfs", "systemd"]
"""Who makes cgroups, and how they are named; empty: there are none."""


NodeAffinity = Literal["warn", "enforce"]
"""A pod that does not match the node's labels runs with a warning, or is rejected as the kubelet does."""


class Amounts(Message, frozen=True, kw_only=True):
    """So much of a node. `huge_pages` in bytes by resource name; 0 processes means any number."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    pids: int = 0
    huge_pages: dict[str, int] = msgspec.field(default_factory=dict)


class System(Message, frozen=True, kw_only=True):
    """What the machine and the container runtime call themselves; empty where unknown. Source: v1.NodeSystemInfo."""

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
    """What the node is and how it is to be shared out: capacity, and all settings that the tree depends on.

    `enforced` is capacity less what is reserved: what all pods together may use. `allocatable` is less by the hard
    eviction thresholds too: what their requests must fit in. Both as the kubelet reckons them.
    `memory_throttling_factor` is a number as text, empty for none; `unlimited_memory_bytes` stands for the limit of a
    container that has none, where its `memory.high` is reckoned.
    `root` is the path of the topmost cgroup of ours. `lost` says what this machine cannot do.

    What else decides on admission: `labels` of the node with `node_affinity`, which says what becomes of a pod that
    they do not match; `allowed_unsafe_sysctls`; `wait_for_host_ports`, without which a pod whose ports are held is
    rejected.
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
    """How many processes a pod may have; 0: any number."""
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
    """The node is found to be like this, for the first time or otherwise than before."""

    node: Node


class PodEvent(Event, frozen=True, kw_only=True):
    """About a pod's share of the node."""

    pod: str
    uid: str

    def subject(self) -> str:
        return f"pod/{self.uid}"


@registered
class PodAwaited(PodEvent, frozen=True, kw_only=True):
    """The pod asked before anything was known of the node: it is answered when there is."""

    needs: PodNeeds
    running: bool = False


@registered
class PodAdmitted(PodEvent, frozen=True, kw_only=True):
    """Intent: the node has room for what the pod needs; its cgroup is to be made, or changed."""

    needs: PodNeeds


@registered
class PodRefused(PodEvent, frozen=True, kw_only=True):
    """The node has no room for the pod. `reason` is OutOfcpu, OutOfmemory, OutOfpods, OutOfhugepages-<size> or
    NodePorts.
    """

    reason: str
    message: str


@registered
class HostPortsAwaited(PodEvent, frozen=True, kw_only=True):
    """Not yet: a port of the node that the pod needs is held by the pod `holder` (namespace/name). The pod waits, first
    come first served by `asked_at`, and takes nothing meanwhile. Said again when `message` changes.
    """

    needs: PodNeeds
    holder: str
    message: str
    asked_at: int


@registered
class CgroupReady(PodEvent, frozen=True, kw_only=True):
    """The pod's cgroup has the values that it should have. Containers begin beneath `parent`; empty: wherever the
    runtime puts them.
    """

    parent: str = ""


@registered
class PodReleased(PodEvent, frozen=True, kw_only=True):
    """The pod takes nothing any more: its cgroup goes."""


@registered
class ContainerKept(PodEvent, frozen=True, kw_only=True):
    """Intent: the container `id` runs, and its own cgroup is to have what the runtime has no words for. Until its
    successor runs, or the pod is released.
    """

    container: str
    id: str


class CgroupEvent(Event, frozen=True, kw_only=True):
    """About one cgroup."""

    cgroup: str

    def subject(self) -> str:
        return f"cgroup/{self.cgroup}"


class Change(Message, frozen=True, kw_only=True):
    """One file of a cgroup: what it said and what it should say. Without a file: the cgroup itself was missing."""

    file: str = ""
    found: str = ""
    wanted: str = ""


@registered
class CgroupRestored(CgroupEvent, frozen=True, kw_only=True):
    """Somebody had changed or removed the cgroup; it is as it should be again."""

    changes: tuple[Change, ...]


@registered
class CgroupRemoved(CgroupEvent, frozen=True, kw_only=True):
    """A cgroup that no pod has any more is gone; `killed` processes were in it."""

    killed: int = 0


@registered
class CgroupFailing(CgroupEvent, frozen=True, kw_only=True):
    """The cgroup cannot be brought into its state. Said once for each error; tried again and again."""

    error: str


@registered
class CgroupWorking(CgroupEvent, frozen=True, kw_only=True):
    """The cgroup is as it should be, after CgroupFailing."""
