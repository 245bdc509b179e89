"""What plugins say of themselves and of their devices. Pure.

Comes in: State, signals of the registration, of plugins' streams, of the time. Goes out: the facts that are news in
them. Next: `decider`. Source: pkg/kubelet/cm/devicemanager/plugin/v1beta1/{server,client,handler}.go, manager.go
(genericDeviceUpdateCallback, markResourceUnhealthy, GetCapacity).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from chronolet.devices import signals
from chronolet.devices.claims import Policy
from chronolet.devices.registration import Refusal, counted_as, refusal, shortened, socket_of
from chronolet.devices.state import Device, Refused, Resource, State
from chronolet_schemas import devices, kube_events
from chronolet_schemas.devices import DeviceInfo
from chronolet_schemas.envelope import Event

STOP_GRACE_MILLISECONDS = 300_000
"""How long a resource is kept whose plugin has stopped. Source: endpointStopGracePeriod in types.go."""

SILENCE_MILLISECONDS = 30_000
"""After how long without a first list it is told of a plugin. Kubelets wait for ever, and so does this node."""

REFUSED_AGAIN_MILLISECONDS = 300_000
"""A plugin that goes on trying to register is told of each time that its tries have doubled, and after this time."""

_ASKED_TO_DEATH = 2
"""So many plugins in a row that were gone when they had been asked for their options: the next one is not asked."""
_SHOWN = 5


def registering(state: State, message: signals.PluginRegistering, policy: Policy, now: int) -> Iterator[Event]:
    """A plugin wants to register: the newest counts."""
    found = refusal(
        versions=message.versions, resource=message.resource, endpoint=message.endpoint, folder=message.folder
    )
    if found is not None:
        yield from _refused(state, message, found, policy, now)
        return
    socket = socket_of(message.endpoint, message.folder) or ""
    before = state.resources.get(message.resource)
    if before is not None and before.heard and before.socket != socket:
        yield told(
            policy,
            "DevicePluginReplaced",
            f"Device plugin of {message.resource} at {before.socket} is replaced by the one at {socket}",
        )
    # Kubelets of 2018 took the options that came with the call, those of today ask for them. What came is believed,
    # what did not is asked for; but there are plugins that die of the question, and they are left in peace.
    said = message.options
    if said is None and before is not None and before.deaths >= _ASKED_TO_DEATH:
        said = devices.PluginOptions()
    yield devices.PluginRegistered(
        resource=message.resource,
        generation=state.serial + 1,
        socket=socket,
        registered_at=now,
        by=message.by,
        options=said,
    )


def _refused(
    state: State, message: signals.PluginRegistering, found: Refusal, policy: Policy, now: int
) -> Sequence[Event]:
    """A plugin that crashes and begins anew must not fill the log: what is no news is counted by whoever refused it."""
    known = state.refused.get(counted_as(message.resource, found.reason, state.refused), Refused(times=0, at=0))
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
    said = f"Device plugin at {refused.endpoint!r}: {found.message}"
    return (refused, told(policy, "DevicePluginRefused", said))


def options_said(state: State, message: signals.OptionsSaid) -> Sequence[Event]:
    """What a plugin wants to be asked, from itself."""
    for name, one in state.resources.items():
        asked = f"options/{name}", f"options/{one.generation}"
        if one.heard and one.options is None and (message.subject, message.intent) == asked:
            return (
                devices.PluginOptionsKnown(
                    resource=name,
                    generation=one.generation,
                    options=message.options,
                    error=message.error,
                    deaths=one.deaths + 1 if message.away else 0,
                ),
            )
    return ()


def listing(state: State, message: signals.DevicesListing, policy: Policy) -> Sequence[Event]:
    """What is new in a list; a list that makes no sense changes nothing."""
    resource = _current(state, message.resource, message.generation)
    if resource is None:
        return ()
    fault = _fault(message.devices)
    if fault:
        if fault == resource.problem:
            return ()
        refused = devices.ListingRefused(resource=message.resource, generation=message.generation, message=fault)
        return (refused, told(policy, "DeviceListRefused", f"Device plugin of {message.resource}: {fault}"))
    listed = {one.id: one for one in message.devices}
    changed = tuple(one for one in message.devices if _differs(resource.devices.get(one.id), one))
    gone = tuple(sorted(name for name in resource.devices if name not in listed))
    news = changed or gone or resource.problem or message.skipped
    if resource.phase == "listed" and not news:
        return ()
    said = devices.DevicesListed(
        resource=message.resource,
        generation=message.generation,
        devices=changed,
        gone=gone,
        count=len(message.devices),
        skipped=message.skipped,
    )
    if not message.skipped or resource.flooding:
        return (said,)
    floods = f"Device plugin of {message.resource} sends lists faster than they are told: of a second's the last counts"
    return (said, told(policy, "DeviceListsSkipped", floods))


def _differs(known: Device | None, said: DeviceInfo) -> bool:
    return known is None or known.health != said.health or known.nodes != said.nodes


def _fault(said: Sequence[DeviceInfo]) -> str:
    """What is wrong with a list, empty if nothing is."""
    if any(not one.id for one in said):
        return "a device without an id was listed; the list before it holds"
    if len({one.id for one in said}) == len(said):
        return ""
    twice = sorted(name for name, count in Counter(one.id for one in said).items() if count > 1)
    named = ", ".join(twice[:_SHOWN]) + (f" and {len(twice) - _SHOWN} more" if len(twice) > _SHOWN else "")
    return f"listed twice: {named}; the list before it holds"


def stopped(state: State, message: signals.EndpointStopped, policy: Policy, now: int) -> Sequence[Event]:
    """A plugin's stream ended."""
    resource = _current(state, message.resource, message.generation)
    return () if resource is None else _stop(message.resource, resource, message.error, policy, now)


def left(state: State, message: signals.PluginLeft, policy: Policy, now: int) -> Sequence[Event]:
    """The socket of a plugin that was found by it is gone."""
    gone = sorted(name for name, one in state.resources.items() if one.heard and one.socket == message.socket)
    return [event for name in gone for event in _stop(name, state.resources[name], "its socket is gone", policy, now)]


def _stop(name: str, resource: Resource, error: str, policy: Policy, now: int) -> Sequence[Event]:
    # Of a plugin that dies of a question its stream may tell first.
    deaths = resource.deaths + (resource.options is None)
    return (
        devices.PluginStopped(
            resource=name, generation=resource.generation, stopped_at=now, error=error, deaths=deaths
        ),
        told(policy, "DevicePluginStopped", f"Device plugin of {name} stopped: {error or 'its stream ended'}"),
    )


def _current(state: State, name: str, generation: int) -> Resource | None:
    resource = state.resources.get(name)
    return resource if resource is not None and resource.heard and resource.generation == generation else None


def removed_at(resource: Resource) -> int | None:
    """When the resource is the node's no more, if its plugin does not come back. Exactly at the end of the grace it
    still is.
    """
    return None if resource.heard else resource.since + STOP_GRACE_MILLISECONDS + 1


def removals(state: State, now: int) -> Iterator[Event]:
    """The resources whose time is over."""
    for name, resource in sorted(state.resources.items(), key=lambda item: item[0]):
        over = removed_at(resource)
        if over is not None and over <= now:
            yield devices.ResourceRemoved(resource=name, removed_at=now)


def silent_at(resource: Resource) -> int | None:
    """When it is told of a plugin that it lists nothing."""
    waited_for = resource.phase == "registered" and not resource.silent and not resource.problem
    return resource.since + SILENCE_MILLISECONDS if waited_for else None


def silences(state: State, policy: Policy, now: int) -> Iterator[Event]:
    """The plugins that have listed nothing for too long."""
    for name, resource in sorted(state.resources.items(), key=lambda item: item[0]):
        at = silent_at(resource)
        if at is not None and at <= now:
            yield devices.PluginSilent(resource=name, generation=resource.generation, said_at=now)
            waited = f"{SILENCE_MILLISECONDS // 1000} seconds after its registration"
            yield told(policy, "DevicePluginSilent", f"Device plugin of {name} has listed no devices {waited}")


def told(policy: Policy, reason: str, message: str) -> Event:
    """A KubeEvent about the node."""
    return kube_events.Recorded(
        object_kind="Node", name=policy.node, severity="Warning", reason=reason, message=message
    )
