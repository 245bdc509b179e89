"""What a pod requests from the node before it starts: its share from `qos`, devices from `devices`.

Source: pkg/kubelet/lifecycle/predicate.go, pkg/kubelet/cm/devicemanager.
"""

from typing import Literal

import msgspec

from chronolet_schemas.devices import Answer
from chronolet_schemas.pod.base import PodEvent
from chronolet_schemas.registry import registered
from chronolet_schemas.resources import PodNeeds


@registered
class AdmissionBegan(PodEvent, frozen=True, kw_only=True):
    """Before its sandbox starts, the pod requests what it needs from these kinds: those that participate on this node.

    Repeated if a different set of kinds participates.
    """

    kinds: tuple[str, ...]


class ShareEvent(PodEvent, frozen=True, kw_only=True):
    """Base class for events about the pod's share of the node."""

    def subject(self) -> str:
        return "cgroup"


@registered
class CgroupRequested(ShareEvent, frozen=True, kw_only=True):
    """Request a share of the node from `qos`, and a cgroup that enforces it.

    Answered by an event with the same uid: `qos.CgroupReady`, `qos.PodRefused`, `qos.HostPortsAwaited` (pending).
    `running`: some of the pod's containers are already running, so the pod must not be refused. Repeated until
    answered.
    """

    needs: PodNeeds
    running: bool = False
    requested_at: int = 0


@registered
class CgroupGranted(ShareEvent, frozen=True, kw_only=True):
    """The pod has been granted its share of the node. Its containers start beneath `parent`; if it is empty, the
    runtime decides where.
    """

    parent: str = ""


@registered
class HostPortsAwaited(ShareEvent, frozen=True, kw_only=True):
    """The pod waits: another pod, the `holder` (namespace/name), uses a port of the node that this pod needs."""

    holder: str
    message: str


@registered
class CgroupReleased(ShareEvent, frozen=True, kw_only=True):
    """The pod will not run again and its sandbox is gone or dead, so its share of the node is free. Its dead containers
    can still be inspected.
    """


class DevicesEvent(PodEvent, frozen=True, kw_only=True):
    """Base class for events about the devices that one container requests from device plugins."""

    container: str

    def subject(self) -> str:
        return f"devices/{self.container}"


@registered
class DevicesRequested(DevicesEvent, frozen=True, kw_only=True):
    """The container requests the given number of devices of each resource. The request's id is `<uid>/<container>`.

    Repeated unchanged until `devices` answers, and before each `sandbox` (its attempt), because a plugin may have
    exited in the meantime. `held` maps a resource to the devices that the container already had when a new log began.
    """

    role: Literal["init", "sidecar", "app"]
    resources: dict[str, int]
    requested_at: int
    sandbox: int = 0
    held: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


@registered
class DevicesAwaited(DevicesEvent, frozen=True, kw_only=True):
    """The container waits because its devices are not available now. `message` says what it waits for."""

    reason: str
    message: str
    said_at: int


@registered
class DevicesGranted(DevicesEvent, frozen=True, kw_only=True):
    """The container has its devices; `devices` maps resources to device ids. `answer` combines what all plugins add to
    the container.

    `pre_start`: a plugin wants to be notified before each start of the container.
    """

    devices: dict[str, tuple[str, ...]]
    answer: Answer = Answer()
    pre_start: bool = False


@registered
class DevicesReleased(PodEvent, frozen=True, kw_only=True):
    """These containers no longer need their devices, or are about to request different ones."""

    containers: tuple[str, ...]

    def subject(self) -> str:
        return "devices"


@registered
class PreStartRequested(DevicesEvent, frozen=True, kw_only=True):
    """The container's `attempt` is about to start: notify the container's plugins, which may object.

    `failures`: how often this start has already failed.
    """

    attempt: int
    failures: int = 0
    requested_at: int


@registered
class PreStartAllowed(DevicesEvent, frozen=True, kw_only=True):
    """The container's plugins allow the start of this attempt, which had already failed `failures` times."""

    attempt: int
    failures: int = 0
