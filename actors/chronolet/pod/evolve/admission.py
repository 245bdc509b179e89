"""Folds the events of a pod's admission into its state.

Input: State, an event about admission, devices or the node share. Output: the next State. Next: `evolve`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from msgspec.structs import replace

from chronolet.pod.state import DeviceClaim, NodeShare, State
from chronolet_schemas import pod

_DeviceEvent = pod.DevicesAwaited | pod.DevicesGranted | pod.PreStartRequested | pod.PreStartAllowed
_NodeShareEvent = pod.CgroupRequested | pod.HostPortsAwaited | pod.CgroupGranted | pod.CgroupReleased
AdmissionEvent = pod.AdmissionBegan | pod.DevicesReleased | pod.DevicesRequested | _DeviceEvent | _NodeShareEvent
"""The events that `evolve_admission` folds."""


def evolve_admission(state: State, event: AdmissionEvent) -> State:
    """Return the state after one event of the pod's admission."""
    match event:
        case pod.AdmissionBegan():
            return replace(state, admission=event.kinds)
        case pod.DevicesReleased():
            return replace(state, wishes={n: one for n, one in state.wishes.items() if n not in event.containers})
        case pod.DevicesRequested():
            return _with_claim(state, event.container, _requested(state.wishes.get(event.container), event))
        case pod.CgroupRequested() | pod.HostPortsAwaited() | pod.CgroupGranted() | pod.CgroupReleased():
            return replace(state, share=_share(state, event))
        case _:
            return _changed_claim(state, event.container, lambda one: _with_reply(one, event))


def _requested(before: DeviceClaim | None, event: pod.DevicesRequested) -> DeviceClaim:
    """Return the claim after a request. An awaited claim remains awaited when its request is repeated."""
    claim = before or DeviceClaim(wants={}, phase="asked")
    phase = "awaited" if claim.phase == "awaited" else "asked"
    return replace(claim, wants=event.resources, phase=phase, asked_at=event.requested_at, sandbox=event.sandbox)


def _with_reply(one: DeviceClaim, event: _DeviceEvent) -> DeviceClaim:
    match event:
        case pod.DevicesAwaited():
            return replace(one, phase="awaited", reason=event.reason, message=event.message, asked_at=event.said_at)
        case pod.DevicesGranted():
            return replace(
                one,
                phase="granted",
                reason="",
                message="",
                held={},
                devices=event.devices,
                answer=event.answer,
                pre_start=event.pre_start,
            )
        case pod.PreStartRequested():
            return replace(one, telling=(event.attempt, event.failures), asked_at=event.requested_at)
        case pod.PreStartAllowed():
            return replace(one, telling=None, told=(event.attempt, event.failures))
        case _:
            assert_never(event)


def _changed_claim(state: State, container: str, change: Callable[[DeviceClaim], DeviceClaim]) -> State:
    claim = state.wishes.get(container)
    return state if claim is None else _with_claim(state, container, change(claim))


def _with_claim(state: State, container: str, claim: DeviceClaim) -> State:
    return replace(state, wishes={**state.wishes, container: claim})


def _share(state: State, event: _NodeShareEvent) -> NodeShare:
    """Return the node share after one of its events."""
    match event:
        case pod.CgroupRequested():
            return NodeShare(phase="asked", digest=state.digest, asked_at=event.requested_at, parent=state.share.parent)
        case pod.HostPortsAwaited():
            return replace(state.share, phase="awaited", message=event.message)
        case pod.CgroupGranted():
            return NodeShare(phase="granted", digest=state.share.digest, parent=event.parent)
        case _:
            return NodeShare()
