"""Handle the exit of a plugin: its stream ends, its socket disappears, and later its resource is removed. Pure.

Input: Context, the end of a stream or the removal of a socket, the time. Output: PluginStopped, ResourceRemoved. Next:
`lifecycle`. Source: pkg/kubelet/cm/devicemanager/manager.go (markResourceUnhealthy, GetCapacity).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chronolet.devices import signals
from chronolet.devices.context import Context
from chronolet.devices.plugins.options import died_when_asked
from chronolet.devices.state import Resource
from chronolet_schemas import devices
from chronolet_schemas.envelope import Event

STOP_GRACE_MILLISECONDS = 300_000
"""How long a resource is kept after its plugin has stopped. Source: endpointStopGracePeriod in types.go."""


def stopped(context: Context, message: signals.EndpointStopped) -> Sequence[Event]:
    """Handle the end of a plugin's stream."""
    resource = context.state.current(message.resource, message.generation)
    if resource is None:
        return ()
    return _stop(context, message.resource, resource, message.error, reached=message.reached)


def left(context: Context, message: signals.PluginLeft) -> Sequence[Event]:
    """Handle the removal of a discovered plugin's socket."""
    resources = context.state.resources
    gone = sorted(name for name, one in resources.items() if one.has_plugin and one.socket == message.socket)
    return [
        event for name in gone for event in _stop(context, name, resources[name], "its socket is gone", reached=False)
    ]


def _stop(context: Context, name: str, resource: Resource, error: str, *, reached: bool) -> Sequence[Event]:
    # The end of the stream may arrive before the error of the options call that killed the plugin.
    died = reached and resource.options is None
    deaths = resource.deaths + died
    events = (
        devices.PluginStopped(
            resource=name, generation=resource.generation, stopped_at=context.now, error=error, deaths=deaths
        ),
        context.node_event("DevicePluginStopped", f"Device plugin of {name} stopped: {error or 'its stream ended'}"),
    )
    return (*events, died_when_asked(context, name, deaths, error)) if died else events


def removed_at(resource: Resource) -> int | None:
    """Return when the resource is removed unless its plugin comes back: one millisecond after the grace period. None
    while the plugin is registered.
    """
    return None if resource.has_plugin else resource.since + STOP_GRACE_MILLISECONDS + 1


def removed(context: Context) -> Iterator[Event]:
    """Remove the resources whose grace period has expired."""
    for name, resource in sorted(context.state.resources.items(), key=lambda item: item[0]):
        over = removed_at(resource)
        if over is not None and over <= context.now:
            yield devices.ResourceRemoved(resource=name, removed_at=context.now)
