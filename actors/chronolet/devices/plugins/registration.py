"""Handle plugins' registrations. Pure.

Input: Context, `signals.PluginRegistering`. Output: PluginRegistered, or the refusal. Next: `lifecycle`. `validation`
decides whether a plugin may register. Source: pkg/kubelet/cm/devicemanager/plugin/v1beta1/{server,handler}.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from chronolet.devices import signals
from chronolet.devices.context import Context
from chronolet.devices.plugins.options import initial_options
from chronolet.devices.plugins.refusals import refused
from chronolet.devices.plugins.validation import refusal, socket_of
from chronolet_schemas import devices
from chronolet_schemas.envelope import Event

BURST_REGISTRATIONS = 10
"""Number of registrations of a resource that all count even in quick succession; after that, only one per
INTERVAL_SECONDS does.
"""
INTERVAL_SECONDS = 30


def registered(context: Context, message: signals.PluginRegistering) -> Iterator[Event]:
    """Handle a registration; the newest one wins."""
    reason = refusal(
        versions=message.versions,
        resource=message.resource,
        endpoint=message.endpoint,
        folder=message.folder,
        limit=message.limit,
    )
    if reason is not None:
        yield from refused(context, message, reason)
        return
    if message.skipped:
        yield context.node_event(
            "DevicePluginRegistersTooOften",
            f"Device plugin of {message.resource} registered {message.skipped + 1} times since its last registration "
            f"that counted: at this rate only the newest counts, every {INTERVAL_SECONDS} seconds",
        )
    socket = socket_of(message.endpoint, message.folder) or ""
    before = context.state.resources.get(message.resource)
    if before is not None and before.has_plugin and before.socket != socket:
        yield context.node_event(
            "DevicePluginReplaced",
            f"Device plugin of {message.resource} at {before.socket} is replaced by the one at {socket}",
        )
    yield devices.PluginRegistered(
        resource=message.resource,
        generation=context.state.serial + 1,
        socket=socket,
        registered_at=context.now,
        by=message.by,
        options=initial_options(message, before),
    )
