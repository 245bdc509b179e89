"""Handle the device lists that plugins send, and report plugins that send none. Pure.

Input: Context, `signals.DevicesListing`, the time. Output: events for what changed. Next: `lifecycle`. Source:
pkg/kubelet/cm/devicemanager/plugin/v1beta1/client.go, manager.go (genericDeviceUpdateCallback).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from chronolet.devices import signals
from chronolet.devices.context import Context
from chronolet.devices.plugins.validation import shortened
from chronolet.devices.state import Device, Resource
from chronolet_schemas import devices
from chronolet_schemas.devices import DeviceInfo
from chronolet_schemas.envelope import Event

SILENCE_MILLISECONDS = 30_000
"""How long after its registration a plugin is reported if it has sent no list. The node keeps waiting, as the kubelet
does.
"""

MAX_CORRECTED = 64
"""Maximum number of ids of bad entries that are reported between two registrations of a plugin."""
_MAX_SHOWN = 5


def listed(context: Context, message: signals.DevicesListing) -> Iterator[Event]:
    """Yield the events for a device list. Unusable entries are reported and do not affect the other entries."""
    resource = context.state.current(message.resource, message.generation)
    if resource is None:
        return
    corrected = _corrected(resource, message)
    if corrected is not None:
        yield corrected
        yield context.node_event("DeviceListCorrected", f"Device plugin of {message.resource}: {corrected.message}")
    entries = {one.id: one for one in message.devices if one.id}
    changed = tuple(one for one in entries.values() if _differs(resource.devices.get(one.id), one))
    gone = tuple(sorted(name for name in resource.devices if name not in entries))
    news = changed or gone or resource.problem or message.skipped
    if resource.phase == "listed" and not news:
        return
    yield devices.DevicesListed(
        resource=message.resource,
        generation=message.generation,
        devices=changed,
        gone=gone,
        count=len(entries),
        skipped=message.skipped,
    )
    if message.skipped and not resource.flooding:
        floods = f"Device plugin of {message.resource} sends lists too fast: only the last list of each second counts"
        yield context.node_event("DeviceListsSkipped", floods)


def _differs(known: Device | None, entry: DeviceInfo) -> bool:
    return known is None or known.health != entry.health or known.nodes != entry.nodes


def _corrected(resource: Resource, message: signals.DevicesListing) -> devices.ListingCorrected | None:
    """Report bad entries of a list that have not been reported since the plugin registered; None if there are none."""
    counts = Counter(one.id for one in message.devices)
    unnamed = 0 if "" in resource.corrected else counts.pop("", 0)
    known = {"", *resource.corrected}
    new = sorted(name for name, count in counts.items() if count > 1 and name not in known)
    twice = tuple(map(shortened, new[: max(MAX_CORRECTED - len(resource.corrected), 0)]))
    if not twice and not unnamed:
        return None
    parts = []
    if twice:
        rest = f" and {len(new) - _MAX_SHOWN} more" if len(new) > _MAX_SHOWN else ""
        parts.append(f"listed more than once: {', '.join(twice[:_MAX_SHOWN])}{rest}; the last entry of each counts")
    if unnamed:
        parts.append(f"entries without an id: {unnamed}; they are ignored")
    return devices.ListingCorrected(
        resource=message.resource,
        generation=message.generation,
        message="; ".join(parts),
        twice=twice,
        unnamed=unnamed,
    )


def silent_at(resource: Resource) -> int | None:
    """Return when to report that the plugin has sent no list; None if it has, is not registered, or was reported."""
    waited_for = resource.phase == "registered" and not resource.silent and not resource.problem
    return resource.since + SILENCE_MILLISECONDS if waited_for else None


def silent(context: Context) -> Iterator[Event]:
    """Report the plugins that have not sent any list for too long."""
    for name, resource in sorted(context.state.resources.items(), key=lambda item: item[0]):
        at = silent_at(resource)
        if at is not None and at <= context.now:
            yield devices.PluginSilent(resource=name, generation=resource.generation, said_at=context.now)
            waited = f"{SILENCE_MILLISECONDS // 1000} seconds after its registration"
            yield context.node_event("DevicePluginSilent", f"Device plugin of {name} has listed no devices {waited}")
