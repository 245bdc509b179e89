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
from chronolet.devices.registration import PAUSE_SECONDS, Refusal, counted_as, refusal, shortened, socket_of
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

MOST_CORRECTED = 64
"""The most ids of bad entries that are reported by name between two registrations of a plugin."""

_ASKED_TO_DEATH = 2
"""So many plugins in a row that were gone when they had been asked for their options: the next one is not asked."""
_SHOWN = 5


def registering(state: State, message: signals.PluginRegistering, policy: Policy, now: int) -> Iterator[Event]:
    """A plugin wants to register: the newest counts."""
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
        yield told(
            policy,
            "DevicePluginRegistersTooOften",
            f"Device plugin of {message.resource} registered {message.skipped + 1} times since its last registration "
            f"that counted: of so many, the newest counts every {PAUSE_SECONDS} seconds",
        )
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


def options_said(state: State, message: signals.OptionsSaid, policy: Policy) -> Iterator[Event]:
    """What a plugin wants to be asked, from itself. One that dies of the question is reported at its first death."""
    for name, one in state.resources.items():
        asked = f"options/{name}", f"options/{one.generation}"
        if one.heard and one.options is None and (message.subject, message.intent) == asked:
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
        if deaths >= _ASKED_TO_DEATH
        else "it is asked once more when it registers again; a plugin that sends its options with Register is not asked"
    )
    said = (
        f"Device plugin of {name} ended while it was being asked for its options (GetDevicePluginOptions): "
        f"{error or 'its stream ended'}; {after}"
    )
    return told(policy, "DevicePluginDiedOfOptions", said)


def listing(state: State, message: signals.DevicesListing, policy: Policy) -> Iterator[Event]:
    """Events for a device list. Entries that cannot be used are reported; they never cost the others their place."""
    resource = _current(state, message.resource, message.generation)
    if resource is None:
        return
    corrected = _corrected(resource, message)
    if corrected is not None:
        yield corrected
        yield told(policy, "DeviceListCorrected", f"Device plugin of {message.resource}: {corrected.message}")
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
        floods = (
            f"Device plugin of {message.resource} sends lists faster than they are told: of a second's the last counts"
        )
        yield told(policy, "DeviceListsSkipped", floods)


def _differs(known: Device | None, said: DeviceInfo) -> bool:
    return known is None or known.health != said.health or known.nodes != said.nodes


def _corrected(resource: Resource, message: signals.DevicesListing) -> devices.ListingCorrected | None:
    """What is wrong with entries of a list, as far as it was not reported since the plugin registered."""
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
    """A plugin's stream ended."""
    resource = _current(state, message.resource, message.generation)
    if resource is None:
        return ()
    return _stop(message.resource, resource, message.error, policy, now, reached=message.reached)


def left(state: State, message: signals.PluginLeft, policy: Policy, now: int) -> Sequence[Event]:
    """The socket of a plugin that was found by it is gone."""
    gone = sorted(name for name, one in state.resources.items() if one.heard and one.socket == message.socket)
    return [
        event
        for name in gone
        for event in _stop(name, state.resources[name], "its socket is gone", policy, now, reached=False)
    ]


def _stop(name: str, resource: Resource, error: str, policy: Policy, now: int, *, reached: bool) -> Sequence[Event]:
    # The end of its stream may arrive before the error of the question that the plugin died of.
    died = reached and resource.options is None
    deaths = resource.deaths + died
    found = (
        devices.PluginStopped(
            resource=name, generation=resource.generation, stopped_at=now, error=error, deaths=deaths
        ),
        told(policy, "DevicePluginStopped", f"Device plugin of {name} stopped: {error or 'its stream ended'}"),
    )
    return (*found, _died_of_options(policy, name, deaths, error)) if died else found


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
