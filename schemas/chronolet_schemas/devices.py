"""Device plugins, their devices, and which container holds which devices. Source: pkg/kubelet/cm/devicemanager.

The name of a resource has the form `vendor-domain/type`. Its plugin registers repeatedly; `generation` numbers the
registrations. Times are milliseconds according to the agent's clock, 0 if unknown or never. A claim is one container's
request for devices; its id is `<uid>/<container>`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from chronolet_schemas.envelope import Event, Message
from chronolet_schemas.registry import registered

Role = Literal["init", "sidecar", "app"]
"""A container's role in its pod: plain init containers leave their devices to the containers after them."""

HEALTHY = "Healthy"
UNHEALTHY = "Unhealthy"
"""A device's health as its plugin reports it. Any value other than `Healthy` counts as `Unhealthy`."""


class DeviceInfo(Message, frozen=True, kw_only=True):
    """A device as its plugin lists it. `nodes` are the NUMA nodes near the device, according to the plugin."""

    id: str
    health: str
    nodes: tuple[int, ...] = ()


class PluginOptions(Message, frozen=True, kw_only=True):
    """The optional calls that a plugin wants in addition to Allocate."""

    pre_start_required: bool = False
    preferred_allocation: bool = False


class Mount(Message, frozen=True, kw_only=True):
    """A host path that a plugin adds to the container."""

    container_path: str
    host_path: str
    read_only: bool = False


class DeviceNode(Message, frozen=True, kw_only=True):
    """A device file of the host that a plugin adds to the container. `permissions`: any of r, w and m (mknod)."""

    container_path: str
    host_path: str
    permissions: str = ""


class Answer(Message, frozen=True, kw_only=True):
    """A plugin's answer to Allocate for one container: its ContainerAllocateResponse.

    `cdi_devices` are fully qualified names, `vendor/class=name`.
    """

    envs: dict[str, str] = msgspec.field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    cdi_devices: tuple[str, ...] = ()


class Allocation(Message, frozen=True, kw_only=True):
    """Devices of one resource, with the plugin's answer. `pre_start`: the plugin wants to be notified of each start."""

    devices: tuple[str, ...]
    answer: Answer = Answer()
    pre_start: bool = False


class ResourceEvent(Event, frozen=True, kw_only=True):
    """Base class for events about a resource and its plugin."""

    resource: str

    def subject(self) -> str:
        return f"resource/{self.resource}"


@registered
class RegistryOpened(Event, frozen=True, kw_only=True):
    """The registration socket was recreated: every plugin is expected to register again.

    Until a plugin has done so, its resource has no capacity; allocations stay.
    """

    opened_at: int


@registered
class PluginRegistered(ResourceEvent, frozen=True, kw_only=True):
    """A plugin offers the resource at `socket`, an absolute path; it replaces any earlier plugin of the resource.

    `options` is null until the options are known: a plugin that did not send them is asked for them.
    """

    generation: int
    socket: str
    registered_at: int
    by: Literal["registration", "watcher"] = "registration"
    options: PluginOptions | None = None


@registered
class RegistrationRefused(ResourceEvent, frozen=True, kw_only=True):
    """A registration was refused; `message` is the reply to the plugin.

    A plugin that retries gets a reply each time, but not every refusal is recorded: `times` is how often the resource
    has been refused for this reason since the registration socket was created, `calls` the number of refusals since the
    last recorded one, this one included.
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
    """The optional calls that the plugin wants; none if it answered with an `error`.

    `deaths` is the number of consecutive plugins of the resource that died before they answered GetDevicePluginOptions.
    """

    generation: int
    options: PluginOptions
    error: str = ""
    deaths: int = 0


@registered
class PluginSilent(ResourceEvent, frozen=True, kw_only=True):
    """The plugin has registered, but has not sent a list for a while. The agent keeps waiting."""

    generation: int
    said_at: int


@registered
class DevicesListed(ResourceEvent, frozen=True, kw_only=True):
    """Differences found in a list from the plugin: new or changed devices, and ids that are no longer listed (`gone`).

    The first list of a generation is recorded even without differences. `count` is the number of devices in the list,
    `skipped` the number of earlier lists that arrived too quickly and were ignored.
    """

    generation: int
    devices: tuple[DeviceInfo, ...] = ()
    gone: tuple[str, ...] = ()
    count: int
    skipped: int = 0


@registered
class ListingRefused(ResourceEvent, frozen=True, kw_only=True):
    """A list was invalid, and the previous one stayed in force. Only releases older than ListingCorrected wrote this
    event.
    """

    generation: int
    message: str


@registered
class ListingCorrected(ResourceEvent, frozen=True, kw_only=True):
    """A list had unusable entries; all other entries count.

    Each finding is reported once per registration. `twice` are ids listed more than once, of which the last entry
    counts. `unnamed` is the number of dropped entries without an id; 0 if they have already been reported.
    """

    generation: int
    message: str
    twice: tuple[str, ...] = ()
    unnamed: int = 0


@registered
class PluginStopped(ResourceEvent, frozen=True, kw_only=True):
    """The connection to the plugin ended: its devices count as unhealthy, its allocations stay. `deaths` has the same
    meaning as in PluginOptionsKnown.
    """

    generation: int
    stopped_at: int
    error: str = ""
    deaths: int = 0


@registered
class ResourceRemoved(ResourceEvent, frozen=True, kw_only=True):
    """The plugin did not return in time: the node no longer has the resource."""

    removed_at: int


class ClaimEvent(Event, frozen=True, kw_only=True):
    """Base class for events about the devices of one container; `pod` is namespace/name."""

    pod: str
    uid: str
    container: str

    def subject(self) -> str:
        return f"claim/{self.uid}/{self.container}"


class OpenClaimEvent(ClaimEvent, frozen=True, kw_only=True):
    """Base class for events about an open request for devices.

    The first of these events for a container opens its request. `wants` is the number of requested devices of each
    resource, `at` the time of the decision.
    """

    role: Role
    wants: dict[str, int]
    at: int


@registered
class DevicesPending(OpenClaimEvent, frozen=True, kw_only=True):
    """The request is waiting. `reason` is the obstacle, `resource` the resource that it concerns; `message` is for
    people.

    The request is reconsidered when the resource changes, or at `retry_at`.
    """

    resource: str
    reason: str
    message: str
    retry_at: int = 0


@registered
class PreferenceAsked(OpenClaimEvent, frozen=True, kw_only=True):
    """Intent: ask the plugin which `size` devices it prefers, including those in `must_include`.

    `near`: choose only among devices near these NUMA nodes; if it is empty, choose among all devices.
    """

    resource: str
    must_include: tuple[str, ...] = ()
    size: int
    near: tuple[int, ...] = ()


@registered
class DevicesChosen(OpenClaimEvent, frozen=True, kw_only=True):
    """Intent: these devices belong to the container from now on; call the plugin's Allocate for them."""

    resource: str
    devices: tuple[str, ...]


@registered
class DevicesAdopted(OpenClaimEvent, frozen=True, kw_only=True):
    """The log is new, and the container already holds these devices; `devices` maps resources to device ids.

    The plugin's Allocate is called for them as soon as the plugin has registered.
    """

    devices: dict[str, tuple[str, ...]]


@registered
class DevicesAllocated(ClaimEvent, frozen=True, kw_only=True):
    """The plugin has allocated the chosen devices of `resource`.

    `complete`: the container has everything that it requested. `earlier` maps other resources to their allocations.
    `milliseconds` is the duration of the call. Without an `allocation`, nothing new was allocated: the event answers a
    repeated request.
    """

    resource: str = ""
    allocation: Allocation | None = None
    earlier: dict[str, Allocation] = msgspec.field(default_factory=dict)
    complete: bool = True
    milliseconds: int = 0

    def allocations(self) -> dict[str, Allocation]:
        """Return all allocations, by resource."""
        return self.earlier if self.allocation is None else {**self.earlier, self.resource: self.allocation}


@registered
class DevicesRefused(ClaimEvent, frozen=True, kw_only=True):
    """The request was refused. Devices already chosen for it are free again.

    `reason` is an error code of the allocation, `message` is the kubelet's text.
    """

    resource: str
    reason: str
    message: str


@registered
class DevicesFreed(Event, frozen=True, kw_only=True):
    """The devices of the pod's containers are free. `devices` maps container names to maps from resources to device
    ids.

    `PodGone`: they were not released, but no pod with this uid exists any more.
    """

    pod: str
    uid: str
    devices: dict[str, dict[str, tuple[str, ...]]]
    reason: Literal["Released", "PodEnded", "PodGone"]

    def subject(self) -> str:
        return f"pod/{self.uid}"


@registered
class PreStartAsked(ClaimEvent, frozen=True, kw_only=True):
    """Intent: call PreStartContainer of the plugins that require it, before the container starts; `attempt` has the
    same meaning as in the pod's events.
    """

    attempt: int


@registered
class PreStartDone(ClaimEvent, frozen=True, kw_only=True):
    """Every plugin that requires PreStartContainer has accepted the start of this attempt; there may be none."""

    attempt: int


@registered
class PreStartFailed(ClaimEvent, frozen=True, kw_only=True):
    """The start of this attempt is not allowed: a plugin's PreStartContainer failed, or a plugin that requires this
    call is not registered.
    """

    attempt: int
    message: str
