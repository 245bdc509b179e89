"""What the workers of devices say.

Comes in: nothing. Goes out: Signal Structs. Next: `decider`. An answer repeats the subject and the intent of its
effect; one whose intent is no longer open is ignored.
"""

from __future__ import annotations

from typing import Literal

from chronolet_schemas.devices import Answer, DeviceInfo, PluginOptions
from chronolet_schemas.envelope import Signal


class RegistryOpened(Signal, frozen=True, kw_only=True):
    """The registration socket was made anew, and listens."""


class PluginRegistering(Signal, frozen=True, kw_only=True):
    """A plugin wants to register. `versions` are those it speaks; by the registration socket it is one.

    `endpoint` is what it named: a file name in `folder`, or an absolute path in it. `options` is null where it was not
    said. Of one that was refused, `times` is how often its resource has been, for the same reason, since the
    registration socket was made. `limit` is the largest number of plugins if it was reached already, else 0. `skipped`
    registrations of the resource before it came faster than they are sent, and were not.
    """

    by: Literal["registration", "watcher"] = "registration"
    resource: str
    versions: tuple[str, ...]
    endpoint: str
    folder: str
    options: PluginOptions | None = None
    times: int = 1
    limit: int = 0
    skipped: int = 0


class PluginLeft(Signal, frozen=True, kw_only=True):
    """The socket by which a plugin was found is gone."""

    socket: str


class DevicesListing(Signal, frozen=True, kw_only=True):
    """One list of a plugin, whole, as it came: it may name an id twice. `skipped` lists before it came faster than they
    are told, and were not.
    """

    resource: str
    generation: int
    devices: tuple[DeviceInfo, ...]
    skipped: int = 0


class EndpointStopped(Signal, frozen=True, kw_only=True):
    """The plugin's stream ended, or could not be had. `reached`: a connection to the plugin had been made."""

    resource: str
    generation: int
    error: str = ""
    reached: bool = True


class PodsLiving(Signal, frozen=True, kw_only=True):
    """The uids of the pods that lived when the log was read; the reading began at `as_of`."""

    as_of: int
    uids: tuple[str, ...]


class Answered(Signal, frozen=True, kw_only=True):
    """Base of one-shots' answers."""

    subject: str
    intent: str


class OptionsSaid(Answered, frozen=True, kw_only=True):
    """To AskOptions. `away` as for AllocateRefused."""

    options: PluginOptions = PluginOptions()
    error: str = ""
    away: bool = False


class PreferenceSaid(Answered, frozen=True, kw_only=True):
    """To Prefer. What the plugin names is looked at before it is used. `away` as for AllocateRefused."""

    devices: tuple[str, ...] = ()
    error: str = ""
    away: bool = False


class AllocateSaid(Answered, frozen=True, kw_only=True):
    """To Allocate: the answers, one a container as the plugin should have it; the decider sees to their number."""

    answers: tuple[Answer, ...]
    milliseconds: int = 0


class AllocateRefused(Answered, frozen=True, kw_only=True):
    """To Allocate. `away`: the plugin could not be reached, so that it may yet come back and be asked again.

    `error` as the kubelet's client would put it: `rpc error: code = ... desc = ...`.
    """

    error: str
    away: bool = False


class PreStartSaid(Answered, frozen=True, kw_only=True):
    """To PreStart; with an `error` the container may not start. `away` as for AllocateRefused."""

    error: str = ""
    away: bool = False


Said = (
    RegistryOpened
    | PluginRegistering
    | PluginLeft
    | DevicesListing
    | EndpointStopped
    | PodsLiving
    | OptionsSaid
    | PreferenceSaid
    | AllocateSaid
    | AllocateRefused
    | PreStartSaid
)
"""Every signal of devices."""
