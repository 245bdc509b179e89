"""What devices wants to have running, with all the plain data that a worker needs.

Comes in: nothing. Goes out: the Effect Structs that `decider.outstanding` returns. Next: `effects`, whose workers speak
gRPC to plugins (v1beta1) and answer with one of `signals`.

Subjects: `registry`, `watcher`, `watch/<resource>` and `options/<resource>`, `claim/<uid>/<container>` for the choice
and the allocation of devices, `start/<uid>/<container>` for what comes before a start, `pods`, `pod-resources`.
"""

from __future__ import annotations

from chronolet.kernel.decider import Effect
from chronolet_schemas.envelope import Message


class ServeRegistration(Effect, frozen=True, kw_only=True):
    """Standing: remove the registration socket (and what else lies in its folder), make it anew, serve Register.

    Sends RegistryOpened once it listens, then a PluginRegistering for each call, refused or not; what the caller is
    told comes from the same `registration.refusal` that the decider asks.
    """


class WatchPlugins(Effect, frozen=True, kw_only=True):
    """Standing: watch the folder of plugins that are found by their sockets (pluginregistration.v1, type DevicePlugin).

    Sends a PluginRegistering for each, and PluginLeft when a socket vanishes.
    """


class WatchDevices(Effect, frozen=True, kw_only=True):
    """Standing: ListAndWatch at `socket`. Sends DevicesListing for each list, EndpointStopped when it ends or cannot be
    reached; after that it is no longer wanted, until the plugin registers again.

    Of lists that come faster than a few a second the newest counts: each one that says something new is an event.
    """

    resource: str
    generation: int
    socket: str


class AskOptions(Effect, frozen=True, kw_only=True):
    """GetDevicePluginOptions. Answers: OptionsSaid (an error is one with `error`)."""

    resource: str
    generation: int
    socket: str


class Prefer(Effect, frozen=True, kw_only=True):
    """GetPreferredAllocation for one container. Answers: PreferenceSaid (an error is one with `error`)."""

    resource: str
    socket: str
    available: tuple[str, ...]
    must_include: tuple[str, ...]
    size: int


class Allocate(Effect, frozen=True, kw_only=True):
    """Allocate these very devices for one container. Answers: AllocateSaid, AllocateRefused."""

    resource: str
    socket: str
    devices: tuple[str, ...]


class PreStartCall(Message, frozen=True, kw_only=True):
    """One PreStartContainer."""

    resource: str
    socket: str
    devices: tuple[str, ...]


class PreStart(Effect, frozen=True, kw_only=True):
    """PreStartContainer of one container, one call after the other; 30 seconds each. Answers: PreStartSaid."""

    attempt: int
    calls: tuple[PreStartCall, ...]


class ServePodResources(Effect, frozen=True, kw_only=True):
    """Standing: serve PodResources v1, from the log, to whoever asks on this machine. Sends nothing."""


class ListPods(Effect, frozen=True, kw_only=True):
    """Standing, while anything is held: say which pods live, once a minute. Sends PodsLiving."""

    period_seconds: int = 60


Wanted = (
    ServeRegistration
    | WatchPlugins
    | ServePodResources
    | WatchDevices
    | AskOptions
    | Prefer
    | Allocate
    | PreStart
    | ListPods
)
"""Every effect of devices."""
