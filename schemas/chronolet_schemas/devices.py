"""Device plugins, their devices, and which container holds which. Source: pkg/kubelet/cm/devicemanager.

A resource is what plugins call `vendor-domain/type`. Its plugin registers again and again; `generation` counts that.
Times are milliseconds by the agent's clock, 0 where unknown or never. A claim is one container's wish for devices, its
id is `<uid>/<container>`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from chronolet_schemas.envelope import Event, Message
from chronolet_schemas.registry import registered

Role = Literal["init", "sidecar", "app"]
"""What a container is to its pod: plain init containers leave their devices to those that come after them."""

HEALTHY = "Healthy"
UNHEALTHY = "Unhealthy"
"""What plugins say of a device. Any other word than the first counts as the second."""


class DeviceInfo(Message, frozen=True, kw_only=True):
    """A device as its plugin lists it. `nodes` are the NUMA nodes it says it is near to."""

    id: str
    health: str
    nodes: tuple[int, ...] = ()


class PluginOptions(Message, frozen=True, kw_only=True):
    """What a plugin wants to be asked beside Allocate."""

    pre_start_required: bool = False
    preferred_allocation: bool = False


class Mount(Message, frozen=True, kw_only=True):
    """A path of the host that a plugin wants in the container."""

    container_path: str
    host_path: str
    read_only: bool = False


class DeviceNode(Message, frozen=True, kw_only=True):
    """A device file of the host that a plugin wants in the container. `permissions` are of r, w, m."""

    container_path: str
    host_path: str
    permissions: str = ""


class Answer(Message, frozen=True, kw_only=True):
    """What a plugin's Allocate said about one container: its ContainerAllocateResponse.

    `cdi_devices` are fully qualified names, `vendor/class=name`.
    """

    envs: dict[str, str] = msgspec.field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    cdi_devices: tuple[str, ...] = ()


class Allocation(Message, frozen=True, kw_only=True):
    """Devices of one resource, with what the plugin said to them. `pre_start`: it wants to be told of each start."""

    devices: tuple[str, ...]
    answer: Answer = Answer()
    pre_start: bool = False


class ResourceEvent(Event, frozen=True, kw_only=True):
    """About a resource and its plugin."""

    resource: str

    def subject(self) -> str:
        return f"resource/{self.resource}"


@registered
class RegistryOpened(Event, frozen=True, kw_only=True):
    """The registration socket was made anew: every plugin is expected to register again.

    Until it has, its resource has no capacity; what is allocated stays so.
    """

    opened_at: int


@registered
class PluginRegistered(ResourceEvent, frozen=True, kw_only=True):
    """A plugin offers the resource at `socket`, an absolute path; one that did so before is replaced.

    `options` is null until they are known: a plugin that did not say them is asked.
    """

    generation: int
    socket: str
    registered_at: int
    by: Literal["registration", "watcher"] = "registration"
    options: PluginOptions | None = None


@registered
class RegistrationRefused(ResourceEvent, frozen=True, kw_only=True):
    """A plugin wanted to register and may not; `message` is what it was told.

    One that tries again and again is told each time, but not told of: `times` is how often the resource has been
    refused for this reason since the registration socket was made, `calls` how many of them this event stands for.
    """

    endpoint: str
    version: str
    reason: Literal["unsupported_version", "invalid_resource_name", "invalid_endpoint", "too_many_plugins"]
    message: str
    refused_at: int
    times: int = 1
    calls: int = 1


@registered
class PluginOptionsKnown(ResourceEvent, frozen=True, kw_only=True):
    """What the plugin wants to be asked. With an `error` it did not say: nothing then.

    `deaths` is how many times in a row plugins of the resource were gone before they had answered this.
    """

    generation: int
    options: PluginOptions
    error: str = ""
    deaths: int = 0


@registered
class PluginSilent(ResourceEvent, frozen=True, kw_only=True):
    """The plugin has registered, and listed nothing for a while. It is still waited for."""

    generation: int
    said_at: int


@registered
class DevicesListed(ResourceEvent, frozen=True, kw_only=True):
    """What is new in a listing of the plugin: devices that are new or changed, and ids that are not there any more.

    The first listing of a generation is told even if nothing is new. `count` is how many devices the listing had,
    `skipped` how many listings before it came too fast and were not looked at.
    """

    generation: int
    devices: tuple[DeviceInfo, ...] = ()
    gone: tuple[str, ...] = ()
    count: int
    skipped: int = 0


@registered
class ListingRefused(ResourceEvent, frozen=True, kw_only=True):
    """A listing made no sense, and the one before it held. Written by releases before ListingCorrected only."""

    generation: int
    message: str


@registered
class ListingCorrected(ResourceEvent, frozen=True, kw_only=True):
    """A list had entries that cannot be used as they are; all other entries count.

    Each finding is reported once per registration. `twice` are ids listed more than once, of which the last entry
    counts. `unnamed` is the number of entries without an id, which were dropped; 0 if that was reported before.
    """

    generation: int
    message: str
    twice: tuple[str, ...] = ()
    unnamed: int = 0


@registered
class PluginStopped(ResourceEvent, frozen=True, kw_only=True):
    """The plugin cannot be heard any more: its devices count as unhealthy. Its allocations stay. `deaths` as for
    PluginOptionsKnown.
    """

    generation: int
    stopped_at: int
    error: str = ""
    deaths: int = 0


@registered
class ResourceRemoved(ResourceEvent, frozen=True, kw_only=True):
    """The plugin did not come back in time: the resource is none of the node's any more."""

    removed_at: int


class ClaimEvent(Event, frozen=True, kw_only=True):
    """About the devices of one container: `pod` is namespace/name."""

    pod: str
    uid: str
    container: str

    def subject(self) -> str:
        return f"claim/{self.uid}/{self.container}"


class WishEvent(ClaimEvent, frozen=True, kw_only=True):
    """The first of these about a container says what it wants: `wants` is how many devices of each resource.

    `at` is when it was decided.
    """

    role: Role
    wants: dict[str, int]
    at: int


@registered
class DevicesPending(WishEvent, frozen=True, kw_only=True):
    """Not yet: the wish waits. `reason` is what stands in the way, `resource` where; `message` is for people.

    It is looked at again when something of the resource changes, or at `retry_at`.
    """

    resource: str
    reason: str
    message: str
    retry_at: int = 0


@registered
class PreferenceAsked(WishEvent, frozen=True, kw_only=True):
    """Intent: ask the plugin which devices it would give. `size` devices, those of `must_include` among them.

    `near`: only from the devices near to these NUMA nodes; empty: from all.
    """

    resource: str
    must_include: tuple[str, ...] = ()
    size: int
    near: tuple[int, ...] = ()


@registered
class DevicesChosen(WishEvent, frozen=True, kw_only=True):
    """Intent: these devices are the container's from now on, and the plugin is told to Allocate them."""

    resource: str
    devices: tuple[str, ...]


@registered
class DevicesAdopted(WishEvent, frozen=True, kw_only=True):
    """The log is new, and the container holds these devices: ids by resource. The plugin is asked what it says to them
    as soon as it is there.
    """

    devices: dict[str, tuple[str, ...]]


@registered
class DevicesAllocated(ClaimEvent, frozen=True, kw_only=True):
    """The plugin has allocated the chosen devices of `resource`.

    `complete`: the container has all that it wants; `earlier` holds what it got of other resources, by their names.
    `milliseconds` is how long the plugin took. Without an `allocation` nothing was allocated now: what the container
    holds is said again to who asks again.
    """

    resource: str = ""
    allocation: Allocation | None = None
    earlier: dict[str, Allocation] = msgspec.field(default_factory=dict)
    complete: bool = True
    milliseconds: int = 0

    def allocations(self) -> dict[str, Allocation]:
        """All of them, by resource."""
        return self.earlier if self.allocation is None else {**self.earlier, self.resource: self.allocation}


@registered
class DevicesRefused(ClaimEvent, frozen=True, kw_only=True):
    """The container cannot have what it wants. What it was given for this wish is free again.

    `reason` is one of allocation's words, `message` is the kubelet's.
    """

    resource: str
    reason: str
    message: str


@registered
class DevicesFreed(Event, frozen=True, kw_only=True):
    """What the pod's containers held is free: ids by resource, by container.

    `PodGone`: nobody released them, but no pod of this uid lives.
    """

    pod: str
    uid: str
    devices: dict[str, dict[str, tuple[str, ...]]]
    reason: Literal["Released", "PodEnded", "PodGone"]

    def subject(self) -> str:
        return f"pod/{self.uid}"


@registered
class PreStartAsked(ClaimEvent, frozen=True, kw_only=True):
    """Intent: tell the plugins that the container is about to start; `attempt` as in the pod's own events."""

    attempt: int


@registered
class PreStartDone(ClaimEvent, frozen=True, kw_only=True):
    """The plugins know that this attempt starts."""

    attempt: int


@registered
class PreStartFailed(ClaimEvent, frozen=True, kw_only=True):
    """A plugin says that this attempt may not start."""

    attempt: int
    message: str
