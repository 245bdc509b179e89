"""The types of a v1 PodStatus, with the API's names on the wire. Pure.

Input: none. Output: Structs. Next: `status` fills them in. Source: PodStatus in core/v1/types.go.
"""

from __future__ import annotations

import msgspec

from chronolet.pod.status.phase import Phase
from chronolet_schemas.resources import QosClass


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Base class of the API's objects; empty fields are omitted."""


class Waiting(Part, frozen=True, kw_only=True):
    """The state of a waiting container: why it waits."""

    reason: str
    message: str = ""


class Running(Part, frozen=True, kw_only=True):
    """The state of a running container: since when it has been running."""

    started_at: str = ""


class Terminated(Part, frozen=True, kw_only=True):
    """The state of a container that has terminated: how it ended."""

    exit_code: int = msgspec.field(default=-1)
    reason: str = ""
    message: str = ""
    started_at: str = ""
    finished_at: str = ""
    container_id: str = msgspec.field(default="", name="containerID")


class ContainerState(Part, frozen=True, kw_only=True):
    """A container's state; at most one of the fields is set."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Part, frozen=True, kw_only=True):
    """The status of one container. `ready` and `restart_count` are always written."""

    name: str
    image: str
    ready: bool | None = None
    restart_count: int | None = None
    started: bool | None = None
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    image_id: str = msgspec.field(default="", name="imageID")
    container_id: str = msgspec.field(default="", name="containerID")


class PodCondition(Part, frozen=True, kw_only=True):
    """One condition of the pod; `status` is the string True, False or Unknown."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class PodIP(Part, frozen=True, kw_only=True):
    """One IP address."""

    ip: str


class PodStatus(Part, frozen=True, kw_only=True):
    """The status of the whole pod."""

    phase: Phase
    reason: str = ""
    message: str = ""
    start_time: str = ""
    host_ip: str = msgspec.field(default="", name="hostIP")
    host_ips: tuple[PodIP, ...] = msgspec.field(default=(), name="hostIPs")
    pod_ip: str = msgspec.field(default="", name="podIP")
    pod_ips: tuple[PodIP, ...] = msgspec.field(default=(), name="podIPs")
    conditions: tuple[PodCondition, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()
    qos_class: QosClass | None = msgspec.field(default=None, name="qosClass")
