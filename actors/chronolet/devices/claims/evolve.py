"""Fold events about containers' devices: the claims, and the holders of each device.

Input: State, an event about a claim. Output: the next State. Next: `devices.evolve`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import immutables
from msgspec.structs import replace

from chronolet.devices.state import Claim, State
from chronolet_schemas import devices
from chronolet_schemas.envelope import Event

Devices = Mapping[str, Iterable[str]]
Used = immutables.Map[str, immutables.Map[str, tuple[str, ...]]]


def _claim(state: State, event: devices.OpenClaimEvent) -> Claim:
    known = state.claim(event.uid, event.container)
    if known is not None:
        return known
    return Claim(
        pod=event.pod, uid=event.uid, container=event.container, role=event.role, wants=event.wants, since=event.at
    )


def _pending(state: State, event: devices.DevicesPending) -> State:
    before = _claim(state, event)
    return _stored(
        state,
        replace(
            before,
            phase="waiting",
            wants=event.wants,
            resource=event.resource,
            chosen=(),
            reason=event.reason,
            message=event.message,
            retry_at=event.retry_at,
        ),
    )


def _preferring(state: State, event: devices.PreferenceAsked) -> State:
    return _numbered(
        state,
        replace(
            _claim(state, event),
            phase="preferring",
            resource=event.resource,
            chosen=(),
            must_include=event.must_include,
            size=event.size,
            near=event.near,
            serial=state.serial + 1,
            reason="",
            message="",
            retry_at=0,
        ),
    )


def _chosen(state: State, event: devices.DevicesChosen) -> State:
    claim = _claim(state, event)
    at = claim.given_at[event.resource] if event.resource in claim.adopted else event.at
    return _numbered(
        state,
        replace(
            claim,
            phase="allocating",
            given_at={**claim.given_at, event.resource: at},
            resource=event.resource,
            chosen=event.devices,
            serial=state.serial + 1,
            reason="",
            message="",
            retry_at=0,
        ),
    )


def _numbered(state: State, claim: Claim) -> State:
    """Store a claim that needs a new call to its plugin, and set the state's serial to that call's number."""
    return replace(_stored(state, claim), serial=claim.serial)


def _adopted(state: State, event: devices.DevicesAdopted) -> State:
    given_at = dict.fromkeys(event.devices, event.at)
    return _stored(state, replace(_claim(state, event), adopted=event.devices, given_at=given_at))


def _allocated(state: State, event: devices.DevicesAllocated) -> State:
    claim = state.claim(event.uid, event.container)
    if claim is None:
        return state
    adopted = claim.adopted
    if event.resource in adopted:
        adopted = {name: ids for name, ids in adopted.items() if name != event.resource}
    return _stored(
        state,
        replace(
            claim,
            phase="granted" if event.complete else "waiting",
            held=event.allocations(),
            adopted=adopted,
            chosen=(),
            reason="",
            message="",
            retry_at=0,
        ),
    )


def _refused(state: State, event: devices.DevicesRefused) -> State:
    """Drop the claim, unless only a changed request was refused: then nothing was allocated for that request, and the
    container keeps its devices.
    """
    claim = state.claim(event.uid, event.container)
    if claim is None or event.reason == "request_changed":
        return state
    return _without(state, event.uid, (event.container,))


def _freed(state: State, event: devices.DevicesFreed) -> State:
    return _without(state, event.uid, event.devices)


def _pre_start(state: State, event: devices.PreStartAsked | devices.PreStartDone | devices.PreStartFailed) -> State:
    claim = state.claim(event.uid, event.container)
    if claim is None:
        return state
    match event:
        case devices.PreStartAsked():
            serial = state.serial + 1
            return replace(_stored(state, replace(claim, starting=event.attempt, start_serial=serial)), serial=serial)
        case _:
            return _stored(state, replace(claim, starting=None))


# -- the tables ----------------------------------------------------------------------------------------------------
def _stored(state: State, claim: Claim) -> State:
    """Store the claim and update the tables derived from it."""
    key = f"{claim.uid}/{claim.container}"
    before = state.claims.get(key)
    containers = state.pods.get(claim.uid, ())
    held, holds = before.devices() if before is not None else {}, claim.devices()
    return State(
        opened_at=state.opened_at,
        serial=state.serial,
        resources=state.resources,
        claims=state.claims.set(key, claim),
        pods=state.pods if before is not None else state.pods.set(claim.uid, (*containers, claim.container)),
        open=_open(state.open, key, is_open=claim.open),
        used=state.used if held == holds else _used(_unused(state.used, key, held), key, holds),
        refused=state.refused,
    )


def _without(state: State, uid: str, gone: Iterable[str]) -> State:
    claims, used, opened = state.claims, state.used, state.open
    containers = state.pods.get(uid, ())
    for container in gone:
        key = f"{uid}/{container}"
        claim = claims.get(key)
        if claim is None:
            continue
        claims = claims.delete(key)
        used = _unused(used, key, claim.devices())
        opened = _open(opened, key, is_open=False)
        containers = tuple(one for one in containers if one != container)
    pods = state.pods
    if containers:
        pods = pods.set(uid, containers)
    elif uid in pods:
        pods = pods.delete(uid)
    return replace(state, claims=claims, pods=pods, open=opened, used=used)


def _open(opened: tuple[str, ...], key: str, *, is_open: bool) -> tuple[str, ...]:
    if (key in opened) == is_open:
        return opened
    return (*opened, key) if is_open else tuple(one for one in opened if one != key)


def _used(used: Used, key: str, holds: Devices) -> Used:
    for resource, ids in holds.items():
        table = used.get(resource, immutables.Map())
        for one in ids:
            table = table.set(one, (*table.get(one, ()), key))
        used = used.set(resource, table)
    return used


def _unused(used: Used, key: str, held: Devices) -> Used:
    for resource, ids in held.items():
        table = used[resource]
        for one in ids:
            others = tuple(holder for holder in table[one] if holder != key)
            table = table.set(one, others) if others else table.delete(one)
        used = used.set(resource, table) if table else used.delete(resource)
    return used


CLAIM_EVENTS: Mapping[type[Event], Callable[[State, Any], State]] = {
    devices.DevicesPending: _pending,
    devices.PreferenceAsked: _preferring,
    devices.DevicesChosen: _chosen,
    devices.DevicesAdopted: _adopted,
    devices.DevicesAllocated: _allocated,
    devices.DevicesRefused: _refused,
    devices.DevicesFreed: _freed,
    devices.PreStartAsked: _pre_start,
    devices.PreStartDone: _pre_start,
    devices.PreStartFailed: _pre_start,
}
"""How each event about a claim changes the state."""
