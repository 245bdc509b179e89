"""Determines the optional calls that a plugin uses, from its Register call or its answer to GetDevicePluginOptions.
Pure.

Input: Context, `signals.OptionsAnswered`. Output: PluginOptionsKnown. Next: `lifecycle`; `registration` and `stops`
also use these rules. Source: pkg/kubelet/cm/devicemanager/plugin/v1beta1/handler.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from chronolet.devices import signals
from chronolet.devices.context import Context
from chronolet.devices.state import Resource
from chronolet_schemas import devices
from chronolet_schemas.envelope import Event

_MAX_DEATHS = 2
"""If at least this many consecutive plugins died when asked for their options, the next one is not asked."""


def initial_options(message: signals.PluginRegistering, before: Resource | None) -> devices.PluginOptions | None:
    """Return the options of a plugin that registers; None if it must be asked.

    Kubelets of 2018 took the options from the Register call; current ones ask for them. Here options are used if they
    were sent; a plugin that sent none is asked, unless plugins of its resource have repeatedly died when asked.
    """
    if message.options is None and before is not None and before.deaths >= _MAX_DEATHS:
        return devices.PluginOptions()
    return message.options


def answered(context: Context, message: signals.OptionsAnswered) -> Iterator[Event]:
    """Record the options that a plugin reports. A plugin that died when asked is reported from its first death on."""
    for name, one in context.state.resources.items():
        asked = f"options/{name}", f"options/{one.generation}"
        if one.has_plugin and one.options is None and (message.subject, message.intent) == asked:
            known = devices.PluginOptionsKnown(
                resource=name,
                generation=one.generation,
                options=message.options,
                error=message.error,
                deaths=one.deaths + 1 if message.away else 0,
            )
            yield known
            if message.away:
                yield died_when_asked(context, name, known.deaths, message.error)
            return


def died_when_asked(context: Context, name: str, deaths: int, error: str) -> Event:
    """Return a KubeEvent that reports a plugin that died when it was asked for its options."""
    after = (
        "it is not asked again"
        if deaths >= _MAX_DEATHS
        else "it is asked once more when it registers again; a plugin that sends its options with Register is not asked"
    )
    text = (
        f"Device plugin of {name} died while answering GetDevicePluginOptions: {error or 'its stream ended'}; {after}"
    )
    return context.node_event("DevicePluginDiedOfOptions", text)
