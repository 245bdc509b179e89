"""Effects of the `devices` kind, each with the plain data that its worker needs.

Input: none. Output: the Effect Structs that `decider.outstanding` returns. Next: `effects`, whose workers speak gRPC to
plugins (v1beta1) and answer with `signals`.

Subjects: `registry`, `watcher`, `watch/<resource>` and `options/<resource>`, `claim/<uid>/<container>` for choosing and
allocating devices, `start/<uid>/<container>` for the calls before a start, `pods`, `pod-resources`.
"""

from __future__ import annotations

from chronolet.kernel.decider import Effect
from chronolet_schemas.envelope import Message


class ServeRegistration(Effect, frozen=True, kw_only=True):
    """Standing: empty the registration folder, recreate the registration socket in it, and serve Register calls.

    Sends RegistryOpened once the socket is listening, then a PluginRegistering for each call, accepted or refused,
    unless the plugin registers too often. The reply to the caller comes from `plugins.validation.refusal`, which the
    decider uses too.
    """


class WatchPlugins(Effect, frozen=True, kw_only=True):
    """Standing: watch the folder for plugins that are discovered by their socket (pluginregistration.v1, type
    DevicePlugin).

    Sends a PluginRegistering for each plugin, and PluginLeft when its socket disappears.
    """


class WatchDevices(Effect, frozen=True, kw_only=True):
    """Standing: call ListAndWatch at `socket`. Sends DevicesListing for each list, and EndpointStopped when the stream
    ends or cannot be opened; after that, this effect is not requested again until the plugin re-registers.

    If the plugin sends too many lists, only the newest of each second is sent, because each list that changes anything
    becomes an event.
    """

    resource: str
    generation: int
    socket: str


class AskOptions(Effect, frozen=True, kw_only=True):
    """Call GetDevicePluginOptions. Result: OptionsAnswered, with `error` set on failure."""

    resource: str
    generation: int
    socket: str


class Prefer(Effect, frozen=True, kw_only=True):
    """Call GetPreferredAllocation for one container. Result: PreferenceAnswered, with `error` set on failure."""

    resource: str
    socket: str
    available: tuple[str, ...]
    must_include: tuple[str, ...]
    size: int


class Allocate(Effect, frozen=True, kw_only=True):
    """Call Allocate for exactly these devices of one container. Result: AllocateAnswered or AllocateRefused."""

    resource: str
    socket: str
    devices: tuple[str, ...]


class PreStartCall(Message, frozen=True, kw_only=True):
    """The data for one PreStartContainer call."""

    resource: str
    socket: str
    devices: tuple[str, ...]


class PreStart(Effect, frozen=True, kw_only=True):
    """Call PreStartContainer on each plugin in turn for one container until one fails, with a time-out of 30 seconds
    per call. Result: PreStartAnswered.
    """

    attempt: int
    calls: tuple[PreStartCall, ...]


class ServePodResources(Effect, frozen=True, kw_only=True):
    """Standing: serve PodResources v1 from the log to local clients. Sends nothing."""


class ListPods(Effect, frozen=True, kw_only=True):
    """Standing, while any claim exists: report the live pods every `period_seconds`. Sends PodsListed."""

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
"""Every effect of the kind."""
