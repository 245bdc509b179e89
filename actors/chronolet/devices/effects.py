"""Effect workers of the `devices` kind: calls to plugins, and handling of their registrations and device lists.

Input: `wanted`. Output: `signals`. Next: `decider`. Corresponds to pkg/kubelet/cm/devicemanager/endpoint.go and
plugin/v1beta1. A call names the exact devices, so repeating it after a kill is idempotent. An unresponsive plugin
delays only its own calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

import structlog
from msgspec import Struct

from chronolet.devices import signals, wanted
from chronolet.devices.registrar import Registrar
from chronolet.kernel.kind import Effect, EffectContext, Ended, EventDriven, Job
from chronolet.ports.devices.fenced_plugins import FencedPlugins
from chronolet.ports.devices.plugins import DevicePlugins, Listing, PluginRefusal
from chronolet.ports.devices.pod_resources import PodResourcesServer
from chronolet.rules.refs import EffectRef
from chronolet_schemas.envelope import Signal

log = structlog.get_logger("chronolet.devices")

_QUESTION_SECONDS = 30.0
_ALLOCATE_SECONDS = 90.0
_PRE_START_SECONDS = 40.0
"""Time-out per PreStartContainer call. Like the two above, it is longer than the adapter's own time-out, so that the
adapter's more specific error is reported.
"""

NO_PLUGIN = "its plugin is not registered"


class DevicesDependencies(Struct, frozen=True):
    """Dependencies of the workers. `live_pods` reads the uids of all live pods from the log; `observe_allocate` is
    called with a resource and the seconds that its plugin took to answer Allocate, whether the call succeeded or
    failed.
    """

    plugins: DevicePlugins
    resources: PodResourcesServer
    live_pods: Callable[[], tuple[str, ...]]
    observe_allocate: Callable[[str, float], None]
    max_plugins: int = 256


def jobs(deps: DevicesDependencies) -> Mapping[type[Effect], Job]:
    """Return the workers of the one-shot effects."""
    caller = PluginCaller(deps.plugins, deps.observe_allocate)
    return {
        wanted.AskOptions: Job(caller.options, _QUESTION_SECONDS, _by_resource),
        wanted.Prefer: Job(caller.prefer, _QUESTION_SECONDS, _by_resource),
        wanted.Allocate: Job(caller.allocate, _ALLOCATE_SECONDS, _by_resource),
        wanted.PreStart: Job(caller.pre_start, lambda effect: _PRE_START_SECONDS * len(effect.calls), _by_first),
    }


def standing(deps: DevicesDependencies) -> Mapping[type[Effect], Job | EventDriven]:
    """Return the workers of the standing effects."""
    workers = StandingWorkers(deps)
    return {
        wanted.ServeRegistration: Job(workers.serve),
        wanted.WatchPlugins: Job(workers.watch),
        wanted.ServePodResources: Job(workers.resources),
        wanted.WatchDevices: EventDriven(workers.devices),
        wanted.ListPods: Job(workers.pods),
    }


def _by_resource(effect: wanted.AskOptions | wanted.Prefer | wanted.Allocate) -> str:
    return effect.resource


def _by_first(effect: wanted.PreStart) -> str:
    return effect.calls[0].resource if effect.calls else ""


class PluginCaller:
    """Calls to plugins for the one-shot effects, one method per effect; stateless."""

    def __init__(self, plugins: DevicePlugins, observe_allocate: Callable[[str, float], None]) -> None:
        self._plugins = plugins
        self._observe_allocate = observe_allocate

    def options(self, effect: wanted.AskOptions, context: EffectContext) -> Signal:
        try:
            found = FencedPlugins(self._plugins, context).options(effect.socket)
        except PluginRefusal as refusal:
            away = refusal.kind == "away"
            if away:
                log.warning(
                    "device plugin died while answering GetDevicePluginOptions",
                    resource=effect.resource,
                    error=str(refusal),
                )
            return signals.OptionsAnswered(subject=effect.subject, intent=effect.intent, error=str(refusal), away=away)
        return signals.OptionsAnswered(subject=effect.subject, intent=effect.intent, options=found)

    def prefer(self, effect: wanted.Prefer, context: EffectContext) -> Signal:
        try:
            found = FencedPlugins(self._plugins, context).preferred(
                _required(effect.socket), effect.available, effect.must_include, effect.size
            )
        except PluginRefusal as refusal:
            return signals.PreferenceAnswered(
                subject=effect.subject, intent=effect.intent, error=str(refusal), away=refusal.kind == "away"
            )
        return signals.PreferenceAnswered(subject=effect.subject, intent=effect.intent, devices=tuple(found))

    def allocate(self, effect: wanted.Allocate, context: EffectContext) -> Signal:
        ref = EffectRef(subject=effect.subject, intent=effect.intent)
        began = time.monotonic()
        try:
            answers = FencedPlugins(self._plugins, context).allocate(_required(effect.socket), effect.devices)
        except PluginRefusal as refusal:
            if effect.socket:
                self._observe_allocate(effect.resource, time.monotonic() - began)
            return signals.AllocateRefused(**ref, error=str(refusal), away=refusal.kind == "away")
        seconds = time.monotonic() - began
        self._observe_allocate(effect.resource, seconds)
        return signals.AllocateAnswered(**ref, answers=tuple(answers), milliseconds=round(seconds * 1000))

    def pre_start(self, effect: wanted.PreStart, context: EffectContext) -> Signal:
        plugins = FencedPlugins(self._plugins, context)
        for call in effect.calls:
            try:
                plugins.pre_start(_required(call.socket), call.devices)
            except PluginRefusal as refusal:
                error = f"{call.resource}: {refusal}"
                away = refusal.kind == "away"
                return signals.PreStartAnswered(subject=effect.subject, intent=effect.intent, error=error, away=away)
        return signals.PreStartAnswered(subject=effect.subject, intent=effect.intent)


class StandingWorkers:
    """The workers of the standing effects, one method per effect."""

    def __init__(self, deps: DevicesDependencies) -> None:
        self._deps = deps
        self._registrar = Registrar(deps.max_plugins)

    def serve(self, effect: wanted.ServeRegistration, context: EffectContext) -> None:
        del effect
        plugins = FencedPlugins(self._deps.plugins, context)
        plugins.serve(partial(self._registrar.register, context), partial(self._registrar.opened, context))

    def watch(self, effect: wanted.WatchPlugins, context: EffectContext) -> None:
        del effect
        plugins = FencedPlugins(self._deps.plugins, context)
        plugins.watch(partial(self._registrar.register, context), partial(self._registrar.left, context))

    def resources(self, effect: wanted.ServePodResources, context: EffectContext) -> None:
        del effect
        context.fence("pod-resources.serve")
        self._deps.resources.serve(context.cancelled)

    def devices(self, effect: wanted.WatchDevices, context: EffectContext, failed: Ended) -> Callable[[], None]:
        stream = self._registrar.following(effect.resource)

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
            self._registrar.stopped(effect.resource, stream)
            log.warning("device plugin stopped", resource=effect.resource, error=str(refusal))
            context.send(
                signals.EndpointStopped(
                    resource=effect.resource,
                    generation=effect.generation,
                    error=str(refusal),
                    reached=refusal.kind != "late",
                )
            )

        return FencedPlugins(self._deps.plugins, context).follow(effect.socket, listed, ended, failed)

    def pods(self, effect: wanted.ListPods, context: EffectContext) -> None:
        while not context.cancelled.is_set():
            as_of = _now()
            context.send(signals.PodsListed(as_of=as_of, uids=self._deps.live_pods()))
            context.cancelled.wait(effect.period_seconds)


def _required(socket: str) -> str:
    """Return the plugin's socket. Raises PluginRefusal if it is empty, which means that no plugin is registered."""
    if not socket:
        raise PluginRefusal("away", NO_PLUGIN)
    return socket


def _now() -> int:
    return time.time_ns() // 1_000_000
