"""Plugins, devices and claims, folded from the kind's own events.

Comes in: nothing. Goes out: the frozen State and look-ups in it. Next: `decider`; `get devices`, PodResources and the
checkpoint's export read it too. Times in milliseconds, 0 where unknown or never.

    Resource.phase: awaited -> registered -> listed -> stopped, and from each to registered (a new generation) or
    awaited (the registration socket was made anew)
    Claim.phase: waiting | preferring | allocating -> granted | refused; adopted -> waiting ...
"""

from __future__ import annotations

from typing import Literal

import immutables
import msgspec

from chronolet_schemas.devices import HEALTHY, Allocation, PluginOptions, Role

ResourcePhase = Literal["awaited", "registered", "listed", "stopped"]
ClaimPhase = Literal["waiting", "preferring", "allocating", "granted", "refused"]


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of the state's parts."""


class Device(Record, frozen=True, kw_only=True):
    """A device as it was last listed. `nodes` are its NUMA nodes."""

    health: str
    nodes: tuple[int, ...] = ()


class Resource(Record, frozen=True, kw_only=True):
    """A resource and its plugin.

    `devices` by id are those of the last listing, whoever sent it: `remembered` says that it is from before the
    registration socket was made anew, and counts for nothing but as what was there. `options` is None until they are
    known. `since`: when the phase began.
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
    """What was wrong with the last listing that was refused, while that is the last word about it."""

    @property
    def heard(self) -> bool:
        """Its plugin is there."""
        return self.phase in ("registered", "listed")

    def healthy(self, device: str) -> bool:
        """Whether the device may be handed out, as far as its health goes."""
        known = self.devices.get(device)
        return self.phase == "listed" and known is not None and known.health == HEALTHY


class Claim(Record, frozen=True, kw_only=True):
    """What one container wants of devices and holds.

    `held` is what plugins have allocated, by resource; `chosen` are the devices of `resource` that its plugin is being
    asked to allocate, or is to be when it is there. Both are the container's. `tries` counts the calls for it.
    `adopted` are devices, by resource, that a container held before the log, and that no plugin was asked about yet.
    `starting` is the attempt that plugins are being told of, None if none is; `started` the last that they were.
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
    tries: int = 0
    reason: str = ""
    message: str = ""
    retry_at: int = 0
    since: int = 0
    starting: int | None = None
    started: int | None = None

    @property
    def id(self) -> str:
        """Its key among the claims."""
        return f"{self.uid}/{self.container}"

    def devices(self) -> dict[str, tuple[str, ...]]:
        """All devices that are its own now, by resource."""
        own = {name: one.devices for name, one in self.held.items()} | self.adopted
        return own | {self.resource: self.chosen} if self.chosen else own


class State(Record, frozen=True, kw_only=True):
    """`claims` by `<uid>/<container>`. `pods` names the containers with a claim by uid. `used` says, by resource and
    device, which claims hold it: more than one only within a pod, where init containers leave their devices to others.
    """

    opened_at: int = 0
    resources: immutables.Map[str, Resource] = immutables.Map()
    claims: immutables.Map[str, Claim] = immutables.Map()
    pods: immutables.Map[str, tuple[str, ...]] = immutables.Map()
    used: immutables.Map[str, immutables.Map[str, tuple[str, ...]]] = immutables.Map()
