"""Free the devices of containers, and of pods that have ended. Pure.

Input: State, releases by `pod`, the live pods. Output: DevicesFreed. Next: `lifecycle`. A release overrides an
allocation in progress.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from chronolet.devices import signals
from chronolet.devices.state import Claim, State
from chronolet_schemas import devices, pod

Reason = Literal["Released", "PodEnded", "PodGone"]


def freed(
    state: State, message: pod.DevicesReleased | pod.PodEnded | signals.PodsListed
) -> Sequence[devices.DevicesFreed]:
    """Free the devices of the named containers, of an ended pod, or of pods that no longer exist."""
    match message:
        case pod.DevicesReleased():
            return _released(state, message.uid, message.containers, "Released")
        case pod.PodEnded():
            return _released(state, message.uid, None, "PodEnded")
        case _:
            return _reconciled(state, message)


def _released(
    state: State, uid: str, containers: Collection[str] | None, reason: Reason
) -> Sequence[devices.DevicesFreed]:
    """Free the devices that these containers hold; None means all containers of the pod."""
    gone = [claim for claim in state.of_pod(uid) if containers is None or claim.container in containers]
    return (_event(gone, reason),) if gone else ()


def _reconciled(state: State, message: signals.PodsListed) -> Sequence[devices.DevicesFreed]:
    """Free the devices of pods that no longer exist, except for pods with a claim made after the listing began."""
    live = frozenset(message.uids)
    gone = (state.of_pod(uid) for uid in sorted(state.pods) if uid not in live)
    return [_event(claims, "PodGone") for claims in gone if all(claim.since < message.as_of for claim in claims)]


def _event(gone: Sequence[Claim], reason: Reason) -> devices.DevicesFreed:
    first = gone[0]
    return devices.DevicesFreed(
        pod=first.pod, uid=first.uid, devices={claim.container: claim.devices() for claim in gone}, reason=reason
    )
