"""State of the `devices` kind: plugins, devices and claims. Folded from the kind's own events.

Input: none. Output: the frozen State and look-ups in it. Next: `decider`; `get devices`, PodResources and the
checkpoint export also read it. Times are milliseconds, 0 if unknown or never.

`plugins.lifecycle` documents the phases of a resource, `claims.lifecycle` those of a claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import immutables
import msgspec

from chronolet_schemas.devices import HEALTHY, Allocation, PluginOptions, Role

ResourcePhase = Literal["awaited", "registered", "listed", "stopped"]
ClaimPhase = Literal["waiting", "preferring", "allocating", "granted"]


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base class for the parts of the state."""


class Device(Record, frozen=True, kw_only=True):
    """A device as last listed. `nodes` are its NUMA nodes."""

    health: str
    nodes: tuple[int, ...] = ()


class Resource(Record, frozen=True, kw_only=True):
    """A resource and its plugin.

    `devices` maps ids to devices, as last listed by any plugin of the resource. `remembered`: that list is older than
    the current registration socket, so its devices are remembered but not counted. `options` is None until known.
    `deaths` counts consecutive plugins that died before they reported their options. `since` is when the phase began.
    `problem` is what was wrong with the last list if it was refused (only earlier releases refuse lists). `corrected`
    holds the findings reported since the registration: ids listed twice, and the empty id for entries without an id.
    `silent` and `flooding`: an event has already reported that the plugin lists nothing, or that it sends lists faster
    than they are forwarded.
    """

    phase: ResourcePhase
    generation: int = 0
    socket: str = ""
    by: Literal["registration", "watcher"] = "registration"
    since: int = 0
    options: PluginOptions | None = None
    devices: immutables.Map[str, Device] = immutables.Map()
    remembered: bool = False
    problem: str = ""
    corrected: tuple[str, ...] = ()
    deaths: int = 0
    silent: bool = False
    flooding: bool = False

    @property
    def has_plugin(self) -> bool:
        """Whether the resource's plugin is currently registered."""
        return self.phase in ("registered", "listed")

    def healthy(self) -> dict[str, Device]:
        """Return the healthy devices, by id, if the plugin has sent its list; none otherwise. Those that no claim holds
        may be allocated.
        """
        if self.phase != "listed":
            return {}
        return {name: one for name, one in self.devices.items() if one.health == HEALTHY}


class Claim(Record, frozen=True, kw_only=True):
    """The devices that one container requests and holds.

    `held` maps resources to what their plugins have allocated. `chosen`: the devices of `resource` that its plugin is
    being asked to allocate. `adopted` maps resources to devices that the container held before the log began and about
    which no plugin has been asked yet. The container owns all three. `must_include`, `size` and `near` (NUMA nodes) are
    the arguments of the call for the plugin's preferred devices. `serial` numbers the outstanding call to the
    plugin. `reason`, `message` and `retry_at` explain why a claim is waiting. `since` is when the claim was made;
    `given_at` maps resources to when their devices were given to the container. `starting` is the attempt that plugins
    are being notified of, None if there is none; `start_serial` numbers that notification.
    """

    pod: str
    uid: str
    container: str
    role: Role
    wants: dict[str, int]
    phase: ClaimPhase = "waiting"
    held: dict[str, Allocation] = {}
    adopted: dict[str, tuple[str, ...]] = {}
    resource: str = ""
    chosen: tuple[str, ...] = ()
    must_include: tuple[str, ...] = ()
    size: int = 0
    near: tuple[int, ...] = ()
    serial: int = 0
    reason: str = ""
    message: str = ""
    retry_at: int = 0
    since: int = 0
    given_at: dict[str, int] = {}
    starting: int | None = None
    start_serial: int = 0

    @property
    def id(self) -> str:
        """The claim's key in `State.claims`."""
        return f"{self.uid}/{self.container}"

    @property
    def open(self) -> bool:
        """Whether the claim is not yet granted, or plugins are being notified of a start."""
        return self.phase != "granted" or self.starting is not None

    def devices(self) -> dict[str, tuple[str, ...]]:
        """Return all devices that the container holds or that have been chosen for it, by resource."""
        if not self.held and not self.adopted:
            return {self.resource: self.chosen} if self.chosen else {}
        own = {name: one.devices for name, one in self.held.items()} | self.adopted
        return own | {self.resource: self.chosen} if self.chosen else own

    def recorded(self, resource: str) -> tuple[str, ...] | None:
        """Return the devices of a resource that the container has been given; None if it has not been given any."""
        if resource in self.adopted:
            return self.adopted[resource]
        return self.held[resource].devices if resource in self.held else None


class RefusalCount(Record, frozen=True, kw_only=True):
    """The last reported refusal of a plugin: when it was reported (`at`), and the number of refusals up to then."""

    times: int
    at: int


class State(Record, frozen=True, kw_only=True):
    """All plugins, devices and claims of the node.

    `claims` maps `<uid>/<container>` to claims. `pods` maps the uid of each pod to its containers that have a claim.
    `open`: keys of the open claims, oldest first. `used` maps resources to held devices, and each device to the keys of
    the claims that hold it. `refused` maps the names of counters (`plugins.refusals`) to refusals of plugins.

    `serial` numbers registrations and plugin calls, so that a late response is recognized and ignored.
    """

    opened_at: int = 0
    serial: int = 0
    resources: immutables.Map[str, Resource] = immutables.Map()
    claims: immutables.Map[str, Claim] = immutables.Map()
    pods: immutables.Map[str, tuple[str, ...]] = immutables.Map()
    open: tuple[str, ...] = ()
    used: immutables.Map[str, immutables.Map[str, tuple[str, ...]]] = immutables.Map()
    refused: immutables.Map[str, RefusalCount] = immutables.Map()

    def claim(self, uid: str, container: str) -> Claim | None:
        """Return the claim of a container; None if it has none."""
        return self.claims.get(f"{uid}/{container}")

    def waiting(self) -> Iterator[Claim]:
        """Yield the waiting claims, oldest first."""
        return (claim for key in self.open if (claim := self.claims[key]).phase == "waiting")

    def of_pod(self, uid: str) -> tuple[Claim, ...]:
        """Return the claims of a pod's containers, oldest first."""
        return tuple(self.claims[f"{uid}/{container}"] for container in self.pods.get(uid, ()))

    def holders(self, resource: str) -> immutables.Map[str, tuple[str, ...]]:
        """Return the held devices of a resource, each with the keys of the claims that hold it."""
        return self.used.get(resource, immutables.Map())

    def has_plugin(self, resource: str) -> bool:
        """Whether the resource's plugin is currently registered."""
        return resource in self.resources and self.resources[resource].has_plugin

    def current(self, resource: str, generation: int) -> Resource | None:
        """Return the resource if its currently registered plugin is of this generation; None otherwise."""
        known = self.resources.get(resource)
        return known if known is not None and known.has_plugin and known.generation == generation else None

    def known(self, resource: str) -> bool:
        """Whether device plugins own the resource: a plugin has registered it, or devices of it are still held."""
        return resource in self.resources or resource in self.used
