"""The life of one container's claim, from the pod's request to the freed devices. Pure.

Input: Context, the messages that concern claims. Output: the events that follow. Next: `decider`. Source:
pkg/kubelet/cm/devicemanager/manager.go (Allocate, allocateContainerResources, UpdateAllocatedDevices).

The modules in the order of a claim's life: `requests`, the pod's request; `waiting`, what the claim does next, with
`stock`, `topology` and `allocation`, which choose its devices; `questions`, the calls to its plugin; `answers`, the
plugin's answers; `pre_start`, the plugin's notification before each start, which has its own phases; `release`, the
end. `evolve` folds the events.

    phase       message or time                event, next phase
    no claim    pod.DevicesRequested           DevicesAdopted -> waiting      (it held devices before the log began)
    no claim    pod.DevicesRequested           DevicesPending -> waiting
    no claim    pod.DevicesRequested           PreferenceAsked -> preferring
    no claim    pod.DevicesRequested           DevicesChosen -> allocating
    no claim    pod.DevicesRequested           DevicesAllocated -> no claim   (there is nothing to allocate)
    no claim    pod.DevicesRequested           DevicesRefused -> no claim
    waiting     pod.DevicesRequested           DevicesPending -> waiting      (the same request: the same answer)
    waiting     pod.DevicesRequested           DevicesRefused -> waiting      (a changed request)
    waiting     any change, or its retry_at    DevicesPending -> waiting      (for another reason)
    waiting     any change, or its retry_at    PreferenceAsked -> preferring
    waiting     any change, or its retry_at    DevicesChosen -> allocating
    waiting     any change, or its retry_at    DevicesAllocated -> granted    (nothing is left to allocate)
    waiting     any change, or its retry_at    DevicesRefused -> no claim
    preferring  pod.DevicesRequested           DevicesRefused -> preferring   (a changed request)
    preferring  PreferenceAnswered             DevicesChosen -> allocating
    preferring  PreferenceAnswered             DevicesPending -> waiting
    preferring  PreferenceAnswered             DevicesRefused -> no claim
    allocating  pod.DevicesRequested           DevicesRefused -> allocating   (a changed request)
    allocating  AllocateAnswered               DevicesAllocated -> granted
    allocating  AllocateAnswered               DevicesAllocated -> waiting    (for its next resource)
    allocating  AllocateAnswered               DevicesPending -> waiting      (the plugin's options are unknown)
    allocating  AllocateAnswered               DevicesRefused -> no claim     (the response contains no container)
    allocating  AllocateRefused                DevicesPending -> waiting      (the plugin is unavailable; retried)
    allocating  AllocateRefused                DevicesRefused -> no claim
    granted     pod.DevicesRequested           DevicesAllocated -> granted    (the same request: the same answer)
    granted     pod.DevicesRequested           DevicesPending -> waiting      (a device is unhealthy now)
    granted     pod.DevicesRequested           PreferenceAsked -> preferring  (for a resource that was unknown before)
    granted     pod.DevicesRequested           DevicesChosen -> allocating    (for a resource that was unknown before)
    granted     pod.DevicesRequested           DevicesRefused -> no claim     (a device is unhealthy now)
    granted     pod.DevicesRequested           DevicesRefused -> granted      (a changed request)
    any         pod.DevicesReleased            DevicesFreed -> no claim
    any         pod.PodEnded                   DevicesFreed -> no claim
    any         PodsListed                     DevicesFreed -> no claim       (the pod does not exist)

Whether a problem means DevicesPending or DevicesRefused depends on the policy, see `waiting`. A worker's failure counts
as the answer of its plugin (`signals.from_failure`). An answer to a call that is no longer outstanding changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from chronolet.devices import signals
from chronolet.devices.claims import answers, pre_start, release, requests
from chronolet.devices.claims.waiting import advance
from chronolet.devices.context import Context
from chronolet.devices.evolve import evolve
from chronolet.devices.state import State
from chronolet_schemas import pod
from chronolet_schemas.envelope import Event

ClaimMessage = (
    pod.DevicesRequested
    | signals.PreferenceAnswered
    | signals.AllocateAnswered
    | signals.AllocateRefused
    | pod.PreStartRequested
    | signals.PreStartAnswered
    | pod.DevicesReleased
    | pod.PodEnded
    | signals.PodsListed
)
"""Every message that concerns a claim directly."""


def decide(context: Context, message: ClaimMessage) -> Sequence[Event]:
    """Return the events that follow from one message."""
    match message:
        case pod.DevicesRequested():
            return requests.requested(context, message)
        case signals.PreferenceAnswered() | signals.AllocateAnswered() | signals.AllocateRefused():
            return answers.answered(context, message)
        case pod.PreStartRequested():
            return pre_start.requested(context, message)
        case signals.PreStartAnswered():
            return pre_start.answered(context.state, message)
        case pod.DevicesReleased() | pod.PodEnded() | signals.PodsListed():
            return release.freed(context.state, message)
        case _:
            assert_never(message)


def reconsidered(context: Context) -> Iterator[Event]:
    """Advance the waiting claims, oldest first, in passes, until a pass yields no event. Updates `context.state`."""
    changed = True
    while changed:
        changed = False
        for claim in tuple(context.state.waiting()):
            for event in advance(context, claim):
                context.state = evolve(context.state, event)
                changed = True
                yield event


def due(state: State) -> Iterator[int]:
    """Yield the times when waiting claims are retried."""
    return (claim.retry_at for claim in state.waiting() if claim.retry_at)
