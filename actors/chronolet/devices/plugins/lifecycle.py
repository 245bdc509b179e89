"""The life of a resource and its device plugin, from the first registration to the removal of the resource. Pure.

Input: Context, the messages that concern plugins. Output: the events that follow. Next: `decider`. Source:
pkg/kubelet/cm/devicemanager/manager.go, plugin/v1beta1/{server,client,handler}.go.

The modules in the order of a plugin's life: `registrar`, which answers its call; `validation`, whether it may register;
`refusals` and `registration`, which record the outcome; `options`, the optional calls that it uses; `lists`, its
devices and their health; `stops`, its exit. `evolve` folds the events.

    phase        message or time    event, next phase
    no resource  PluginRegistering  PluginRegistered -> registered
    no resource  PluginRegistering  RegistrationRefused               (unless it was recorded recently)
    any          PluginRegistering  PluginRegistered -> registered    (the newest plugin of a resource wins)
    any          PluginRegistering  RegistrationRefused               (unless it was recorded recently)
    registered   OptionsAnswered    PluginOptionsKnown                (of a plugin that did not send its options)
    listed       OptionsAnswered    PluginOptionsKnown
    registered   30 s               PluginSilent                      (reported once)
    registered   DevicesListing     DevicesListed -> listed
    listed       DevicesListing     DevicesListed                     (only differences)
    registered   DevicesListing     ListingCorrected                  (unusable entries, before DevicesListed)
    listed       DevicesListing     ListingCorrected
    registered   EndpointStopped    PluginStopped -> stopped
    listed       EndpointStopped    PluginStopped -> stopped
    registered   PluginLeft         PluginStopped -> stopped
    listed       PluginLeft         PluginStopped -> stopped
    any          RegistryOpened     RegistryOpened -> awaited         (not a plugin that the watcher discovered)
    stopped      5 minutes          ResourceRemoved -> no resource
    awaited      5 minutes          ResourceRemoved -> no resource

Signals from an earlier plugin of the resource have a different generation, and change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from chronolet.devices import signals
from chronolet.devices.context import Context
from chronolet.devices.plugins import lists, options, registration, stops
from chronolet.devices.state import State
from chronolet_schemas import devices
from chronolet_schemas.envelope import Event

PluginMessage = (
    signals.RegistryOpened
    | signals.PluginRegistering
    | signals.OptionsAnswered
    | signals.DevicesListing
    | signals.EndpointStopped
    | signals.PluginLeft
)
"""Every message that concerns a plugin."""


def decide(context: Context, message: PluginMessage) -> Iterable[Event]:
    """Return the events that follow from one message."""
    match message:
        case signals.RegistryOpened():
            return (devices.RegistryOpened(opened_at=context.now),)
        case signals.PluginRegistering():
            return registration.registered(context, message)
        case signals.OptionsAnswered():
            return options.answered(context, message)
        case signals.DevicesListing():
            return lists.listed(context, message)
        case signals.EndpointStopped():
            return stops.stopped(context, message)
        case signals.PluginLeft():
            return stops.left(context, message)
        case _:
            assert_never(message)


def overdue(context: Context) -> Sequence[Event]:
    """Return the events that are due at the current time."""
    return (*stops.removed(context), *lists.silent(context))


def due(state: State) -> Iterator[int]:
    """Yield the times when resources expire and when silent plugins are reported."""
    times = (at(resource) for resource in state.resources.values() for at in (stops.removed_at, lists.silent_at))
    return (time for time in times if time is not None)
