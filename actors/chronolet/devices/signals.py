"""Signals from the workers of the `devices` kind.

Input: none. Output: Signal Structs. Next: `decider`. An answer repeats the subject and intent of its effect; if that
intent is no longer open, the answer is ignored.
"""

from __future__ import annotations

from typing import Literal

from chronolet.kernel.decider import EffectFailed
from chronolet_schemas.devices import Answer, DeviceInfo, PluginOptions
from chronolet_schemas.envelope import Signal


class RegistryOpened(Signal, frozen=True, kw_only=True):
    """The registration socket has been recreated and is listening."""


class PluginRegistering(Signal, frozen=True, kw_only=True):
    """A plugin asks to register. `versions` are the API versions that it supports; over the registration socket it
    sends exactly one.

    `endpoint` is as the plugin sent it: a file name in `folder`, or an absolute path in it. `options` is None if the
    plugin sent none. `times`: for a refused plugin, how often its resource has been refused for the same reason since
    it was last accepted or the registration socket was created. `limit`: the maximum number of plugins if it has been
    reached, else 0. `skipped`: number of earlier registrations of the resource that exceeded the rate limit and were
    not sent.
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
    """The socket through which a plugin was discovered no longer exists."""

    socket: str


class DevicesListing(Signal, frozen=True, kw_only=True):
    """A complete list from a plugin, unchanged: an id may occur twice. `skipped`: number of earlier lists that came too
    fast and were not sent.
    """

    resource: str
    generation: int
    devices: tuple[DeviceInfo, ...]
    skipped: int = 0


class EndpointStopped(Signal, frozen=True, kw_only=True):
    """The plugin's stream ended or could not be opened. `reached`: a connection to the plugin had been established."""

    resource: str
    generation: int
    error: str = ""
    reached: bool = True


class PodsListed(Signal, frozen=True, kw_only=True):
    """The uids of the live pods according to the log; the listing began at `as_of` (milliseconds)."""

    as_of: int
    uids: tuple[str, ...]


class Answered(Signal, frozen=True, kw_only=True):
    """Base class for answers to one-shot effects."""

    subject: str
    intent: str


class OptionsAnswered(Answered, frozen=True, kw_only=True):
    """Answer to AskOptions. `away` has the same meaning as in AllocateRefused."""

    options: PluginOptions = PluginOptions()
    error: str = ""
    away: bool = False


class PreferenceAnswered(Answered, frozen=True, kw_only=True):
    """Answer to Prefer. The decider checks the devices before it uses them. `away` has the same meaning as in
    AllocateRefused.
    """

    devices: tuple[str, ...] = ()
    error: str = ""
    away: bool = False


class AllocateAnswered(Answered, frozen=True, kw_only=True):
    """Answer to Allocate: one response per container, as the plugin sent them. The decider checks their number."""

    answers: tuple[Answer, ...]
    milliseconds: int = 0


class AllocateRefused(Answered, frozen=True, kw_only=True):
    """Failure of Allocate. `away`: the plugin could not be reached; it may come back, and the call can be retried.

    `error` has the form that the kubelet's gRPC client uses: `rpc error: code = ... desc = ...`.
    """

    error: str
    away: bool = False


class PreStartAnswered(Answered, frozen=True, kw_only=True):
    """Answer to PreStart. If `error` is set, the container must not start. `away` has the same meaning as in
    AllocateRefused.
    """

    error: str = ""
    away: bool = False


DeviceSignal = (
    RegistryOpened
    | PluginRegistering
    | PluginLeft
    | DevicesListing
    | EndpointStopped
    | PodsListed
    | OptionsAnswered
    | PreferenceAnswered
    | AllocateAnswered
    | AllocateRefused
    | PreStartAnswered
)
"""Every signal of the kind."""


def from_failure(failed: EffectFailed) -> OptionsAnswered | PreferenceAnswered | AllocateRefused | PreStartAnswered:
    """Convert a worker's failure or time-out to the answer that has the same effect."""
    subject, intent, error = failed.subject, failed.intent, failed.error
    if failed.timed_out:
        error = "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
    match failed.effect:
        case "Allocate":
            return AllocateRefused(subject=subject, intent=intent, error=error)
        case "Prefer":
            return PreferenceAnswered(subject=subject, intent=intent, error=error)
        case "PreStart":
            return PreStartAnswered(subject=subject, intent=intent, error=error)
        case _:
            return OptionsAnswered(subject=subject, intent=intent, error=error)
