"""What a pod asks of the node before it starts: its share of `qos`, devices of `devices`.

Source: pkg/kubelet/lifecycle/predicate.go, pkg/kubelet/cm/devicemanager.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from chronolet_schemas.devices import Answer
from chronolet_schemas.pod.base import PodEvent
from chronolet_schemas.registry import registered
from chronolet_schemas.resources import PodNeeds


@registered
class AdmissionBegan(PodEvent, frozen=True, kw_only=True):
    """Before its sandbox the pod asks these kinds for what it needs of them: the ones that take part in this node.

    Said once more where others take part than did.
    """

    kinds: tuple[str, ...]


class ShareEvent(PodEvent, frozen=True, kw_only=True):
    """About the pod's share of the node."""

    def subject(self) -> str:
        return "cgroup"


@registered
class CgroupRequested(ShareEvent, frozen=True, kw_only=True):
    """Asks `qos` for a share of the node, and for a cgroup that holds the pod to it. Answers: `qos.CgroupReady`,
    `qos.PodRefused`, `qos.HostPortsAwaited` (not yet), which name the same uid.

    `running`: containers of it run already, which are not to be refused. It is said again until it is answered.
    """

    needs: PodNeeds
    running: bool = False
    requested_at: int = 0


@registered
class CgroupGranted(ShareEvent, frozen=True, kw_only=True):
    """The pod has its share. Its containers begin beneath `parent`; empty: wherever the runtime puts them."""

    parent: str = ""


@registered
class HostPortsAwaited(ShareEvent, frozen=True, kw_only=True):
    """Not yet: another pod, the `holder` (namespace/name), has a port of the node that this pod needs. It waits."""

    holder: str
    message: str


@registered
class CgroupReleased(ShareEvent, frozen=True, kw_only=True):
    """The pod is over and nothing of it runs, though it is still there to be looked at: it takes nothing any more."""


class DevicesEvent(PodEvent, frozen=True, kw_only=True):
    """About the devices that one container wants of the node's device plugins."""

    container: str

    def subject(self) -> str:
        return f"devices/{self.container}"


@registered
class DevicesRequested(DevicesEvent, frozen=True, kw_only=True):
    """The container wants so many devices of each resource. The id of the request is `<uid>/<container>`.

    It is said again, in the same words, until it is answered by one of `devices`; and before each `sandbox` (its
    attempt), for a plugin may have gone since. `held` names devices, by resource, that the container had when a new log
    began, and runs with.
    """

    role: Literal["init", "sidecar", "app"]
    resources: dict[str, int]
    requested_at: int
    sandbox: int = 0
    held: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


@registered
class DevicesAwaited(DevicesEvent, frozen=True, kw_only=True):
    """Not yet: what the container wants cannot be had now, and it waits. `message` says for what."""

    reason: str
    message: str
    said_at: int


@registered
class DevicesGranted(DevicesEvent, frozen=True, kw_only=True):
    """The container has its devices: ids by resource; `answer` is what all plugins want it to be started with.

    `pre_start`: a plugin wants to be told before each of its starts.
    """

    devices: dict[str, tuple[str, ...]]
    answer: Answer = Answer()
    pre_start: bool = False


@registered
class DevicesReleased(PodEvent, frozen=True, kw_only=True):
    """These containers need their devices no more, or are to ask for others."""

    containers: tuple[str, ...]

    def subject(self) -> str:
        return "devices"


@registered
class PreStartRequested(DevicesEvent, frozen=True, kw_only=True):
    """The container's `attempt` is about to be started: its plugins are to be told, and may object.

    `failures`: how often its start has failed before.
    """

    attempt: int
    failures: int = 0
    requested_at: int


@registered
class PreStartAllowed(DevicesEvent, frozen=True, kw_only=True):
    """The plugins have been told of this attempt, after so many failures of its start."""

    attempt: int
    failures: int = 0
