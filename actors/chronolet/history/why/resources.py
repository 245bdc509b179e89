"""Explains what happened to the devices and images that a pod needs. Pure.

Input: the history of a pod. Output: causes. Next: `present`, `answer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chronolet.history.why import causes
from chronolet.history.why.causes import Cause, where
from chronolet.history.why.facts import Fact
from chronolet.history.why.records import Life, PodHistory
from chronolet_schemas import devices, image_gc, pod
from chronolet_schemas.envelope import Position


# -- devices -----------------------------------------------------------------------------------------------------------
def missing_devices(history: PodHistory, life: Life, container: str) -> Sequence[Cause]:
    """Return why a container waits for devices; nothing if it does not."""
    waits = [one for one in life.of(pod.DevicesAwaited) if one[1].container == container]
    if not waits or _granted_after(life, container, waits[-1][0].position):
        return ()
    fact, event = waits[-1]
    missing = causes.DevicesMissing(container=container, reason=event.reason, message=event.message, **where(fact))
    pending = [one for _, one in life.of(devices.DevicesPending) if one.container == container]
    resource = pending[-1].resource if pending else ""
    return (missing, *_plugin_gone(history, resource))


def lost_devices(history: PodHistory, life: Life, container: str) -> Sequence[Cause]:
    """Return which of a container's devices it has lost: they are unhealthy or gone, or their plugin is."""
    found: list[Cause] = []
    for resource, ids in _held(life, container).items():
        found += _plugin_gone(history, resource)
        found += [_lost(container, resource, device, lost) for device, lost in _bad(history, resource, ids)]
    return found


def _held(life: Life, container: str) -> dict[str, tuple[str, ...]]:
    granted = [one for one in life.of(pod.DevicesGranted) if one[1].container == container]
    return granted[-1][1].devices if granted else {}


def _granted_after(life: Life, container: str, position: Position) -> bool:
    return any(fact.position > position and one.container == container for fact, one in life.of(pod.DevicesGranted))


def _plugin_gone(history: PodHistory, resource: str) -> Sequence[Cause]:
    about = [one for one in history.node if getattr(one.event, "resource", "") == resource]
    for fact in reversed(about):
        match fact.event:
            case devices.PluginRegistered() | devices.DevicesListed():
                return ()
            case devices.PluginStopped():
                return (causes.PluginGone(resource=resource, error=fact.event.error, **where(fact)),)
            case _:
                continue
    return ()


def _bad(history: PodHistory, resource: str, ids: Sequence[str]) -> Iterator[tuple[str, tuple[Fact, str]]]:
    """Yield each of these devices that is not healthy now, with the list that says so, and its health there."""
    bad: dict[str, tuple[Fact, str]] = {}
    for fact, event in history.node_events(devices.DevicesListed):
        if event.resource != resource:
            continue
        for one in event.devices:
            bad.pop(one.id, None)
            if one.health != devices.HEALTHY:
                bad[one.id] = (fact, one.health)
        bad |= dict.fromkeys(event.gone, (fact, ""))
    return ((device, bad[device]) for device in ids if device in bad)


def _lost(container: str, resource: str, device: str, lost: tuple[Fact, str]) -> Cause:
    fact, health = lost
    return causes.DeviceLost(container=container, resource=resource, device=device, health=health, **where(fact))


# -- images ------------------------------------------------------------------------------------------------------------
def image_gone(history: PodHistory, image: str, before: Position | None = None) -> Sequence[Cause]:
    """Return how an image that the pod had used before left the node, before this position."""
    ready = [one for one in _ready(history, image) if before is None or one[0].position < before]
    if not ready:
        return ()
    since, had = ready[-1]
    between = [
        one for one in history.node if one.position > since.position and (before is None or one.position < before)
    ]
    for fact in between:
        if isinstance(fact.event, image_gc.ImageRemoved) and fact.event.id == had.image_id:
            return (causes.ImageRemoved(image=image, reason=fact.event.reason, **where(fact)),)
    for fact in between:
        if isinstance(fact.event, image_gc.ImagesChanged) and _lost_name(fact.event, had.image_id):
            return (causes.ImageRemoved(image=image, **where(fact)),)
    return ()


def _ready(history: PodHistory, image: str) -> list[tuple[Fact, pod.ImageReady]]:
    return [(fact, one) for life in history.lives for fact, one in life.of(pod.ImageReady) if one.image == image]


def _lost_name(event: image_gc.ImagesChanged, image_id: str) -> bool:
    """Whether the image is gone, or has lost its names, as by `docker rmi -f` while a container uses it."""
    return image_id in event.gone or any(one.id == image_id and not one.names for one in event.seen)


def pulled_again(history: PodHistory, life: Life, container: str, after: Position, before: Position) -> Sequence[Cause]:
    """Return that the container's image had to be pulled again between two positions, and why. A pull that the pull
    policy demands is none.
    """
    definition = life.definition(container)
    pulls = [
        (fact, one)
        for fact, one in life.of(pod.ImageReady)
        if one.container == container and one.pulled and after < fact.position < before
    ]
    if not pulls or (definition is not None and definition.image_pull_policy == "Always"):
        return ()
    fact, event = pulls[-1]
    known = any(one.position < fact.position for one, _ in _ready(history, event.image))
    again = (causes.ImagePulledAgain(image=event.image, **where(fact)),) if known else ()
    return (*(image_gone(history, event.image, fact.position) if known else ()), *again)
