"""Pods' requests for devices and their releases. Pure.

Input: State, events of `pod`, the live pods. Output: the events that follow. Next: `decider`. A repeated request gets
the same answer; a release overrides an allocation in progress.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from chronolet.devices import signals
from chronolet.devices.claims import waiting as claims
from chronolet.devices.claims.allocation import Request, problem_of
from chronolet.devices.claims.waiting import ClaimContext
from chronolet.devices.state import Claim, State
from chronolet_schemas import devices, pod
from chronolet_schemas.envelope import Event

Reason = Literal["Released", "PodEnded", "PodGone"]


def requested(context: ClaimContext, message: pod.DevicesRequested) -> Sequence[Event]:
    """Handle a container's request for devices."""
    known = context.state.claims.get(f"{message.uid}/{message.container}")
    if known is None:
        return _first(context, message)
    if message.resources != known.wants:
        return _changed(context, known, message)
    if known.phase == "granted":
        return claims.advance(context, known)  # reports what it holds, unless a device is unhealthy now
    if known.phase == "waiting" and known.reason:
        return (claims.pending(context, known, known.resource, known.reason, known.message, retry_at=known.retry_at),)
    return ()


def _first(context: ClaimContext, message: pod.DevicesRequested) -> Sequence[Event]:
    claim = Claim(
        pod=message.pod,
        uid=message.uid,
        container=message.container,
        role=message.role,
        wants=message.resources,
        since=context.now,
    )
    if message.held:
        return (
            devices.DevicesAdopted(
                pod=claim.pod,
                uid=claim.uid,
                container=claim.container,
                role=claim.role,
                wants=claim.wants,
                at=context.now,
                devices=_free_to_adopt(context.state, claim, message.held),
            ),
        )
    return claims.advance(context, claim)


def _free_to_adopt(state: State, claim: Claim, held: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The reported devices of each resource, provided that no container that may run concurrently holds them."""
    found = {}
    for name, ids in held.items():
        holders = state.holders(name)
        free = tuple(one for one in ids if all(_may_share(claim, state.claims[key]) for key in holders.get(one, ())))
        if name in claim.wants and len(free) == claim.wants[name]:
            found[name] = free
    return found


def _may_share(one: Claim, other: Claim) -> bool:
    return one.uid == other.uid and "init" in (one.role, other.role)


def _changed(context: ClaimContext, known: Claim, message: pod.DevicesRequested) -> Sequence[Event]:
    """Refuse a changed request, as the kubelet does for any change."""
    names = sorted({*known.wants, *message.resources})
    name = next(one for one in names if known.wants.get(one) != message.resources.get(one))
    request = Request(
        uid=known.uid,
        container=known.container,
        resource=name,
        requested=message.resources.get(name, 0),
        recorded=range(known.wants.get(name, 0)),  # type: ignore[arg-type] # their number is what counts
    )
    problem = problem_of(request, context.healthy(name))
    assert problem is not None  # noqa: S101 - the numbers differ
    return (claims.refused(known, name, problem),)


def released(state: State, uid: str, containers: Collection[str] | None, reason: Reason) -> Sequence[Event]:
    """Free what these containers held; None means all containers of the pod."""
    gone = [one for one in state.of_pod(uid) if containers is None or one.container in containers]
    return (_freed(gone, reason),) if gone else ()


def compared(state: State, message: signals.PodsListed) -> Sequence[Event]:
    """Free the devices of pods that no longer live. Claims made after the reading began are kept."""
    living = frozenset(message.uids)
    gone = (state.of_pod(uid) for uid in sorted(state.pods) if uid not in living)
    return [_freed(each, "PodGone") for each in gone if all(one.since < message.as_of for one in each)]


def _freed(gone: Iterable[Claim], reason: Reason) -> Event:
    each = list(gone)
    return devices.DevicesFreed(
        pod=each[0].pod, uid=each[0].uid, devices={one.container: one.devices() for one in each}, reason=reason
    )


def pre_start(context: ClaimContext, message: pod.PreStartRequested) -> Sequence[Event]:
    """Notify the plugins that ask for it that an attempt is about to start; fail if one of them is away."""
    claim = context.state.claims.get(f"{message.uid}/{message.container}")
    if claim is None or claim.starting == message.attempt:
        return ()
    who = {"pod": message.pod, "uid": message.uid, "container": message.container, "attempt": message.attempt}
    asking = [name for name, one in sorted(claim.held.items()) if one.pre_start]
    if not asking:
        return (devices.PreStartDone(**who),)  # type: ignore[arg-type]
    away = [name for name in asking if (one := context.state.resources.get(name)) is None or not one.has_plugin]
    if away:
        missing = f"endpoint not found in cache for a registered resource: {away[0]}"
        return (devices.PreStartFailed(**who, message=missing),)  # type: ignore[arg-type]
    return (devices.PreStartAsked(**who),)  # type: ignore[arg-type]
