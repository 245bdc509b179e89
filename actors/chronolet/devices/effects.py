"""The outside of devices: plugins that register, list and answer.

Comes in: `wanted`. Goes out: `signals`. Next: `decider`. Answers to pkg/kubelet/cm/devicemanager/endpoint.go and
plugin/v1beta1. A call names the very devices, so one that is made again after a kill is the same; a plugin that does
not answer keeps the calls to no other one waiting.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

import structlog
from msgspec import Struct

from chronolet.devices import signals, wanted
from chronolet.devices.desk import Desk
from chronolet.kernel.kind import Effect, EffectContext, Ended, Job, Tended
from chronolet.ports.devices.fenced_plugins import FencedPlugins
from chronolet.ports.devices.plugins import DevicePlugins, Listing, PluginRefusal
from chronolet.ports.devices.pod_resources import PodResourcesServer
from chronolet_schemas.envelope import Signal

log = structlog.get_logger("chronolet.devices")

_QUESTION_SECONDS = 30.0
_ALLOCATE_SECONDS = 90.0
_PRE_START_SECONDS = 40.0
"""More than the adapter gives each call: its own time-out says more."""

NOT_THERE = "its plugin is not there"


class Outside(Struct, frozen=True):
    """What the workers use. `living` reads the uids of all living pods from the log; `took` is told how many seconds
    the plugin of a resource took to answer Allocate, whatever it answered.
    """

    plugins: DevicePlugins
    resources: PodResourcesServer
    living: Callable[[], tuple[str, ...]]
    took: Callable[[str, float], None]
    most_plugins: int = 256


def jobs(outside: Outside) -> Mapping[type[Effect], Job]:
    """The one-shot effects of the kind."""
    ask = Asking(outside.plugins, outside.took)
    return {
        wanted.AskOptions: Job(ask.options, _QUESTION_SECONDS, _by_resource),
        wanted.Prefer: Job(ask.prefer, _QUESTION_SECONDS, _by_resource),
        wanted.Allocate: Job(ask.allocate, _ALLOCATE_SECONDS, _by_resource),
        wanted.PreStart: Job(ask.pre_start, lambda effect: _PRE_START_SECONDS * len(effect.calls), _by_first),
    }


def standing(outside: Outside) -> Mapping[type[Effect], Job | Tended]:
    """The standing effects of the kind."""
    watching = Watching(outside)
    return {
        wanted.ServeRegistration: Job(watching.serve),
        wanted.WatchPlugins: Job(watching.watch),
        wanted.ServePodResources: Job(watching.resources),
        wanted.WatchDevices: Tended(watching.devices),
        wanted.ListPods: Job(watching.pods),
    }


def _by_resource(effect: wanted.AskOptions | wanted.Prefer | wanted.Allocate) -> str:
    return effect.resource


def _by_first(effect: wanted.PreStart) -> str:
    return effect.calls[0].resource if effect.calls else ""


class Asking:
    """One method an effect; no state of its own."""

    def __init__(self, plugins: DevicePlugins, took: Callable[[str, float], None]) -> None:
        self._plugins = plugins
        self._took = took

    def options(self, effect: wanted.AskOptions, context: EffectContext) -> Signal:
        try:
            found = FencedPlugins(self._plugins, context).options(effect.socket)
        except PluginRefusal as refusal:
            away = refusal.kind == "away"
            if away:
                log.warning(
                    "device plugin ended while it was being asked for its options (GetDevicePluginOptions)",
                    resource=effect.resource,
                    error=str(refusal),
                )
            return signals.OptionsSaid(subject=effect.subject, intent=effect.intent, error=str(refusal), away=away)
        return signals.OptionsSaid(subject=effect.subject, intent=effect.intent, options=found)

    def prefer(self, effect: wanted.Prefer, context: EffectContext) -> Signal:
        try:
            found = FencedPlugins(self._plugins, context).preferred(
                _there(effect.socket), effect.available, effect.must_include, effect.size
            )
        except PluginRefusal as refusal:
            return signals.PreferenceSaid(
                subject=effect.subject, intent=effect.intent, error=str(refusal), away=refusal.kind == "away"
            )
        return signals.PreferenceSaid(subject=effect.subject, intent=effect.intent, devices=tuple(found))

    def allocate(self, effect: wanted.Allocate, context: EffectContext) -> Signal:
        about = {"subject": effect.subject, "intent": effect.intent}
        began = time.monotonic()
        try:
            answers = FencedPlugins(self._plugins, context).allocate(_there(effect.socket), effect.devices)
        except PluginRefusal as refusal:
            if effect.socket:
                self._took(effect.resource, time.monotonic() - began)
            return signals.AllocateRefused(**about, error=str(refusal), away=refusal.kind == "away")
        seconds = time.monotonic() - began
        self._took(effect.resource, seconds)
        return signals.AllocateSaid(**about, answers=tuple(answers), milliseconds=round(seconds * 1000))

    def pre_start(self, effect: wanted.PreStart, context: EffectContext) -> Signal:
        plugins = FencedPlugins(self._plugins, context)
        for call in effect.calls:
            try:
                plugins.pre_start(_there(call.socket), call.devices)
            except PluginRefusal as refusal:
                said = f"{call.resource}: {refusal}"
                away = refusal.kind == "away"
                return signals.PreStartSaid(subject=effect.subject, intent=effect.intent, error=said, away=away)
        return signals.PreStartSaid(subject=effect.subject, intent=effect.intent)


class Watching:
    """What goes on for as long as it is wanted."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._desk = Desk(outside.most_plugins)

    def serve(self, effect: wanted.ServeRegistration, context: EffectContext) -> None:
        del effect
        plugins = FencedPlugins(self._outside.plugins, context)
        plugins.serve(partial(self._desk.register, context), partial(self._desk.opened, context))

    def watch(self, effect: wanted.WatchPlugins, context: EffectContext) -> None:
        del effect
        plugins = FencedPlugins(self._outside.plugins, context)
        plugins.watch(partial(self._desk.register, context), partial(self._desk.left, context))

    def resources(self, effect: wanted.ServePodResources, context: EffectContext) -> None:
        del effect
        context.fence("pod-resources.serve")
        self._outside.resources.serve(context.cancelled)

    def devices(self, effect: wanted.WatchDevices, context: EffectContext, failed: Ended) -> Callable[[], None]:
        stream = self._desk.following(effect.resource)

        def listed(listing: Listing) -> None:
            context.send(
                signals.DevicesListing(
                    resource=effect.resource,
                    generation=effect.generation,
                    devices=listing.devices,
                    skipped=listing.skipped,
                )
            )

        def ended(refusal: PluginRefusal) -> None:
            self._desk.stopped(effect.resource, stream)
            log.warning("a device plugin is gone", resource=effect.resource, error=str(refusal))
            context.send(
                signals.EndpointStopped(
                    resource=effect.resource,
                    generation=effect.generation,
                    error=str(refusal),
                    reached=refusal.kind != "late",
                )
            )

        return FencedPlugins(self._outside.plugins, context).follow(effect.socket, listed, ended, failed)

    def pods(self, effect: wanted.ListPods, context: EffectContext) -> None:
        while not context.cancelled.is_set():
            as_of = _now()
            context.send(signals.PodsLiving(as_of=as_of, uids=self._outside.living()))
            context.cancelled.wait(effect.period_seconds)


def _there(socket: str) -> str:
    if not socket:
        raise PluginRefusal("away", NOT_THERE)
    return socket


def _now() -> int:
    return time.time_ns() // 1_000_000
