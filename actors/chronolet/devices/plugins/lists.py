"""Handle plugins' registrations and device lists. Pure.

Input: State, signals from the registration and from plugins' streams, the time. Output: events for what changed. Next:
`decider`. Source: pkg/kubelet/cm/devicemanager/plugin/v1beta1/{server,client,handler}.go, manager.go
(genericDeviceUpdateCallback, markResourceUnhealthy, GetCapacity).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from chronolet.devices import signals
from chronolet.devices.claims.waiting import Policy
from chronolet.devices.plugins.validation import PAUSE_SECONDS, Refusal, counted_as, refusal, shortened, socket_of
from chronolet.devices.state import Device, RefusalCount, Resource, State
from chronolet_schemas import devices, kube_events
from chronolet_schemas.devices import DeviceInfo
from chronolet_schemas.envelope import Event

STOP_GRACE_MILLISECONDS = 300_000
"""How long a resource survives its stopped plugin. Source: endpointStopGracePeriod in types.go."""

SILENCE_MILLISECONDS = 30_000
"""How long a plugin may go without a first list before that is reported. Like the kubelet, the node keeps waiting."""

REFUSED_AGAIN_MILLISECONDS = 300_000
"""A plugin that keeps trying to register is reported whenever its attempts have doubled, and after this time."""

MOST_CORRECTED = 64
"""Maximum number of ids of bad entries reported by name between two registrations of a plugin."""

_MOST_OPTION_DEATHS = 2
"""After this many consecutive plugins died when asked for their options, the next one is not asked."""
_SHOWN = 5


def registering(state: State, message: signals.PluginRegistering, policy: Policy, now: int) -> Iterator[Event]:
    """Handle a registration; the newest one wins."""
    found = refusal(
        versions=message.versions,
        resource=message.resource,
        endpoint=message.endpoint,
        folder=message.folder,
        limit=message.limit,
    )
    if found is not None:
        yield from _refused(state, message, found, policy, now)
        return
    if message.skipped:
        yield node_event(
            policy,
            "DevicePluginRegistersTooOften",
            f"Device plugin of {message.resource} registered {message.skipped + 1} times since its last registration "
            f"that counted: at this rate only the newest counts, every {PAUSE_SECONDS} seconds",
        )
    socket = socket_of(message.endpoint, message.folder) or ""
    before = state.resources.get(message.resource)
    if before is not None and before.has_plugin and before.socket != socket:
        yield node_event(
            policy,
            "DevicePluginReplaced",
            f"Device plugin of {message.resource} at {before.socket} is replaced by the one at {socket}",
        )
    # Kubelets of 2018 took the options from the Register call, current ones ask for them. Options that were sent are
    # used, missing ones are asked for, except from plugins that have repeatedly died of the question.
    options = message.options
    if options is None and before is not None and before.deaths >= _MOST_OPTION_DEATHS:
        options = devices.PluginOptions()
    yield devices.PluginRegistered(
        resource=message.resource,
        generation=state.serial + 1,
        socket=socket,
        registered_at=now,
        by=message.by,
        options=options,
    )


def _refused(
    state: State, message: signals.PluginRegistering, found: Refusal, policy: Policy, now: int
) -> Sequence[Event]:
    """Record a refusal if it is news. A crash-looping plugin must not fill the log: `Registrar` counts the others."""
    known = state.refused.get(counted_as(message.resource, found.reason, state.refused), RefusalCount(times=0, at=0))
    goes_on = 0 < known.times < message.times
    if goes_on and message.times < 2 * known.times and now < known.at + REFUSED_AGAIN_MILLISECONDS:
        return ()
    refused = devices.RegistrationRefused(
        resource=shortened(message.resource),
        endpoint=shortened(message.endpoint),
        version=shortened(" ".join(message.versions)),
        reason=found.reason,
        message=found.message,
        refused_at=now,
        times=message.times,
        calls=message.times - known.times if goes_on else message.times,
    )
    text = f"Device plugin at {refused.endpoint!r}: {found.message}"
    return (refused, node_event(policy, "DevicePluginRefused", text))


def options_received(state: State, message: signals.OptionsAnswered, policy: Policy) -> Iterator[Event]:
    """Record a plugin's options as reported by itself. A plugin that dies of the question is reported at its first
    death.
    """
    for name, one in state.resources.items():
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
                yield _died_of_options(policy, name, known.deaths, message.error)
            return


def _died_of_options(policy: Policy, name: str, deaths: int, error: str) -> Event:
    after = (
        "it is not asked again"
        if deaths >= _MOST_OPTION_DEATHS
        else "it is asked once more when it registers again; a plugin that sends its options with Register is not asked"
    )
    text = (
        f"Device plugin of {name} died while answering GetDevicePluginOptions: {error or 'its stream ended'}; {after}"
    )
    return node_event(policy, "DevicePluginDiedOfOptions", text)


def listing(state: State, message: signals.DevicesListing, policy: Policy) -> Iterator[Event]:
    """Return the events for a device list. Unusable entries are reported and do not affect the others."""
    resource = _current(state, message.resource, message.generation)
    if resource is None:
        return
    corrected = _corrected(resource, message)
    if corrected is not None:
        yield corrected
        yield node_event(policy, "DeviceListCorrected", f"Device plugin of {message.resource}: {corrected.message}")
    listed = {one.id: one for one in message.devices if one.id}
    changed = tuple(one for one in listed.values() if _differs(resource.devices.get(one.id), one))
    gone = tuple(sorted(name for name in resource.devices if name not in listed))
    news = changed or gone or resource.problem or message.skipped
    if resource.phase == "listed" and not news:
        return
    yield devices.DevicesListed(
        resource=message.resource,
        generation=message.generation,
        devices=changed,
        gone=gone,
        count=len(listed),
        skipped=message.skipped,
    )
    if message.skipped and not resource.flooding:
        floods = f"Device plugin of {message.resource} sends lists too fast: only the last list of each second counts"
        yield node_event(policy, "DeviceListsSkipped", floods)


def _differs(known: Device | None, listed: DeviceInfo) -> bool:
    return known is None or known.health != listed.health or known.nodes != listed.nodes


def _corrected(resource: Resource, message: signals.DevicesListing) -> devices.ListingCorrected | None:
    """Report bad entries of a list that were not reported since the plugin registered."""
    counts = Counter(one.id for one in message.devices)
    unnamed = 0 if "" in resource.corrected else counts.pop("", 0)
    known = {"", *resource.corrected}
    new = sorted(name for name, count in counts.items() if count > 1 and name not in known)
    twice = tuple(map(shortened, new[: max(MOST_CORRECTED - len(resource.corrected), 0)]))
    if not twice and not unnamed:
        return None
    parts = []
    if twice:
        named = ", ".join(twice[:_SHOWN]) + (f" and {len(new) - _SHOWN} more" if len(new) > _SHOWN else "")
        parts.append(f"listed more than once: {named}; the last entry of each counts")
    if unnamed:
        parts.append(f"entries without an id: {unnamed}; they are ignored")
    return devices.ListingCorrected(
        resource=message.resource,
        generation=message.generation,
        message="; ".join(parts),
        twice=twice,
        unnamed=unnamed,
    )


def stopped(state: State, message: signals.EndpointStopped, policy: Policy, now: int) -> Sequence[Event]:
    """Handle the end of a plugin's stream."""
    resource = _current(state, message.resource, message.generation)
    if resource is None:
        return ()
    return _stop(message.resource, resource, message.error, policy, now, reached=message.reached)


def left(state: State, message: signals.PluginLeft, policy: Policy, now: int) -> Sequence[Event]:
    """Handle the removal of a discovered plugin's socket."""
    gone = sorted(name for name, one in state.resources.items() if one.has_plugin and one.socket == message.socket)
    return [
        event
        for name in gone
        for event in _stop(name, state.resources[name], "its socket is gone", policy, now, reached=False)
    ]


def _stop(name: str, resource: Resource, error: str, policy: Policy, now: int, *, reached: bool) -> Sequence[Event]:
    # The end of the stream may arrive before the error of the options call that killed the plugin.
    died = reached and resource.options is None
    deaths = resource.deaths + died
    found = (
        devices.PluginStopped(
            resource=name, generation=resource.generation, stopped_at=now, error=error, deaths=deaths
        ),
        node_event(policy, "DevicePluginStopped", f"Device plugin of {name} stopped: {error or 'its stream ended'}"),
    )
    return (*found, _died_of_options(policy, name, deaths, error)) if died else found


def _current(state: State, name: str, generation: int) -> Resource | None:
    resource = state.resources.get(name)
    return resource if resource is not None and resource.has_plugin and resource.generation == generation else None


def removed_at(resource: Resource) -> int | None:
    """When the resource is removed unless its plugin comes back: one millisecond after the grace period. None while the
    plugin is registered.
    """
    return None if resource.has_plugin else resource.since + STOP_GRACE_MILLISECONDS + 1


def removals(state: State, now: int) -> Iterator[Event]:
    """Remove the resources whose grace period is over."""
    for name, resource in sorted(state.resources.items(), key=lambda item: item[0]):
        over = removed_at(resource)
        if over is not None and over <= now:
            yield devices.ResourceRemoved(resource=name, removed_at=now)


def silent_at(resource: Resource) -> int | None:
    """When to report that the plugin lists nothing; None if it has listed or was reported."""
    waited_for = resource.phase == "registered" and not resource.silent and not resource.problem
    return resource.since + SILENCE_MILLISECONDS if waited_for else None


def silences(state: State, policy: Policy, now: int) -> Iterator[Event]:
    """Report the plugins that have not listed anything for too long."""
    for name, resource in sorted(state.resources.items(), key=lambda item: item[0]):
        at = silent_at(resource)
        if at is not None and at <= now:
            yield devices.PluginSilent(resource=name, generation=resource.generation, said_at=now)
            waited = f"{SILENCE_MILLISECONDS // 1000} seconds after its registration"
            yield node_event(policy, "DevicePluginSilent", f"Device plugin of {name} has listed no devices {waited}")


def node_event(policy: Policy, reason: str, message: str) -> Event:
    """A KubeEvent about the node."""
    return kube_events.Recorded(
        object_kind="Node", name=policy.node, severity="Warning", reason=reason, message=message
    )
