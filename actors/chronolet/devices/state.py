"""Plugins, devices and claims, folded from the kind's own events.

Comes in: nothing. Goes out: the frozen State and look-ups in it. Next: `decider`; `get devices`, PodResources and the
checkpoint's export read it too. Times in milliseconds, 0 where unknown or never.

    Resource.phase: awaited -> registered -> listed -> stopped, and from each to registered (a new generation) or
    awaited (the registration socket was made anew)
    Claim.phase: waiting -> preferring -> allocating -> waiting (the next resource) or granted, and again
"""

from __future__ import annotations

from typing import Literal

import immutables
import msgspec

from chronolet_schemas.devices import HEALTHY, Allocation, PluginOptions, Role

ResourcePhase = Literal["awaited", "registered", "listed", "stopped"]
ClaimPhase = Literal["waiting", "preferring", "allocating", "granted"]


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
    known, `deaths` how many plugins in a row were gone before they had told theirs. `since`: when the phase began.
    `problem` is what was wrong with the last listing, while it was refused (earlier releases only). `corrected` are the
    findings reported since the registration: ids listed twice, the empty id for entries without one. `silent` and
    `flooding` that it was told of the plugin that it lists nothing, or faster than is told.
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
    def heard(self) -> bool:
        """Its plugin is there."""
        return self.phase in ("registered", "listed")

    def healthy(self) -> dict[str, Device]:
        """The devices that may be handed out, as far as their health goes."""
        if self.phase != "listed":
            return {}
        return {name: one for name, one in self.devices.items() if one.health == HEALTHY}


class Claim(Record, frozen=True, kw_only=True):
    """What one container wants of devices and holds.

    `held` is what plugins have allocated, by resource; `chosen` are the devices of `resource` that its plugin is being
    asked to allocate; `adopted` those, by resource, that the container held before the log and that no plugin was asked
    about yet. All are the container's. `serial` numbers the question that is open.
    `reason`, `message` and `retry_at` say what a waiting claim waits for. `since` is when it came, `given_at` when it
    got the devices of a resource. `starting` is the attempt that plugins are being told of, None if none is, with a
    serial of its own.
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
        """Its key among the claims."""
        return f"{self.uid}/{self.container}"

    @property
    def open(self) -> bool:
        """Whether anything of it is under way or waited for."""
        return self.phase != "granted" or self.starting is not None

    def devices(self) -> dict[str, tuple[str, ...]]:
        """All devices that are its own now, by resource."""
        if not self.held and not self.adopted:
            return {self.resource: self.chosen} if self.chosen else {}
        own = {name: one.devices for name, one in self.held.items()} | self.adopted
        return own | {self.resource: self.chosen} if self.chosen else own


class Refused(Record, frozen=True, kw_only=True):
    """What was last told of a refusal: when, and how often it had come by then."""

    times: int
    at: int


class State(Record, frozen=True, kw_only=True):
    """`claims` by `<uid>/<container>`; `pods` has the containers with a claim, by uid; `open` are the claims of which
    something is under way, in the order in which they came. `used` says by resource which devices are held. `refused`
    are the plugins that may not register, by what `registration` counts them as.

    `serial` counts registrations and questions: an answer to one that is over is known by it.
    """

    opened_at: int = 0
    serial: int = 0
    resources: immutables.Map[str, Resource] = immutables.Map()
    claims: immutables.Map[str, Claim] = immutables.Map()
    pods: immutables.Map[str, tuple[str, ...]] = immutables.Map()
    open: tuple[str, ...] = ()
    used: immutables.Map[str, immutables.Map[str, tuple[str, ...]]] = immutables.Map()
    refused: immutables.Map[str, Refused] = immutables.Map()

    def of_pod(self, uid: str) -> tuple[Claim, ...]:
        """The claims of a pod's containers, in the order in which they came."""
        return tuple(self.claims[f"{uid}/{container}"] for container in self.pods.get(uid, ()))

    def holders(self, resource: str) -> immutables.Map[str, tuple[str, ...]]:
        """The held devices of a resource, with the claims that hold them."""
        return self.used.get(resource, immutables.Map())

    def known(self, resource: str) -> bool:
        """Whether it is one of device plugins: some plugin offers it, or has given of it what is still held."""
        return resource in self.resources or resource in self.used
