"""Handle the pod's request for one container's devices: the first, a repeated, or a changed one. Pure.

Input: Context, `pod.DevicesRequested`. Output: the events that follow. Next: `lifecycle`; a claim that must wait is
advanced by `waiting`. A repeated request gets the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chronolet.devices.claims.allocation import Request, problem_of
from chronolet.devices.claims.events import pending, refused, request
from chronolet.devices.claims.waiting import advance
from chronolet.devices.context import Context
from chronolet.devices.state import Claim, State
from chronolet_schemas import devices, pod


def requested(context: Context, message: pod.DevicesRequested) -> Sequence[devices.ClaimEvent]:
    """Handle a container's request for devices."""
    known = context.state.claim(message.uid, message.container)
    if known is None:
        return _first(context, message)
    if message.resources != known.wants:
        return _changed(context, known, message)
    if known.phase == "granted":
        return advance(context, known)  # reports the held devices, unless one is unhealthy now
    if known.phase == "waiting" and known.reason:
        return (pending(context, known, known.resource, known.reason, known.message, retry_at=known.retry_at),)
    return ()


def _first(context: Context, message: pod.DevicesRequested) -> Sequence[devices.ClaimEvent]:
    claim = Claim(
        pod=message.pod,
        uid=message.uid,
        container=message.container,
        role=message.role,
        wants=message.resources,
        since=context.now,
    )
    if message.held:
        adopted = _free_to_adopt(context.state, claim, message.held)
        return (devices.DevicesAdopted(**request(context, claim), devices=adopted),)
    return advance(context, claim)


def _free_to_adopt(state: State, claim: Claim, held: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the reported devices by resource.

    A resource is left out unless exactly the requested number of its reported devices is free, i.e. not held by a
    container that may run at the same time.
    """
    adopted = {}
    for resource, ids in held.items():
        holders = state.holders(resource)
        free = tuple(one for one in ids if all(_may_share(claim, state.claims[key]) for key in holders.get(one, ())))
        if resource in claim.wants and len(free) == claim.wants[resource]:
            adopted[resource] = free
    return adopted


def _may_share(one: Claim, other: Claim) -> bool:
    return one.uid == other.uid and "init" in (one.role, other.role)


def _changed(context: Context, known: Claim, message: pod.DevicesRequested) -> Sequence[devices.ClaimEvent]:
    """Refuse a changed request, whatever the change, as the kubelet does."""
    resources = sorted({*known.wants, *message.resources})
    resource = next(name for name in resources if known.wants.get(name) != message.resources.get(name))
    changed = Request(
        uid=known.uid,
        container=known.container,
        resource=resource,
        requested=message.resources.get(resource, 0),
        recorded=range(known.wants.get(resource, 0)),  # type: ignore[arg-type] # only the number of devices counts
    )
    problem = problem_of(changed, context.healthy(resource))
    assert problem is not None  # noqa: S101 - the numbers differ
    return (refused(known, resource, problem),)
