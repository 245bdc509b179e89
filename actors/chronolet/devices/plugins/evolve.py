"""Fold events about plugins and their resources.

Input: State, an event about a plugin. Output: the next State. Next: `devices.evolve`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import immutables
from msgspec.structs import replace

from chronolet.devices.plugins.refusals import counter_of, counters_of
from chronolet.devices.state import Device, RefusalCount, Resource, State
from chronolet_schemas import devices
from chronolet_schemas.envelope import Event


def _opened(state: State, event: devices.RegistryOpened) -> State:
    """Mark registered plugins as awaited, except those discovered by their socket: the watcher finds them again."""
    awaited = {
        name: replace(one, phase="awaited", since=event.opened_at, remembered=True, socket="", options=None, problem="")
        for name, one in state.resources.items()
        if one.by == "registration"
    }
    return replace(
        state, opened_at=event.opened_at, resources=state.resources.update(awaited), refused=immutables.Map()
    )


def _refused(state: State, event: devices.RegistrationRefused) -> State:
    name = counter_of(event.resource, event.reason, state.refused)
    return replace(state, refused=state.refused.set(name, RefusalCount(times=event.times, at=event.refused_at)))


def _registered(state: State, event: devices.PluginRegistered) -> State:
    before = state.resources.get(event.resource) or Resource(phase="registered")
    resource = replace(
        before,
        phase="registered",
        generation=event.generation,
        socket=event.socket,
        by=event.by,
        since=event.registered_at,
        options=event.options,
        problem="",
        corrected=(),
        silent=False,
        flooding=False,
    )
    state = _retry_now(state, event.resource)
    refused = state.refused
    for name in counters_of(event.resource):
        refused = refused.delete(name) if name in refused else refused
    serial = max(state.serial, event.generation)
    return replace(_with(state, event.resource, resource), serial=serial, refused=refused)


def _retry_now(state: State, name: str) -> State:
    """Clear the back-off of the claims that wait for this plugin."""
    waiting = {
        key: replace(claim, retry_at=0)
        for key in state.open
        if (claim := state.claims[key]).resource == name and claim.retry_at
    }
    return replace(state, claims=state.claims.update(waiting)) if waiting else state


def _options(state: State, event: devices.PluginOptionsKnown) -> State:
    return _changed(state, event.resource, lambda one: replace(one, options=event.options, deaths=event.deaths))


def _silent(state: State, event: devices.PluginSilent) -> State:
    return _changed(state, event.resource, lambda one: replace(one, silent=True))


def _listed(state: State, event: devices.DevicesListed) -> State:
    def listed(before: Resource) -> Resource:
        table = before.devices.update({one.id: Device(health=one.health, nodes=one.nodes) for one in event.devices})
        with table.mutate() as changing:
            for gone in event.gone:
                changing.pop(gone, None)
            table = changing.finish()
        flooding = event.skipped > 0
        return replace(before, phase="listed", devices=table, remembered=False, problem="", flooding=flooding)

    return _changed(state, event.resource, listed)


def _listing_refused(state: State, event: devices.ListingRefused) -> State:
    return _changed(state, event.resource, lambda one: replace(one, problem=event.message))


def _listing_corrected(state: State, event: devices.ListingCorrected) -> State:
    found = (*event.twice, *([""] if event.unnamed else []))
    return _changed(state, event.resource, lambda one: replace(one, corrected=(*one.corrected, *found)))


def _stopped(state: State, event: devices.PluginStopped) -> State:
    stopped = {"phase": "stopped", "since": event.stopped_at, "socket": "", "deaths": event.deaths}
    return _changed(state, event.resource, lambda one: replace(one, **stopped))


def _removed(state: State, event: devices.ResourceRemoved) -> State:
    if event.resource not in state.resources:
        return state
    return replace(state, resources=state.resources.delete(event.resource))


def _changed(state: State, name: str, change: Callable[[Resource], Resource]) -> State:
    resource = state.resources.get(name)
    return state if resource is None else _with(state, name, change(resource))


def _with(state: State, name: str, resource: Resource) -> State:
    return replace(state, resources=state.resources.set(name, resource))


PLUGIN_EVENTS: Mapping[type[Event], Callable[[State, Any], State]] = {
    devices.RegistryOpened: _opened,
    devices.PluginRegistered: _registered,
    devices.RegistrationRefused: _refused,
    devices.PluginOptionsKnown: _options,
    devices.PluginSilent: _silent,
    devices.DevicesListed: _listed,
    devices.ListingRefused: _listing_refused,
    devices.ListingCorrected: _listing_corrected,
    devices.PluginStopped: _stopped,
    devices.ResourceRemoved: _removed,
}
"""How each event about a plugin changes the state."""
